"""``--wide`` makes a column of each hardware counter."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import duckdb
import pytest

from support.command import run
from support.tiny import Tiny


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two dispatches of a kernel: one counter for both, one for the second only, one with an awkward name."""
    tiny = Tiny(tmp_path_factory.mktemp("wide") / "x.duckdb")
    tiny.capture(0, {}, source="rocprofv3")
    for values in ({"SQ_WAVES": 16.0, "Odd 'one\"": 1.5}, {"SQ_WAVES": 32.0, "GRBM_COUNT": 7.0}):
        event = tiny.kernel("axpy", 0, 100, is_counted=True)
        for name, value in values.items():
            tiny.add("counter", capture_id=1, event_id=event, name=name, value=value)
    return tiny.save()


@pytest.mark.parametrize("name", ["kernel-counters", "counters"])
def test_a_column_each_of_a_dispatch(db: Path, name: str) -> None:
    done = run("-q", "report", name, "--db", db, "--wide", "--format", "json")
    found = json.loads(done.stdout)
    rows = [{key: row[key] for key in ("SQ_WAVES", "GRBM_COUNT", "Odd 'one\"")} for row in found["rows"]]
    assert rows == [
        {"SQ_WAVES": 16.0, "GRBM_COUNT": None, "Odd 'one\"": 1.5},
        {"SQ_WAVES": 32.0, "GRBM_COUNT": 7.0, "Odd 'one\"": None},
    ]
    names = [column["name"] for column in found["columns"]]
    assert "counters" not in names and "sq_waves" not in names  # the same values once
    (waves,) = [column for column in found["columns"] if column["name"] == "SQ_WAVES"]
    assert waves["type"] == "DOUBLE" and waves["description"].startswith("SQ_WAVES of counters")


def test_means_and_sums_of_a_kernel(db: Path) -> None:
    done = run("-q", "report", "counter-summary", "--db", db, "--wide", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert (row["SQ_WAVES_mean"], row["SQ_WAVES_sum"]) == ("24.0", "48.0")
    assert (row["GRBM_COUNT_mean"], row["GRBM_COUNT_sum"]) == ("7.0", "7.0")


def test_the_statement_does_it(db: Path) -> None:
    text = run("report", "counters", "--db", db, "--wide", "--show-sql").stdout
    with duckdb.connect(str(db), read_only=True) as connection:
        relation = connection.sql(text)
        assert {"SQ_WAVES", "GRBM_COUNT", "Odd 'one\""} <= set(relation.columns)
        assert len(relation.fetchall()) == 2


def test_a_table_shows_them(db: Path) -> None:
    head = run("-q", "report", "counters", "--db", db, "--wide").stdout.partition("─")[0]
    assert "SQ_WAVES" in head and "GRBM_COUNT" in head
    assert "counters" in run("-q", "report", "counters", "--db", db).stdout  # one column of all, without --wide


def test_a_table_cuts_no_counter(tmp_path: Path) -> None:
    """They go on below each other; rows are also grouped by capture."""
    tiny = Tiny(tmp_path / "x.duckdb")
    for _ in range(2):
        tiny.capture(None, {}, source="rocprofv3")
        event = tiny.kernel("axpy", 0, 100, is_counted=True)
        for number in range(12):
            tiny.add("counter", capture_id=tiny.captures, event_id=event, name=f"COUNTER_NUMBER_{number}", value=1.5)
    db = tiny.save()
    for arguments in (("counters",), ("counter-summary",), ("counters", "--by", "capture")):
        done = run("-q", "report", *arguments, "--db", db)
        assert done.exit_code == 0, done.stderr
        assert all(f"COUNTER_NUMBER_{number}=1.5" in done.stdout for number in range(12))
