"""What is wrong with nsys exports in the wild, and what must come of it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from ingest.nsys_files import OTHER_PID, PID, Loaded, Nsys, load, process, thread
from tracedb import pipeline
from tracedb_nsys import ingester, sqlite


def change(path: Path, *statements: str) -> Path:
    """Run statements on an export."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def many(count: int) -> Nsys:
    made = Nsys()
    for number in range(count):
        made.kernel(number * 10, number * 10 + 5, f"k{number % 7}", correlation=number + 1)
    return made


def claimed(*paths: Path) -> list[Sequence[Path]]:
    return [capture.files for capture in ingester.find(paths)]


class TestB075NoKernelTable:
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


class TestB077NamesOfRanges:
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


class TestRules:
    def test_b079_launches_of_another_thread(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "backward")
        made.launch(10, 1000, 1010, tid=PID + 1)
        found = load(tmp_path, made)
        assert found.held("thread") == []
        assert found.held("process") == [("backward", 1000)]

    def test_b080_the_launch_counts_not_the_kernel(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "first")
        made.range(150, 300, "second")
        made.launch(50, 200, 260)
        assert load(tmp_path, made).held() == [("first", 200)]

    def test_crossing_ranges_each_hold_what_lies_in_them(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "a", kind=60)
        made.range(50, 150, "b", kind=60)
        made.range(60, 90, "c")
        made.launch(70, 1000, 1001)
        made.launch(110, 2000, 2001)
        assert load(tmp_path, made).held() == [("a", 1000), ("b", 1000), ("b", 2000), ("c", 1000)]

    def test_b053_an_orphan_kernel_is_kept(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "forward")
        made.launch(10, 1000, 1010)
        made.kernel(2000, 2010, "orphan", correlation=99)
        found = load(tmp_path, made)
        assert found.rows("kernel_event", "name", "launch_id IS NULL", order="start_ns")[1] == ("orphan", True)
        assert found.held() == [("forward", 1000)]

    @pytest.mark.parametrize("sentinel", [0, -1, None, 0xFFFFFFFF])
    def test_b044_no_correlation_joins_nothing(self, tmp_path: Path, sentinel: int | None) -> None:
        made = Nsys()
        for number in range(50):
            made.call(number, number + 1, correlation=0)
            made.tables["RUNTIME"][-1]["correlationId"] = sentinel
            made.kernel(number, number + 1, correlation=sentinel)
        found = load(tmp_path, made)
        assert found.rows("kernel_event", "count(*)", "count(launch_id)", "count(correlation_id)") == [(50, 0, 0)]

    def test_b048_streams_are_of_their_device(self, tmp_path: Path) -> None:
        made = Nsys()
        for device in range(3):
            made.kernel(0, 86, device=device, stream=17)
        found = load(tmp_path, made)
        assert found.rows("kernel_event", "device_id", "stream_id") == [(0, 17), (1, 17), (2, 17)]


class TestB037InvalidTimes:
    def test_they_are_left_out_and_counted(self, tmp_path: Path) -> None:
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

    def test_b028_no_duration_is_one(self, tmp_path: Path) -> None:
        made = many(1)
        made.kernel(7, 7)
        assert load(tmp_path, made).rows("kernel_event", "start_ns", "duration_ns") == [(0, 5), (7, 0)]

    def test_a_table_without_times(self, tmp_path: Path) -> None:
        path = change(many(3).sqlite(tmp_path / "a.sqlite"), 'ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN "end"')
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert found.issues["columns_missing"] == 3
        assert found.one("capture", "events_read", "events_skipped") == (3, 3)


