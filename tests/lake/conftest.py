"""Lakes that several test files read."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import run
from tracedb.pipeline import run as pipeline

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def exported(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with the captures of the sample database, and its facts about several captures."""
    lake = tmp_path_factory.mktemp("exported") / "lake"
    done = run("export", "lake", lake, "--db", sample)
    assert done.exit_code == 0, done.stderr
    return lake


@pytest.fixture(scope="session")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake into which the sample run was loaded."""
    lake = tmp_path_factory.mktemp("ingested") / "lake"
    outcomes = pipeline.ingest(ROOT / "examples" / "run", lake=lake)
    assert [outcome.error for outcome in outcomes] == [None] * 8
    return lake
