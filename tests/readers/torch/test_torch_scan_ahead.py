"""A trace scanned ahead: in order, few blocks at a time, faults passed on, and started before heavy imports."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.loading import ask, ingest
from support.traces import document, kernel, launched, write
from tracedb.errors import ReadError
from tracedb.ingester import Options
from tracedb.pipeline import batch_load, discovery, early_read, task
from tracedb_torch.scan import native_scanner
from tracedb_torch.split import blocks, scan_ahead
from tracedb_torch.split.scan_ahead import Ahead, Scanned, scanners_of

pytestmark = pytest.mark.skipif(native_scanner.library() is None, reason="the compiled reader was not built")

PLAIN = json.dumps(kernel(1000, 2, correlation=7))
ODD = PLAIN.replace('"correlation": 7', '"correlation": "7"')


def begin(events: list[str], is_early: bool = False, monkeypatch: pytest.MonkeyPatch | None = None) -> Ahead:
    """Scan events, each a block of its own."""
    scanners = scanners_of(Options(cores=2))
    assert scanners
    if monkeypatch:
        monkeypatch.setattr(blocks, "BLOCK", 1)
    pieces = ['{"traceEvents": [', *(event + "," for event in events), PLAIN, "]}"]
    return Ahead(scanners, (piece.encode() for piece in pieces), is_early)


def settled(found: Ahead) -> int:
    """Wait until the thread waits for room or is at its end; returns how many blocks wait."""
    (thread,) = found._threads
    while thread.is_alive():
        with found._changed:
            if found._changed._waiters and not found._has_room():  # type: ignore[attr-defined]
                break
        time.sleep(0.005)
    return len(found._waiting)


def take_all(found: Ahead, carried: frozenset[int] = frozenset()) -> list[Scanned]:
    taken: list[Scanned] = []
    while (block := found.next(len(taken) - 1 in carried)) is not None:
        taken.append(block)
    found.close()
    return taken


class TestTexts:
    def test_of_plain_blocks_are_let_go(self, monkeypatch: pytest.MonkeyPatch) -> None:
        taken = take_all(begin([PLAIN] * 3, monkeypatch=monkeypatch))
        assert [block.scan.events for block in taken[:3]] == [1, 1, 1]
        assert [block.text for block in taken[:3]] == [b"", b"", b""]
        assert taken[-1].text  # where the array ends, what follows is looked at

    def test_are_kept_while_an_odd_block_before_may_run_into_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = begin([PLAIN, ODD, PLAIN, PLAIN], monkeypatch=monkeypatch)
        settled(found)
        assert [bool(block.text) for block in take_all(found)[:4]] == [False, True, True, True]

    def test_are_kept_after_a_block_that_ended_in_an_event(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(scan_ahead, "DEPTH", 1)
        found = begin([ODD, *[PLAIN] * 9], monkeypatch=monkeypatch)
        taken = take_all(found, carried=frozenset({0, 1, 2}))
        assert all(block.text for block in taken[:4])
        assert not taken[6].text


class TestRoom:
    def test_many_blocks_before_the_first_is_taken_and_few_after(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = begin([PLAIN] * 40, is_early=True, monkeypatch=monkeypatch)
        assert settled(found) > 30
        for _ in range(40):
            found.next(False)
        assert settled(found) <= scan_ahead.DEPTH
        found.close()

    def test_early_blocks_take_so_much_memory_and_no_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(scan_ahead, "EARLY_BYTES", 4000)
        found = begin([PLAIN] * 40, is_early=True, monkeypatch=monkeypatch)
        assert 2 <= settled(found) < 30
        found.close()

    def test_few_texts_wait_also_before_the_first_is_taken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = begin([ODD] * 40, is_early=True, monkeypatch=monkeypatch)
        assert settled(found) == scan_ahead.DEPTH
        found.close()


class TestEnds:
    def test_what_reading_raises_is_raised_where_blocks_are_taken(self) -> None:
        def pieces() -> Iterator[bytes]:
            yield b'{"traceEvents": [' + PLAIN.encode()
            raise OSError(5, "the disk is gone")

        scanners = scanners_of(Options(cores=2))
        assert scanners
        with pytest.raises(OSError, match="the disk is gone"):
            take_all(Ahead(scanners, pieces()))

    def test_no_trace_is_said_there_too(self) -> None:
        scanners = scanners_of(Options(cores=2))
        assert scanners
        with pytest.raises(ReadError, match="no traceEvents"):
            take_all(Ahead(scanners, iter([b"{}"])))

    def test_closed_early_it_leaves_no_thread_and_the_interpreter_as_it_was(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before, threads = sys.getswitchinterval(), set(threading.enumerate())
        found = begin([PLAIN] * 400, is_early=True, monkeypatch=monkeypatch)
        assert sys.getswitchinterval() < before
        found.close()
        assert sys.getswitchinterval() == before
        assert {thread for thread in threading.enumerate() if thread.name == "tracedb-scan"} <= threads

    def test_blocks_cut_after_the_end_go_to_the_tail_in_order(self, monkeypatch: pytest.MonkeyPatch) -> None:
        numbers = range(2000, 2030)
        found = begin([ODD, *(PLAIN.replace("1000", str(number)) for number in numbers)], False, monkeypatch)
        first = found.next(False)
        assert first is not None
        settled(found)
        left = b"".join(block.text + b"," for block in found.end())
        assert left
        assert found.next(False) is None
        places = [(first.text + b"," + left + bytes(found.cut.tail)).index(b"%d" % number) for number in numbers]
        assert places == sorted(places)
        assert found.cut.tail.endswith(b"]}")
        found.close()


class TestCommand:
    def test_the_first_file_is_begun_and_loaded_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(early_read, "EARLY_FROM", 1)
        path = write(tmp_path / "rank0.json", launched(20))
        read: list[int] = []
        found = discovery.detect([path])
        request = task.Request((path,), tmp_path / "db", cores=2)
        begun = early_read.begin(found.tasks[0], request, read.append)
        assert begun is not None
        outcome = batch_load.load(found.tasks[:1], request, {}, read.append, begun=begun)[0]
        begun.close()
        assert outcome.error is None
        assert outcome.loaded[0].kernels == 20
        assert sum(read) == path.stat().st_size

    def test_of_several_files_the_one_that_is_loaded_first(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(early_read, "EARLY_FROM", 1)
        monkeypatch.setattr(batch_load, "SMALL_BYTES", 0)
        read: list[tuple[str, bool]] = []
        begin = scan_ahead.Reading.__init__

        def noted(self: scan_ahead.Reading, path: Path, options: Options, is_early: bool = False) -> None:
            read.append((path.name, is_early))
            begin(self, path, options, is_early)

        monkeypatch.setattr(scan_ahead.Reading, "__init__", noted)
        for name, kernels in (("a.json", 3), ("b.json", 9), ("c.json", 5)):
            write(tmp_path / "in" / name, launched(kernels))
        assert ingest(tmp_path / "in", db=tmp_path / "db", jobs=1).exit_code == 0
        assert read == [("b.json", True), ("c.json", False), ("a.json", False)]
        found = ask(tmp_path / "db", "SELECT capture_id, count(*) FROM kernel_event GROUP BY ALL ORDER BY ALL")
        assert found == [(1, 3), (2, 9), (3, 5)]

    def test_small_files_are_not_begun(self, tmp_path: Path) -> None:
        path = write(tmp_path / "rank0.json", launched(2))
        found = discovery.detect([path])
        assert early_read.begin(found.tasks[0], task.Request((path,), tmp_path / "db"), lambda done: None) is None

    def test_a_file_that_goes_away_is_told_of_where_it_is_loaded(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(early_read, "EARLY_FROM", 1)
        path = write(tmp_path / "rank0.json", launched(2))
        found = discovery.detect([path])
        path.unlink()
        request = task.Request((path,), tmp_path / "db", cores=2)
        begun = early_read.begin(found.tasks[0], request, lambda done: None)
        outcome = batch_load.load(found.tasks[:1], request, {}, begun=begun)[0]
        assert outcome.error is not None
        assert "No such file" in outcome.error
        assert not (tmp_path / "db").exists()

    def test_cut_files_are_the_same_begun_or_not(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(early_read, "EARLY_FROM", 1)
        monkeypatch.setattr(blocks, "BLOCK", 500)
        path = tmp_path / "rank0.json"
        path.write_bytes(document(launched(30))[:-700])
        found = discovery.detect([path])
        results = []
        for name, is_begun in (("a", False), ("b", True)):
            request = task.Request((path,), tmp_path / name, cores=2)
            begun = early_read.begin(found.tasks[0], request, lambda done: None) if is_begun else None
            results.append(batch_load.load(found.tasks[:1], request, {}, begun=begun)[0].loaded)
        assert results[0] == results[1]
        assert results[0][0].status == "truncated"