@pytest.fixture(params=["driver", "standard library"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to read SQLite, in small batches."""
    monkeypatch.setattr(sqlite, "BATCH_ROWS", 64)
    monkeypatch.setattr(sqlite, "BATCH_ROWS_PLAIN", 64)
    if request.param == "standard library":
        monkeypatch.setattr(sqlite, "adbc", None)


@pytest.mark.usefixtures("reader")
class TestTypes:
    """SQLite types values, not columns."""

    def test_many_batches_and_ranges_of_rows(self, tmp_path: Path) -> None:
        found = load(tmp_path, many(1000))
        assert found.rows("kernel_event", "count(*)", "count(DISTINCT event_id)", "sum(start_ns)::BIGINT") == [
            (1000, 1000, 4_995_000)
        ]

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


class TestFiles:
    def test_a_cut_file_is_one_line(self, tmp_path: Path) -> None:
        path = many(3000).sqlite(tmp_path / "a.sqlite")
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        assert "cut short" in Loaded(path, db=tmp_path / "a.duckdb").error

    @pytest.mark.usefixtures("reader")
    @pytest.mark.parametrize("place", [0.3, 0.6, 0.9])
    def test_a_damaged_file_is_one_line(self, tmp_path: Path, place: float) -> None:
        path = many(3000).sqlite(tmp_path / "a.sqlite")
        content = bytearray(path.read_bytes())
        at = int(len(content) * place) // 4096 * 4096
        content[at : at + 4096 * 3] = b"\xa5" * 4096 * 3
        path.write_bytes(content)
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert "cannot be read" in found.error
        assert not found.db.exists()

    def test_a_damaged_schema_is_told_as_of_nsys(self, tmp_path: Path) -> None:
        path = many(10).sqlite(tmp_path / "a.sqlite")
        content = path.read_bytes().replace(b'CREATE TABLE "StringIds"', b'CREATE TABBE "StringIds"')
        path.write_bytes(content)
        assert "cannot be read" in Loaded(path, db=tmp_path / "a.duckdb").error

    def test_a_locked_file_is_one_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sqlite, "LOCK_WAIT_S", 0.05)
        path = many(10).sqlite(tmp_path / "a.sqlite")
        with closing(sqlite3.connect(path, isolation_level=None)) as holder:
            holder.execute("BEGIN EXCLUSIVE")
            assert "locked" in Loaded(path, db=tmp_path / "a.duckdb").error

    def test_an_unfinished_write_is_one_line(self, tmp_path: Path) -> None:
        path = many(10).sqlite(tmp_path / "a.sqlite")
        (tmp_path / "a.sqlite-journal").write_bytes(b"\xd9\xd5\x05\xf9 some pages")
        assert "unfinished" in Loaded(path, db=tmp_path / "a.duckdb").error

    def test_what_a_write_ahead_log_holds_is_read(self, tmp_path: Path) -> None:
        path = many(10).sqlite(tmp_path / "live.sqlite")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid > 4")
            connection.commit()
            for ending in ("", "-wal"):
                shutil.copy(tmp_path / f"live.sqlite{ending}", tmp_path / f"copy.sqlite{ending}")
        assert len(Loaded(tmp_path / "copy.sqlite", db=tmp_path / "a.duckdb").rows("kernel_event", "name")) == 4

    def test_nothing_is_written_beside_the_export(self, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        folder.mkdir()
        path = many(10).sqlite(folder / "a #1 100%.sqlite")
        path.chmod(0o444)
        assert Loaded(path, db=tmp_path / "a.duckdb").errors == []
        assert [item.name for item in folder.iterdir()] == [path.name]


class TestRecognition:
    @pytest.mark.parametrize(
        "tables",
        [
            ["dlprof_meta (id)", "kernels (name, start, end)", "ops (id)"],
            ["rocpd_string (id, string)", "rocpd_kernel_dispatch (id, start, end)"],
            ["StringIds (id, value)", "notes (text)"],
            ["CUPTI_ACTIVITY_KIND_KERNEL (start, end)", "StringTable (_id_, value)"],
            [],
        ],
    )
    def test_other_sqlite_files_are_not_claimed(self, tmp_path: Path, tables: list[str]) -> None:
        path = change(tmp_path / "a.sqlite", "PRAGMA user_version = 1", *(f"CREATE TABLE {table}" for table in tables))
        assert claimed(path) == []

    def test_any_name_will_do(self, tmp_path: Path) -> None:
        path = many(1).sqlite(tmp_path / "export.anything")
        assert claimed(path) == [(path,)]

    def test_text_and_other_parquet_are_not_claimed(self, tmp_path: Path) -> None:
        (tmp_path / "a.sqlite").write_text("not a database")
        folder = many(1).parquet(tmp_path / "other")
        (folder / "StringIds.parquet").unlink()
        (folder / "META_DATA_EXPORT.parquet").unlink()
        assert claimed(tmp_path / "a.sqlite", *folder.iterdir()) == []

    def test_of_several_recordings_one_is_read(self, tmp_path: Path) -> None:
        made = many(3)
        made.parquet(tmp_path / "report1_pqtdir")
        (tmp_path / "report1.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report 1\n")
        path = made.sqlite(tmp_path / "report1.sqlite")
        many(4).sqlite(tmp_path / "report2.sqlite")
        found = Loaded(tmp_path, db=tmp_path / "a.duckdb")
        assert found.errors == []
        assert sorted(found.rows("capture", "path")) == [str(path), str(tmp_path / "report2.sqlite")]
        issue = found.one("ingest_issue WHERE code = 'duplicate_recording'", "count", "detail")
        assert issue == (2, "of the same capture, left aside: report1_pqtdir, report1.nsys-rep")

    def test_a_parquet_folder_goes_before_a_report(self, tmp_path: Path) -> None:
        folder = many(1).parquet(tmp_path / "report1_pqtdir")
        report = tmp_path / "report1.nsys-rep"
        report.write_bytes(b"NVIDIA Tegra Profiler Report 1\n")
        (capture,) = ingester.find([report, *folder.iterdir()])
        assert capture.duplicates == (report,)

    def test_a_damaged_parquet_file_is_one_line(self, tmp_path: Path) -> None:
        folder = many(100).parquet(tmp_path / "report1_pqtdir")
        path = folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet"
        path.write_bytes(path.read_bytes()[:-20])
        assert "CUPTI_ACTIVITY_KIND_KERNEL.parquet cannot be read" in Loaded(folder, db=tmp_path / "a.duckdb").error


class TestB084Incomplete:
    @pytest.mark.parametrize("name", ["a.nsys-rep", "a.qdrep", "a.sqlite", "a.qdstrm"])
    def test_an_empty_file_fails_and_others_go_on(self, tmp_path: Path, name: str) -> None:
        folder = tmp_path / "run"
        folder.mkdir()
        (folder / name).touch()
        many(1).sqlite(folder / "good.sqlite")
        found = Loaded(folder, db=tmp_path / "a.duckdb")
        assert "incomplete nsys capture" in found.error
        assert len(found.rows("kernel_event", "name")) == 1

    def test_a_raw_stream_fails(self, tmp_path: Path) -> None:
        (tmp_path / "a.qdstrm").write_bytes(b"U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1")
        error = Loaded(tmp_path, db=tmp_path / "a.duckdb").error
        assert "incomplete nsys capture" in error and "importer" in error

    def test_a_finished_recording_beside_it_is_read(self, tmp_path: Path) -> None:
        (tmp_path / "a.qdstrm").write_bytes(b"U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1")
        (tmp_path / "a.nsys-rep").touch()
        many(1).sqlite(tmp_path / "a.sqlite")
        found = Loaded(tmp_path, db=tmp_path / "a.duckdb")
        assert found.errors == []
        assert found.issues["duplicate_recording"] == 2


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
