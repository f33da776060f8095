"""Faults of real nsys exports, and how they must be handled."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from support.nsys_files import OTHER_PID, PID, Nsys, process, thread
from support.nsys_loaded import Loaded, change, load, many
from tracedb.pipeline import run as pipeline
from tracedb_nsys.export import sqlite

pytestmark = pytest.mark.usefixtures("only_few_views")


class TestNoKernelTable:
    def test_ranges_are_kept_and_the_reason_told(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "forward")
        made.add("DIAGNOSTIC_EVENT", text="No CUDA events collected. Does the process use CUDA?")
        found = load(tmp_path, made)
        assert found.one("capture", "status") == "no_gpu_activity"
        assert found.rows("annotation", "name") == ["forward"]
        detail = found.one("ingest_issue WHERE code = 'no_gpu_activity'", "detail")
        assert "only 1 ranges and marks" in detail and "No CUDA events collected" in detail

    def test_calls_without_kernels_point_at_the_machine(self, tmp_path: Path) -> None:
        made = Nsys()
        made.call(0, 10)
        path = made.sqlite(tmp_path / "a.sqlite")
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert "could not be traced" in found.one("ingest_issue WHERE code = 'no_gpu_activity'", "detail")
        made.add("TARGET_INFO_SYSTEM_ENV", name="SoftwareReleaseVersion", value="6.6.87.2-microsoft-standard-WSL2")
        found = load(tmp_path, made, "b.sqlite")
        assert "WSL2" in found.one("ingest_issue WHERE code = 'no_gpu_activity'", "detail")

    def test_copies_alone_are_stored(self, tmp_path: Path) -> None:
        made = Nsys()
        made.copy(0, 10)
        found = load(tmp_path, made)
        assert found.one("capture", "status") == "no_gpu_activity"
        assert found.rows("kernel_event", "kind") == ["memcpy"]

    def test_nothing_at_all(self, tmp_path: Path) -> None:
        found = load(tmp_path, Nsys())
        assert found.one("capture", "status", "pid", "events_read", "rows_written") == ("no_gpu_activity", None, 0, 0)


class TestNamesOfRanges:
    @pytest.mark.parametrize(
        ("absent", "names"), [("textId", ["(no name)", "plain"]), ("text", ["(no name)", "registered"])]
    )
    def test_a_column_is_absent(self, tmp_path: Path, absent: str, names: list[str]) -> None:
        made = Nsys()
        made.range(0, 1, "registered")
        made.range(2, 3, "plain", registered=False)
        path = change(made.sqlite(tmp_path / "a.sqlite"), f"ALTER TABLE NVTX_EVENTS DROP COLUMN {absent}")
        assert Loaded(path, db=tmp_path / "a.duckdb").rows("annotation", "name") == names

    def test_only_times_are_there(self, tmp_path: Path) -> None:
        path = Nsys().sqlite(tmp_path / "a.sqlite")
        change(
            path,
            "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER)",
            "INSERT INTO NVTX_EVENTS VALUES (0, 10, 59)",
        )
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert found.rows("annotation", "name", "duration_ns", "thread_id") == [("(no name)", 10, None)]


class TestInvalidTimes:
    def test_events_that_end_before_they_start_are_left_out_and_counted(self, tmp_path: Path) -> None:
        made = many(100)
        for number in range(10):
            made.tables["KERNEL"][number * 10]["end"] = number * 100 - 7
        found = load(tmp_path, made)
        assert found.rows("kernel_event", "count(*)", "sum(duration_ns)::BIGINT", "min(duration_ns)") == [(90, 450, 5)]
        assert found.one("capture", "status", "events_read", "events_skipped", "rows_written") == (
            "repaired",
            100,
            10,
            90,
        )
        issue = found.one("ingest_issue", "code", "severity", "count", "skipped", "detail")
        assert issue[:4] == ("times_unusable", "warning", 10, 10) and "CUPTI_ACTIVITY_KIND_KERNEL" in issue[4]

    @pytest.mark.parametrize(
        ("start", "end"), [(0, 0), (5, None), (None, 5), (None, None), (-(2**63), 2**63 - 1), (2**63 - 1, -(2**62))]
    )
    def test_kinds_of_them(self, tmp_path: Path, start: int, end: int) -> None:
        made = many(1)
        made.kernel(start, end)
        made.call(5, 4)
        made.range(10, 9, "backwards")
        found = load(tmp_path, made)
        assert found.errors == []
        assert len(found.rows("kernel_event", "name")) == 1
        assert found.issues == {"times_unusable": 3}

    def test_where_it_is_the_only_kernel_nobody_is_told_to_record_again(self, tmp_path: Path) -> None:
        made = many(0)
        made.call(0, 5)
        made.kernel(20, 10)
        found = load(tmp_path, made)
        assert found.one("capture", "status", "events_skipped") == ("repaired", 1)
        details = " ".join(found.rows("ingest_issue", "detail"))
        assert "events skipped as unreadable: 1; kernels may be among them" in details
        assert "record again" not in details

    def test_a_kernel_of_no_duration_is_kept(self, tmp_path: Path) -> None:
        made = many(1)
        made.kernel(7, 7)
        assert load(tmp_path, made).rows("kernel_event", "start_ns", "duration_ns") == [(0, 5), (7, 0)]

    def test_a_table_without_times(self, tmp_path: Path) -> None:
        made = many(3)
        made.copy(0, 10)
        path = change(made.sqlite(tmp_path / "a.sqlite"), 'ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN "end"')
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert found.issues["columns_missing"] == 1
        assert found.one("capture", "status", "events_read", "events_skipped") == ("repaired", 4, 1)


@pytest.fixture(params=["compiled", "driver"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way to read SQLite, in small batches."""
    monkeypatch.setattr(sqlite, "BATCH_ROWS", 64)
    if request.param != "compiled":
        monkeypatch.setenv("TRACEDB_READER", "python")


