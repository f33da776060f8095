"""Kineto traces built from Python events: in the layout of the profiler, compact or indented; plain, gzip or zstd.

An event is a dict, or bytes that are inserted unchanged (a malformed event). A value in an event may be a ``Raw``: JSON
text, valid or not.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

Event = dict[str, Any]


Around = dict[str, Any] | bytes | None


LAYOUTS = ("native", "compact", "indented", "lines")


HEADER: dict[str, Any] = {
    "schemaVersion": 1,
    "deviceProperties": [
        {
            "id": 0,
            "name": "NVIDIA H100 80GB HBM3",
            "totalGlobalMem": 84942979072,
            "computeMajor": 9,
            "computeMinor": 0,
            "warpSize": 32,
            "numSms": 132,
        }
    ],
    "cupti_version": 28,
    "cuda_runtime_version": 13000,
    "displayTimeUnit": "ms",
    "baseTimeNanoseconds": 1759000000000000000,
}


PROCESS, MAIN_THREAD, AUTOGRAD_THREAD = 4242, 4242, 4300


@dataclass(frozen=True)
class Raw:
    """Text that stands in the file as it is, where a value is expected."""

    text: str


def kernel(
    ts: Any,
    dur: Any = 1,
    name: str | Raw = "gemm",
    *,
    correlation: Any = None,
    device: int = 0,
    stream: int = 7,
    cat: str | Raw = "kernel",
    **args: Any,
) -> Event:
    """A GPU row; ``args`` with ``_`` for blanks (``External_id``) or given as a dict under ``args``."""
    given = {"device": device, "context": 1, "stream": stream}
    if correlation is not None:
        given["correlation"] = correlation
    given.update(args.pop("args", {}), **{key.replace("_", " "): value for key, value in args.items()})
    return {"ph": "X", "cat": cat, "name": name, "pid": device, "tid": stream, "ts": ts, "dur": dur, "args": given}


def memcpy(ts: Any, dur: Any = 1, name: str = "Memcpy HtoD (Pageable -> Device)", **args: Any) -> Event:
    """A copy."""
    return kernel(ts, dur, name, cat="gpu_memcpy", **args)


def call(
    ts: Any,
    dur: Any = 1,
    correlation: Any = None,
    name: str = "cudaLaunchKernel",
    *,
    pid: Any = PROCESS,
    tid: Any = MAIN_THREAD,
    external: Any = None,
    cat: str = "cuda_runtime",
) -> Event:
    """A runtime or driver call."""
    args: dict[str, Any] = {"cbid": 211}
    if external is not None:
        args["External id"] = external
    if correlation is not None:
        args["correlation"] = correlation
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def op(
    ts: Any,
    dur: Any,
    name: str = "aten::mm",
    external: Any = None,
    *,
    pid: Any = PROCESS,
    tid: Any = MAIN_THREAD,
    cat: str = "cpu_op",
    **args: Any,
) -> Event:
    """A framework operator."""
    given = {"External id": external} if external is not None else {}
    given.update(args.pop("args", {}), **{key.replace("_", " "): value for key, value in args.items()})
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": given}


def annotation(
    ts: Any, dur: Any, name: str, *, pid: Any = PROCESS, tid: Any = MAIN_THREAD, cat: str = "user_annotation"
) -> Event:
    """A record_function range."""
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": {}}


def frame(ts: Any, dur: Any, name: str | Raw) -> Event:
    """A Python function."""
    args = {"Python id": 1, "Python parent id": None, "Python module id": None}
    where = {"pid": PROCESS, "tid": MAIN_THREAD, "ts": ts, "dur": dur}
    return {"ph": "X", "cat": "python_function", "name": name, **where, "args": args}


def window_end(ts: Any = 100) -> Event:
    """The mark that the profiler writes last."""
    return {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": ts}


def launched(count: int = 3, first: int = 1, pid: int = PROCESS, device: int = 0) -> list[Event]:
    """``count`` operators with a launch and a kernel each: op at 100·i, kernel ``k<i>`` at 100·i + 50."""
    events: list[Event] = []
    for i in range(count):
        number = first + i
        events.append(op(100 * i, 20, external=number, pid=pid, tid=pid))
        events.append(call(100 * i + 5, 2, 1000 + number, pid=pid, tid=pid, external=number))
        events.append(kernel(100 * i + 50, 10, f"k{i}", correlation=1000 + number, device=device, External_id=number))
    return events


def dumps(value: Any, indent: int | None = None) -> str:
    """Return JSON text with every ``Raw`` pasted as it is."""
    raw: list[str] = []

    def paste(item: object) -> str:
        assert isinstance(item, Raw)
        raw.append(item.text)
        return f"\x00{len(raw) - 1}\x00"

    separators = (",", ":") if indent is None else None
    text = json.dumps(value, default=paste, indent=indent, separators=separators, ensure_ascii=False)
    return re.sub(r'"\\u0000(\d+)\\u0000"', lambda match: raw[int(match[1])], text)


def event_text(event: Event | bytes, layout: str) -> bytes:
    """Return one event in the given layout."""
    if isinstance(event, bytes):
        return event
    if layout == "indented":
        return dumps(event, 4).encode()
    if layout != "native":
        return dumps(event).encode()
    head = ", ".join(
        f'"{key}": {dumps(value)}' for key, value in event.items() if key in ("ph", "cat", "name", "pid", "tid", "s")
    )
    times = ", ".join(f'"{key}": {dumps(event[key])}' for key in ("ts", "dur") if key in event)
    text = f"  {{\n    {head},\n    {times}"
    if "args" in event and not isinstance(event["args"], dict):
        text += f',\n    "args": {dumps(event["args"])}'
    elif "args" in event:
        inner = ", ".join(f"{json.dumps(key)}: {dumps(value)}" for key, value in event["args"].items())
        text += f',\n    "args": {{\n      {inner}\n    }}'
    return (text + "\n  }").encode()


def document(
    events: Sequence[Event | bytes],
    layout: str = "native",
    header: Around = None,
    after: Around = None,
) -> bytes:
    """Return a whole trace. ``header`` and ``after`` are what stands before and after the events (bytes: as is)."""
    before = HEADER if header is None else header
    between = {"native": b",\n", "compact": b",", "indented": b",\n    ", "lines": b",\n"}[layout]
    body = between.join(event_text(event, layout) for event in events)
    head = before if isinstance(before, bytes) else _members(before, layout)
    tail = after if isinstance(after, bytes) else _members(after or {}, layout)
    key = b'"traceEvents":[' if layout == "compact" else b'"traceEvents": [\n'
    return b"".join(
        (b"{", head, b"," if head.strip() else b"", key, body, b"]", b"," if tail.strip() else b"", tail, b"}")
    )


def _members(fields: dict[str, Any], layout: str) -> bytes:
    return dumps(fields, None if layout == "compact" else 2)[1:-1].rstrip().encode()


def bare_list(events: Sequence[Event | bytes], layout: str = "native") -> bytes:
    """Return a trace of 2020: a list of events."""
    return b"[" + b",\n".join(event_text(event, layout) for event in events) + b"]"


def packed(content: bytes, ending: str) -> bytes:
    """Pack for a file of that ending: ``.gz``, ``.zst``, else nothing is done."""
    if ending == ".gz":
        return gzip.compress(content, 1, mtime=0)
    if ending == ".zst":
        return zstandard.compress(content, 1)
    return content


def write(path: Path, events: Sequence[Event | bytes] | bytes, layout: str = "native", **around: Any) -> Path:
    """Write a trace, packed as the path's ending says; of bytes the content is as given."""
    content = events if isinstance(events, bytes) else document(events, layout, **around)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed(content, path.suffix))
    return path
