"""A report that cannot do without a table or a name looks there first, and has no answer without it."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest

from support import engine_tables
from support.command import run
from tracedb.report import registry
from tracedb.report import run as report_run
from tracedb.report.needs import NAMES, TABLES, Needs
from tracedb.storage import connection, schema, views

NOT_CAPTURED = 3


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of every kind."""
    return engine_tables.traced(tmp_path_factory.mktemp("needed") / "db")


@pytest.mark.parametrize("table", sorted(set(TABLES.values())))
def test_an_empty_table_is_found_first_and_means_what_the_view_would_have_said(
    db: Path, tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [report.name for report in registry.every() if TABLES.get(report.needs) == table]
    less = shutil.copyfile(db, tmp_path / "less.duckdb")
    with duckdb.connect(str(less)) as opened:
        opened.execute(f"DELETE FROM main.{table}")
    at_once = [run("report", name, "--db", less) for name in names]
    monkeypatch.setattr(report_run, "TABLES", {})
    for name, early in zip(names, at_once, strict=True):
        late = run("report", name, "--db", less)
        assert (early.exit_code, early.stderr) == (late.exit_code, late.stderr) == (NOT_CAPTURED, early.stderr), name


def test_the_view_is_not_read_if_the_table_is_empty(db: Path, tmp_path: Path) -> None:
    """A view that fails shows whether it is read."""
    less = shutil.copyfile(db, tmp_path / "less.duckdb")
    fails = "CREATE OR REPLACE VIEW v1.critical_path AS SELECT error('it is read') AS capture_id FROM main.capture"
    with duckdb.connect(str(less)) as opened:
        opened.execute(fails)
    assert "it is read" in run("report", "critical-path", "--db", less).stderr
    with duckdb.connect(str(less)) as opened:
        opened.execute("DELETE FROM main.critical_segment")
    done = run("report", "critical-path", "--db", less)
    assert done.exit_code == NOT_CAPTURED and "it is read" not in done.stderr


ALL_TO_ALLS = (
    "UPDATE main.kernel_event SET collective = 'all_to_allv' WHERE event_id = 1",
    "UPDATE main.kernel_event SET name = 'void ncclDevKernel_AllToAll(x)' WHERE event_id = 1",
    "UPDATE main.op SET name = 'c10d::alltoall_base_' WHERE op_id = 1",
    "UPDATE main.kernel_event SET name = 'gemm<AllToAll>' WHERE event_id = 1",
    "UPDATE main.kernel_event SET collective = 'allreduce' WHERE event_id = 1",
)
MESSAGES = (
    "INSERT INTO main.collective_call BY NAME SELECT 0 AS capture_id, 1 AS call_id, 'iSend' AS collective",
    "UPDATE main.op SET name = 'c10d::recv_' WHERE op_id = 1",
    "INSERT INTO main.collective_call BY NAME SELECT 0 AS capture_id, 1 AS call_id, 'sendrecv' AS collective",
)


@pytest.mark.parametrize(("need", "text"), [
    *[(Needs.ALL_TO_ALLS, text) for text in ALL_TO_ALLS],
    *[(need, text) for need in (Needs.MESSAGES, Needs.PIPELINES) for text in MESSAGES],
])  # fmt: skip
def test_a_name_that_tells_of_what_is_needed_is_found_wherever_it_is(need: Needs, text: str) -> None:
    with connection.in_memory() as made:
        schema.apply(made, "test")
        views.install(made)
        made.execute(
            """INSERT INTO main.kernel_event BY NAME SELECT 0 AS capture_id, i AS event_id, 'kernel' AS kind,
                'ncclDevKernel_SendRecv' AS name, 0 AS start_ns, 1 AS duration_ns FROM range(3) AS r(i)"""
        )
        made.execute(
            """INSERT INTO main.op BY NAME SELECT 0 AS capture_id, i AS op_id, 'aten::mm' AS name, 0 AS start_ns,
                1 AS duration_ns FROM range(3) AS r(i)"""
        )
        query = NAMES[need].replace("{version}", "v1")
        assert made.execute(query).fetchall() == []
        made.execute(text)
        assert len(made.execute(query).fetchall()) == (0 if text in (*ALL_TO_ALLS[3:], MESSAGES[2]) else 1)


@pytest.mark.parametrize(("need", "view"), [(Needs.ALL_TO_ALLS, "expert_load"), (Needs.PIPELINES, "pipeline_bubble")])
def test_the_view_is_not_read_if_no_name_tells_of_what_it_needs(
    db: Path, tmp_path: Path, need: Needs, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    less = shutil.copyfile(db, tmp_path / "less.duckdb")
    with duckdb.connect(str(less)) as opened:
        opened.execute("DELETE FROM main.collective_call")
        opened.execute("UPDATE main.op SET name = 'aten::mm'")
        opened.execute("DELETE FROM main.kernel_event WHERE collective IS NOT NULL OR name ILIKE '%nccl%'")
    name = view.replace("_", "-")
    with monkeypatch.context() as patched:
        patched.setattr(report_run, "NAMES", {})
        late = run("report", name, "--db", less)
    with duckdb.connect(str(less)) as opened:
        opened.execute(
            f"CREATE OR REPLACE VIEW v1.{view} AS SELECT error('it is read') AS capture_id FROM main.capture"
        )
    early = run("report", name, "--db", less)
    assert need in NAMES
    assert (early.exit_code, early.stderr) == (late.exit_code, late.stderr) == (NOT_CAPTURED, early.stderr)