@pytest.mark.usefixtures("reader")
class TestTypes:
    """SQLite types values, not columns."""

    def test_many_batches_and_ranges_of_rows(self, tmp_path: Path) -> None:
        found = load(tmp_path, many(1000))
        assert found.rows("kernel_event", "count(*)", "count(DISTINCT event_id)", "sum(start_ns)::BIGINT") == [
            (1000, 1000, 4_995_000)
        ]

    def test_links_over_batches(self, tmp_path: Path) -> None:
        """500 launches, their calls shuffled: each kernel finds its own, whichever batch it is in."""
        made = Nsys()
        for number in range(500):
            made.launch(number * 100, number * 100 + 50, number * 100 + 60)
        random.Random(5).shuffle(made.tables["RUNTIME"])
        with load(tmp_path, made).connect() as connection:
            found = connection.execute(
                """SELECT count(*), count(*) FILTER (k.start_ns = l.start_ns + 50)
                FROM main.kernel_event AS k INNER JOIN main.launch AS l USING (capture_id, launch_id)"""
            ).fetchall()
        assert found == [(500, 500)]

    def test_a_fraction_among_integers(self, tmp_path: Path) -> None:
        large = 2**62 + 1
        made = many(200)
        made.kernel(large - 2**61, large - 2**61 + 3, "big")
        path = change(
            made.sqlite(tmp_path / "a.sqlite"),
            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET registersPerThread = 1.5 WHERE rowid = 1",
        )
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert found.rows("kernel_event WHERE name = 'big'", "start_ns", "duration_ns") == [(large - 2**61, 3)]
        assert len(found.rows("kernel_event", "name")) == 201

    def test_text_comes_late(self, tmp_path: Path) -> None:
        made = Nsys()
        for number in range(200):
            made.range(number, number + 1, "registered" if number < 150 else f"plain {number}", registered=number < 150)
        found = load(tmp_path, made)
        assert found.rows("annotation WHERE start_ns = 199", "name") == ["plain 199"]

    def test_rows_were_deleted(self, tmp_path: Path) -> None:
        path = change(
            many(500).sqlite(tmp_path / "a.sqlite"), "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid % 3 = 0"
        )
        assert len(Loaded(path, db=tmp_path / "a.duckdb").rows("kernel_event", "name")) == 334

    def test_few_rows_were_left(self, tmp_path: Path) -> None:
        """Numbers far apart are not gone through range by range."""
        path = change(
            many(50).sqlite(tmp_path / "a.sqlite"),
            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET rowid = 4000000000000 + rowid WHERE rowid > 25",
        )
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert found.rows("kernel_event", "count(*)", "sum(start_ns)::BIGINT") == [(50, 12_250)]

    @pytest.mark.parametrize("added", [(1 << 63) - 50, 1 << 33])
    def test_all_row_numbers_are_huge(self, tmp_path: Path, added: int) -> None:
        """They cannot be ids: those of the next table are added to them."""
        made = Nsys()
        for at in range(40):
            called = made.call(at * 100, at * 100 + 5)
            made.kernel(at * 100 + 10, at * 100 + 20, "k", correlation=called)
            made.copy(at * 100 + 30, at * 100 + 40, correlationId=called)
        tables = [f"CUPTI_ACTIVITY_KIND_{name}" for name in ("RUNTIME", "KERNEL", "MEMCPY")]
        path = change(
            made.sqlite(tmp_path / "a.sqlite"), *(f"UPDATE {table} SET rowid = {added} + rowid" for table in tables)
        )
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert found.errors == []
        counts = found.rows("kernel_event", "count(*)", "count(DISTINCT event_id)", "count(launch_id)")
        assert counts == [(80, 80, 80)]

    def test_a_table_without_row_numbers(self, tmp_path: Path) -> None:
        path = change(
            many(0).sqlite(tmp_path / "a.sqlite"),
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER PRIMARY KEY, end INTEGER) WITHOUT ROWID",
            *(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({start}, {start + 5})" for start in range(300)),
        )
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert found.rows("kernel_event", "count(*)", "count(DISTINCT event_id)", "min(name)") == [
            (300, 300, "(no name)")
        ]

    def test_columns_stand_elsewhere_and_more_are_there(self, tmp_path: Path) -> None:
        path = change(
            many(0).sqlite(tmp_path / "a.sqlite"),
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (novel TEXT NOT NULL, gridX, demangledName, streamId, end, start)",
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('x', 3, 1, 7, 30, 10)",
        )
        found = Loaded(path, db=tmp_path / "a.duckdb")
        columns = ("start_ns", "duration_ns", "grid_x", "grid_y", "stream_id", "device_id")
        assert found.rows("kernel_event", *columns) == [(10, 20, 3, None, 7, None)]

    def test_numbers_too_large_for_their_column(self, tmp_path: Path) -> None:
        made = Nsys()
        made.kernel(0, 5, gridX=2**40, deviceId=2**33)
        assert load(tmp_path, made).rows("kernel_event", "grid_x", "device_id", "duration_ns") == [(None, None, 5)]


def test_the_same_bytes_again_change_nothing(tmp_path: Path) -> None:
    path = many(3).sqlite(tmp_path / "a.sqlite")
    Loaded(path, db=tmp_path / "a.duckdb")
    shutil.copy(path, tmp_path / "b.sqlite")
    (again,) = pipeline.ingest(tmp_path / "b.sqlite", db=tmp_path / "a.duckdb")
    assert again.is_known


def test_processes_of_other_pids_do_not_mix(tmp_path: Path) -> None:
    made = Nsys()
    made.kernel(0, 10, correlation=1, pid=OTHER_PID)
    made.call(0, 5, correlation=1)
    found = load(tmp_path, made)
    assert found.rows("kernel_event", "launch_id") == [None]
    assert process(OTHER_PID) != process(PID) and thread() & 0xFFFFFF == PID
