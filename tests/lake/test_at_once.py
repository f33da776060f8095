"""Processes that use one lake at the same moment."""

from __future__ import annotations

import errno
import filecmp
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tracedb
from support.command import run
from support.loading import trace
from tracedb.errors import TracedbError
from tracedb.lake import align, compact, repair, verify
from tracedb.lake.write import LakeWriter
from tracedb.pipeline import run as pipeline
from tracedb.storage import lake_catalog, lake_manifest, lake_store
from tracedb.storage.lake_manifest import Entry, HeldCapture, LakeFile


@pytest.mark.parametrize("look", ["is_file", "iterdir"])
def test_another_process_makes_the_lake_after_a_look(
    look: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the first look at the folder is, the other one makes the lake right after it."""
    real = getattr(Path, look)

    def look_before_the_other(path: Path) -> Any:
        found = real(path)
        found = found if look == "is_file" else list(found)
        monkeypatch.undo()
        lake_manifest.create(tmp_path).write("manifest/entry.json", b"{}")
        return found

    monkeypatch.setattr(Path, look, look_before_the_other)
    lake_manifest.create(tmp_path)
    monkeypatch.undo()
    assert lake_manifest.create(tmp_path).names("") == [lake_store.MARK]


def test_another_process_removes_the_last_file_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between making the folder and the file, the other one finds the folder empty."""
    lake, make = lake_store.Store(tmp_path), tempfile.mkstemp

    def make_after_the_other(prefix: str, dir: Path) -> tuple[int, str]:
        monkeypatch.undo()
        dir.rmdir()
        return make(prefix=prefix, dir=dir)

    monkeypatch.setattr(tempfile, "mkstemp", make_after_the_other)
    lake.write("kernel_event/run=a/part-1.parquet", b"rows")
    assert lake.read("kernel_event/run=a/part-1.parquet") == b"rows"


def test_another_process_removes_a_file_while_it_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder goes with it."""
    lake, compare = lake_store.Store(tmp_path / "lake"), filecmp.cmp
    (tmp_path / "made").write_bytes(b"rows")
    lake.write(name_of("a"), b"rows")

    def compare_after_the_other(target: Path, source: Path, shallow: bool) -> bool:
        monkeypatch.undo()
        lake.remove(name_of("a"))
        return compare(target, source, shallow)

    monkeypatch.setattr(filecmp, "cmp", compare_after_the_other)
    lake.put(name_of("a"), tmp_path / "made")
    assert lake.read(name_of("a")) == b"rows"


def name_of(letter: str) -> str:
    return f"kernel_event/run=a/part-{letter * 64}.parquet"


def add(lake: lake_store.Store, name: str, *numbers: int, file: str = "a") -> None:
    """Write an entry for these captures, each of a run of its own, which names one file, and the file."""
    captures = [
        HeldCapture(number, f"{number:064}", 0, str(number), {}, number, "torch", None, 9) for number in numbers
    ]
    lake.write(name_of(file), b"rows")
    named = LakeFile("kernel_event", name_of(file), hashlib.sha256(b"rows").hexdigest(), 4, 1)
    entry = Entry(kind="captures", layout="", schema=1, captures=captures, files=[named])
    lake_manifest.write_entry(lake, name, entry)


@pytest.fixture
def by_hand(tmp_path: Path) -> lake_store.Store:
    """A lake with the entry of one trace."""
    lake = lake_manifest.create(tmp_path / "lake")
    add(lake, single(1), 1)
    return lake


def single(number: int) -> str:
    return lake_manifest.source_name(f"{number:064}", 9)


def once_before(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, do: Callable[[], object]) -> None:
    """Do something right before the next call of a function, and not again."""
    real = getattr(owner, name)

    def call(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(owner, name, real)
        do()
        return real(*given, **named)

    monkeypatch.setattr(owner, name, call)


def once_after(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, do: Callable[[], object]) -> None:
    """Do something right after the next call of a function, and not again."""
    real = getattr(owner, name)

    def call(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(owner, name, real)
        found = real(*given, **named)
        do()
        return found

    monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize("once", [once_before, once_after])
def test_an_entry_is_written_while_its_file_is_removed_as_unused(
    once: Any, by_hand: lake_store.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process found the file in the lake, so it did not write it."""
    by_hand.write(name_of("b"), b"rows")

    def enter() -> None:
        add(by_hand, single(2), 2, file="c")
        content = by_hand.read(f"manifest/{single(2)}")
        by_hand.write(f"manifest/{single(2)}", content.replace(b"c" * 64, b"b" * 64))

    once(monkeypatch, lake_store.Store, "hide", enter)
    lake_manifest.remove_unnamed(by_hand, [name_of("b"), name_of("c")])
    assert verify.verify(by_hand.root)[1] == []
    assert by_hand.sizes("kernel_event") == {name_of("a"): 4, name_of("b"): 4}


@pytest.mark.parametrize("once", [once_before, once_after])
def test_a_trace_that_is_added_during_a_check_is_not_unused(
    once: Any, by_hand: lake_store.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    once(monkeypatch, lake_store.Store, "sizes", lambda: add(by_hand, single(2), 2, file="b"))
    assert verify.verify(by_hand.root)[1] == []


def test_a_compaction_during_a_check_is_no_fault(by_hand: lake_store.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def compacted() -> None:
        add(by_hand, "compact-1.json", 1, file="b")
        by_hand.remove(f"manifest/{single(1)}")
        by_hand.remove(name_of("a"))

    once_before(monkeypatch, lake_store.Store, "sha256", compacted)
    assert verify.verify(by_hand.root)[1] == []


def test_a_compaction_while_the_manifest_is_listed(by_hand: lake_store.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that is made meanwhile may have neither the old entry nor the new one."""
    add(by_hand, "compact-1.json", 1)
    by_hand.remove(f"manifest/{single(1)}")
    real = lake_store.Store.names

    def list_too_early(lake: lake_store.Store, folder: str) -> list[str]:
        monkeypatch.undo()
        return [name for name in real(lake, folder) if not name.startswith("compact-")]

    monkeypatch.setattr(lake_store.Store, "names", list_too_early)
    assert [item.capture_id for item in lake_manifest.read(by_hand).held()] == [1]


def test_a_compacted_entry_is_replaced_after_it_was_listed(
    by_hand: lake_store.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(by_hand, "compact-1.json", 1)
    by_hand.remove(f"manifest/{single(1)}")

    def replaced() -> None:
        add(by_hand, "compact-2.json", 1)
        by_hand.remove("manifest/compact-1.json")

    once_after(monkeypatch, lake_store.Store, "names", replaced)
    assert lake_manifest.known_sources(by_hand) == {9: {f"{1:064}"}}
    once_after(monkeypatch, lake_store.Store, "names", lambda: None)
    assert repair.faulty_entries(by_hand, {9}) == []


def test_a_compacted_entry_is_looked_for_after_that_of_the_trace(
    by_hand: lake_store.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compacted() -> None:
        add(by_hand, "compact-1.json", 1)
        by_hand.remove(f"manifest/{single(1)}")

    once_before(monkeypatch, lake_store.Store, "read", compacted)
    held = lake_manifest.find(by_hand, f"{1:064}", 9)
    assert held is not None and held.capture_id == 1


def test_an_entry_is_compacted_while_its_files_are_checked(
    by_hand: lake_store.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compacted() -> None:
        add(by_hand, "compact-1.json", 1, file="b")
        by_hand.remove(f"manifest/{single(1)}")
        by_hand.remove(name_of("a"))

    once_before(monkeypatch, lake_store.Store, "size", compacted)
    assert repair.faulty_entries(by_hand, {9}) == []


def test_what_a_killed_process_was_writing_is_unused(by_hand: lake_store.Store) -> None:
    (by_hand.root / "kernel_event" / "run=b").mkdir()
    (by_hand.root / "kernel_event" / "run=b" / f"{lake_store.HIDDEN}x1").write_bytes(b"ro")
    findings = verify.verify(by_hand.root)[1]
    assert [finding.state for finding in findings] == ["unused_file"]
    assert verify.remove_unused(by_hand.root, findings) == 1
    assert not (by_hand.root / "kernel_event" / "run=b").exists()


def test_what_a_killed_process_had_hidden_is_brought_back(by_hand: lake_store.Store) -> None:
    """It was killed after an entry that names the file had been written, and before it saw that."""
    assert by_hand.hide(name_of("a")) is not None
    findings = verify.verify(by_hand.root)[1]
    assert [finding.state for finding in findings] == ["missing_file", "unused_file"]
    assert findings[0].advice == (
        f"tracedb lake verify {by_hand.root} --remove-unused, which brings back what a killed process was removing"
    )
    assert verify.remove_unused(by_hand.root, findings) == 0
    assert verify.verify(by_hand.root)[1] == []
    assert by_hand.sizes("kernel_event") == {name_of("a"): 4}


def test_what_is_being_written_is_removed_as_unused(by_hand: lake_store.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def removed() -> None:
        verify.remove_unused(by_hand.root, verify.verify(by_hand.root)[1])

    once_before(monkeypatch, Path, "replace", removed)
    by_hand.write("manifest/new.json", b"{}")
    assert by_hand.read("manifest/new.json") == b"{}"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """A lake with three traces of a run, whose facts are derived, and the traces."""
    folder = tmp_path_factory.mktemp("three")
    traces = [trace(folder / f"rank{rank}.json", 3 + rank, rank) for rank in range(3)]
    assert [outcome.error for outcome in pipeline.ingest(*traces, lake=folder / "lake")] == [None] * 3
    return folder / "lake", traces


@pytest.fixture
def loaded(three: tuple[Path, list[Path]], tmp_path: Path) -> Path:
    return Path(shutil.copytree(three[0], tmp_path / "lake"))


def kernels(lake: Path) -> list[tuple[int, int]]:
    assert verify.verify(lake)[1] == []
    with tracedb.connect(lake) as connection:
        return connection.execute(
            "SELECT rank, count(*) FROM capture INNER JOIN kernel_event USING (capture_id) GROUP BY rank ORDER BY rank"
        ).fetchall()


RIGHT = [(0, 3), (1, 4), (2, 5)]


def test_a_file_that_was_in_the_lake_is_removed_before_its_entry_is_written(
    three: tuple[Path, list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process had written it; meanwhile it is removed as unused."""
    lake = lake_manifest.create(tmp_path / "lake")
    left = next(iter(lake_store.Store(three[0]).sizes("device")))
    lake.write(left, lake_store.Store(three[0]).read(left))

    def removed() -> None:
        found = verify.verify(lake.root)[1]
        assert verify.remove_unused(lake.root, found) == len(found) > 1

    once_before(monkeypatch, lake_manifest, "write_entry", removed)
    pipeline.ingest(*three[1], lake=lake.root)
    assert kernels(lake.root) == RIGHT


def test_two_compactions_at_once(loaded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once_before(monkeypatch, compact, "_put_together", lambda: compact.compact(loaded))
    assert compact.compact(loaded) == 0
    assert kernels(loaded) == RIGHT


def test_facts_of_fewer_captures_overwrite_those_of_all(loaded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that began before the others were added ends last."""
    real = align.align_run

    def with_fewer(lake: lake_store.Store, run: str, captures: list[int], memory_limit: str) -> None:
        monkeypatch.undo()
        real(lake, run, captures[:2], memory_limit)

    monkeypatch.setattr(align, "align_run", with_fewer)
    align.align(loaded, again=True)
    found = verify.verify(loaded)[1]
    assert {finding.state for finding in found} <= {"unused_file"}  # the earlier facts
    assert not lake_manifest.read(lake_store.Store(loaded)).unaligned()


def test_a_run_is_compacted_while_it_is_aligned(loaded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once_after(monkeypatch, lake_catalog, "build", lambda: compact.compact(loaded))
    align.align(loaded, again=True)
    assert kernels(loaded) == RIGHT


def test_a_compaction_keeps_entries_whose_successor_lacks_a_file(
    loaded: Path, three: tuple[Path, list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ingest writes the traces of the faulty entry again, and has come to the first of them."""
    compact.compact(loaded)
    next((loaded / "launch").rglob("*.parquet")).unlink()
    real = LakeWriter.write

    def compact_after(writer: LakeWriter, captures: Any) -> None:
        real(writer, captures)
        assert compact.compact(loaded) == 0
        verify.remove_unused(loaded, verify.verify(loaded)[1])

    monkeypatch.setattr(LakeWriter, "write", compact_after)
    assert [outcome.error for outcome in pipeline.ingest(*three[1], lake=loaded)] == [None] * 3
    assert kernels(loaded) == RIGHT


def test_a_compaction_passes_on_no_damage(loaded: Path) -> None:
    changed = next((loaded / "kernel_event").rglob("*.parquet"))
    changed.write_bytes(changed.read_bytes()[:-1] + b"x")
    before = sorted((loaded / "manifest").iterdir())
    with pytest.raises(TracedbError, match=r"part-\w+\.parquet: is missing or damaged; `tracedb lake verify"):
        compact.compact(loaded)
    assert sorted((loaded / "manifest").iterdir()) == before


def test_a_process_is_killed_before_the_facts_are_derived(three: tuple[Path, list[Path]], loaded: Path) -> None:
    for path in (loaded / "manifest").glob("facts-*"):
        path.unlink()
    shutil.rmtree(loaded / "clock_alignment", ignore_errors=True)
    assert [outcome.is_known for outcome in pipeline.ingest(*three[1], lake=loaded)] == [True] * 3
    assert kernels(loaded) == RIGHT


def test_a_lake_that_is_full_when_the_facts_are_written(
    three: tuple[Path, list[Path]], loaded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was loaded before is told first."""
    for path in (loaded / "manifest").glob("facts-*"):
        path.unlink()

    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(lake_manifest, "write_entry", full)
    done = run("ingest", *three[1], "--lake", loaded, "--jobs", "1")
    assert done.exit_code == 1 and "0 captures loaded, 3 known before, 0 failed" in done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"tracedb: error: {loaded}: cannot be written (No space left on device); make room or have it made writable, "
        "and run it again"
    )
