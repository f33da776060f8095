"""Perfetto traces as a viewer takes them, and a database with everything that a timeline can show."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.command import run
from support.tiny import ADD, GEMM, NCCL, Tiny

HOSTILE = 'a"b\\c</script>=1+1\u202e\x1b[31m\x01\ud7ff' + "\N{OGHAM SPACE MARK}" + "x" * 10_000
ZERO = 1_790_857_026 * 10**9


class Shown(NamedTuple):
    """A slice as a viewer has it."""

    process: str
    track: str
    lane: int
    name: str
    start_ns: int
    duration_ns: int | None


def written(db: Path, path: Path, *options: str) -> Path:
    done = run("export", "perfetto", "--db", db, "-o", path, *options)
    assert done.exit_code == 0, done.stderr
    return path


def packets(path: Path) -> list[Any]:
    classes = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = classes.Trace()
    trace.ParseFromString(path.read_bytes())
    return list(trace.packet)


class Proto:
    """A Perfetto trace as the viewer's importer takes it: packets by time, those of one moment as in the file."""

    def __init__(self, path: Path) -> None:
        self.packets = packets(path)
        self.tracks = {
            item.track_descriptor.uuid: item.track_descriptor
            for item in self.packets
            if item.HasField("track_descriptor")
        }
        self.slices: list[Shown] = []
        self.events: list[Any] = []
        self.flows_out: dict[int, str] = {}
        self.flows_in: dict[int, str] = {}
        self.marks: list[str] = []
        self.counters: dict[str, list[tuple[int, float]]] = defaultdict(list)
        names: dict[str, dict[int, str]] = defaultdict(dict)
        said: list[tuple[Any, str]] = []
        for packet in self.packets:
            if packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED:
                names.clear()
            for kind in ("event_names", "event_categories", "debug_annotation_names"):
                names[kind].update((item.iid, item.name) for item in getattr(packet.interned_data, kind))
            if packet.HasField("track_event"):
                said.append((packet, names["event_names"].get(packet.track_event.name_iid, "")))
        self._stacks: dict[int, list[tuple[Any, str]]] = defaultdict(list)
        for packet, name in sorted(said, key=lambda item: int(item[0].timestamp)):
            self._take(packet, name)
        for stack in self._stacks.values():
            for packet, name in stack:
                self._add(packet, name, None)

    def _take(self, packet: Any, name: str) -> None:
        event = packet.track_event
        self.flows_out.update(dict.fromkeys(event.flow_ids, name))
        self.flows_in.update(dict.fromkeys(event.terminating_flow_ids, name))
        stack = self._stacks[event.track_uuid]
        if event.type == event.TYPE_SLICE_BEGIN:
            stack.append((packet, name))
        elif event.type == event.TYPE_SLICE_END:
            begin, its_name = stack.pop()
            self._add(begin, its_name, packet.timestamp - begin.timestamp)
        elif event.type == event.TYPE_INSTANT:
            self.marks.append(name)
        else:
            track = self.tracks[event.track_uuid]
            self.counters[track.name].append((packet.timestamp, event.double_counter_value))

    def _add(self, packet: Any, name: str, duration: int | None) -> None:
        track = self.tracks[packet.track_event.track_uuid]
        same = [
            key for key, item in self.tracks.items() if (item.parent_uuid, item.name) == (track.parent_uuid, track.name)
        ]
        process = self.tracks[track.parent_uuid].process.process_name
        self.slices.append(Shown(process, track.name, sorted(same).index(track.uuid), name, packet.timestamp, duration))
        self.events.append(packet.track_event)


def json_events(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    events: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    return events


def odd(path: Path) -> Path:
    """Two ranks on clocks 500 ns apart: overlaps on a stream, crossing ranges, a graph's launch, marks, counters."""
    tiny = Tiny(path)
    for rank in (0, 1):
        tiny.capture(rank, {"threads": "256"}, pid=77, clock_zero_unix_ns=ZERO)
        number = tiny.captures
        shift = 500 * rank
        of = {"capture_id": number}
        clock = {"reference_capture_id": 1, "at_ns": ZERO, "offset_ns": shift, "drift_ppm": 0.0, "uses_drift": False}
        tiny.add("clock_alignment", **of, **clock, calls=9, span_ns=1)
        thread = {**of, "process_id": 77, "thread_id": 5, "start_ns": shift}
        tiny.add("op", **thread, op_id=0, name="aten::mm", duration_ns=90, input_dims="[[8, 4], [4, 2]]")
        tiny.add("op", **thread, op_id=1, name="aten::mm_inner", duration_ns=40)
        call = {**thread, "start_ns": shift + 10, "duration_ns": 20}
        tiny.add("launch", **call, launch_id=1, name="cudaGraphLaunch", correlation_id=9)
        given = {"launch_id": 1, "correlation_id": 9, "op_id": 0, "context_id": 1}
        tiny.kernel(GEMM, shift + 1_000, 1_000, **given, grid_x=4, grid_y=1, grid_z=1, block_x=64, block_y=1, block_z=1)
        tiny.kernel(ADD, shift + 1_500, 1_000, **given)  # crosses the one before
        tiny.kernel("inside", shift + 1_600, 100, **given)
        tiny.kernel("nothing", shift + 2_500, 0, **given)
        tiny.kernel("touches", shift + 2_500, 10, **given)
        tiny.kernel(NCCL, shift + 1_000, 50, stream_id=9, context_id=1, collective="allreduce", group_ranks="[0, 1]",
                    group_size=2, group_name="0", sequence=3, dtype="Float", message_in_elements=64)  # fmt: skip
        tiny.kernel("Memcpy HtoD", shift + 3_000, 7, kind="memcpy", bytes=64, context_id=1)
        tiny.kernel("Memset", shift + 3_010, 7, kind="memset", bytes=64, context_id=1)
        tiny.add("counter", capture_id=number, event_id=tiny.events, name="SQ_WAVES", value=12.5)
        tiny.range(1, "outer", shift, shift + 100)
        tiny.range(2, HOSTILE, shift + 50, shift + 150)  # crosses the one before
        other = {**of, "process_id": 1, "thread_id": 1}
        tiny.add("annotation", **other, annotation_id=3, name="a mark", style="mark", start_ns=shift + 5)
        other["thread_id"] = 2
        tiny.add("annotation", **other, annotation_id=4, name="open", style="user", start_ns=shift + 6, is_open=True)
        memory = {
            "device_type": 1,
            "device_id": 0,
            "bytes": 10,
            "total_allocated_bytes": 10,
            "total_reserved_bytes": 20,
        }
        tiny.add("memory_event", **of, memory_event_id=0, start_ns=shift + 8, **memory)
    return tiny.save()
