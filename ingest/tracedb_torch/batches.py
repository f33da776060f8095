"""Staging batches out of events of one category. A block's batches are kept until the whole block is known good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb.ingester import Options
from tracedb_torch import events as ev
from tracedb_torch.account import Account
from tracedb_torch.columns import (
    Mask,
    Texts,
    Times,
    integers,
    nanoseconds,
    number,
    number_of,
    numbers,
    process_number,
    text_of,
)
from tracedb_torch.narrow import word

Ordinals = npt.NDArray[np.int64]
KINDS = {"Memcpy": "memcpy", "gpu_memcpy": "memcpy", "Memset": "memset", "gpu_memset": "memset"}
NO_CORRELATION = frozenset((0, -1, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF))
LATEST_NS = (1 << 63) - 1
STEP = "ProfilerStep#"
MEMORY_EVENTS = "allocator events; --memory-events stores them"
PYTHON_FUNCTIONS = "Python frames; --python-stacks stores them"


class Batches:
    """Makes staging batches; ``discard`` forgets and ``commit`` returns those of the current block.

    Events are numbered from 0 within the block; whoever knows how many came before adds that.
    """

    def __init__(self, options: Options, first_text: int = 0) -> None:
        self._options = options
        self._texts = Texts(first_text)
        self.processes: dict[int | str | None, int] = {}
        self._ready: list[tuple[str, pa.RecordBatch]] = []
        self._counts: list[tuple[bool, str, int, str]] = []
        self.has_fractions = False

    def left_aside(self, code: str, count: int, detail: str) -> None:
        """Count events that give no row by design."""
        self._counts.append((False, code, count, detail))

    @property
    def has_faults(self) -> bool:
        """Whether an event of the current block gave no row for a fault."""
        return any(is_fault for is_fault, _, _, _ in self._counts)

    def has_count(self, code: str) -> bool:
        """Whether events of the current block were counted under ``code``."""
        return any(counted == code for _, counted, _, _ in self._counts)

    def discard(self) -> None:
        """Forget the current block."""
        self._ready.clear()
        self._counts.clear()

    def commit(self, account: Account) -> list[tuple[str, pa.RecordBatch]]:
        """Return the batches of the current block, and put its counts into the account."""
        for is_fault, code, count, detail in self._counts:
            (account.lost if is_fault else account.left_aside)(code, count, detail)
        self._counts.clear()
        ready, self._ready = self._ready, []
        if self._texts.new:
            numbers, values = zip(*self._texts.new, strict=True)
            self._texts.new = []
            ready.append(("text", _batch(id=integers(numbers), value=pa.array(values, pa.string()))))
        return ready

    def take(self, shape: ev.Shape, ordinals: Ordinals, members: list[Any], trust_large: bool, exact: bool) -> None:
        """Make the batches of events of one category; see ``nanoseconds`` for the flags."""
        if shape.kind == ev.MEMORY and not self._options.memory_events:
            self.left_aside("memory_events", len(members), MEMORY_EVENTS)
            return
        if shape.kind == ev.PYTHON and not self._options.python_stacks:
            self.left_aside("python_functions", len(members), PYTHON_FUNCTIONS)
            return
        start, good, fractional = nanoseconds([member.ts for member in members], trust_large, exact)
        self.has_fractions = self.has_fractions or fractional
        if shape.kind == ev.MEMORY:
            duration = np.zeros(len(members), np.int64)
        else:
            duration, measured, _ = nanoseconds([member.dur for member in members], True, exact)
            measured &= start <= LATEST_NS - np.maximum(duration, 0)  # the end must be a time, too
            good = self._judge(shape, members, good, measured, duration)
        if not good.all():
            keep = np.flatnonzero(good)
            members = [members[i] for i in keep]
            ordinals, start, duration = ordinals[keep], start[keep], duration[keep]
        if members:
            self._make(shape, ordinals, members, start, duration)

    def _judge(self, shape: ev.Shape, members: list[Any], good: Mask, measured: Mask, duration: Times) -> Mask:
        """Take out events without usable times, each with its reason."""
        what = f"{shape.category} events"
        self._fault("timestamp_unusable", int((~good).sum()), f"{what} without a usable ts")
        if shape.kind in (ev.USER, ev.PYTHON):
            still_open = np.array([member.dur is None for member in members], np.bool_)
            measured = measured | still_open
        negative = good & measured & (duration < 0)
        self._fault("duration_missing", int((good & ~measured).sum()), f"{what} without a usable dur")
        self._fault("duration_negative", int(negative.sum()), f"{what} that end before they start")
        return good & measured & ~negative

    def _fault(self, code: str, count: int, detail: str) -> None:
        if count:
            self._counts.append((True, code, count, detail))

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
            "tid": numbers(tids),
            "name": self._texts.numbers(names),
            "start_ns": pa.array(start),
            "duration_ns": pa.array(duration),
        }
        if shape.kind == ev.GPU:
            self._gpu(KINDS.get(shape.category, "kernel"), ordinals, common, args)
        elif shape.kind == ev.LAUNCH:
            self._launch(ordinals, common, args)
        elif shape.kind == ev.OP:
            self._op(shape, ordinals, common, args, names)
        elif shape.kind == ev.MEMORY:
            self._memory(ordinals, common, args)
        else:
            self._annotation(shape.kind, ordinals, common, members)

    def _process_numbers(self, pids: Sequence[int | str | None]) -> pa.Array:
        different = set(pids)
        for pid in different:
            if pid not in self.processes:
                self.processes[pid] = process_number(pid)
        if len(different) == 1:
            return pa.array(np.full(len(pids), self.processes[pids[0]], np.int64))
        return integers([self.processes[pid] for pid in pids])

    def _gpu(self, kind: str, ordinals: Ordinals, common: dict[str, pa.Array], args: Sequence[Any]) -> None:
        batch = _batch(
            event_id=pa.array(ordinals),
            pid=common["pid"],
            tid=common["tid"],
            kind=word("kind", kind, len(ordinals)),
            name=common["name"],
            start_ns=common["start_ns"],
            duration_ns=common["duration_ns"],
            external_id=_external([a.external_id for a in args], [a.external_id_2021 for a in args]),
            device_id=integers([a.device for a in args]),
            context_id=integers([a.context for a in args]),
            stream_id=integers([a.stream for a in args]),
            correlation_id=_correlation([a.correlation for a in args]),
            registers=integers([a.registers for a in args]),
            shared_bytes=integers([a.shared for a in args]),
            **_sizes("grid", [a.grid for a in args]),
            **_sizes("block", [a.block for a in args]),
            occupancy=pa.array([a.occupancy for a in args], pa.float64()),
            bytes=integers([a.bytes for a in args]),
            graph_id=integers([a.graph_id for a in args]),
            graph_node_id=integers([a.graph_node_id for a in args]),
        )
        self._ready.append(("gpu", batch))
        self._messages(ordinals, args)

    def _launch(self, ordinals: Ordinals, common: dict[str, pa.Array], args: Sequence[Any]) -> None:
        batch = _batch(
            launch_id=pa.array(ordinals),
            **common,
            external_id=_external([a.external_id for a in args], [a.external_id_2021 for a in args]),
            correlation_id=_correlation([a.correlation for a in args]),
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
            op_id=pa.array(ordinals),
            **common,
            external_id=_external([a.external_id for a in args], None),
            sequence_number=integers([a.sequence_number for a in args]),
            forward_thread_id=integers([a.forward_thread for a in args]),
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
        durs = [member.dur for member in members]
        if None in durs:
            is_open = np.array([dur is None for dur in durs])
            duration = pa.array(duration.to_numpy(), mask=is_open)
        batch = _batch(
            annotation_id=pa.array(ordinals),
            pid=common["pid"],
            tid=common["tid"],
            name=common["name"],
            style=word("style", style, len(ordinals)),
            start_ns=common["start_ns"],
            duration_ns=duration,
            device_id=integers([number(member.pid) if projected else None for member in members]),
            stream_id=integers([number(member.tid) if projected else None for member in members]),
        )
        self._ready.append(("annotation", batch))

    def _memory(self, ordinals: Ordinals, common: dict[str, pa.Array], args: Sequence[Any]) -> None:
        batch = _batch(
            memory_event_id=pa.array(ordinals),
            pid=common["pid"],
            tid=common["tid"],
            start_ns=common["start_ns"],
            device_type=integers([a.device_type for a in args]),
            device_id=integers([a.device for a in args]),
            address=integers([a.address for a in args]),
            bytes=integers([a.bytes for a in args]),
            allocated=integers([a.allocated for a in args]),
            reserved=integers([a.reserved for a in args]),
        )
        self._ready.append(("memory", batch))

    def _messages(self, ordinals: Ordinals, args: Sequence[Any]) -> None:
        """Stage what events say of a collective; most say nothing."""
        places = [place for place, a in enumerate(args) if a.collective is not ev.NOTHING]
        if not places:
            return
        args = [args[place] for place in places]
        batch = _batch(
            event_id=pa.array(ordinals[places]),
            collective=pa.array([text_of(a.collective) for a in args], pa.string()),
            message_in=integers([number_of(a.message_in) for a in args]),
            message_out=integers([number_of(a.message_out) for a in args]),
            in_splits=pa.array([_splits(a.in_splits) for a in args], pa.string()),
            dtype=pa.array([text_of(a.dtype) for a in args], pa.string()),
            group_name=pa.array([text_of(a.group_name) for a in args], pa.string()),
            group_size=integers([number_of(a.group_size) for a in args]),
            group_ranks=pa.array([text_of(a.group_ranks) for a in args], pa.string()),
            sequence=integers([number_of(a.sequence) for a in args]),
        )
        self._ready.append(("message", batch))


def _splits(value: Any) -> str | None:
    """Return the sizes that go to each rank; none where the list is empty, which stands for even ones."""
    text = text_of(value)
    return None if text is None or text.strip() in ("", "[]") else text


def _batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _external(newer: Sequence[int | None], older: Sequence[int | None] | None) -> pa.Array:
    """External ids; 0 means none."""
    if older is not None and older.count(None) != len(older):
        newer = [new if new is not None else old for new, old in zip(newer, older, strict=True)]
    if 0 in newer:
        newer = [value or None for value in newer]
    return integers(newer)


def _correlation(values: Sequence[int | None]) -> pa.Array:
    """Correlation ids; the profilers' several words for none become NULL, so that no join meets them."""
    if not NO_CORRELATION.isdisjoint(values):
        values = [None if value in NO_CORRELATION else value for value in values]
    return integers(values)


def _sizes(what: str, values: Sequence[Any]) -> dict[str, pa.Array]:
    if values.count(None) == len(values):
        return {f"{what}_{axis}": integers(values) for axis in "xyz"}
    try:
        columns: Sequence[Any] = tuple(zip(*values, strict=True))
        if len(columns) != 3:
            raise TypeError("sizes as text")
    except (TypeError, ValueError):
        sizes = [_size(value) if type(value) is str else value for value in values]
        columns = [[size[place] if size else None for size in sizes] for place in range(3)]
    return {f"{what}_{axis}": integers(column) for axis, column in zip("xyz", columns, strict=True)}


def _size(text: str) -> tuple[int, int, int] | None:
    parts = [part.strip() for part in text.strip("()[] ").split(",")]
    if 1 <= len(parts) <= 3 and all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        sizes = [int(part) for part in parts] + [1, 1]
        return sizes[0], sizes[1], sizes[2]
    return None


def _annotation_of_ops(batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = batch.num_rows
    nothing = pa.nulls(rows, pa.int64())
    return _batch(
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
