"""A report that cannot do without a table looks there first, and has no answer without its rows."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest

from support import engine_tables
from support.command import run
from tracedb.report import registry
from tracedb.report import run as report_run
from tracedb.report.needs import TABLES

NOT_CAPTURED = 3


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of every kind."""
    return engine_tables.filled(tmp_path_factory.mktemp("needed") / "db")


@pytest.mark.parametrize("table", sorted(set(TABLES.values())))
def test_an_empty_table_is_found_first_and_means_what_the_view_would_have_said(
    db: Path, tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [report.name for report in registry.every() if TABLES.get(report.needs) == table]
    less = shutil.copyfile(db, tmp_path / "less.duckdb")
    with duckdb.connect(str(less)) as connection:
        connection.execute(f"DELETE FROM main.{table}")
    at_once = [run("report", name, "--db", less) for name in names]
    monkeypatch.setattr(report_run, "TABLES", {})
    for name, early in zip(names, at_once, strict=True):
        late = run("report", name, "--db", less)
        assert (early.exit_code, early.stderr) == (late.exit_code, late.stderr) == (NOT_CAPTURED, early.stderr), name


def test_the_view_is_not_read_if_the_table_is_empty(db: Path, tmp_path: Path) -> None:
    """A view that fails shows whether it is read."""
    less = shutil.copyfile(db, tmp_path / "less.duckdb")
    fails = "CREATE OR REPLACE VIEW v1.critical_path AS SELECT error('it is read') AS capture_id FROM main.capture"
    with duckdb.connect(str(less)) as connection:
        connection.execute(fails)
    assert "it is read" in run("report", "critical-path", "--db", less).stderr
    with duckdb.connect(str(less)) as connection:
        connection.execute("DELETE FROM main.critical_segment")
    done = run("report", "critical-path", "--db", less)
    assert done.exit_code == NOT_CAPTURED and "it is read" not in done.stderr
