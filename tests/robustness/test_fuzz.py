"""A small subset of the inputs of ``fuzz.py``, and the harness itself: it must detect faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robustness import fuzz, nsys_event_counts
from robustness.invariants import Case, Way, judge
from support.nsys_loaded import step
from tracedb.pipeline.run import ingest
from tracedb_nsys import ingester, staging
from tracedb_nsys.export import integer_limits

SHARE = {"torch": 40, "nsys-sqlite": 6, "nsys-parquet": 6, "samples": 5}
USUAL = Way("usual")


@pytest.mark.parametrize("name", fuzz.FORMATS)
def test_a_share_of_each_format(name: str) -> None:
    found = {number: fuzz.tried(name, 13, number).wrong for number in range(SHARE.get(name, 12))}
    assert {fuzz.again(name, 13, number): wrong for number, wrong in found.items() if wrong} == {}


def judged(folder: Path, *ways: Way, kernels: int = 2) -> list[str]:
    """Return what is found wrong with a sound export, read in ways some of which are broken."""
    case = Case([step().sqlite(folder / "a.sqlite")], ways, lambda: {"kernel": kernels})
    judge(ingester, case)
    return case.wrong


def test_a_sound_export_is_no_finding(tmp_path: Path) -> None:
    assert judged(tmp_path, USUAL, Way("again")) == []


def test_ways_that_differ_are_a_finding(tmp_path: Path) -> None:
    shifted = Way("shifted", ((integer_limits, "LIMITS", {**integer_limits.LIMITS, "streamId": (0, 1)}),))
    (said,) = judged(tmp_path, USUAL, shifted)
    assert said.startswith("shifted differs from usual: ")


def test_an_account_that_does_not_add_up_is_a_finding(tmp_path: Path) -> None:
    def forgetful(self: staging.Stage, table: str, rows: int, kept: int) -> None:
        pass

    (said,) = judged(tmp_path, Way("forgetful", ((staging.Stage, "_account_for", forgetful),)))
    assert "the account or the numbers are wrong" in said


def test_an_unknown_exception_is_a_finding(tmp_path: Path) -> None:
    def broken(self: Any) -> Iterator[Any]:
        raise KeyError("x")

    (said,) = judged(tmp_path, Way("broken", ((staging.Stage, "_nvtx", broken),)))
    assert said.startswith("broken: raised internal fault")


def test_lost_rows_are_a_finding(tmp_path: Path) -> None:
    (said,) = judged(tmp_path, USUAL, kernels=3)
    assert said == "complete, without a warning, and 2 rows of kernel where another reader counts 3"


def test_an_account_that_differs_from_the_count_is_a_finding(tmp_path: Path) -> None:
    path = step().sqlite(tmp_path / "a.sqlite")
    counted = nsys_event_counts.in_sqlite(path)
    assert counted
    assert nsys_event_counts.judged([path], USUAL, counted) == ("complete", [])
    _, (said,) = nsys_event_counts.judged([path], USUAL, counted + 1)
    assert said == f"account: {counted} events read, 0 warnings, another reader counts {counted + 1}"


def test_rows_that_the_database_lacks_are_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = step().sqlite(tmp_path / "a.sqlite")
    without = nsys_event_counts.ACCOUNT.replace("UNION ALL SELECT l.capture_id FROM main.launch AS l", "")
    monkeypatch.setattr(nsys_event_counts, "ACCOUNT", without)
    _, (said,) = nsys_event_counts.judged([path], USUAL, nsys_event_counts.in_sqlite(path))
    assert said.startswith("account: complete: ")


def test_what_a_refused_input_leaves_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = step().sqlite(tmp_path / "a.sqlite")
    path.write_bytes(path.read_bytes()[:-1])
    assert nsys_event_counts.judged([path], USUAL, nsys_event_counts.in_sqlite(path)) == ("refused", [])

    def careless(*paths: Path, db: Path) -> list[Any]:
        db.touch()
        return ingest(*paths, db=db.with_name("another.duckdb"))

    monkeypatch.setattr(nsys_event_counts, "ingest", careless)
    assert nsys_event_counts.judged([path], USUAL, None) == (
        "refused",
        [f"account: {nsys_event_counts.DATABASE} is left"],
    )
