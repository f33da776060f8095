"""A timeline as Chrome JSON with the categories and arguments of torch.profiler, so that tracedb reads it again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Raw

from tracedb.export.timeline import Header, Sample, Slice, Timeline

JSON_TEXTS = frozenset(("Input Dims", "Input type", "Input Strides", "Concrete Inputs"))
"""Arguments that are JSON already, unless the profiler recorded something else."""
TEXTS_HELD = 4096
OF_JOB = ("backend", "pg_count", "pg_config", "nccl_version")
"""Metadata fields written into distributedInfo."""
CALLS = "ac2g"
CATEGORIES = {"gpu_user_annotation": "Trace"}
"""Ranges that the profiler projected onto streams get the category of its own spans: in the category of ranges, readers
would take process and thread numbers for a device and a stream."""


def write(timeline: Timeline, path: Path) -> None:
    """Write a timeline, one event at a time; compressed with gzip if the name ends in ``.gz``."""
    encoder = msgspec.json.Encoder()
    with _opened(path) as file:
        head = json.dumps(_head(timeline.header), ensure_ascii=False)
        file.write(head[:-1].encode() + b', "traceEvents": [\n')
        separator = b""
        for event in _events(timeline):
            file.write(separator + encoder.encode(event))
            separator = b",\n"
        file.write(b"\n]}\n")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    with path.open("ab") as file:  # append: the target of stdout must not be truncated
        if path.suffix != ".gz":
            yield file
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed:
            yield packed  # type: ignore[misc]  # all that is used of it is write


def _head(header: Header) -> dict[str, Any]:
    said = _decoded(header.metadata) if header.metadata else {}
    known = said if isinstance(said, dict) else {}
    head: dict[str, Any] = {key: value for key, value in known.items() if key not in OF_JOB}
    head |= {"schemaVersion": known.get("schemaVersion", 1), "displayTimeUnit": "ms"}
    if header.base_ns is not None:
        head["baseTimeNanoseconds"] = header.base_ns
    job = {"rank": header.rank, "world_size": header.world_size} | {key: known.get(key) for key in OF_JOB}
    if header.rank is not None:
        head["distributedInfo"] = _given(job)
    if header.devices:
        head["deviceProperties"] = [_given(device) for device in header.devices]
    return head


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _events(timeline: Timeline) -> Iterator[dict[str, Any]]:
    for process in timeline.processes:
        yield _named("process_name", process.pid, 0, name=process.name)
        yield _named("process_labels", process.pid, 0, labels=process.labels)
        yield _named("process_sort_index", process.pid, 0, sort_index=process.place)
    for lane in timeline.lanes:
        name = f"{lane.name} (overlap {lane.lane})" if lane.lane else lane.name
        yield _named("thread_name", lane.pid, lane.tid, name=name)
        yield _named("thread_sort_index", lane.pid, lane.tid, sort_index=lane.place)
    for item, arguments in timeline.slices():
        yield _slice(item, arguments)
        yield from _flows(item)
    for sample in timeline.samples():
        yield _sample(sample)


def _named(what: str, pid: int, tid: int, **said: str | int) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": said}


def _slice(item: Slice, arguments: dict[str, Any]) -> dict[str, Any]:
    event: dict[str, Any] = {"ph": "i" if item.is_mark else "B" if item.is_open else "X"}
    if not item.is_mark:  # torch.profiler does not write these for ranges
        event["cat"] = CATEGORIES.get(item.category, item.category)
    event |= {"name": item.name, "pid": item.pid, "tid": item.tid, "ts": Raw(item.ts.encode())}
    if item.is_mark:
        event["s"] = "t"
    elif not item.is_open:
        event["dur"] = Raw(item.dur.encode())
    event["args"] = {key: _json(value) if key in JSON_TEXTS else value for key, value in arguments.items()}
    return event


def _decoded(text: str, otherwise: Any = None) -> Any:
    """Return what a JSON text says; ``otherwise`` if it is none, or nested too deep. NaN is none, unlike in Python."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return otherwise


@lru_cache(TEXTS_HELD)
def _json(text: str) -> Raw | str:
    """Return a JSON text as it is, and any other as a string."""
    return text if _decoded(text, text) is text else Raw(text.encode())


def _flows(item: Slice) -> Iterator[dict[str, Any]]:
    where = {"cat": CALLS, "name": CALLS, "pid": item.pid, "tid": item.tid, "ts": Raw(item.ts.encode())}
    for number in item.flows or ():
        yield {"ph": "s", "id": number, **where}
    if item.flow is not None:
        yield {"ph": "f", "bp": "e", "id": item.flow, **where}


def _sample(sample: Sample) -> dict[str, Any]:
    said = {sample.unit or "value": sample.value}
    return {"ph": "C", "name": sample.name, "pid": sample.pid, "ts": Raw(sample.ts.encode()), "args": said}
