"""One pass over the events of a file: decode, sort by category, hand columns to the stage."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pyarrow as pa

from tracedb.ingester import Options
from tracedb_torch import narrow, native, scanned
from tracedb_torch.account import Account
from tracedb_torch.blocks import Trace, blocks
from tracedb_torch.decoding import BlockReader, Decoded
from tracedb_torch.helpers import Helper
from tracedb_torch.salvage import ARRAY_END, Salvage
from tracedb_torch.stage import Stage

DEPTH = 3  # blocks scanned ahead
FIRST_TEXT_AHEAD = 1 << 30  # where the scanner ahead numbers texts from
IDS = ("event_id", "launch_id", "op_id", "annotation_id", "memory_event_id")


class Reader:
    """Reads the events of one trace into a stage and keeps the account.

    With ``helpers`` other processes decode beside this one. Blocks that do not decode as a whole are read here.
    """

    def __init__(self, stage: Stage, options: Options, helpers: int = 0) -> None:
        self.trace = Trace()
        self.account = Account()
        self._stage = stage
        self._options = options
        self._helpers = helpers
        self._own = BlockReader(options)
        self._scanner = scanned.scanner(options, FIRST_TEXT_AHEAD) if options.cores > 1 else None
        self._salvage = Salvage(self.trace, self.account, lambda: self._own.decoders)
        self._processes: dict[int | str | None, int] = {}
        self._carried: tuple[bytes, int] | None = None  # what a block ended in, and its place in the file
        self.has_fractions = False

    def read(self, pieces: Iterable[bytes]) -> None:
        """Read everything. Raises ``ReadError`` where the bytes are no trace, or two traces."""
        with _without_collector():
            if self._scanner is not None:
                self._read_ahead(self._scanner, pieces)
            elif self._helpers:
                self._read_with_helper(pieces)
            else:
                for text, offset, last in blocks(pieces, self.trace):
                    self._finish(text, offset, last, None if self._carried else self._own.read(text))
        if not self.trace.ended:
            self.account.is_cut = True
            self.account.warned("file_cut", 1, "the file ends before its event array is closed")
        numbers = list(self._processes.values())
        names = [key if isinstance(key, str) else None for key in self._processes]
        batch = pa.RecordBatch.from_arrays(
            [pa.array(numbers, pa.int64()), pa.array(names, pa.string())], names=["pid", "name"]
        )
        self._stage.add("process", batch)
        self._stage.finish()

    def _read_ahead(self, scanner: native.Scanner, pieces: Iterable[bytes]) -> None:
        """Scan blocks in another thread, ahead of this one, which takes what is found in the order of the file."""
        waiting: deque[tuple[bytes, int, bool, Future[scanned.Block]]] = deque()
        with ThreadPoolExecutor(1, thread_name_prefix="tracedb-scan") as thread:
            for text, offset, last in blocks(pieces, self.trace):
                waiting.append((text, offset, last, thread.submit(scanned.scan, scanner, text)))
                while waiting and (len(waiting) > DEPTH or last or waiting[0][3].done()):
                    self._take_scanned(*waiting.popleft())
                    if self.trace.ended:
                        self._leave((text, last) for text, _, last, _ in waiting)
                        waiting.clear()

    def _leave(self, waiting: Iterable[tuple[bytes, bool]]) -> None:
        """Put to the tail what was cut into blocks before the end of the events was seen; then comes the rest."""
        for text, last in waiting:
            self.trace.add_tail(text if last else text + b",")

    def _take_scanned(self, text: bytes, offset: int, last: bool, scanning: Future[scanned.Block]) -> None:
        block = scanning.result()
        if self._carried:
            self._own.keep_texts(block)
            self._finish(text, offset, last, None)
        else:
            self._finish(text, offset, last, self._own.complete(text, block))

    def _read_with_helper(self, pieces: Iterable[bytes]) -> None:
        """Share the blocks between this process and a helper; results are taken in the order of the file."""
        with Helper(self._options) as helper:
            waiting: list[tuple[bytes, int, bool]] = []
            own: dict[int, Decoded | None] = {}
            taken = 0
            for number, (text, offset, last) in enumerate(blocks(pieces, self.trace)):
                waiting.append((text, offset, last))
                if not last and helper.has_room():
                    helper.send(number, text)
                else:
                    own[number] = self._own.read(text)
                while waiting and (last or taken in own or helper.is_ready(taken)):
                    taken = self._take_next(helper, own, waiting, taken)
                    if self.trace.ended:
                        self._leave((text, last) for text, _, last in waiting)
                        waiting.clear()

    def _take_next(
        self, helper: Helper, own: dict[int, Decoded | None], waiting: list[tuple[bytes, int, bool]], number: int
    ) -> int:
        text, offset, last = waiting.pop(0)
        found = own.pop(number) if number in own else helper.result(number)
        self._finish(text, offset, last, found)
        return number + 1

    def _finish(self, text: bytes, offset: int, last: bool, found: Decoded | None) -> None:
        """Take a block as decoded; look closer where it did not decode, or where the one before ended in an event."""
        if self._carried:
            before, begin = self._carried
            gap = offset - begin - len(before)
            text, offset, self._carried = before + b",".rjust(gap) + text, begin, None
            found = self._own.read(text)
        self._take(found or self._closing(text) or self._damaged(text, offset, last))

    def _closing(self, text: bytes) -> Decoded | None:
        """Read a block in which the event array ends; None if no such end leaves sound events before it."""
        ends = list(ARRAY_END.finditer(text))
        for end in (*ends[:2], *reversed(ends[2:][-2:])):
            found = self._own.read(text[: end.start() + 1])
            if found is not None:
                self.trace.ended = True
                self.trace.add_tail(text[text.index(b"]", end.start()) + 1 :])
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
                    0, batch.schema.names[0], narrow.moved(batch.column(0), self.account.events_read)
                )
            self._stage.add(table, batch)
        self.account.events_read += found.events
        self.account.merge(found.account)
        self.has_fractions = self.has_fractions or found.has_fractions
        self._processes.update(found.processes)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the cyclic garbage collector: millions of short-lived tuples, no cycles, a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
