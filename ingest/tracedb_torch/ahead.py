"""Blocks of a trace, cut and scanned by a thread of its own, ahead of whoever takes them.

Neither Arrow nor DuckDB is needed for that, so a trace can be scanned while those are still imported.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import NamedTuple

from tracedb.ingester import Options
from tracedb_torch import native
from tracedb_torch.blocks import Trace, blocks
from tracedb_torch.stream import Stream, prefetched

FIRST_TEXT = 1 << 30  # where the scanner ahead numbers texts from
DEPTH = 4  # blocks ahead of whoever takes them; before the first is taken, as many as make ``EARLY_BYTES``
EARLY_BYTES = 32 << 20  # bytes of rows, of some 280 MB of JSON
SWITCH_SECONDS = 0.00005
"""How long a thread waits for the interpreter while another imports; by default 5 ms, several times a block."""


class Scanned(NamedTuple):
    """A block: its events without the array's brackets, its place in the file, and what the scanner made of it."""

    text: bytes
    """Empty where nobody needs it any more: everything in it was scanned, and no block before it may run into it."""
    offset: int
    last: bool
    scan: native.Scan


class Ahead:
    """Cuts and scans. What is found is taken by ``next``, in the order of the file."""

    def __init__(self, scanner: native.Scanner, pieces: Iterable[bytes], is_early: bool = False) -> None:
        self.cut = Trace()
        """What stands around the events, as far as the thread cut the file; its ``ended`` is for ``end`` to set."""
        self._scanner = scanner
        self._waiting: deque[Scanned] = deque()
        self._taken: Scanned | None = None
        self._open = 0  # blocks not yet done with whose end may turn out to lie in a later block
        self._is_carried = False
        self._is_early = is_early
        self._is_over = self._is_stopped = False
        self._fault: BaseException | None = None
        self._changed = threading.Condition()
        self._interval = sys.getswitchinterval()
        if is_early:
            sys.setswitchinterval(SWITCH_SECONDS)
        # A daemon, for Python waits at its end for every other thread: Ctrl-C may come before this is closed.
        self._thread = threading.Thread(target=self._run, args=(pieces,), name="tracedb-scan", daemon=True)
        self._thread.start()

    def next(self, is_carried: bool) -> Scanned | None:
        """Return the next block, None after the last; the one before is done with.

        ``is_carried``: whether it ended in an event, which goes on in the next. Raises what reading raised.
        """
        with self._changed:
            self._no_longer_early()
            if self._taken is not None and not _is_plain(self._taken.scan):
                self._open -= 1
            self._is_carried = is_carried
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self._is_over)
            self._taken = self._waiting.popleft() if self._waiting else None
            if self._taken is None and self._fault is not None:
                raise self._fault
            return self._taken

    def end(self) -> list[Scanned]:
        """Cut no more: the events have ended. Returns the blocks cut since; the rest goes to the tail of ``cut``."""
        with self._changed:
            self.cut.ended = True
            waiting = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
            return waiting

    def close(self) -> None:
        """Stop the thread, wherever it is."""
        with self._changed:
            self._no_longer_early()
            self._is_stopped = True
            self._changed.notify_all()
        self._thread.join()

    def _no_longer_early(self) -> None:
        if self._is_early:
            self._is_early = False
            sys.setswitchinterval(self._interval)

    def _run(self, pieces: Iterable[bytes]) -> None:
        try:
            for text, offset, last in blocks(pieces, self.cut):
                if not self._put(Scanned(text, offset, last, self._scanner.scan(text))):
                    break
        except BaseException as error:  # noqa: BLE001 - raised again where the blocks are taken
            self._fault = error
        finally:
            if isinstance(pieces, Generator):
                pieces.close()
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def _put(self, found: Scanned) -> bool:
        """Have a block wait to be taken, and wait for room; False where no more is wanted."""
        with self._changed:
            if self.cut.ended:
                self.cut.add_tail(found.text if found.last else found.text + b",")
                return not self._is_stopped
            is_plain = _is_plain(found.scan)
            if is_plain and not self._open and not self._is_carried:
                found = found._replace(text=b"")
            self._open += not is_plain
            self._waiting.append(found)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_stopped or self.cut.ended or self._has_room())
            return not self._is_stopped

    def _has_room(self) -> bool:
        if not self._is_early:
            return len(self._waiting) < DEPTH
        texts = sum(bool(found.text) for found in self._waiting)
        return texts < DEPTH and sum(found.scan.size for found in self._waiting) < EARLY_BYTES


def _is_plain(scan: native.Scan) -> bool:
    """Whether everything in a block was scanned, and nobody will look at its text."""
    return scan.status == native.SOUND and not scan.odd and not (scan.has_large and scan.has_odd_times)


class Reading:
    """A trace that is being read: by a thread of its own, and, where that may be, scanned by another."""

    def __init__(self, path: Path, options: Options, is_early: bool = False) -> None:
        self.stream = Stream(path, options.progress)
        pieces = prefetched(self.stream.pieces())
        scanner = scanner_of(options)
        self.source: Ahead | Generator[bytes] = pieces if scanner is None else Ahead(scanner, pieces, is_early)

    def close(self) -> None:
        """Read no more."""
        self.source.close()


def scanner_of(options: Options) -> native.Scanner | None:
    """Return a scanner for a thread of its own; None where the library is not in use or there is but one core."""
    library = native.library() if options.cores > 1 else None
    return None if library is None else native.Scanner(library, options, FIRST_TEXT)
