"""Files and folders in a lake that are not tracedb's, and a manifest that does not come to rest."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.loading import trace
from support.tiny import GEMM, Tiny
from tracedb.errors import TracedbError
from tracedb.lake import export, verify
from tracedb.lake.write import LakeWriter
from tracedb.pipeline import run as pipeline
from tracedb.storage import lake_manifest, lake_store

DEEP = 1_100
"""More folders in one another than Python calls functions in one another."""


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with one trace, which only tests that leave it as it is use."""
    folder = tmp_path_factory.mktemp("one")
    assert [item.error for item in pipeline.ingest(trace(folder / "x.json"), lake=folder / "lake")] == [None]
    return folder / "lake"


@pytest.mark.parametrize(
    ("path", "states"),
    [
        ("mine.parquet", []),
        (f"backup/part-{'a' * 64}.parquet", []),
        (f"backup/device/part-{'a' * 64}.parquet", []),
        (".tracedb-0-spill/0.parquet", []),
        ("kernel_event/run=a/mine.parquet", ["foreign_file"]),
        (f"kernel_event/run=a/part-{'a' * 64}.parquet", ["unused_file"]),
        ("kernel_event/run=a/.tracedb-x", ["unused_file"]),
    ],
)
def test_only_files_with_a_name_of_tracedb_are_removed(one: Path, path: str, states: list[str]) -> None:
    file = one / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"rows")
    findings = verify.verify(one)[1]
    removed = verify.remove_unused(one, findings)
    is_there = file.exists()
    file.unlink(missing_ok=True)
    for folder in file.parents:
        if folder != one and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    assert [item.state for item in findings] == states
    assert (removed, is_there) == (int(states == ["unused_file"]), states != ["unused_file"])


def test_folders_that_are_deeper_than_those_of_a_lake(one: Path) -> None:
    here = os.open(".", os.O_RDONLY)
    os.chdir(one / "device")
    try:
        for _ in range(DEEP):
            Path("d").mkdir()
            os.chdir("d")
        assert verify.verify(one)[1] == []
        for _ in range(DEEP):
            os.chdir("..")
            Path("d").rmdir()
    finally:
        os.fchdir(here)
        os.close(here)


@pytest.mark.parametrize(
    "what", [lake_manifest.read, lake_manifest.known_sources, lambda lake: verify.verify(lake.root)]
)
@pytest.mark.parametrize("times", [lake_manifest.DISTURBED - 1, 10**9])
def test_a_manifest_from_which_entries_keep_vanishing(
    one: Path, what: Callable[[lake_store.Store], Any], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction removes the entries of thousands of traces one by one."""
    real, left = lake_store.Store.names, times

    def with_a_removed_one(lake: lake_store.Store, folder: str) -> list[str]:
        nonlocal left
        left -= 1
        return [*real(lake, folder), f"{lake_manifest.COMPACTED}0.json"] if left >= 0 else real(lake, folder)

    monkeypatch.setattr(lake_store.Store, "names", with_a_removed_one)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    lake = lake_store.Store(one)
    if times < 10**9:
        assert what(lake)
        return
    with pytest.raises(TracedbError, match="other processes keep removing entries of its manifest; try again when"):
        what(lake)


def test_rows_about_no_capture_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(0)
    tiny.kernel(GEMM, 0, 10)
    tiny.add("ingest_issue", code="unrecognised", count=1, detail="x.txt")
    db, real, written = tiny.save(), LakeWriter._part, []

    def count(writer: LakeWriter, table: str, run: str, where: str) -> Any:
        written.append((table, where))
        return real(writer, table, run, where)

    monkeypatch.setattr(LakeWriter, "_part", count)
    export.export(db, tmp_path / "lake")
    assert written.count(("ingest_issue", "t.capture_id IS NULL")) == 1
    assert len(lake_manifest.read(lake_store.Store(tmp_path / "lake")).general) == 1
