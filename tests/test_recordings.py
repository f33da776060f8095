"""The recordings in the repository are as their script cuts them, and contain nothing private."""

from __future__ import annotations

import gzip
import importlib.util
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from support import recordings

FILES = sorted(path for path in recordings.SLICE.rglob("*") if path.suffix in (".gz", ".sqlite", ".json", ".csv"))


@pytest.fixture
def cut(tmp_path: Path) -> ModuleType:
    """The script, in an empty folder."""
    path = shutil.copy(recordings.SLICE / "cut.py", tmp_path)
    spec = importlib.util.spec_from_file_location("cut_recordings", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def content(path: Path) -> bytes | list[str]:
    """What a file holds, however this machine's zlib or SQLite packs it."""
    if path.suffix == ".sqlite":
        with closing(sqlite3.connect(path)) as connection:
            return list(connection.iterdump())
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def test_they_hold_nothing_of_the_recording_machine(cut: ModuleType) -> None:
    assert len(FILES) > 20
    for path in FILES:
        held = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert not cut.PRIVATE.search(held), path
        assert b"traceName" not in held and b"TARGET_INFO_SYSTEM_ENV" not in held, path


@pytest.mark.shared
@pytest.mark.skipif(not recordings.IS_WHOLE, reason="the whole recordings are not beside the repository")
def test_the_script_cuts_them_again(cut: ModuleType, tmp_path: Path) -> None:
    cut.main(recordings.SHARED)
    for path in FILES:
        if path.parent.name == "replay":
            continue  # recorded for the repository alone
        assert content(tmp_path / path.relative_to(recordings.SLICE)) == content(path), path
