"""A timeline as a Perfetto trace: protobuf packets of track events, made with the package ``perfetto``."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from tracedb.errors import TracedbError
from tracedb.export.timeline import Header, Lane, Process, Sample, Slice, Timeline

SEQUENCE = 1
REALTIME, BOOTTIME = 1, 6  # clock ids of the format
NAMES_HELD = 16 << 20
"""Bytes of text remembered before text numbering restarts."""


def write(timeline: Timeline, path: Path) -> None:
    """Write a timeline.

    Memory holds one packet, the open slices of a lane, and the names so far. Times are ns since 1970 if the clocks are
    absolute, else since the zero of the first capture. Raises ``TracedbError`` if the package is missing.
    """
    with path.open("ab") as file:  # append: the target of stdout must not be truncated
        writer = _Writer(file, timeline.header)
        for process in timeline.processes:
            writer.process(process)
        for lane in timeline.lanes:
            writer.lane(lane)
        for item, arguments in timeline.slices():
            writer.slice(item, arguments)
        writer.close_lane()
        for sample in timeline.samples():
            writer.sample(sample)


def format_classes() -> Any:
    """Return the module with the classes of the format. Raises ``TracedbError`` if it is not installed."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ModuleNotFoundError as error:
        raise TracedbError(
            "a Perfetto trace needs the package perfetto, which is not installed: pip install 'tracedb-gpu[perfetto]'; "
            "or write Chrome JSON, which does not need it: -o FILE.json"
        ) from error
    return perfetto_trace_pb2


class _Writer:
    """Writes packets one by one; each is a valid trace, and a file is their concatenation."""

    def __init__(self, file: IO[bytes], header: Header) -> None:
        self._file = file
        self._format = format_classes()
        self._base = header.base_ns or 0
        self._open: list[int] = []  # end times of the open slices of the lane
        self._lane = 0
        self._counters: dict[tuple[int, str], int] = {}
        self._texts: dict[tuple[str, str], int] = {}
        self._held = NAMES_HELD  # the first packet starts the numbering
        if header.base_ns is not None:
            self._clocks(header.base_ns)

    def process(self, process: Process) -> None:
        packet = self._packet()
        track = packet.track_descriptor
        track.uuid = _of_process(process.pid)
        track.process.pid = process.pid
        track.process.process_name = process.name
        track.process.process_labels.append(process.labels)
        track.sibling_order_rank = process.place
        track.child_ordering = track.EXPLICIT
        self._write(packet)

    def lane(self, lane: Lane) -> None:
        """Describe a lane. The viewer draws lanes of one thread or stream together, and no others of the same name."""
        packet = self._packet()
        track = packet.track_descriptor
        track.uuid = _of_lane(lane.number)
        track.parent_uuid = _of_process(lane.pid)
        track.name = lane.name
        track.sibling_order_rank = lane.place
        track.sibling_merge_behavior = track.SIBLING_MERGE_BEHAVIOR_BY_SIBLING_MERGE_KEY
        track.sibling_merge_key_int = lane.number - lane.lane  # the number of its first lane
        self._write(packet)

    def slice(self, item: Slice, arguments: dict[str, Any]) -> None:
        """Write the start of a slice, after the ends of earlier slices on its lane."""
        if item.track_number != self._lane:
            self.close_lane()
            self._lane = item.track_number
        self._end(item.start_ns)
        packet = self._packet(item.start_ns)
        event = packet.track_event
        event.type = event.TYPE_INSTANT if item.is_mark else event.TYPE_SLICE_BEGIN
        event.track_uuid = _of_lane(item.track_number)
        event.flow_ids.extend(item.flows or ())
        if item.flow is not None:
            event.terminating_flow_ids.append(item.flow)
        self._start_numbering(packet)
        event.name_iid = self._number(packet, "event_names", item.name)
        event.category_iids.append(self._number(packet, "event_categories", item.category))
        for name, value in arguments.items():
            said = event.debug_annotations.add()
            said.name_iid = self._number(packet, "debug_annotation_names", name)
            _set(said, value)
        self._write(packet)
        if not item.is_mark and not item.is_open:
            self._open.append(item.end_ns)

    def close_lane(self) -> None:
        """Write the ends of all open slices of the lane, except of ranges that never ended in the capture."""
        self._end(None)

    def sample(self, sample: Sample) -> None:
        """Write a value of a counter, preceded by its description if it is the first."""
        key = (sample.pid, sample.name)
        if key not in self._counters:
            self._counters[key] = _of_counter(len(self._counters))
            packet = self._packet()
            track = packet.track_descriptor
            track.uuid = self._counters[key]
            track.parent_uuid = _of_process(sample.pid)
            track.name = sample.name
            if sample.unit == "bytes":
                track.counter.unit = track.counter.UNIT_SIZE_BYTES
            elif sample.unit is not None:
                track.counter.unit_name = sample.unit
            self._write(packet)
        packet = self._packet(sample.start_ns)
        packet.track_event.type = packet.track_event.TYPE_COUNTER
        packet.track_event.track_uuid = self._counters[key]
        packet.track_event.double_counter_value = sample.value
        self._write(packet)

    def _end(self, before: int | None) -> None:
        while self._open and (before is None or self._open[-1] <= before):
            packet = self._packet(self._open.pop())
            packet.track_event.type = packet.track_event.TYPE_SLICE_END
            packet.track_event.track_uuid = _of_lane(self._lane)
            self._write(packet)

    def _packet(self, at_ns: int | None = None) -> Any:
        packet = self._format.TracePacket()
        packet.trusted_packet_sequence_id = SEQUENCE
        if at_ns is not None:
            packet.timestamp = self._base + at_ns
        return packet

    def _clocks(self, base_ns: int) -> None:
        packet = self._packet()
        for clock in (BOOTTIME, REALTIME):
            packet.clock_snapshot.clocks.add(clock_id=clock, timestamp=base_ns)
        self._write(packet)

    def _start_numbering(self, packet: Any) -> None:
        packet.sequence_flags = packet.SEQ_NEEDS_INCREMENTAL_STATE
        if self._held >= NAMES_HELD:
            packet.sequence_flags |= packet.SEQ_INCREMENTAL_STATE_CLEARED
            self._texts.clear()
            self._held = 0

    def _number(self, packet: Any, kind: str, text: str) -> int:
        """Return the number of a text; a new text is added to the packet."""
        number = self._texts.get((kind, text))
        if number is None:
            number = len(self._texts) + 1
            self._texts[kind, text] = number
            self._held += len(text) + 100
            getattr(packet.interned_data, kind).add(iid=number, name=text)
        return number

    def _write(self, packet: Any) -> None:
        self._file.write(self._format.Trace(packet=[packet]).SerializeToString())


def _of_process(pid: int) -> int:
    return (1 << 48) + pid


def _of_lane(number: int) -> int:
    return (2 << 48) + number


def _of_counter(number: int) -> int:
    return (3 << 48) + number


def _set(said: Any, value: Any) -> None:
    if isinstance(value, bool):
        said.bool_value = value
    elif isinstance(value, int):
        said.int_value = value
    elif isinstance(value, float):
        said.double_value = value
    elif isinstance(value, list):
        for item in value:
            _set(said.array_values.add(), item)
    else:
        said.string_value = str(value)
