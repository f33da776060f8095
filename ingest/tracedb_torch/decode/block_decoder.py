"""Decode one block of events, group it by category and build staging batches, independently of other blocks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Raw

from tracedb.errors import ReadError
from tracedb.ingester import Options
from tracedb.ingester.issues import Account
from tracedb_torch.decode import event_types as ev
from tracedb_torch.decode.batches import EARLY_MEMORY_EVENTS, MEMORY_EVENTS, PYTHON_FUNCTIONS, Batches, Ordinals
from tracedb_torch.decode.begin_end import Edge, Matched
from tracedb_torch.decode.values import NeedsExactTimes
from tracedb_torch.scan import native_scanner, scanned_batches

LARGE_FRACTION = re.compile(rb'"ts"\s*:\s*"?-?(?:\d{13,}\.\d|\d+(?:\.\d+)?[eE]\+?\d\d)')
FLOWS = "flow arrows between rows; correlation ids give the same links"
WAITS = "waits on streams and events; no GPU work"
LEFT_ASIDE = {
    **dict.fromkeys(("ac2g", "fwdbwd", "async", "async_cpu_to_gpu", "async_gpu"), ("flow_events", FLOWS)),
    "external_correlation": ("flow_events", FLOWS),
    "Trace": ("profiler_spans", "spans of the profiler itself"),
    "overhead": ("overhead_events", "the profiler's own overhead"),
    **dict.fromkeys(("xpu_sync", "cuda_event"), ("synchronization_events", WAITS)),
}
PHASES = {
    "s": ("flow_events", FLOWS),
    "f": ("flow_events", FLOWS),
    "t": ("flow_events", FLOWS),
    "M": ("metadata_events", "names and order of processes and threads"),
    "i": ("instant_events", "marks of the profiler"),
    "I": ("instant_events", "marks of the profiler"),
    "C": ("counter_events", "counter samples"),
}
MARKS = frozenset(("i", "I", "C"))  # in a category that gives rows they may be the user's
DETAILS = {
    **dict([*LEFT_ASIDE.values(), *PHASES.values()]),
    "python_functions": PYTHON_FUNCTIONS,
    "memory_events": MEMORY_EVENTS,
}
EDGES = ("B", "E")
NO_CATEGORY = "without a category"
NULL = Raw(b"null")
DEVICE_EVENTS = "device_events_not_read:"
"""Prefix of the issue codes of GPU work that is in the trace but in no row."""
DEVICE_CATEGORIES = frozenset(("mtia_ccp_events", "collective_comm"))
FIRST_OWN_TEXT = 3 << 29  # first text number of this process's own scanner
LEGACY = ("CUDA functions", "CPU functions")


@dataclass
class Decoded:
    """The result of a block: number of events, batches by staging table with ids from 0, and its counts."""

    events: int
    batches: list[tuple[str, pa.RecordBatch]]
    account: Account
    has_fractions: bool
    processes: dict[int | str | None, int] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    """Begin and end events; numbered together with the others."""


class BlockReader:
    """Reads blocks; remembers the categories met and whether times need decimals."""

    def __init__(self, options: Options) -> None:
        self._scanner = scanned_batches.scanner(options, FIRST_OWN_TEXT)
        self._texts: list[native_scanner.Text] = []
        self._batches = Batches(options)
        self._exact = False
        self._decoders: dict[bool, ev.Decoders] = {}

    @property
    def decoders(self) -> ev.Decoders:
        """The decoders currently in use."""
        if self._exact not in self._decoders:
            self._decoders[self._exact] = ev.decoders(self._exact)
        return self._decoders[self._exact]

    def read(self, text: bytes) -> Decoded | None:
        """Read a block of valid events; None if it does not decode as a whole."""
        if self._scanner is None:
            return self._decode(text)
        return self.complete(text, scanned_batches.block_of(self._scanner.scan(text)))

    def keep_texts(self, block: scanned_batches.Block) -> None:
        """Keep the texts of a scanned block whose rows are not used: later blocks may refer to them."""
        self._texts += block.scan.texts

    def complete(self, text: bytes, block: scanned_batches.Block) -> Decoded | None:
        """Finish a scanned block as ``read`` would: decode the events the scanner left, or all of them.

        The text is not needed if the scanner handled every event.
        """
        self.keep_texts(block)
        if block.scan.status == native_scanner.LIST_ENDED:
            return None
        if block.scan.status == native_scanner.SOUND:
            if self._add_odd(text, block.scan):
                return self._completed(block)
            self._batches.discard()
        return self._decode(text)

    def _add_odd(self, text: bytes, scan: native_scanner.Scan) -> bool:
        """Decode the events that the scanner left; False if they need the whole block for context."""
        typed = [odd for odd in scan.odd if not odd.is_bare]
        bare = [odd for odd in scan.odd if odd.is_bare]
        if (scan.has_large or bare) and not self._exact:
            self._exact = scan.has_long_fraction or (scan.has_odd_times and LARGE_FRACTION.search(text) is not None)
        if not scan.odd:
            return True
        try:
            events = self.decoders.block(b"[" + b",".join(text[odd.start : odd.end] for odd in typed) + b"]")
            events += [self.decoders.event(text[odd.start : odd.end]) for odd in bare]
            if len(events) != len(scan.odd) or any(event.ph is None for event in events):
                return False
            self._sort(events, np.array([odd.ordinal for odd in typed + bare], np.int64))
        except (*ev.NOT_SOUND, NeedsExactTimes):
            return False
        return True

    def _completed(self, block: scanned_batches.Block) -> Decoded:
        batches = list(block.batches)
        if self._texts:
            batches.append(("text", scanned_batches.texts(self._texts)))
            self._texts = []
        account = Account()
        batches += self._batches.commit(account)
        for code, count in zip(scanned_batches.COUNTED, block.scan.counts, strict=True):
            account.left_aside(code, count, DETAILS[code])
        processes, self._batches.processes = self._batches.processes, {}
        processes.update((number, number) for number in block.scan.processes)
        self._batches.has_fractions = self._batches.has_fractions or block.scan.has_fractions
        edges, self._batches.edges = self._batches.edges, []
        return Decoded(block.scan.events, batches, account, self._batches.has_fractions, processes, edges)

    def _decode(self, text: bytes) -> Decoded | None:
        try:
            events = self.decoders.block(b"[" + text + b"]")
            return self.sort(text, events)
        except ev.NOT_SOUND:
            self._batches.discard()
            return None

    def prepare(self, text: bytes) -> None:
        """Choose decoders for single events of a damaged block."""
        self._exact = self._exact or LARGE_FRACTION.search(text) is not None

    def sort(self, text: bytes, events: list[Any]) -> Decoded:
        """Build batches of decoded events (None for a lost one).

        Raises ``NOT_SOUND`` if times turn out to need decimals and ``text`` does not decode as a whole.
        """
        try:
            self._sort(events)
        except NeedsExactTimes:
            self._batches.discard()
            if LARGE_FRACTION.search(text):
                self._exact = True
                self._sort(self.decoders.block(b"[" + text + b"]"))
            else:
                self._sort(events, trust_large=True)
        return self._decoded(len(events))

    def _decoded(self, events: int) -> Decoded:
        account = Account()
        batches = self._batches.commit(account)
        processes, self._batches.processes = self._batches.processes, {}
        edges, self._batches.edges = self._batches.edges, []
        return Decoded(events, batches, account, self._batches.has_fractions, processes, edges)

    def _sort(self, events: Sequence[Any], ordinals: Ordinals | None = None, trust_large: bool = False) -> None:
        """Take events by category; ``ordinals`` gives their numbers if they are not the whole block."""
        kinds = list(map(type, events))
        present = dict.fromkeys(kinds)
        numbers = dict(zip(present, range(len(present)), strict=True))
        places = np.fromiter(map(numbers.__getitem__, kinds), np.int32, len(kinds))
        for number, kind in enumerate(present):
            shape = self._shape(kind)
            if shape is None:
                continue  # a lost event, already counted
            if shape.category in LEFT_ASIDE:
                self._leave(shape.category, int(np.count_nonzero(places == number)))
                continue
            chosen = np.flatnonzero(places == number)
            members = [events[place] for place in chosen.tolist()]
            own = chosen if ordinals is None else ordinals[chosen]
            if shape.kind == ev.LEFT:
                self._leave_other(shape, self._without_edges(shape, own, members, trust_large))
            else:
                self._take(shape, own, members, trust_large)

    def _shape(self, kind: type) -> ev.Shape | None:
        for decoders in self._decoders.values():
            if kind in decoders.shapes:
                return decoders.shapes[kind]
        return None

    def _take(self, shape: ev.Shape, ordinals: Ordinals, members: list[Any], trust_large: bool) -> None:
        phase = "i" if shape.kind == ev.MEMORY else "X"
        if not {member.ph for member in members} <= {phase, None}:
            kept = np.array([member.ph in (phase, None) for member in members])
            others = list(compress(members, ~kept))
            self._take_others(shape, ordinals[~kept], others, trust_large)
            ordinals, members = ordinals[kept], list(compress(members, kept))
        if members:
            self._batches.take(shape, ordinals, members, trust_large, self._exact)

    def _take_others(self, shape: ev.Shape, ordinals: Ordinals, members: list[Any], trust_large: bool) -> None:
        """Take events of other phases: begin and end events are paired, the rest is counted."""
        if shape.kind != ev.MEMORY:
            members = self._without_edges(shape, ordinals, members, trust_large)
        for member in members:
            if member.ph in PHASES and member.ph not in MARKS:
                self._batches.account.left_aside(PHASES[member.ph][0], 1, PHASES[member.ph][1])
            else:
                self._batches.account.not_read("phase_not_stored", 1, "events of another phase than X, B and E")

    def _without_edges(self, shape: ev.Shape, ordinals: Ordinals, members: list[Any], trust_large: bool) -> list[Any]:
        """Take the begin and end events out, and return the others."""
        is_edge = np.array([member.ph in EDGES for member in members])
        if not is_edge.any():
            return members
        self._batches.take_edges(shape, ordinals[is_edge], list(compress(members, is_edge)), trust_large, self._exact)
        return list(compress(members, ~is_edge))

    def _leave(self, category: str, count: int) -> None:
        code, detail = LEFT_ASIDE[category]
        self._batches.account.left_aside(code, count, detail)

    def _leave_other(self, shape: ev.Shape, members: list[Any]) -> None:
        """Count events of a category that is not read, or of none; device events are counted apart."""
        account = self._batches.account
        for member in members:
            if not shape.category and member.ph == "i" and member.name == "[memory]":  # traces of 2021
                account.left_aside("memory_events", 1, EARLY_MEMORY_EVENTS)
            elif member.ph in PHASES:
                account.left_aside(PHASES[member.ph][0], 1, PHASES[member.ph][1])
            elif not shape.category and member.pid in LEGACY:
                raise ReadError(
                    "a trace of the old torch.autograd.profiler, which records neither categories nor streams; "
                    "record again with torch.profiler"
                )
            else:
                _count_other(account, shape, member.args)

    def paired(self, found: Matched) -> Decoded:
        """Build batches of matched begin events and of ranges still open; count everything else."""
        account = self._batches.account
        account.unreadable("args", found.bad_args)
        rows = defaultdict(list)
        for begin in (*found.closed, *found.opened):
            edges = 1 if begin.dur is None else 2
            if begin.shape.kind == ev.LEFT:
                _count_other(account, begin.shape, begin.args, edges)
            elif self._batches.leaves_frames(begin.shape):
                account.left_aside("python_functions", edges, PYTHON_FUNCTIONS)
            elif begin.dur is None and begin.shape.kind not in (ev.USER, ev.PYTHON):
                account.lost("begin_without_end", 1, "begin events without an end", begin.shape.category)
            else:
                rows[begin.shape].append(begin)
        for shape, begins in rows.items():
            self._batches.take_pairs(shape, begins)
        ends = sum(begin.dur is not None for begins in rows.values() for begin in begins)
        account.left_aside("end_events", ends, "end events, stored in the rows of their begin events")
        for end in found.strays:
            account.lost("end_without_begin", 1, "end events without a beginning", end.shape.category or NO_CATEGORY)
        return self._decoded(0)


def _count_other(account: Account, shape: ev.Shape, args: Any, count: int = 1) -> None:
    """Count events of a category that is not read."""
    category = shape.category[:60]
    if not category:
        account.not_read("category_missing", count, "events without a category")
        return
    is_of_device = isinstance(args, ev.OtherArgs) and any(
        value not in (ev.NOTHING, NULL) for value in (args.device, args.stream)
    )
    if is_of_device or category in DEVICE_CATEGORIES:
        account.not_read(DEVICE_EVENTS + category, count, "work of a device in a category that tracedb does not read")
    else:
        account.not_read(f"category_not_stored:{category}", count, "a category that tracedb does not read")
