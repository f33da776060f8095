"""Blocks of a trace, split and scanned by background threads ahead of the consumer.

This needs neither Arrow nor DuckDB, so a trace can be scanned while those are still being imported.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tracedb.ingester import Options
from tracedb.ingester.decompress import PIECE, Plain, Stream
from tracedb_torch.scan import native_scanner
from tracedb_torch.split import blocks
from tracedb_torch.split.file_feed import Block, Feed
from tracedb_torch.split.prefetch import prefetched

FIRST_TEXTS = (1 << 30, 5 << 28)  # the first text number of each scanner thread, apart from the reader's own
DEPTH = 4  # blocks ahead of the consumer; before it takes the first, the limit is ``EARLY_BYTES``
EARLY_BYTES = 32 << 20  # bytes of rows, from about 280 MB of JSON
EARLY_BLOCK = 8 << 20
"""Block size while other modules are being imported: the thread needs the interpreter lock once per block."""
SWITCH_SECONDS = 0.00005
"""Switch interval during imports; the default of 5 ms would be waited for several times per block."""


Source = Iterable[bytes] | Plain
Text = Callable[[], bytes]


class Scanned(NamedTuple):
    """A block: its events without the array's brackets, its offset in the file, and the scan's result."""

    text: bytes
    """Empty once nobody needs it: everything was scanned, and no event continues from the block before."""
    offset: int
    last: bool
    scan: native_scanner.Scan


class Ahead:
    """Splits and scans a trace; ``next`` returns the blocks in file order.

    One thread splits and scans. A second scanner thread starts when the consumer first waits, if the C library reads
    the file.
    """

    def __init__(self, scanners: Sequence[native_scanner.Scanner], source: Source, is_early: bool = False) -> None:
        self.cut = blocks.Trace()
        """The text around the events, as far as the file was split; ``end`` sets its ``ended``."""
        self._scanners = scanners
        self._waiting: deque[Scanned] = deque()
        self._taken: Scanned | None = None
        self._open = 0  # blocks in flight whose last event may continue in a later block
        self._is_carried = False
        self._is_early = is_early
        self._is_over = self._is_stopped = False
        self._fault: BaseException | None = None
        self._changed = threading.Condition()
        self._turns: _Turns | None = None
        self._put_blocks = 0
        self._interval = sys.getswitchinterval()
        if is_early:
            sys.setswitchinterval(SWITCH_SECONDS)
        self._threads: list[threading.Thread] = []
        self._start(self._run, source)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        # A daemon thread: at exit Python would wait for any other, and Ctrl-C may come before this is closed.
        thread = threading.Thread(target=target, args=arguments, name="tracedb-scan", daemon=True)
        self._threads.append(thread)
        thread.start()

    def next(self, is_carried: bool) -> Scanned | None:
        """Return the next block, None after the last; this releases the previous one.

        ``is_carried``: the previous block ended inside an event, which continues in the next. Re-raises read errors.
        """
        with self._changed:
            self._no_longer_early()
            if self._taken is not None and not _is_plain(self._taken.scan):
                self._open -= 1
            self._is_carried = is_carried
            self._changed.notify_all()
            if not self._waiting and self._turns is not None and len(self._threads) < len(self._scanners):
                self._start(self._help, self._scanners[len(self._threads)], self._turns)
            self._changed.wait_for(lambda: self._waiting or self._is_over)
            self._taken = self._waiting.popleft() if self._waiting else None
            self._changed.notify_all()  # there is room, maybe since a thread found none while this one waited
            if self._taken is None and self._fault is not None:
                raise self._fault
            return self._taken

    def end(self) -> list[Scanned]:
        """Stop splitting: the events have ended. Returns the blocks split since; the rest goes to ``cut``'s tail."""
        with self._changed:
            self.cut.ended = True
            waiting = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
            return waiting

    def close(self) -> None:
        """Stop the threads, whatever they are doing."""
        with self._changed:
            self._no_longer_early()
            self._is_stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._scanners, self._turns = (), None  # free their memory

    def _no_longer_early(self) -> None:
        if self._is_early:
            self._is_early = False
            sys.setswitchinterval(self._interval)

    def _run(self, source: Source) -> None:
        try:
            self._scan_all(source)
        except BaseException as error:  # noqa: BLE001 - raised again where the blocks are taken
            self._fail(error)
        finally:
            if self._turns is not None:
                self._turns.close()
            elif isinstance(source, Generator | Plain):
                source.close()
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def _help(self, scanner: native_scanner.Scanner, turns: _Turns) -> None:
        try:
            self._scan_in_turns(scanner, turns)
        except BaseException as error:  # noqa: BLE001 - raised again where the blocks are taken
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._fault = self._fault or error
            self._changed.notify_all()

    def _scan_all(self, source: Source) -> None:
        pieces = iter(source)
        buffer, offset = blocks.head(pieces, self.cut)
        rest, edge = buffer[offset:], None
        if isinstance(source, Plain):
            rest, edge = _edge(rest, pieces)
            if edge is not None:
                turns = _Turns(Feed(self._scanners[0].library, source, rest, edge), source, offset)
                with self._changed:
                    self._turns = turns
                self._scan_in_turns(self._scanners[0], turns)
                if not self._all_put(turns):
                    return
                rest, offset = turns.feed.rest(), turns.offset
        for text, place, last in blocks.cut(rest, offset, pieces, self.cut, edge):
            if not self._put(self._put_blocks, partial(bytes, text), place, last, self._scanners[0].scan(text)):
                break

    def _scan_in_turns(self, scanner: native_scanner.Scanner, turns: _Turns) -> None:
        block = Block(turns.feed)
        while not self._is_done() and (found := turns.next(block, self._block_bytes())) is not None:
            number, offset = found
            if not self._put(number, block.text, offset, False, scanner.scan_at(*block.place)):
                break

    def _block_bytes(self) -> int:
        return EARLY_BLOCK if self._is_early else blocks.BLOCK

    def _is_done(self) -> bool:
        """Whether there is nothing more to split by turns."""
        return self._is_stopped or self.cut.ended or self._fault is not None

    def _all_put(self, turns: _Turns) -> bool:
        """Take the turns for good and wait until every block was put; False if one will not be."""
        turns.end()
        with self._changed:
            self._changed.wait_for(
                lambda: self._put_blocks == turns.number or self._is_stopped or self._fault is not None
            )
            return self._put_blocks == turns.number and not self._is_stopped

    def _put(self, number: int, text: Text, offset: int, last: bool, scan: native_scanner.Scan) -> bool:
        """Queue a block in file order and wait for room; False if no more blocks are wanted."""
        with self._changed:
            self._changed.wait_for(lambda: self._put_blocks == number or self._is_stopped or self._fault is not None)
            if self._put_blocks != number:
                return False
            self._put_blocks += 1
            self._changed.notify_all()
            if self.cut.ended:
                self.cut.add_tail(text() if last else text() + b",")
                return not self._is_stopped
            is_plain = _is_plain(scan)
            is_needed = not is_plain or self._open or self._is_carried
            self._open += not is_plain
            self._waiting.append(Scanned(text() if is_needed else b"", offset, last, scan))
            self._changed.wait_for(lambda: self._is_stopped or self.cut.ended or self._has_room())
            return not self._is_stopped

    def _has_room(self) -> bool:
        if not self._is_early:
            return len(self._waiting) < DEPTH
        texts = sum(bool(found.text) for found in self._waiting)
        return texts < DEPTH and sum(found.scan.size for found in self._waiting) < EARLY_BYTES


