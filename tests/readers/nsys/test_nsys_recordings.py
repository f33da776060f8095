"""Which files are nsys recordings, and the messages for those that cannot be read."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from readers.nsys.test_nsys_faults import reader  # noqa: F401 - a fixture
from support.command import run
from support.nsys_loaded import Loaded, change, many
from tracedb_nsys import ingester
from tracedb_nsys.export import sqlite_check


def claimed(*paths: Path) -> list[Sequence[Path]]:
    return [capture.files for capture in ingester.find(paths)]


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

    def test_a_damaged_schema_of_odd_bytes_is_one_line(self, tmp_path: Path) -> None:
        path = many(10).sqlite(tmp_path / "a.sqlite")
        path.write_bytes(path.read_bytes().replace(b'CREATE TABLE "StringIds"', b'CREATE \xebABLE "StringIds"'))
        assert "cannot be read" in Loaded(path, db=tmp_path / "a.duckdb").error

    def test_damaged_names_of_tables_cost_their_file_only(self, tmp_path: Path) -> None:
        """Every ingester looks at the names of the tables, of whatever SQLite file there is."""
        whole, damaged = many(10).sqlite(tmp_path / "a.sqlite"), many(11).sqlite(tmp_path / "b.sqlite")
        damaged.write_bytes(
            damaged.read_bytes().replace(b"CUPTI_ACTIVITY_KIND_RUNTIME", b"CUPTI_ACTIVITY_\x99IND_RUNTIME")
        )
        found = Loaded(whole, damaged, db=tmp_path / "a.duckdb")
        assert [outcome.error is None for outcome in found.outcomes] == [True, True], found.errors
        assert found.rows("capture", "status") == ["complete", "complete"]

    def test_a_damaged_schema_with_odd_bytes_costs_nothing_else(self, tmp_path: Path) -> None:
        """SQLite's own words about it are not UTF-8 then."""
        path = tmp_path / "run" / "odd.sqlite"
        path.parent.mkdir()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE abc (x)")
            connection.commit()
        spoilt = path.read_bytes().replace(b"CREATE TABLE abc", b"CREATE TABLX abc").replace(b"abc", b"a\x85c")
        path.write_bytes(spoilt)
        many(1).sqlite(path.with_name("good.sqlite"))
        found = Loaded(path.parent, db=tmp_path / "a.duckdb")
        assert found.errors == []
        assert len(found.rows("kernel_event", "name")) == 1

    def test_a_locked_file_is_one_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sqlite_check, "LOCK_WAIT_S", 0.05)
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


def test_answers_need_no_export_after_the_ingest(tmp_path: Path) -> None:
    path = many(3).sqlite(tmp_path / "a.sqlite")
    found = Loaded(path, db=tmp_path / "a.duckdb")
    path.unlink()
    assert len(found.rows("kernels", "name")) == 3
    done = run("report", "top-kernels", "--db", found.db)
    assert done.exit_code == 0 and "k0" in done.stdout


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
        assert issue == (2, "of the same capture, not read: report1_pqtdir, report1.nsys-rep")
        said = run("ingest", tmp_path / "report1.nsys-rep", path, "--db", tmp_path / "b.duckdb").stderr
        assert (
            f"left aside: 1 file whose capture was loaded from another file ({path}: of the same capture, not read: "
            "report1.nsys-rep)\n"
        ) in said

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


class TestIncompleteRecordings:
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
