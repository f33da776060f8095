"""The lake that several test files divide."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

import pytest

from support.command import run
from tracedb.storage import lake_catalog, lake_manifest
from tracedb.storage.lake_manifest import Manifest
from tracedb.storage.lake_store import Store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of ten captures in three runs, of torch and nsys."""
    path = tmp_path_factory.mktemp("parts") / "lake"
    recorded = ROOT / "tests" / "data" / "recorded" / "data" / "nsys"
    assert run("ingest", ROOT / "examples" / "run", recorded, "--lake", path, "--jobs", "1").exit_code == 0
    return path


Built = dict[tuple[object, ...], Path]


@pytest.fixture(scope="session")
def built() -> Built:
    return {}


@pytest.fixture(autouse=True)
def built_once(built: Built, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database of a lake, or of some of its captures, is built once and then copied.

    A report of few rows takes half of its time to build it, and a divided one builds it for each task. Nothing here
    writes a lake after it was read; tests elsewhere do, so this is undone after each test.
    """
    build = lake_catalog.build

    def copied(lake: Store, target: Path, captures: Collection[int] | None = None, with_facts: bool = True) -> Manifest:
        key = (str(lake), None if captures is None else tuple(sorted(captures)), with_facts)
        if key not in built:
            path = tmp_path_factory.mktemp("built") / "lake.duckdb"
            build(lake, path, captures, with_facts)
            built[key] = path
        shutil.copy(built[key], target)
        return lake_manifest.read(lake)

    monkeypatch.setattr(lake_catalog, "build", copied)
