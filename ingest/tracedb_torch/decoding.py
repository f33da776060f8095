"""One block of events: decoded, sorted by category, made into staging batches. Knows nothing of other blocks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa

from tracedb.errors import ReadError
from tracedb.ingester import Options
from tracedb_torch import events as ev
from tracedb_torch import native, scanned
from tracedb_torch.account import Account
from tracedb_torch.batches import MEMORY_EVENTS, PYTHON_FUNCTIONS, Batches, Ordinals
from tracedb_torch.columns import NeedsExactTimes

LARGE_FRACTION = re.compile(rb'"ts"\s*:\s*"?-?(?:\d{13,}\.\d|\d+(?:\.\d+)?[eE]\+?\d\d)')
FLOWS = "arrows between rows; correlation ids say the same"
LEFT_ASIDE = {
    **dict.fromkeys(("ac2g", "fwdbwd", "async", "async_cpu_to_gpu", "async_gpu"), ("flow_events", FLOWS)),
    "Trace": ("profiler_spans", "spans of the profiler itself"),
    "overhead": ("overhead_events", "the profiler's own overhead"),
    "cuda_sync": ("synchronization_events", "waits on streams and events; no GPU work"),
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
DETAILS = {
    **dict([*LEFT_ASIDE.values(), *PHASES.values()]),
    "python_functions": PYTHON_FUNCTIONS,
    "memory_events": MEMORY_EVENTS,
}
FIRST_OWN_TEXT = 3 << 29  # where the scanner of this process numbers texts from
LEGACY = ("CUDA functions", "CPU functions")


@dataclass
class Decoded:
    """What a block gave: number of events, batches by staging table with ids from 0, and its part of the account."""

    events: int
    batches: list[tuple[str, pa.RecordBatch]]
    account: Account
    has_fractions: bool
    processes: dict[int | str | None, int] = field(default_factory=dict)


class BlockReader:
    """Reads blocks; learns categories and whether times need decimals as it goes."""

    def __init__(self, options: Options, first_text: int = 0) -> None:
        self._scanner = scanned.scanner(options, FIRST_OWN_TEXT)
        self._texts: list[native.Text] = []
        self._batches = Batches(options, first_text)
        self._exact = False
        self._decoders: dict[bool, ev.Decoders] = {}

    @property
    def decoders(self) -> ev.Decoders:
        """The decoders now in use."""
        if self._exact not in self._decoders:
            self._decoders[self._exact] = ev.decoders(self._exact)
        return self._decoders[self._exact]

    def read(self, text: bytes) -> Decoded | None:
        """Read a block of sound events; None where it does not decode as a whole."""
        if self._scanner is None:
            return self._decode(text)
        return self.complete(text, scanned.block_of(self._scanner.scan(text)))

    def keep_texts(self, block: scanned.Block) -> None:
        """Remember the texts of a scanned block that is itself of no use: later ones may name them."""
        self._texts += block.scan.texts

    def complete(self, text: bytes, block: scanned.Block) -> Decoded | None:
        """Make of a scanned block what ``read`` would: decode the events that were left over, or all of them.

        Of a block that was sound throughout the text is not looked at.
        """
        self.keep_texts(block)
        if block.scan.status == native.LIST_ENDED:
            return None
        if block.scan.status == native.SOUND:
            if self._add_odd(text, block.scan):
                return self._completed(block)
            self._batches.discard()
        return self._decode(text)

    def _add_odd(self, text: bytes, scan: native.Scan) -> bool:
        """Decode the events that the scanner left over; False where they need the whole block around them."""
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

    def _completed(self, block: scanned.Block) -> Decoded:
        batches = list(block.batches)
        if self._texts:
            batches.append(("text", scanned.texts(self._texts)))
            self._texts = []
        account = Account()
        batches += self._batches.commit(account)
        for code, count in zip(scanned.COUNTED, block.scan.counts, strict=True):
            account.left_aside(code, count, DETAILS[code])
        processes, self._batches.processes = self._batches.processes, {}
        processes.update((number, number) for number in block.scan.processes)
        self._batches.has_fractions = self._batches.has_fractions or block.scan.has_fractions
        return Decoded(block.scan.events, batches, account, self._batches.has_fractions, processes)

    def _decode(self, text: bytes) -> Decoded | None:
        try:
            events = self.decoders.block(b"[" + text + b"]")
            return self.sort(text, events)
        except ev.NOT_SOUND:
            self._batches.discard()
            return None

    def prepare(self, text: bytes) -> None:
        """Choose decoders for the single events of a damaged block."""
        self._exact = self._exact or LARGE_FRACTION.search(text) is not None

    def sort(self, text: bytes, events: list[Any]) -> Decoded:
        """Make batches of decoded events (None for a lost one).

        Raises ``NOT_SOUND`` where times turn out to need decimals and ``text`` does not decode as a whole.
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
        account = Account()
        batches = self._batches.commit(account)
        processes, self._batches.processes = self._batches.processes, {}
        return Decoded(len(events), batches, account, self._batches.has_fractions, processes)

    def _sort(self, events: Sequence[Any], ordinals: Ordinals | None = None, trust_large: bool = False) -> None:
        """Take events by category; ``ordinals`` are their numbers where they are not all of the block."""
        kinds = list(map(type, events))
        present = dict.fromkeys(kinds)
        numbers = dict(zip(present, range(len(present)), strict=True))
        places = np.fromiter(map(numbers.__getitem__, kinds), np.int32, len(kinds))
        for number, kind in enumerate(present):
            shape = self._shape(kind)
            if shape is None:
                continue  # lost events, accounted for already
            if shape.kind == ev.LEFT and shape.category:
                self._leave(shape.category, int(np.count_nonzero(places == number)))
                continue
            chosen = np.flatnonzero(places == number)
            members = [events[place] for place in chosen.tolist()]
            if shape.kind == ev.LEFT:
                self._leave_bare(members)
            else:
                self._take(shape, chosen if ordinals is None else ordinals[chosen], members, trust_large)

    def _shape(self, kind: type) -> ev.Shape | None:
        for decoders in self._decoders.values():
            if kind in decoders.shapes:
                return decoders.shapes[kind]
        return None

    def _take(self, shape: ev.Shape, ordinals: Ordinals, members: list[Any], trust_large: bool) -> None:
        phase = "i" if shape.kind == ev.MEMORY else "X"
        if not {member.ph for member in members} <= {phase, None}:
            others = Counter(member.ph for member in members if member.ph not in (phase, None))
            for other, count in others.items():
                code, detail = PHASES.get(other, ("phase_not_stored", "events of another phase than X"))
                self._batches.left_aside(code, count, detail)
            kept = [member.ph in (phase, None) for member in members]
            ordinals, members = ordinals[np.array(kept)], list(compress(members, kept))
        if members:
            self._batches.take(shape, ordinals, members, trust_large, self._exact)

    def _leave(self, category: str, count: int) -> None:
        code, detail = LEFT_ASIDE.get(
            category, (f"category_not_stored:{category[:60]}", "a category that tracedb does not store")
        )
        self._batches.left_aside(code, count, detail)

    def _leave_bare(self, members: list[Any]) -> None:
        """Leave events without a category aside: marks, metadata, and the memory events of 2021."""
        for member in members:
            if member.ph == "i" and member.name == "[memory]":
                self._batches.left_aside("memory_events", 1, MEMORY_EVENTS)
            elif member.ph in PHASES:
                self._batches.left_aside(*PHASES[member.ph][:1], 1, PHASES[member.ph][1])
            elif member.pid in LEGACY:
                raise ReadError(
                    "a trace of the old torch.autograd.profiler, which records neither categories nor streams; "
                    "record again with torch.profiler"
                )
            else:
                self._batches.left_aside("category_missing", 1, "events without a category")
