"""The schema as declared once in ``schemas/``: documented, mirrored in Arrow, guarded, read by older shells."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from click.testing import CliRunner

from support import declarations
from tracedb.cli.main import cli
from tracedb.errors import TracedbError
from tracedb.storage import connection as database
from tracedb.storage import schema

TABLES = (
    *(
        "annotation",
        "annotation_kernel",
        "capture",
        "clipped_event",
        "clock_alignment",
        "clock_fault",
        "collective_call",
        "counter",
        "critical_segment",
        "device",
        "device_condition",
        "device_peak",
        "expected_time",
        "frame",
        "frame_rule",
        "graph_link",
        "ingest_issue",
        "kernel_event",
    ),
    *("kernel_resource", "kernel_rule", "launch", "measure", "memory_event", "op", "operator_burst"),
    *("operator_sample",),
    *("overlapping_kernel", "replay", "replay_pass", "replay_run", "sample_status", "synchronization"),
    *("time_bound", "unrecorded_span", "whatif", "why_rule"),
)
BY_NO_CAPTURE = ("device_peak", "frame_rule", "kernel_rule", "time_bound", "why_rule")
"""Settings: tables without capture_id."""
FRACTIONAL = ("expected_time", "replay", "replay_pass", "replay_run")
"""Their times are predicted, or medians and means over calls, which have halves of a ns."""
CONTRACT = {
    "capture": """capture_id source path sha256 host pid rank world_size tool_version clock_zero_unix_ns status
        labels events_read events_skipped rows_written ingested_at""",
    "device": "capture_id device_id vendor name sm_count memory_bytes uuid arch",
    "kernel_event": """capture_id event_id kind name start_ns duration_ns device_id stream_id queue_id context_id
        correlation_id launch_id op_id graph_node_id grid_x grid_y grid_z block_x block_y block_z
        registers_per_thread static_shared_bytes dynamic_shared_bytes occupancy_percent bytes copy_kind collective
        message_in_elements message_out_elements dtype group_name group_size group_ranks sequence""",
    "launch": "capture_id launch_id correlation_id name process_id thread_id start_ns duration_ns",
    "op": """capture_id op_id name thread_id start_ns duration_ns parent_op_id sequence_number forward_thread_id
        input_dims input_types input_strides concrete_inputs""",
    "annotation": """capture_id annotation_id name domain style process_id thread_id start_ns duration_ns is_open
        parent_id depth""",
    "annotation_kernel": "capture_id annotation_id event_id rule",
    "counter": "capture_id event_id name value",
    "device_condition": "capture_id device_id time_ns sm_clock_mhz memory_clock_mhz power_w temperature_c throttle",
    "clock_alignment": "capture_id offset_ns drift_ppm residual_median_ns residual_p99_ns",
    "ingest_issue": "capture_id code count detail",
    "operator_sample": "capture_id sample_id gpu operator pass dtype shape statistic time_ns",
    "kernel_rule": "priority pattern class",
}
"""Columns that people's queries may rely on."""


@pytest.fixture(scope="module")
def applied() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        schema.apply(connection, "test")
        yield connection


