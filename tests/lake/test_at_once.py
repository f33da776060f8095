"""Processes that use one lake at the same moment."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from tracedb.storage import lake_manifest, lake_store


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
