"""``counted`` of a report counts the rows of its view by another way."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from support import engine_tables
from support.command import run
from tracedb.report import registry
from tracedb.report.definition import Report

REPORTS = [report for report in registry.every() if report.counted]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of every kind, with impossible times, and graph replays that were not recorded before some events."""
    path = engine_tables.filled(tmp_path_factory.mktemp("counts") / "trace.duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE main.kernel_event SET time_fault = 'too_long' WHERE event_id % 7 = 0")
        connection.execute(
            """INSERT INTO main.unrecorded_span BY NAME
            SELECT capture_id, device_id, start_ns - 1000 AS start_ns, start_ns AS end_ns, 1 AS replays
            FROM main.kernel_event WHERE event_id % 3 = 0"""
        )
    return path


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_as_many_rows_as_the_view(report: Report, database: Path) -> None:
    assert report.counted is not None and report.answers == Report.answers
    with duckdb.connect(str(database), read_only=True) as connection:
        counted = connection.execute(f"SELECT count(*) FROM ({report.counted.replace('{version}', 'v1')})").fetchall()
        assert counted == connection.execute(f"SELECT count(*) FROM v1.{report.view}").fetchall()
    assert counted[0][0] > 3
    for options in ((), ("--class", "matmul"), ("--source", "nsys")):
        done = run("report", report.name, "--db", database, "--top", "1", *options)
        rows = run("report", report.name, "--db", database, "--format", "csv", *options).stdout.count("\n") - 1
        assert f"1 of {rows} rows" in done.stderr, done.stderr
