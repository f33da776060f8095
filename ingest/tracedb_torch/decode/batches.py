"""Staging batches out of events of one category. A block's batches are kept until the whole block is known good."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb.ingester import Options
from tracedb.ingester.issues import Account
from tracedb_torch.decode import event_types as ev
from tracedb_torch.decode.begin_end import Edge
from tracedb_torch.decode.values import (
    LARGEST,
    Mask,
    Texts,
    Times,
    bounded,
    ids,
    integers,
    nanoseconds,
    number,
    number_of,
    numbers,
    process_number,
    text_of,
)
from tracedb_torch.int_columns import UNUSABLE, word
from tracedb_torch.staging_columns import COLUMNS

Ordinals = npt.NDArray[np.int64]
KINDS = {"Memcpy": "memcpy", "gpu_memcpy": "memcpy", "Memset": "memset", "gpu_memset": "memset"}
NO_CORRELATION = frozenset((0, -1, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF))
LEAST = -LARGEST - 1
LATEST_END = LARGEST - 10**15  # ns; what is added to a time later still is one
MOST_SMALL = (1 << 31) - 1
STEP = "ProfilerStep#"
NO_START = "events without a usable ts"
MEMORY_EVENTS = "allocator events; --memory-events stores them"
PYTHON_FUNCTIONS = "Python frames; --python-stacks stores them"


class Batches:
    """Makes staging batches; ``discard`` forgets and ``commit`` returns those of the current block.

    Events are numbered from 0 within the block; whoever knows how many came before adds that.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._texts = Texts()
        self.processes: dict[int | str | None, int] = {}
        self._ready: list[tuple[str, pa.RecordBatch]] = []
        self.account = Account()
        """What is counted of the current block."""
        self.edges: list[Edge] = []
        """Its events that begin or end."""
        self.has_fractions = False

    def discard(self) -> None:
        """Forget the current block."""
        self._ready.clear()
        self.edges.clear()
        self.account = Account()

    def commit(self, account: Account) -> list[tuple[str, pa.RecordBatch]]:
        """Return the batches of the current block, and put its counts into the account."""
        account.merge(self.account)
        self.account = Account()
        ready, self._ready = self._ready, []
        if self._texts.new:
            numbers, values = zip(*self._texts.new, strict=True)
            self._texts.new = []
            ready.append(("text", _batch("text", id=integers(numbers), value=pa.array(values, pa.string()))))
        return ready

    def leaves_frames(self, shape: ev.Shape) -> bool:
        """Whether events are Python frames that nobody asked for."""
        return shape.kind == ev.PYTHON and not self._options.python_stacks

    def take(self, shape: ev.Shape, ordinals: Ordinals, members: list[Any], trust_large: bool, exact: bool) -> None:
        """Make the batches of events of one category; see ``nanoseconds`` for the flags."""
        if shape.kind == ev.MEMORY and not self._options.memory_events:
            self.account.left_aside("memory_events", len(members), MEMORY_EVENTS)
            return
        if self.leaves_frames(shape):
            self.account.left_aside("python_functions", len(members), PYTHON_FUNCTIONS)
            return
        start, good, fractional = nanoseconds([member.ts for member in members], trust_large, exact)
        self.has_fractions = self.has_fractions or fractional
        if shape.kind == ev.MEMORY:
            duration = np.zeros(len(members), np.int64)
            self.account.lost("timestamp_unusable", int((~good).sum()), NO_START, shape.category)
        else:
            duration, measured, _ = nanoseconds([member.dur for member in members], True, exact)
            measured &= start <= LATEST_END - np.maximum(duration, 0)  # the end must be a time, too
            good = self._judge(shape, members, good, measured, duration)
        if not good.all():
            keep = np.flatnonzero(good)
            members = [members[i] for i in keep]
            ordinals, start, duration = ordinals[keep], start[keep], duration[keep]
        if members:
            self._make(shape, ordinals, members, start, duration)

    def take_edges(
        self, shape: ev.Shape, ordinals: Ordinals, members: list[Any], trust_large: bool, exact: bool
    ) -> None:
        """Take events that begin or end; see ``nanoseconds`` for the flags."""
        start, good, fractional = nanoseconds([member.ts for member in members], trust_large, exact)
        self.has_fractions = self.has_fractions or fractional
        self.account.lost("timestamp_unusable", int((~good).sum()), NO_START, shape.category)
        found = zip(members, start.tolist(), ordinals.tolist(), good.tolist(), strict=True)
        self.edges += [
            Edge(shape, member.ph == "B", member.name, member.pid, member.tid, time, member.args, ordinal)
            for member, time, ordinal, is_good in found
            if is_good
        ]

    def take_pairs(self, shape: ev.Shape, begins: list[Edge]) -> None:
        """Make the rows of beginnings that have a duration, or of ranges that are still open."""
        ordinals, start, duration = (
            np.array([getattr(begin, name) or 0 for begin in begins], np.int64)
            for name in ("ordinal", "start_ns", "dur")
        )
        self._make(shape, ordinals, begins, start, duration)

    def _judge(self, shape: ev.Shape, members: list[Any], good: Mask, measured: Mask, duration: Times) -> Mask:
        """Take out events without usable times, each with its reason."""
        lost, category = self.account.lost, shape.category
        lost("timestamp_unusable", int((~good).sum()), NO_START, category)
        if shape.kind in (ev.USER, ev.PYTHON):
            still_open = np.array([member.dur is None for member in members], np.bool_)
            measured = measured | still_open
        negative = good & measured & (duration < 0)
        lost("duration_missing", int((good & ~measured).sum()), "events without a usable dur", category)
        lost("duration_negative", int(negative.sum()), "events that end before they start", category)
        return good & measured & ~negative

    def _make(self, shape: ev.Shape, ordinals: Ordinals, members: list[Any], start: Times, duration: Times) -> None:
        # A comprehension per attribute: several times faster than one call for all of them.
        names = [member.name for member in members]
        if None in names:
            names = ["(no name)" if name is None else name for name in names]
        pids = [member.pid for member in members]
        args = [member.args for member in members]
        if None in args:
            args = [found or ev.ARGS[shape.kind]() for found in args]
        tids = [member.tid for member in members]
        common = {
            "pid": self._process_numbers(pids),
            "tid": self._counted("tid", *numbers(tids)),
            "name": self._texts.numbers(names),
            "start_ns": pa.array(start),
            "duration_ns": pa.array(duration),
        }
        if shape.kind == ev.GPU:
            self._check_places(pids, tids, args)
            self._gpu(KINDS.get(shape.category, "kernel"), ordinals, common, args)
        elif shape.kind == ev.LAUNCH:
            self._launch(ordinals, common, args)
        elif shape.kind == ev.OP:
            self._op(shape, ordinals, common, args, names)
        elif shape.kind == ev.MEMORY:
            self._memory(ordinals, common, args)
        else:
            self._annotation(shape.kind, ordinals, common, members)

    def _counted(self, name: str, values: pa.Array, lost: int) -> pa.Array:
        """Return the values of a field, and count those that were lost."""
        self.account.unreadable(name, lost)
        return values

    def _whole(self, name: str, values: Sequence[int | None], least: int = 0, most: int = LARGEST) -> pa.Array:
        """Return the values of a field, NULL for those that cannot be one."""
        return self._counted(name, *bounded(values, least, most))

    def _place(self, name: str, values: Sequence[int | None], most: int = LARGEST) -> pa.Array:
        """Return devices or streams, ``UNUSABLE`` for what cannot be one."""
        return self._counted(name, *bounded(values, 0, most, UNUSABLE))

    def _correlation(self, values: Sequence[int | None]) -> pa.Array:
        """Return correlation ids; the profilers' several words for none become NULL, so that no join meets them.

        One that is negative, or read as signed would be, still joins, but is in no row.
        """
        if not NO_CORRELATION.isdisjoint(values):
            values = [None if value in NO_CORRELATION else value for value in values]
        found, lost = bounded(values)
        self.account.unreadable("correlation", lost)
        return ids(values) if lost else found

    def _sizes(self, what: str, values: Sequence[Any]) -> dict[str, pa.Array]:
        """Return three columns of sizes, all of them NULL where one cannot be a size."""
        if values.count(None) == len(values):
            return {f"{what}_{axis}": integers(values) for axis in "xyz"}
        if {*map(type, values)} == {tuple}:
            columns = [bounded(column) for column in zip(*values, strict=True)]
            if not any(lost for _, lost in columns):
                return {f"{what}_{axis}": column for axis, (column, _) in zip("xyz", columns, strict=True)}
        sizes = [_size(value) for value in values]
        good = [None if size is None or not 0 <= min(size) <= max(size) <= LARGEST else size for size in sizes]
        self.account.unreadable(what, good.count(None) - values.count(None))
        rows = [size or (None, None, None) for size in good]
        return {f"{what}_{axis}": integers([row[place] for row in rows]) for place, axis in enumerate("xyz")}

    def _process_numbers(self, pids: Sequence[int | str | None]) -> pa.Array:
        different = set(pids)
        for pid in different:
            if pid not in self.processes:
                self.processes[pid] = process_number(pid)
        impossible = {pid for pid in different if type(pid) is int and not 0 <= pid <= LARGEST}
        if impossible:
            self.account.unreadable("pid", sum(pid in impossible for pid in pids))
        if len(different) == 1:
            return pa.array(np.full(len(pids), self.processes[pids[0]], np.int64))
        return integers([self.processes[pid] for pid in pids])

    def _check_places(
        self, pids: Sequence[int | str | None], tids: Sequence[int | str | None], args: Sequence[Any]
    ) -> None:
        """Count processes and threads that stand for a device and a stream that an event does not name, but cannot."""
        if None in [found.device for found in args]:
            self._check_devices(pid for pid, found in zip(pids, args, strict=True) if found.device is None)
        if None in [found.stream for found in args]:
            streams = (number(tid) or 0 for tid, found in zip(tids, args, strict=True) if found.stream is None)
            self.account.unreadable("tid", sum(stream < 0 for stream in streams))

    def _check_devices(self, pids: Iterable[int | str | None]) -> None:
        """Count processes that stand for a device and have too many bits for one."""
        self.account.unreadable("pid", sum(self.processes[pid] > MOST_SMALL for pid in pids))

    def _gpu(self, kind: str, ordinals: Ordinals, common: dict[str, pa.Array], args: Sequence[Any]) -> None:
        batch = _batch(
            "gpu",
            event_id=pa.array(ordinals),
            pid=common["pid"],
            tid=common["tid"],
            kind=word("kind", kind, len(ordinals)),
            name=common["name"],
            start_ns=common["start_ns"],
            duration_ns=common["duration_ns"],
            external_id=_external([a.external_id for a in args], [a.external_id_2021 for a in args]),
            device_id=self._place("device", [a.device for a in args], MOST_SMALL),
            context_id=self._whole("context", [a.context for a in args]),
            stream_id=self._place("stream", [a.stream for a in args]),
            correlation_id=self._correlation([a.correlation for a in args]),
            registers=self._whole("registers per thread", [a.registers for a in args], most=MOST_SMALL),
            shared_bytes=self._whole("shared memory", [a.shared for a in args]),
            **self._sizes("grid", [a.grid for a in args]),
            **self._sizes("block", [a.block for a in args]),
            occupancy=pa.array([a.occupancy for a in args], pa.float64()),
            bytes=self._whole("bytes", [a.bytes for a in args]),
            graph_id=self._whole("graph id", [a.graph_id for a in args]),
            graph_node_id=self._whole("graph node id", [a.graph_node_id for a in args]),
        )
        self._ready.append(("gpu", batch))
        self._messages(ordinals, args)

    def _launch(self, ordinals: Ordinals, common: dict[str, pa.Array], args: Sequence[Any]) -> None:
        batch = _batch(
            "launch",
            launch_id=pa.array(ordinals),
            **common,
            external_id=_external([a.external_id for a in args], [a.external_id_2021 for a in args]),
            correlation_id=self._correlation([a.correlation for a in args]),
        )
        self._ready.append(("launch", batch))

    def _op(
        self,
        shape: ev.Shape,
        ordinals: Ordinals,
        common: dict[str, pa.Array],
        args: Sequence[Any],
        names: Sequence[Any],
    ) -> None:
        dims = [a.input_dims if a.input_dims is not ev.NOTHING else a.input_dims_2020 for a in args]
        batch = _batch(
            "op",
            op_id=pa.array(ordinals),
            **common,
            external_id=_external([a.external_id for a in args], None),
            sequence_number=self._whole("Sequence number", [a.sequence_number for a in args], LEAST),
            forward_thread_id=self._whole("Fwd thread id", [a.forward_thread for a in args], LEAST),
            input_dims=self._texts.numbers_of_raw(dims),
            input_types=self._texts.numbers_of_raw([a.input_types for a in args]),
            input_strides=self._texts.numbers_of_raw([a.input_strides for a in args]),
            concrete_inputs=self._texts.numbers_of_raw([a.concrete_inputs for a in args]),
        )
        # Before 2022 record_function ranges were operators; the profiler's steps are the ones known by name.
        if shape.category == "Operator" and any(name and name.startswith(STEP) for name in names):
            is_step = [bool(name and name.startswith(STEP)) for name in names]
            steps = batch.filter(pa.array(is_step))
            batch = batch.filter(pa.array([not step for step in is_step]))
            self._ready.append(("annotation", _annotation_of_ops(steps)))
        self._ready.append(("op", batch))
        self._messages(ordinals, args)

    def _annotation(self, kind: str, ordinals: Ordinals, common: dict[str, pa.Array], members: Sequence[Any]) -> None:
        style = {ev.USER: "user", ev.PROJECTION: "gpu_projection", ev.PYTHON: "python_function"}[kind]
        projected = kind == ev.PROJECTION
        duration = common["duration_ns"]
        if projected:
            self._check_devices(member.pid for member in members)
        durs = [member.dur for member in members]
        if None in durs:
            is_open = np.array([dur is None for dur in durs])
            duration = pa.array(duration.to_numpy(), mask=is_open)
        batch = _batch(
            "annotation",
            annotation_id=pa.array(ordinals),
            pid=common["pid"],
            tid=common["tid"],
            name=common["name"],
            style=word("style", style, len(ordinals)),
            start_ns=common["start_ns"],
            duration_ns=duration,
            device_id=integers([number(member.pid) if projected else None for member in members]),
            stream_id=numbers([member.tid if projected else None for member in members])[0],
        )
        self._ready.append(("annotation", batch))

    def _memory(self, ordinals: Ordinals, common: dict[str, pa.Array], args: Sequence[Any]) -> None:
        batch = _batch(
            "memory",
            memory_event_id=pa.array(ordinals),
            pid=common["pid"],
            tid=common["tid"],
            start_ns=common["start_ns"],
            device_type=self._whole("Device Type", [a.device_type for a in args], -1, MOST_SMALL),
            device_id=self._whole("Device Id", [a.device for a in args], -1, MOST_SMALL),
            address=self._whole("Addr", [a.address for a in args]),
            bytes=self._whole("Bytes", [a.bytes for a in args], LEAST),
            allocated=self._whole("Total Allocated", [a.allocated for a in args], LEAST),
            reserved=self._whole("Total Reserved", [a.reserved for a in args], LEAST),
        )
        self._ready.append(("memory", batch))

    def _messages(self, ordinals: Ordinals, args: Sequence[Any]) -> None:
        """Stage what events say of a collective; most say nothing."""
        places = [place for place, a in enumerate(args) if a.collective is not ev.NOTHING]
        if not places:
            return
        args = [args[place] for place in places]
        batch = _batch(
            "message",
            event_id=pa.array(ordinals[places]),
            collective=pa.array([text_of(a.collective) for a in args], pa.string()),
            message_in=self._whole("In msg nelems", [number_of(a.message_in) for a in args]),
            message_out=self._whole("Out msg nelems", [number_of(a.message_out) for a in args]),
            in_splits=pa.array([_splits(a.in_splits) for a in args], pa.string()),
            dtype=pa.array([text_of(a.dtype) for a in args], pa.string()),
            group_name=pa.array([text_of(a.group_name) for a in args], pa.string()),
            group_size=self._whole("Group size", [number_of(a.group_size) for a in args], most=MOST_SMALL),
            group_ranks=pa.array([text_of(a.group_ranks) for a in args], pa.string()),
            sequence=self._whole("Seq", [number_of(a.sequence) for a in args]),
        )
        self._ready.append(("message", batch))


