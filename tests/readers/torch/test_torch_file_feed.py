"""A plain trace that the library reads by itself: two threads in turn, faults, unusual layouts, and its digest."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.both_readers import FILES, outcome, python_reader, sizes
from support.loading import ask, ingest
from support.traces import document, kernel, launched, write
from tracedb.ingester import Options
from tracedb.ingester.decompress import Plain, Stream
from tracedb.pipeline import batch_load, capture_load, digest, discovery, task
from tracedb_torch.scan import native_scanner
from tracedb_torch.split import blocks, scan_ahead
from tracedb_torch.split.file_feed import Block, Feed
from tracedb_torch.split.scan_ahead import Ahead, Scanned, scanners_of

pytestmark = pytest.mark.skipif(native_scanner.library() is None, reason="the compiled reader was not built")

EVENTS = [kernel(1000 + place, 2, f"kernel_{place % 7}", correlation=place) for place in range(400)]


def opened(path: Path, told: list[int] | None = None) -> Plain:
    found = Stream(path, (told if told is not None else []).append).plain()
    assert found is not None
    return found


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(document(EVENTS))
    return path


@pytest.fixture
def _small() -> Iterator[None]:
    """Have files read by blocks of some events."""
    with sizes(3000):
        yield


def take_all(found: Ahead) -> list[Scanned]:
    taken = []
    try:
        while (block := found.next(False)) is not None:
            taken.append(block)
    finally:
        found.close()
    return taken


@pytest.mark.usefixtures("_small")
class TestTurns:
    def test_two_threads_scan_and_the_order_is_the_file_s(self, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        scanned: Counter[int] = Counter()
        both = threading.Event()
        scan_at = native_scanner.Scanner.scan_at

        def noted(self: native_scanner.Scanner, text: bytes | int, length: int) -> native_scanner.Scan:
            scanned[threading.get_ident()] += 1
            if len(scanned) == 2:
                both.set()
            elif sum(scanned.values()) > 1:  # the first thread goes no further without the other
                assert both.wait(120)
            return scan_at(self, text, length)

        monkeypatch.setattr(native_scanner.Scanner, "scan_at", noted)
        told: list[int] = []
        taken = take_all(Ahead(scanners_of(Options(cores=2)), opened(trace, told)))
        assert len(scanned) == 2
        offsets = [block.offset for block in taken]
        assert offsets == sorted(offsets)
        assert len(taken) > 20
        assert [block.last for block in taken] == [False] * (len(taken) - 1) + [True]
        assert sum(block.scan.events for block in taken[:-1]) + taken[-1].text.count(b'"ph"') == len(EVENTS)
        assert sum(told) == trace.stat().st_size

    def test_closed_early_it_leaves_neither_thread_nor_file(self, trace: Path) -> None:
        found = Ahead(scanners_of(Options(cores=2)), source := opened(trace))
        assert found.next(False) is not None
        found.close()
        assert not [thread for thread in threading.enumerate() if thread.name == "tracedb-scan"]
        assert source.file.closed

    def test_a_fault_of_the_second_thread_is_raised_and_ends_both(
        self, trace: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scanners = scanners_of(Options(cores=2))

        failed = threading.Event()
        scan_at, blocks = scanners[0].scan_at, iter(range(1_000_000))

        def out_of_memory(text: bytes | int, length: int) -> native_scanner.Scan:
            failed.set()
            raise MemoryError

        def slowly(text: bytes | int, length: int) -> native_scanner.Scan:
            # The second thread starts once the consumer has the first block and waits for the next one.
            assert next(blocks) == 0 or failed.wait(120)
            return scan_at(text, length)

        monkeypatch.setattr(scanners[1], "scan_at", out_of_memory)
        monkeypatch.setattr(scanners[0], "scan_at", slowly)
        with pytest.raises(MemoryError):
            take_all(Ahead(scanners, opened(trace)))

    def test_what_reading_fails_with_names_the_file(self, trace: Path, tmp_path: Path) -> None:
        class Unreadable(Plain):
            @property
            def number(self) -> int:
                return folder

        folder = os.open(tmp_path, os.O_RDONLY)
        try:
            source = Unreadable(trace.open("rb", buffering=0), trace, lambda done: None)
            with pytest.raises(IsADirectoryError) as found:
                take_all(Ahead(scanners_of(Options(cores=2)), source))
        finally:
            os.close(folder)
        assert found.value.errno == errno.EISDIR
        assert found.value.filename == str(trace)


class TestLayouts:
    @pytest.mark.parametrize("way", FILES)
    def test_an_event_longer_than_a_block_is_read_on_in_python(self, way: str) -> None:
        long = {**EVENTS[0], "args": {**EVENTS[0]["args"], "grid": [1, 2, 3], "note": "x" * 20_000}}
        content = document([*EVENTS[:50], long, *EVENTS[50:100]])
        with python_reader():
            expected = outcome(content, 3000, cores=1)
        found = outcome(content, 3000, way, cores=2)
        assert found == expected
        assert found["events_read"] == 101

    @pytest.mark.parametrize("way", FILES)
    def test_a_long_header_and_no_events_at_all(self, way: str) -> None:
        header = {"notes": ["x" * 100] * 300}
        for content in (document(EVENTS[:60], header=header), document([], header=header), document(EVENTS[:1])):
            with python_reader():
                expected = outcome(content, 3000, cores=1)
            assert outcome(content, 3000, way, cores=2) == expected

    def test_the_block_ends_where_an_event_does(self, trace: Path) -> None:
        text = trace.read_bytes()
        start = text.index(b"[", text.index(b'"traceEvents"')) + 1
        edge = blocks.edge_of(text[start:])
        assert edge is not None
        source = opened(trace)
        library = native_scanner.library()
        assert library is not None
        source.file.seek(start + 900)
        feed = Feed(library, source, text[start : start + 900], edge)
        block, place, cut = Block(feed), start, []
        while feed.fill(block, 2000):
            cut.append(block.text())
            assert text[place : place + len(cut[-1])] == cut[-1]
            place += block.passed
        assert text[place:] == feed.rest()
        assert len(cut) > 30
        assert [len(json.loads(b"[" + part + b"]")) for part in cut]


class TestDigest:
    def load(self, path: Path, database: Path) -> list[str]:
        """Load a trace; returns in which order it was read to its end and hashed."""
        order: list[str] = []
        size = path.stat().st_size

        def progress(done: int) -> None:
            nonlocal size
            size -= done
            if size == 0:
                order.append("read")

        digest_of = digest.digest_of

        def noted(paths: list[Path]) -> str:
            order.append("hashed")
            return digest_of(paths)

        request = task.Request((path,), database, cores=2)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(digest, "digest_of", noted)
            assert batch_load.load(discovery.detect([path]).tasks, request, {}, progress)[0].error is None
        return order

    def test_is_made_once_the_trace_is_read(self, tmp_path: Path) -> None:
        path = write(tmp_path / "rank0.json", launched(20))
        assert self.load(path, tmp_path / "db") == ["read", "hashed"]
        assert ask(tmp_path / "db", "SELECT sha256 FROM capture") == [(digest.digest_of([path]),)]

    def test_of_a_file_that_would_be_read_twice_from_disk_beside_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(capture_load, "HASHED_AFTER", 0)
        begun: list[bool] = []
        begin = digest.Hashing.begin

        def noted(self: digest.Hashing) -> None:
            begun.append(self._is_begun)
            begin(self)

        monkeypatch.setattr(digest.Hashing, "begin", noted)
        path = write(tmp_path / "rank0.json", launched(20))
        assert ingest(path, db=tmp_path / "db", jobs=1).exit_code == 0
        assert begun[:2] == [False, True]  # before it is read; then the ingester says that it is
        assert all(begun[1:])


def test_both_ways_to_read_are_in_use(tmp_path: Path) -> None:
    """A packed trace comes in pieces, another one is read by the library."""
    for name, is_plain in (("x.json", True), ("x.json.gz", False)):
        reading = scan_ahead.Reading(write(tmp_path / name, launched(3)), Options(cores=2))
        assert isinstance(reading.source, Ahead)
        while reading.source.next(False) is not None:
            pass
        assert (reading.source._turns is not None) == is_plain
        reading.close()
