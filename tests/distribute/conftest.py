"""The lake that several test files divide."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of ten captures in three runs, of torch and nsys."""
    path = tmp_path_factory.mktemp("parts") / "lake"
    recorded = ROOT / "tests" / "data" / "recorded" / "data" / "nsys"
    assert run("ingest", ROOT / "examples" / "run", recorded, "--lake", path, "--jobs", "1").exit_code == 0
    return path
