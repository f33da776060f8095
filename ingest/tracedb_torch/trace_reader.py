"""One pass over the events of a file: decode, group by category, pass columns to the stage."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from tracedb.ingester import Options
from tracedb.ingester.issues import Account
from tracedb_torch import int_columns
from tracedb_torch.decode.begin_end import Pairs
from tracedb_torch.decode.block_decoder import BlockReader, Decoded
from tracedb_torch.recover.salvage import ARRAY_END, Salvage
from tracedb_torch.scan import scanned_batches
from tracedb_torch.split.blocks import Trace, blocks
from tracedb_torch.split.scan_ahead import Ahead, Scanned, scanners_of
from tracedb_torch.staging import Stage
from tracedb_torch.staging_columns import COLUMNS, NUMBERED

IDS = frozenset(next(iter(COLUMNS[table])) for table in NUMBERED)
"""Columns with the number of an event, from 0 within a block."""


class Reader:
    """Reads the events of one trace into a stage and counts what was skipped."""

    def __init__(self, stage: Stage, options: Options) -> None:
        self.trace = Trace()
        self.account = Account()
        self._stage = stage
        self._options = options
        self._own = BlockReader(options)
        self._salvage = Salvage(self.trace, self.account, lambda: self._own.decoders)
        self._processes: dict[int | str | None, int] = {}
        self._pairs = Pairs()
        self._carried: tuple[bytes, int] | None = None  # the incomplete event at a block's end, and its file offset
        self.has_fractions = False

    def read(self, source: Iterable[bytes] | Ahead) -> None:
        """Read everything, from pieces of the file or from blocks that are already being scanned.

        Raises ``ReadError`` if the bytes are not a trace, or are two traces.
        """
        with _without_collector():
            if isinstance(source, Ahead):
                self._read_ahead(source)
            elif scanners := scanners_of(self._options):
                self._read_ahead(Ahead(scanners, source))
            else:
                for text, offset, last in blocks(source, self.trace):
                    self._finish(text, offset, last, None if self._carried else self._own.read(text))
        self._match(is_last=True)
        if not self.trace.ended:
            self.account.is_cut = True
            self.account.warned("file_cut", 1, "the file ends before its event array is closed")
        numbers = list(self._processes.values())
        names = [key if isinstance(key, str) else None for key in self._processes]
        batch = pa.RecordBatch.from_arrays(
            [pa.array(numbers, pa.int64()), pa.array(names, pa.string())], names=list(COLUMNS["process"])
        )
        self._stage.add("process", batch)
        self._stage.finish()

    def _read_ahead(self, ahead: Ahead) -> None:
        """Take the blocks of a background scanner."""
        try:
            while (found := ahead.next(self._carried is not None)) is not None:
                self.trace.head, self.trace.is_bare_list = ahead.cut.head, ahead.cut.is_bare_list
                self._take_scanned(found)
                if self.trace.ended:
                    self._leave((left.text, left.last) for left in ahead.end())
            self.trace.add_tail(bytes(ahead.cut.tail))
        finally:
            ahead.close()

    def _leave(self, waiting: Iterable[tuple[bytes, bool]]) -> None:
        """Move blocks that were split after the end of the events to the tail, before the rest of the file."""
        for text, last in waiting:
            self.trace.add_tail(text if last else text + b",")

    def _take_scanned(self, found: Scanned) -> None:
        block = scanned_batches.block_of(found.scan)
        if self._carried:
            self._own.keep_texts(block)
            self._finish(found.text, found.offset, found.last, None)
        else:
            self._finish(found.text, found.offset, found.last, self._own.complete(found.text, block))

    def _finish(self, text: bytes, offset: int, last: bool, found: Decoded | None) -> None:
        """Take a decoded block; recover if it did not decode, or if the previous one ended inside an event."""
        if self._carried:
            before, begin = self._carried
            gap = offset - begin - len(before)
            text, offset, self._carried = before + b",".rjust(gap) + text, begin, None
            found = self._own.read(text)
        self._take(found or self._closing(text, last) or self._damaged(text, offset, last))

    def _closing(self, text: bytes, last: bool) -> Decoded | None:
        """Read a block in which the event array ends; None if no candidate end leaves valid events before it."""
        ends = list(ARRAY_END.finditer(text))
        for end in (*ends[:2], *reversed(ends[2:][-2:])):
            found = self._own.read(text[: end.start() + 1])
            if found is not None:
                self.trace.ended = True
                self.trace.add_tail(text[text.index(b"]", end.start()) + 1 :] + (b"" if last else b","))
                return found
        return None

    def _damaged(self, text: bytes, offset: int, last: bool) -> Decoded:
        self._own.prepare(text)
        events, end = self._salvage.block(text, offset, last)
        if end < len(text):
            self._carried = (text[end:], offset + end)
        return self._own.sort(text, events)

    def _take(self, found: Decoded) -> None:
        for table, batch in found.batches:
            if batch.schema.names[0] in IDS:
                batch = batch.set_column(
                    0, batch.schema.names[0], int_columns.moved(batch.column(0), self.account.events_read)
                )
            self._stage.add(table, batch)
        self._pairs.add(found.edges, self.account.events_read)
        self.account.events_read += found.events
        self.account.merge(found.account)
        self.has_fractions = self.has_fractions or found.has_fractions
        self._processes.update(found.processes)
        if self._pairs.is_full:
            self._match(is_last=False)

    def _match(self, is_last: bool) -> None:
        """Make rows of the begin and end events matched so far."""
        if self._pairs.is_empty:
            return
        found = self._own.paired(self._pairs.match(is_last))
        for table, batch in found.batches:
            self._stage.add(table, batch)
        self.account.merge(found.account)
        self._processes.update(found.processes)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the cyclic garbage collector, which takes a quarter of the time for millions of tuples without cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