@pytest.fixture
def fresh(applied: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables as declared; what a test changes is undone."""
    applied.execute("BEGIN")
    yield applied
    applied.execute("ROLLBACK")


def test_the_ddl_makes_the_tables(fresh: duckdb.DuckDBPyConnection) -> None:
    assert tuple(name for name, _ in schema.tables(fresh)) == TABLES
    assert fresh.execute("SELECT version, tracedb_version FROM meta.schema_version").fetchall() == [(1, "test")]


@pytest.mark.parametrize("table", CONTRACT)
def test_columns_of_the_contract_exist(fresh: duckdb.DuckDBPyConnection, table: str) -> None:
    there = {column.name for column in schema.columns(fresh, "main", table)}
    assert set(CONTRACT[table].split()) - there == set()


def test_every_table_and_column_has_a_comment(fresh: duckdb.DuckDBPyConnection) -> None:
    rows = fresh.execute(
        """SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE NOT internal AND comment IS NULL
           UNION ALL
           SELECT schema_name || '.' || table_name || '.' || column_name FROM duckdb_columns()
           WHERE NOT internal AND schema_name <> 'main'
             AND (comment IS NULL OR NOT regexp_full_match(comment, '(?s)[A-Za-z].*\\.'))"""
    ).fetchall()
    assert rows == []


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_described_and_numbers_with_their_unit(fresh: duckdb.DuckDBPyConnection, table: str) -> None:
    faults = {column.name: declarations.fault(*column) for column in schema.columns(fresh, "main", table)}
    assert {name: fault for name, fault in faults.items() if fault} == {}


def test_times_are_64_bit_integers(fresh: duckdb.DuckDBPyConnection) -> None:
    columns = [
        column
        for table in TABLES
        if table not in FRACTIONAL
        for column in schema.columns(fresh, "main", table)
        if column.name.endswith("_ns")
    ]
    assert len(columns) > 8
    assert [column for column in columns if column.type != "BIGINT"] == []


@pytest.mark.parametrize("table", [name for name in TABLES if name not in BY_NO_CAPTURE])
def test_arrow_mirrors_the_table(fresh: duckdb.DuckDBPyConnection, table: str) -> None:
    found = schema.arrow(table)
    declared = fresh.sql(f"SELECT * EXCLUDE (capture_id) FROM main.{table}").to_arrow_table().schema
    assert [(field.name, field.type) for field in found] == [(field.name, field.type) for field in declared]
    empty = found.empty_table()  # noqa: F841 - DuckDB finds it by name
    fresh.execute(f"INSERT INTO main.{table} BY NAME SELECT 1 AS capture_id, * FROM empty")


def test_arrow_types() -> None:
    kernels = schema.arrow("kernel_event")
    assert kernels.field("start_ns").type == pa.int64()
    assert kernels.field("occupancy_percent").type == pa.float64()
    assert pa.types.is_map(schema.arrow("capture").field("labels").type)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO main.launch BY NAME SELECT 1 AS capture_id, 1 AS launch_id, 'x' AS name, 0 AS start_ns,"
        " 0 AS duration_ns, 1 AS surprise",  # an unknown column
        "INSERT INTO main.launch (capture_id, launch_id, name, start_ns, duration_ns) VALUES (1, 1, 'x', 0, -1)",
        "INSERT INTO main.launch (capture_id, launch_id, start_ns, duration_ns) VALUES (1, 1, 0, 1)",
        "INSERT INTO main.kernel_event (capture_id, event_id, kind, name, start_ns, duration_ns)"
        " VALUES (1, 1, 'thread', 'x', 0, 1)",
        "INSERT INTO main.capture (capture_id, source, status) VALUES (1, 'torch', 'fine')",
        "INSERT INTO main.annotation_kernel VALUES (1, 1, 1, 'guess')",
        "INSERT INTO main.ingest_issue (code, severity) VALUES ('x', 'terrible')",
        "COMMENT ON COLUMN main.launch.surprise IS 'no such column'",
    ],
)
def test_what_does_not_fit_is_refused(fresh: duckdb.DuckDBPyConnection, statement: str) -> None:
    with pytest.raises(duckdb.Error):
        fresh.execute(statement)


@pytest.fixture
def copied(sample: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(sample, tmp_path / "copy.duckdb"))


def test_a_newer_schema_is_refused_in_words(copied: Path) -> None:
    with duckdb.connect(str(copied)) as connection:
        connection.execute("UPDATE meta.schema_version SET version = 7")
    with pytest.raises(TracedbError, match="has schema version 7, this tracedb knows up to 1; install a newer"):
        database.connect(copied)
    answer = CliRunner().invoke(cli, ["report", "top-kernels", "--db", str(copied)])
    assert answer.exit_code == 1
    again = CliRunner().invoke(cli, ["ingest", str(copied), "--db", str(copied)])
    assert again.exit_code == 1


def test_a_file_of_something_else_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE kernel_event (x INTEGER)")
    with pytest.raises(TracedbError, match="not one of tracedb's"):
        database.connect(path)


def test_files_have_the_storage_version_that_older_shells_read(sample: Path) -> None:
    with sample.open("rb") as file:
        header = file.read(20)
    assert header[8:12] == b"DUCK"
    assert int.from_bytes(header[12:20], "little") == 65  # DuckDB 1.2


def older_shell() -> str:
    """Return the DuckDB 1.5 shell of the test environment; it must be there where CI says so."""
    program = shutil.which("duckdb")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("no duckdb shell: duckdb-cli of the dev group is not installed")
        pytest.skip("no duckdb shell is installed (pip install duckdb-cli)")
    return program


def shell(program: str, path: Path, query: str) -> str:
    command = [program, "-readonly", "-csv", "-noheader", str(path), query]
    return subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


def test_the_duckdb_shell_reads_a_file_that_a_newer_library_wrote(sample: Path) -> None:
    program = older_shell()
    with database.connect(sample) as connection:
        wanted = connection.execute("SELECT name, calls, total_ns FROM v1.top_kernels ORDER BY ALL").fetchall()
    said = shell(program, sample, "SELECT to_json((name, calls, total_ns)) FROM top_kernels ORDER BY ALL")
    assert len(said.splitlines()) == len(wanted) > 10
    for name in ("top_kernels", "kernels", "gemm_variance", "collective_overlap", "gpu_timeline"):
        count = shell(program, sample, f"SELECT count(*) FROM {name}")
        with database.connect(sample) as connection:
            assert connection.execute(f"SELECT count(*) FROM v1.{name}").fetchall() == [(int(count),)]
    total = shell(program, sample, "SELECT sum(total_ns) FROM top_kernels")
    assert int(total) == sum(row[2] for row in wanted)


def test_the_duckdb_shell_shows_the_documentation(sample: Path) -> None:
    said = shell(
        older_shell(),
        sample,
        "SELECT comment FROM duckdb_columns() WHERE table_name = 'kernel_event' AND column_name = 'start_ns'",
    )
    assert "Start on the device, on the capture's clock. [ns]" in said


def test_an_older_file_gets_what_it_lacks(fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute("ALTER TABLE main.kernel_event DROP COLUMN time_fault")
    fresh.execute("DROP TABLE main.time_bound")
    assert schema.complete(fresh) == {"main.time_bound"}
    assert schema.columns(fresh, "main", "kernel_event")[-1][:2] == ("time_fault", "VARCHAR")
    assert ("far", 3_600_000_000_000) in fresh.execute("SELECT name, limit_ns FROM main.time_bound").fetchall()
    assert all(comment for _, comment in schema.tables(fresh))
    assert schema.complete(fresh) == set()
