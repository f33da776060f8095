"""The parts of GPU time add up to the total on every recorded file (torch and sweeps: test_reference.py)."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from support import recordings, timeline_parts
from tracedb.pipeline import run as pipeline

CAPTURES = {"nsys": 11, "rocprof": 7, "steps": 4} if recordings.IS_WHOLE else {"nsys": 2, "steps": 1}
"""With GPU work, in each folder."""
LARGEST = 30_000_000
"""Bytes; what is larger takes too long here. So does `sampling`: one file of it is 318 MB of JSON."""


@pytest.mark.shared
def test_parts_sum_to_the_total(tmp_path: Path) -> None:
    found = (path for folder in CAPTURES for path in (recordings.DATA / folder).rglob("*"))
    files = [path for path in found if path.is_file() and path.suffix != ".nsys-rep"]
    assert max(path.stat().st_size for path in files) < LARGEST
    outcomes = pipeline.ingest(*files, db=tmp_path / "x.duckdb")
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    with duckdb.connect(str(tmp_path / "x.duckdb"), read_only=True) as connection:
        timeline_parts.check(connection, sum(CAPTURES.values()))
