"""Kineto traces built from Python events: in the layout of the profiler, compact or indented; plain, gzip or zstd.

An event is a dict, or bytes that are pasted as they are (a malformed event). A value in an event may be a ``Raw``: JSON
text, or what a faulty writer took for it.
"""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import zstandard

from tracedb import schema, views
from tracedb.database import STORAGE_VERSION, quoted
from tracedb.ingester import Capture, Options, Rows
from tracedb_torch import ingester

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


# Writing


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


# Reading


@dataclass
class Reading:
    """What the ingester gave for one file, by table; every row has ``part``."""

    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def rows(self, table: str, *names: str, part: int | None = None) -> list[Any]:
        """Rows as tuples of the named columns (single values for one name), in the order of the file's clock."""
        found = [row for row in self.tables.get(table, []) if part is None or row["part"] == part]
        found.sort(key=lambda row: (row["part"], row.get("start_ns", 0), row.get("event_id", 0)))
        return [row[names[0]] if len(names) == 1 else tuple(row[name] for name in names) for row in found]

    def kernels(self, *names: str) -> list[Any]:
        """Columns of the GPU rows; by default name, start and duration."""
        return self.rows("kernel_event", *(names or ("name", "start_ns", "duration_ns")))

    @property
    def captures(self) -> list[dict[str, Any]]:
        """The capture rows."""
        return self.tables["capture"]

    @property
    def capture(self) -> dict[str, Any]:
        """The only capture row."""
        (row,) = self.captures
        return row

    @property
    def status(self) -> str:
        """Status of the only capture."""
        return str(self.capture["status"])

    @property
    def issues(self) -> dict[str, int]:
        """Count by code."""
        return {row["code"]: row["count"] for row in self.tables.get("ingest_issue", [])}

    @property
    def faults(self) -> dict[str, int]:
        """Count by code of the issues that are warnings."""
        return {
            row["code"]: row["count"] for row in self.tables.get("ingest_issue", []) if row["severity"] == "warning"
        }


def read(path: Path, **options: Any) -> Reading:
    """Read one file with the torch ingester alone, and check what must hold of every reading."""
    captures = list(ingester.find([path]))
    assert len(captures) == 1, f"{path} is not recognised"
    return read_capture(captures[0], **options)


def read_capture(capture: Capture, **options: Any) -> Reading:
    """Read a claimed capture; see ``read``."""
    reading = Reading()
    with instance().cursor() as scratch:  # has temporary tables of its own
        for rows in ingester.read(capture, scratch, Options(**options)):
            reading.tables.setdefault(rows.table, []).extend(as_dicts(rows))
    check(reading)
    return reading


@cache
def instance() -> duckdb.DuckDBPyConnection:
    """The engine that all readings share; starting one takes longer than most of them."""
    return duckdb.connect(":memory:", config={"threads": 1})


@cache
def empty_database() -> bytes:
    """The content of a database without captures."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.duckdb"
        with duckdb.connect(":memory:") as connection:
            connection.execute(f"ATTACH {quoted(str(path))} AS trace (STORAGE_VERSION {quoted(STORAGE_VERSION)})")
            connection.execute("USE trace")
            schema.apply(connection, "test")
            views.install(connection)
        return path.read_bytes()


def as_dicts(rows: Rows) -> Iterator[dict[str, Any]]:
    """Give the rows one by one, with the missing columns as None."""
    data = rows.data.to_arrow_table() if isinstance(rows.data, duckdb.DuckDBPyRelation) else rows.data
    missing = dict.fromkeys(schema.arrow(rows.table).names if rows.table != "capture" else ())
    for row in data.to_pylist():
        yield {**missing, **row, "part": rows.part}


def check(reading: Reading) -> None:
    """What must hold of every reading: nothing is lost without an account, numbers are unique, times are sane."""
    issues = reading.tables.get("ingest_issue", [])
    assert len(issues) == len({(row["part"], row["code"]) for row in issues})
    for capture in reading.captures:
        part = capture["part"]
        gave = sum(len(reading.rows(table, "part", part=part)) for table in schema.EVENT_TABLES)
        assert capture["rows_written"] == gave
        assert capture["events_read"] == gave + capture["events_skipped"]
        assert capture["events_skipped"] == sum(row["skipped"] for row in issues if row["part"] == part)
        for table, key in (("kernel_event", "event_id"), ("launch", "launch_id"), ("op", "op_id")):
            numbers = reading.rows(table, key, part=part)
            assert len(numbers) == len(set(numbers))
            assert all(duration >= 0 for duration in reading.rows(table, "duration_ns", part=part))
        launches, ops = set(reading.rows("launch", "launch_id", part=part)), set(reading.rows("op", "op_id", part=part))
        assert set(reading.rows("kernel_event", "launch_id", part=part)) <= launches | {None}
        assert set(reading.rows("kernel_event", "op_id", part=part)) <= ops | {None}
        assert set(reading.rows("op", "parent_op_id", part=part)) <= ops | {None}