def _splits(value: Any) -> str | None:
    """Return the sizes that go to each rank; none where the list is empty, which stands for even ones."""
    text = text_of(value)
    return None if text is None or text.strip() in ("", "[]") else text


def _batch(table: str, **columns: pa.Array) -> pa.RecordBatch:
    """Return rows of a staging table, whose columns must all be given."""
    names = list(COLUMNS[table])
    assert len(columns) == len(names), (table, set(columns) ^ set(names))
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)


def _external(newer: Sequence[int | None], older: Sequence[int | None] | None) -> pa.Array:
    """External ids; 0 means none."""
    if older is not None and older.count(None) != len(older):
        newer = [new if new is not None else old for new, old in zip(newer, older, strict=True)]
    if 0 in newer:
        newer = [value or None for value in newer]
    return ids(newer)


def _size(value: tuple[int, ...] | str | None) -> tuple[int, ...] | None:
    """Return three sizes, also of a text such as ``[8, 1, 1]``; None for what is none."""
    if not isinstance(value, str):
        return value
    parts = [part.strip() for part in value.strip("()[] ").split(",")]
    if 1 <= len(parts) <= 3 and all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        return (*map(int, parts), *[1] * (3 - len(parts)))
    return None


def _annotation_of_ops(batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = batch.num_rows
    nothing = pa.nulls(rows, pa.int64())
    return _batch(
        "annotation",
        annotation_id=batch["op_id"],
        pid=batch["pid"],
        tid=batch["tid"],
        name=batch["name"],
        style=word("style", "user", rows),
        start_ns=batch["start_ns"],
        duration_ns=batch["duration_ns"],
        device_id=nothing,
        stream_id=nothing,
    )
