"""Build staging batches from events of one category. A block's batches are kept until the whole block is known good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Raw

from tracedb.ingester import Options
from tracedb.ingester.issues import Account
from tracedb_torch.decode import event_types as ev
from tracedb_torch.decode.begin_end import Edge
from tracedb_torch.decode.checked_fields import MOST_SMALL, CheckedFields, batch_of, external
from tracedb_torch.decode.counters import counters
from tracedb_torch.decode.messages import messages
from tracedb_torch.decode.values import (
    LARGEST,
    Mask,
    Texts,
    Times,
    integers,
    nanoseconds,
    number,
    numbers,
)
from tracedb_torch.int_columns import word

Ordinals = npt.NDArray[np.int64]
KINDS = {"Memcpy": "memcpy", "gpu_memcpy": "memcpy", "Memset": "memset", "gpu_memset": "memset"}
SYNC_KINDS = {
    "Event Sync": "event",
    "Stream Sync": "stream",
    "Stream Wait Event": "stream_wait",
    "Context Sync": "context",
}
LEAST = -LARGEST - 1
LATEST_END = LARGEST - 10**15  # ns; leaves headroom for offsets that are added later
STEP = "ProfilerStep#"
NO_START = "events without a usable ts"
MEMORY_EVENTS = "allocator events, left out by --no-memory-events"
EARLY_MEMORY_EVENTS = "allocator events of 2021, without totals and addresses"
CLEANED = "texts with control characters: line ends and tabs became a backslash and a letter, others were removed"
PYTHON_FUNCTIONS = "Python frames, left out by --no-stacks"


class Batches(CheckedFields):
    """Builds staging batches; ``discard`` drops and ``commit`` returns those of the current block.

    Events are numbered from 0 within the block; the caller adds the number of events before it.
    """

    def __init__(self, options: Options) -> None:
        super().__init__()
        self._options = options
        self._texts = Texts()
        self._ready: list[tuple[str, pa.RecordBatch]] = []
        self.edges: list[Edge] = []
        """Begin and end events of the current block."""
        self.has_fractions = False

    def discard(self) -> None:
        """Drop the current block."""
        self._ready.clear()
        self.edges.clear()
        self.account = Account()

    def commit(self, account: Account) -> list[tuple[str, pa.RecordBatch]]:
        """Return the batches of the current block and add its counts to the account."""
        account.merge(self.account)
        self.account = Account()
        account.noted("text_cleaned", self._texts.cleaned, CLEANED)
        self._texts.cleaned = 0
        ready, self._ready = self._ready, []
        if self._texts.new:
            numbers, values = zip(*self._texts.new, strict=True)
            self._texts.new = []
            ready.append(("text", batch_of("text", id=integers(numbers), value=pa.array(values, pa.string()))))
        return ready

    def leaves_frames(self, shape: ev.Shape) -> bool:
        """Whether the events are Python frames and --no-stacks was given."""
        return shape.kind == ev.PYTHON and not self._options.stacks

    def take(self, shape: ev.Shape, ordinals: Ordinals, members: list[Any], trust_large: bool, exact: bool) -> None:
        """Build the batches of events of one category; see ``nanoseconds`` for the flags."""
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
            measured &= start <= LATEST_END - np.maximum(duration, 0)  # the end must be representable, too
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
        """Take begin and end events; see ``nanoseconds`` for the flags."""
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
        """Make the rows of begin events that have a duration, or of ranges that are still open."""
        ordinals, start, duration = (
            np.array([getattr(begin, name) or 0 for begin in begins], np.int64)
            for name in ("ordinal", "start_ns", "dur")
        )
        self._make(shape, ordinals, begins, start, duration)

    def _judge(self, shape: ev.Shape, members: list[Any], good: Mask, measured: Mask, duration: Times) -> Mask:
        """Exclude events without usable times, each with its reason."""
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
        # One comprehension per attribute is several times faster than one call for all of them.
        names = [member.name for member in members]
        if None in names:
            names = ["(no name)" if name is None else name for name in names]
        pids = [member.pid for member in members]
        args = [member.args for member in members]
        if None in args:
            args = [found or ({} if shape.kind == ev.COUNTED else ev.ARGS[shape.kind]()) for found in args]
        tids = [member.tid for member in members]
        common = {
            "pid": self.process_numbers(pids),
            "tid": self.counted("tid", *numbers(tids)),
            "name": self._texts.numbers(names),
            "start_ns": pa.array(start),
            "duration_ns": pa.array(duration),
        }
        if shape.kind == ev.GPU:
            self.check_places(pids, tids, args)
            self._gpu(KINDS.get(shape.category, "kernel"), ordinals, common, args)
        elif shape.kind == ev.LAUNCH:
            self._launch(ordinals, common, args)
        elif shape.kind == ev.OP:
            self._op(shape, ordinals, common, args, names)
        elif shape.kind == ev.MEMORY:
            self._memory(ordinals, common, args)
        elif shape.kind == ev.PYTHON:
            self._frame(ordinals, common, args, members)
        elif shape.kind == ev.COUNTED:
            self.check_devices(pids)
            self._counted(ordinals, common, args)
        elif shape.kind == ev.SYNC:
            self._sync(ordinals, common, args, names)
        else:
            self._annotation(shape.kind, ordinals, common, members)

    def _gpu(self, kind: str, ordinals: Ordinals, common: dict[str, pa.Array], args: Sequence[Any]) -> None:
        batch = batch_of(
            "gpu",
            event_id=pa.array(ordinals),
            pid=common["pid"],
            tid=common["tid"],
            kind=word("kind", kind, len(ordinals)),
            name=common["name"],
            start_ns=common["start_ns"],
            duration_ns=common["duration_ns"],
            external_id=external([a.external_id for a in args], [a.external_id_2021 for a in args]),
            device_id=self.place("device", [a.device for a in args], MOST_SMALL),
            context_id=self.whole("context", [a.context for a in args]),
            stream_id=self.place("stream", [a.stream for a in args]),
            correlation_id=self.correlation([a.correlation for a in args]),
            registers=self.whole("registers per thread", [a.registers for a in args], most=MOST_SMALL),
            shared_bytes=self.whole("shared memory", [a.shared for a in args]),
            **self.sizes("grid", [a.grid for a in args]),
            **self.sizes("block", [a.block for a in args]),
            occupancy=pa.array([a.occupancy for a in args], pa.float64()),
            bytes=self.whole("bytes", [a.bytes for a in args]),
            graph_id=self.whole("graph id", [a.graph_id for a in args]),
            graph_node_id=self.whole("graph node id", [a.graph_node_id for a in args]),
        )
        self._ready.append(("gpu", batch))
        self._messages(ordinals, args)

    def _launch(self, ordinals: Ordinals, common: dict[str, pa.Array], args: Sequence[Any]) -> None:
        batch = batch_of(
            "launch",
            launch_id=pa.array(ordinals),
            **common,
            external_id=external([a.external_id for a in args], [a.external_id_2021 for a in args]),
            correlation_id=self.correlation([a.correlation for a in args]),
            kernel=self._texts.numbers_of_strings([a.kernel for a in args]),
            graph_node_id=self.whole("graph node id", [a.graph_node_id for a in args]),
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
        batch = batch_of(
            "op",
            op_id=pa.array(ordinals),
            **common,
            external_id=external([a.external_id for a in args], None),
            sequence_number=self.whole("Sequence number", [a.sequence_number for a in args], LEAST),
            forward_thread_id=self.whole("Fwd thread id", [a.forward_thread for a in args], LEAST),
            input_dims=self._texts.numbers_of_raw(dims),
            input_types=self._texts.numbers_of_raw([a.input_types for a in args]),
            input_strides=self._texts.numbers_of_raw([a.input_strides for a in args]),
            concrete_inputs=self._texts.numbers_of_raw([a.concrete_inputs for a in args]),
        )
        # Before 2022, record_function ranges were operators; only the profiler's steps can be told by name.
        if shape.category == "Operator" and any(name and name.startswith(STEP) for name in names):
            is_step = [bool(name and name.startswith(STEP)) for name in names]
            steps = batch.filter(pa.array(is_step))
            batch = batch.filter(pa.array([not step for step in is_step]))
            self._ready.append(("annotation", _annotation_of_ops(steps)))
        self._ready.append(("op", batch))
        self._messages(ordinals, args)

    def _annotation(self, kind: str, ordinals: Ordinals, common: dict[str, pa.Array], members: Sequence[Any]) -> None:
        style = {ev.USER: "user", ev.PROJECTION: "gpu_projection"}[kind]
        projected = kind == ev.PROJECTION
        if projected:
            self.check_devices(member.pid for member in members)
        batch = batch_of(
            "annotation",
            annotation_id=pa.array(ordinals),
            pid=common["pid"],
            tid=common["tid"],
            name=common["name"],
            style=word("style", style, len(ordinals)),
            start_ns=common["start_ns"],
            duration_ns=_unless_open(common["duration_ns"], members),
            device_id=integers([number(member.pid) if projected else None for member in members]),
            stream_id=numbers([member.tid if projected else None for member in members])[0],
        )
        self._ready.append(("annotation", batch))

    def _frame(
        self, ordinals: Ordinals, common: dict[str, pa.Array], args: Sequence[Any], members: Sequence[Any]
    ) -> None:
        batch = batch_of(
            "frame",
            frame_id=pa.array(ordinals),
            **{**common, "duration_ns": _unless_open(common["duration_ns"], members)},
            python_id=self.whole("Python id", [a.id for a in args]),
            python_parent=self.whole("Python parent id", [a.parent for a in args]),
        )
        self._ready.append(("frame", batch))

    def _memory(self, ordinals: Ordinals, common: dict[str, pa.Array], args: Sequence[Any]) -> None:
        batch = batch_of(
            "memory",
            memory_event_id=pa.array(ordinals),
            pid=common["pid"],
            tid=common["tid"],
            start_ns=common["start_ns"],
            device_type=self.whole("Device Type", [a.device_type for a in args], -1, MOST_SMALL),
            device_id=self.whole("Device Id", [a.device for a in args], -1, MOST_SMALL),
            address=self.whole("Addr", [a.address for a in args]),
            bytes=self.whole("Bytes", [a.bytes for a in args], LEAST),
            allocated=self.whole("Total Allocated", [a.allocated for a in args], LEAST),
            reserved=self.whole("Total Reserved", [a.reserved for a in args], LEAST),
        )
        self._ready.append(("memory", batch))

    def _counted(self, ordinals: Ordinals, common: dict[str, pa.Array], args: Sequence[dict[str, Raw]]) -> None:
        """Stage kernels whose hardware counters were read; their arguments are the counters."""
        self._ready.append(("counted", batch_of("counted", counted_id=pa.array(ordinals), **common)))
        numbers, names, values = counters(ordinals.tolist(), args, self.account)
        if names:
            batch = batch_of(
                "metric",
                counted_id=pa.array(numbers, pa.int64()),
                name=self._texts.numbers(names),
                value=pa.array(values, pa.float64()),
            )
            self._ready.append(("metric", batch))

    def _sync(self, ordinals: Ordinals, common: dict[str, pa.Array], args: Sequence[Any], names: Sequence[str]) -> None:
        batch = batch_of(
            "sync",
            sync_id=pa.array(ordinals),
            pid=common["pid"],
            tid=common["tid"],
            sync_kind=pa.array([SYNC_KINDS.get(name, "other") for name in names], pa.string()),
            start_ns=common["start_ns"],
            duration_ns=common["duration_ns"],
            device_id=self.whole("device", [a.device for a in args], -1, MOST_SMALL),
            context_id=self.whole("context", [a.context for a in args], -1),
            stream_id=self.whole("stream", [a.stream for a in args], -1),
            correlation_id=self.correlation([a.correlation for a in args]),
            waited_stream_id=self.whole("wait_on_stream", [a.waited_stream for a in args], -1),
            cuda_event_id=self.whole("wait_on_cuda_event_id", [a.cuda_event for a in args], -1),
            record_correlation_id=self.correlation([a.record_correlation for a in args]),
        )
        self._ready.append(("sync", batch))

    def _messages(self, ordinals: Ordinals, args: Sequence[Any]) -> None:
        """Stage the collective metadata of events."""
        batch = messages(self, ordinals, args)
        if batch is not None:
            self._ready.append(("message", batch))


def _unless_open(duration: pa.Array, members: Sequence[Any]) -> pa.Array:
    """Return durations with NULL for events that have no end."""
    durs = [member.dur for member in members]
    if None not in durs:
        return duration
    return pa.array(duration.to_numpy(), mask=np.array([dur is None for dur in durs]))


def _annotation_of_ops(batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = batch.num_rows
    nothing = pa.nulls(rows, pa.int64())
    return batch_of(
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
