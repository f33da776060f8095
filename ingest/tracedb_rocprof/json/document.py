"""Stream the JSON of rocprofv3 (``rocprofiler-sdk-tool``), which has one entry per process."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from tracedb.errors import ReadError
from tracedb.ingester.decompress import opened
from tracedb_rocprof.agents import MOST_GPUS, Agent
from tracedb_rocprof.csv.row_groups import LARGEST, Numbers
from tracedb_rocprof.json.record_types import (
    Call,
    Copy,
    CountedDispatch,
    CounterDefinition,
    Dispatch,
    JsonAgent,
    Kind,
    Metadata,
    Strings,
    Symbol,
)
from tracedb_rocprof.json.stream import Incomplete, JsonStream
from tracedb_rocprof.metadata import Place, Recording
from tracedb_rocprof.missing import BAD, NONE
from tracedb_rocprof.staging import Stage

GPU_TYPE = 2
TOP = "rocprofiler-sdk-tool"
API_RECORDS = ("hip_api", "hsa_api", "rccl_api", "marker_api", "rocdecode_api", "rocjpeg_api")
LEFT_ASIDE = {
    "memory_allocation": ("memory_allocation_events", "allocations and releases of device memory; not stored"),
    "scratch_memory": ("scratch_memory_events", "scratch memory of kernels; not stored"),
}

T = TypeVar("T")


NO_SYMBOL = Symbol()
"""For dispatches of kernels that the file does not describe."""


class JsonReader:
    """Reads a document into the staging tables."""

    def __init__(self, stage: Stage, progress: Callable[[int], None]) -> None:
        self._stage = stage
        self._progress = progress
        self._proc = 0
        self._pid: int | None = None
        self._kinds: list[Kind] = []
        self._symbol: dict[int, Symbol] = {}
        """Static shared memory and registers by kernel."""
        self.recording = Recording(metadata={"format": "json"})

    def read(self, path: Path) -> Recording:
        """Read the document; of a truncated one, the complete part. Raises ``ReadError`` if it is something else."""
        damages: list[str] = []
        with opened(path, self._progress, damages) as file:
            stream = JsonStream(file, self._stage.account)
            try:
                for key in stream.members():
                    if key != TOP:
                        stream.skip()
                    elif stream.peek() == b"[":
                        for _ in stream.items():
                            if stream.holds(b"{", "a process"):
                                self._process(stream)
                    elif stream.peek() == b"{":
                        self._process(stream)
                    else:
                        raise ReadError(f"not the JSON that rocprofv3 writes: {TOP} is neither a list nor an object")
            except Incomplete as end:
                self.recording.end_early(end, self._stage.account, self._stage.events_read)
        self._stage.damaged(damages)
        return self.recording

    def _process(self, stream: JsonStream) -> None:
        """Read the entry of one process; records may come before the texts that they refer to."""
        self._proc = self._stage.processes.number(str(self._stage.processes.count))
        self._pid, self._kinds, self._symbol = None, [], {}
        for key in stream.members():
            if key == "metadata":
                self._metadata(stream.decoded(Metadata))
            elif key == "agents":
                self._batches(stream, key, JsonAgent, self._add_agents)
            elif key == "strings":
                self._strings(stream.decoded(Strings))
            elif key == "kernel_symbols":
                self._batches(stream, key, Symbol, self._symbols)
            elif key == "counters":
                self._batches(stream, key, CounterDefinition, self._counters)
            elif key in ("callback_records", "buffer_records"):
                if stream.holds(b"{", key):
                    self._records(stream)
            else:
                stream.skip()

    def _records(self, stream: JsonStream) -> None:
        for key in stream.members():
            if key == "kernel_dispatch":
                self._events(stream, key, Dispatch, self._dispatches)
            elif key == "counter_collection":
                self._events(stream, key, CountedDispatch, self._counted)
            elif key == "memory_copy":
                self._events(stream, key, Copy, self._copies)
            elif key in API_RECORDS:
                self._events(stream, key, Call, self._markers if key == "marker_api" else self._calls)
            elif key in LEFT_ASIDE and stream.holds(b"[", key):
                code, detail = LEFT_ASIDE[key]
                for batch in stream.batches(msgspec.Raw):
                    self._stage.events_read += len(batch)
                    self._stage.account.left_aside(code, len(batch), detail)
            elif key not in LEFT_ASIDE:
                stream.skip()

    def _batches(self, stream: JsonStream, key: str, kind: type[T], put: Callable[[list[T]], None]) -> int:
        """Read a list; returns how many of its items are unreadable."""
        before = stream.unreadable
        if stream.holds(b"[", key):
            for batch in stream.batches(kind):
                if batch:
                    put(batch)
        return stream.unreadable - before

    def _events(self, stream: JsonStream, key: str, kind: type[T], put: Callable[[list[T]], None]) -> None:
        """Read a list of events; only items that are not objects are lost."""
        lost = self._batches(stream, key, kind, put)
        self._stage.events_read += lost
        self._stage.account.lost("event_unreadable", lost, f"items of {key} that are not objects")

    def _counters(self, counters: Iterable[CounterDefinition]) -> None:
        for counter in counters:
            self._stage.texts.define((self._proc, "counter", counter.id.handle), counter.name)

    def _metadata(self, said: Metadata) -> None:
        place = self.recording.places[self._proc] = Place(pid=said.pid, host=said.node.hostname or None)
        self._pid = place.pid

    def _add_agents(self, agents: Iterable[JsonAgent]) -> None:
        mine = self.recording.agents.setdefault(self._stage.processes.text(self._proc), [])
        for agent in agents:
            is_gpu = agent.type == GPU_TYPE
            place = agent.logical_node_type_id
            place = place if place is not None and 0 <= place < MOST_GPUS else None
            logical = agent.logical_node_id if agent.logical_node_id >= 0 else agent.node_id
            mine.append(
                Agent(
                    is_gpu=is_gpu,
                    node_id=agent.node_id,
                    logical_id=logical,
                    name=agent.name or None,
                    product=agent.product_name or None,
                    vendor=agent.vendor_name or None,
                    cu_count=agent.cu_count,
                    clock_mhz=agent.max_engine_clk_fcompute,
                    memory_bytes=sum(bank.size_in_bytes for bank in agent.mem_banks),
                    gpu=place if is_gpu else None,
                )
            )
            label = f"Agent {logical}" if is_gpu else f"CPU {agent.node_id}"
            self._stage.agents.define((self._proc, "agent", agent.id.handle), label)

    def _symbols(self, symbols: Iterable[Symbol]) -> None:
        for symbol in symbols:
            name = symbol.formatted_kernel_name or symbol.demangled_kernel_name or symbol.kernel_name
            self._stage.texts.define((self._proc, "kernel", symbol.kernel_id), name)
            self._symbol[symbol.kernel_id] = symbol

    def _strings(self, strings: Strings) -> None:
        """Keep the names of kinds and operations: their numbers change between releases."""
        self._kinds = strings.buffer_records
        for place, kind in enumerate(strings.buffer_records):
            for number, operation in enumerate(kind.operations):
                self._stage.texts.define((self._proc, "operation", place, number), operation)
        for message in strings.marker_api:
            self._stage.texts.define((self._proc, "marker", message.key), message.value)

    def _common(self, events: Sequence[Dispatch | Call | Copy]) -> dict[str, Any]:
        return {
            "proc": np.full(len(events), self._proc, np.int64),
            "correlation": _numbers(event.correlation_id.internal for event in events),
        }

    def _put(self, table: str, events: Sequence[Dispatch | Call | Copy], columns: dict[str, Any]) -> None:
        start = _numbers(event.start_timestamp for event in events)
        end = _numbers(event.end_timestamp for event in events)
        self._stage.put(table, len(events), {**self._common(events), **columns}, start, end)

    def _operations(self, events: Sequence[Call | Copy]) -> Numbers:
        return _numbers(self._text("operation", event.kind, event.operation) for event in events)

    def _text(self, kind: str, *numbers: int) -> int:
        """Return the text number for a kind and number; for an unknown number, one that names it."""
        least = min(numbers)
        return least if least < 0 else self._stage.texts.reserved((self._proc, kind, *numbers))

    def _agent(self, handle: int) -> int:
        return handle if handle < 0 else self._stage.agents.reserved((self._proc, "agent", handle))

    def _infos(self, events: Sequence[Dispatch]) -> dict[str, Any]:
        """Return the columns shared by dispatches and counted dispatches."""
        infos = [event.dispatch_info for event in events]
        symbols = [self._symbol.get(info.kernel_id, NO_SYMBOL) for info in infos]
        return {
            "name": _numbers(self._text("kernel", info.kernel_id) for info in infos),
            "agent": _numbers(self._agent(info.agent_id.handle) for info in infos),
            "queue": _numbers(info.queue_id.handle for info in infos),
            "dispatch": _numbers(info.dispatch_id for info in infos),
            "static_bytes": _numbers(symbol.group_segment_size for symbol in symbols),
            "vgprs": _numbers(symbol.arch_vgpr_count for symbol in symbols),
            "accum_vgprs": _numbers(symbol.accum_vgpr_count for symbol in symbols),
            "sgprs": _numbers(symbol.sgpr_count for symbol in symbols),
            "scratch_bytes": _numbers(info.private_segment_size for info in infos),
        }

    def _dispatches(self, events: list[Dispatch]) -> None:
        infos = [event.dispatch_info for event in events]
        columns = self._infos(events)
        columns["stream"] = _numbers(event.stream_id.handle if event.stream_id else NONE for event in events)
        columns["shared_bytes"] = _numbers(info.group_segment_size for info in infos)
        columns["graph"] = _numbers(event.graph_exec_id or NONE for event in events)
        columns["graph_node"] = _numbers(event.graph_node_id or NONE for event in events)
        for axis in "xyz":
            columns[f"block_{axis}"] = _numbers(getattr(info.workgroup_size, axis) for info in infos)
            columns[f"grid_{axis}"] = _numbers(getattr(info.grid_size, axis) for info in infos)
        self._put("kernel", events, columns)

    def _counted(self, events: list[CountedDispatch]) -> None:
        """Stage one row per counter of a dispatch; values of the device's parts are summed."""
        dispatches: list[Dispatch] = []
        names: list[int] = []
        values: list[float] = []
        for event in events:
            sums: dict[int, float] = {}
            for record in event.records:
                sums[record.counter_id.handle] = sums.get(record.counter_id.handle, 0.0) + record.value
            dispatches += [event.dispatch_data] * len(sums)
            names += [self._text("counter", handle) for handle in sums]
            values += sums.values()
        columns = {**self._infos(dispatches), "counter": _numbers(names), "value": np.array(values, np.float64)}
        self._put("counter", dispatches, columns)

    def _copies(self, events: list[Copy]) -> None:
        columns = {
            "name": self._operations(events),
            "source": _numbers(self._agent(event.src_agent_id.handle) for event in events),
            "target": _numbers(self._agent(event.dst_agent_id.handle) for event in events),
            "stream": _numbers(event.stream_id.handle if event.stream_id else NONE for event in events),
            "bytes": _numbers(NONE if event.bytes is None else event.bytes for event in events),
        }
        self._put("copy", events, columns)

    def _threads(self, events: Sequence[Call]) -> dict[str, Any]:
        pid = NONE if self._pid is None else self._pid
        return {"tid": _numbers(event.thread_id for event in events), "pid": np.full(len(events), pid, np.int64)}

    def _calls(self, events: list[Call]) -> None:
        self._put("call", events, {**self._threads(events), "name": self._operations(events)})

    def _markers(self, events: list[Call]) -> None:
        styles = [self._style(event) for event in events]
        controls = styles.count(None)
        self._stage.events_read += controls
        self._stage.account.left_aside(
            "profiler_control", controls, "profiler control calls (pause, resume, name); not stored as ranges"
        )
        kept = [event for event, style in zip(events, styles, strict=True) if style]
        names = _numbers(self._text("marker", event.correlation_id.internal) for event in kept)
        columns = {**self._threads(kept), "name": names, "style": np.array([style for style in styles if style])}
        if kept:
            self._put("marker", kept, columns)

    def _style(self, event: Call) -> str | None:
        """Return the style of a roctx call; None if it is neither range nor mark."""
        kind = self._kinds[event.kind] if 0 <= event.kind < len(self._kinds) else Kind()
        operation = kind.operations[event.operation] if 0 <= event.operation < len(kind.operations) else ""
        if kind.kind and not kind.kind.startswith("MARKER_CORE"):
            return None
        if event.start_timestamp == event.end_timestamp or "Mark" in operation:
            return "mark"
        if operation and "Range" not in operation:
            return None
        return "start_end" if re.search("ProcessRange|RangeSt", operation) else "push_pop"


def _numbers(values: Iterable[int]) -> Numbers:
    """Return 64-bit integers; ``BAD`` for anything else."""
    found = list(values)
    try:
        return np.array(found, np.int64)
    except OverflowError:
        return np.array([value if NONE <= value <= LARGEST else BAD for value in found], np.int64)