class _Turns:
    """A plain file that several threads read in turns, one block each; blocks are numbered in file order."""

    def __init__(self, feed: Feed, source: Plain, offset: int) -> None:
        self.feed = feed
        self.offset = offset
        """Offset in the file of bytes that were read but belong to no block yet."""
        self.number = 0
        self._source = source
        self._is_over = False
        self._lock = threading.Lock()

    def next(self, block: Block, wanted: int) -> tuple[int, int] | None:
        """Fill a block; returns its number and offset, None if the library can split no further."""
        with self._lock:
            if self._is_over:
                return None
            self._is_over = True  # no other thread may read on after a fault
            is_filled = self.feed.fill(block, wanted)
            if block.taken:
                self._source.progress(block.taken)
            if not is_filled:
                return None
            self._is_over = False
            found = self.number, self.offset
            self.number += 1
            self.offset += block.passed
            return found

    def end(self) -> None:
        """Stop reading by turns; the rest is read piece by piece."""
        with self._lock:
            self._is_over = True

    def close(self) -> None:
        """Close the file; no thread may be reading it."""
        with self._lock:
            self._is_over = True
            self._source.close()


def _edge(rest: bytes, pieces: Iterator[bytes]) -> tuple[bytes, blocks.Edge | None]:
    """Read a bounded amount, until the text between events is recognised; returns all bytes read."""
    edge = blocks.edge_of(rest)
    while edge is None and len(rest) < PIECE and (piece := next(pieces, b"")):
        rest += piece
        edge = blocks.edge_of(rest)
    return rest, edge


def _is_plain(scan: native_scanner.Scan) -> bool:
    """Whether every event was scanned, so that the text is not needed."""
    return scan.status == native_scanner.SOUND and not scan.odd and not (scan.has_large and scan.has_odd_times)


class Reading:
    """A trace being read by a background thread and, where possible, scanned by another."""

    def __init__(self, path: Path, options: Options, is_early: bool = False) -> None:
        self.stream = Stream(path, options.progress)
        scanners = scanners_of(options)
        pieces = (self.stream.plain() if scanners else None) or prefetched(self.stream.pieces())
        self.source: Ahead | Plain | Generator[bytes] = Ahead(scanners, pieces, is_early) if scanners else pieces

    def close(self) -> None:
        """Stop reading."""
        self.source.close()


def scanners_of(options: Options) -> list[native_scanner.Scanner]:
    """Return scanners for background threads; none without the C library or with a single core."""
    library = native_scanner.library() if options.cores > 1 else None
    return [] if library is None else [native_scanner.Scanner(library, options, first) for first in FIRST_TEXTS]
