"""Large exports: pages are read as SQLite reads them, and kernels that bypass staging equal staged ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.examples import MORE
from support.nsys_files import ERAS, PID, Nsys
from support.nsys_loaded import Loaded
from tracedb.ingester import Options
from tracedb_nsys import unstaged_kernels
from tracedb_nsys.export import integer_limits, native_pages, sqlite
from tracedb_nsys.source import NsysIngester

pytestmark = pytest.mark.usefixtures("only_few_views")

LEAST = integer_limits.ANY[0]
"""Two numbers below stand for values that are no whole numbers."""
WHOLE = st.sampled_from([-1, 0, 1, 127, -128, 128, 32_767, 1 << 23, -(1 << 31), 1 << 40, (1 << 63) - 1, LEAST])
VALUES = st.none() | WHOLE | st.integers(LEAST, (1 << 63) - 1)
ANY = VALUES | st.floats(allow_nan=False) | st.text(max_size=3) | st.binary(max_size=3)
COLUMNS = ("a", "b", "c")
needs_library = pytest.mark.skipif(native_pages.library() is None, reason="the compiled reader was not built")


def made(path: Path, rows: Sequence[Sequence[Any]], page_size: int = 512, columns: str = "a, b, c") -> Path:
    """Write a table t; a row may begin with its number."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        connection.execute(f"CREATE TABLE t ({columns})")
        for row in rows:
            names = COLUMNS if len(row) == 3 else ("rowid", *COLUMNS)
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO t ({', '.join(names)}) VALUES ({marks})", list(row))
        connection.commit()
    return path


def by_pages(path: Path, rows: range, columns: Sequence[str] = COLUMNS) -> list[tuple[Any, ...]] | None:
    table = native_pages.table(path, sqlite3.connect(path), "t")
    assert table is not None
    batch = table.read(columns, rows)
    return None if batch is None else [tuple(row.values()) for row in batch.to_pylist()]


def by_sqlite(path: Path, rows: range) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rowid, a, b, c FROM t WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
        return connection.execute(query, [rows.start, rows.stop - 1]).fetchall()


@needs_library
class TestPages:
    @settings(max_examples=20 * MORE, deadline=None)
    @given(
        rows=st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=60),
        page_size=st.sampled_from([512, 4096, 65536]),
        low=st.integers(-5, 30),
        count=st.integers(1, 70),
    )
    def test_whole_numbers(
        self, rows: list[Any], page_size: int, low: int, count: int, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        path = made(tmp_path_factory.mktemp("pages") / "t.sqlite", rows, page_size)
        wanted = range(low, low + count)
        assert by_pages(path, wanted) == by_sqlite(path, wanted)

    @settings(max_examples=20 * MORE, deadline=None)
    @given(rows=st.lists(st.tuples(ANY, ANY, ANY), min_size=1, max_size=12))
    def test_anything_else_is_left_to_sqlite(self, rows: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
        path = made(tmp_path_factory.mktemp("pages") / "t.sqlite", rows)
        everything = range(1, len(rows) + 1)
        is_whole = all(value is None or type(value) is int for row in rows for value in row)
        assert by_pages(path, everything) == (by_sqlite(path, everything) if is_whole else None)

    @pytest.mark.parametrize("page_size", [512, 1024, 4096])
    def test_a_tree_of_several_levels_in_ranges(self, page_size: int, tmp_path: Path) -> None:
        rows = [(3 * at - 7_000, at, None if at % 5 == 0 else -at, at << 33) for at in range(6_000)]
        path = made(tmp_path / "t.sqlite", rows, page_size)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("DELETE FROM t WHERE a % 7 = 3 OR a BETWEEN 2000 AND 2500")
            connection.commit()
        for wanted in (range(-9_000, 20_000), range(-1, 0), range(-1_000, 1_000), range(10_994, 30_000)):
            assert by_pages(path, wanted) == by_sqlite(path, wanted)

    def test_columns_in_another_order_and_some_only(self, tmp_path: Path) -> None:
        path = made(tmp_path / "t.sqlite", [(1, 2, 3), (4, None, 6)])
        assert by_pages(path, range(1, 3), ("c", "a")) == [(1, 3, 1), (2, 6, 4)]
        assert by_pages(path, range(1, 3), ("b",)) == [(1, 2), (2, None)]
        mixed = made(tmp_path / "u.sqlite", [("text", 1.5, 3)])
        assert by_pages(mixed, range(1, 2), ("c",)) == [(1, 3)]

    def test_tables_that_only_sqlite_can_read(self, tmp_path: Path) -> None:
        key = made(tmp_path / "key.sqlite", [(1, 2, 3)], columns="a INTEGER PRIMARY KEY, b, c")
        assert native_pages.table(key, sqlite3.connect(key), "t") is None
        bare = made(tmp_path / "bare.sqlite", [], columns="a PRIMARY KEY, b, c) WITHOUT ROWID --")
        assert native_pages.table(bare, sqlite3.connect(bare), "t") is None
        added = made(tmp_path / "added.sqlite", [], columns="a, b")
        with closing(sqlite3.connect(added)) as connection:
            connection.execute("INSERT INTO t VALUES (1, 2)")
            connection.execute("ALTER TABLE t ADD COLUMN c DEFAULT 7")
            connection.commit()
        assert by_pages(added, range(1, 2)) is None
        assert by_pages(added, range(1, 2), ("a", "b")) == [(1, 1, 2)]
        long = made(tmp_path / "long.sqlite", [("x" * 5_000, 2, 3)])
        assert by_pages(long, range(1, 2), ("c",)) is None

    def test_damage_does_no_harm(self, tmp_path: Path) -> None:
        path = made(tmp_path / "t.sqlite", [(at, -at, at << 20) for at in range(1_500)])
        whole = path.read_bytes()
        library = native_pages.library()
        assert library is not None
        random = np.random.default_rng(3)
        for _ in range(300):
            data = bytearray(whole)
            for at in random.integers(512, len(data), random.integers(1, 20)):
                data[at] = random.integers(256)
            damaged = tmp_path / "damaged.sqlite"
            damaged.write_bytes(data[: random.integers(1_024, len(data))])
            batch = native_pages.Table(library, damaged, 2, "t", {"a": 0, "b": 1, "c": 2}).read(
                COLUMNS, range(1, 1_500)
            )
            assert batch is None or batch.num_rows <= 1_500

    def test_the_export_is_read_by_pages(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """And gives SQLite those pieces that hold something else."""
        rows = [(at, at, at) for at in range(1, 200)]
        path = made(tmp_path / "t.sqlite", [*rows, (1.5, 2, 3), *rows])
        export = sqlite.SqliteExport(path)
        monkeypatch.setattr(sqlite, "BATCH_ROWS", 25)
        asked: list[str] = []
        run = sqlite.SqliteExport._run

        def watched(self: sqlite.SqliteExport, table: str, query: str, columns: Sequence[str]) -> Any:
            asked.append(query)
            return run(self, table, query, columns)

        monkeypatch.setattr(sqlite.SqliteExport, "_run", watched)
        (batches,) = export.batches("t", COLUMNS, 2)
        found = pa.Table.from_batches(list(batches)).to_pydict()
        assert found["row"] == list(range(1, 400))
        assert found["a"][198:201] == [199, None, 1]
        assert export.odd == {("t", "a"): 1}
        assert len(asked) == 1


@pytest.fixture
def from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small exports bypass staging, in row groups of three, on whatever machine: one core would have them staged."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr(unstaged_kernels, "SMALLEST_ROWS", 1)
    monkeypatch.setattr(unstaged_kernels, "ROW_GROUP", 3)
    monkeypatch.setattr(sqlite, "BATCH_ROWS", 2)


def export(era: str, count: int = 20) -> Nsys:
    """Kernels, some of them launched, one without a usable time, one without a name."""
    file = Nsys(era)
    for at in range(count):
        start = 1_000 + 100 * at
        if at % 3:
            file.launch(start - 50, start, start + 60, f"void k<(int){at % 4}>(T1 *)", stream=7 + at % 2, device=at % 2)
        else:
            file.kernel(start, start + 60, f"void k<(int){at % 4}>(T1 *)", gridX=1 << 40)
    file.kernel(5_000, 4_000)
    file.kernel(6_000, 6_010, demangledName=None, shortName=None)
    file.copy(7_000, 7_100)
    return file


def tables(loaded: Loaded) -> dict[str, list[Any]]:
    return {name: loaded.rows(name, "*") for name in ("kernel_event", "launch", "annotation", "device", "ingest_issue")}


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of rows of each table that bypasses staging."""
    went: list[int] = []
    rows = unstaged_kernels.UnstagedKernels.rows

    def watched(self: unstaged_kernels.UnstagedKernels, table: pa.Table) -> Any:
        went.append(table.num_rows)
        return rows(self, table)

    monkeypatch.setattr(unstaged_kernels.UnstagedKernels, "rows", watched)
    return went


class TestUnstagedKernels:
    @pytest.mark.parametrize(("era", "form"), [*((era, "sqlite") for era in ERAS), (ERAS[-1], "parquet")])
    def test_the_rows_are_those_of_the_staging_table(
        self, era: str, form: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / ("a.sqlite" if form == "sqlite" else "a_pqtdir")
        getattr(export(era), form)(path)
        staged = Loaded(path, db=tmp_path / "a.duckdb")
        request.getfixturevalue("from_the_start")
        went = counted(monkeypatch)
        other = Loaded(path, db=tmp_path / "b.duckdb")
        assert staged.errors == other.errors == []
        assert tables(other) == tables(staged)
        columns = ("status", "events_read", "events_skipped", "rows_written", "metadata")
        assert other.rows("capture", *columns) == staged.rows("capture", *columns)
        assert went == [6, 6, 6, 4]

    @pytest.mark.parametrize("smallest", [1, 1 << 40])
    def test_strings_that_stand_twice_double_nothing(
        self, smallest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = export("2025.3").sqlite(tmp_path / "a.sqlite")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("INSERT INTO StringIds SELECT id, value FROM StringIds")
            connection.commit()
        monkeypatch.setattr(unstaged_kernels, "SMALLEST_ROWS", smallest)
        loaded = Loaded(path, db=tmp_path / "a.duckdb")
        assert loaded.errors == []
        assert len(loaded.rows("kernel_event", "event_id")) == 22
        assert loaded.one("capture", "rows_written") == 22 + len(loaded.rows("launch", "launch_id"))

    @pytest.mark.usefixtures("from_the_start")
    def test_strings_that_nothing_staged_names_are_not_lost(self, tmp_path: Path) -> None:
        """Of a file with kernels only, of which a page is damaged where no row is harmed."""
        file = Nsys()
        for at in range(20):
            file.kernel(1_000 + 100 * at, 1_060 + 100 * at, f"k{at}")
        path = file.sqlite(tmp_path / "a.sqlite")
        with closing(sqlite3.connect(path)) as connection:
            query = "SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'"
            ((root,),) = connection.execute(query).fetchall()
        data = bytearray(path.read_bytes())
        data[(root - 1) * int.from_bytes(data[16:18], "big") + 7] = 99  # bytes in fragments of a page
        path.write_bytes(data)
        loaded = Loaded(path, db=tmp_path / "a.duckdb")
        assert loaded.errors == []
        assert loaded.one("capture", "status", "rows_written") == ("repaired", 20)
        assert loaded.issues == {"file_damaged": 1}

    @pytest.mark.usefixtures("from_the_start")
    def test_several_processes_are_read_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = export("2025.3")
        file.launch(8_000, 8_100, 8_200, pid=PID + 1)
        went = counted(monkeypatch)
        loaded = Loaded(file.sqlite(tmp_path / "a.sqlite"), db=tmp_path / "a.duckdb")
        assert loaded.errors == []
        assert went
        with loaded.connect() as connection:
            found = connection.execute(
                """SELECT c.pid, count(*) FROM kernel_event AS k JOIN capture AS c USING (capture_id)
                WHERE k.kind = 'kernel' GROUP BY c.pid ORDER BY c.pid"""
            ).fetchall()
        assert found == [(PID, 21), (PID + 1, 1)]

    @pytest.mark.usefixtures("from_the_start")
    def test_payloads_and_one_core_are_staged(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        went = counted(monkeypatch)
        file = export("2025.3")
        file.add("NVTX_PAYLOAD_SCHEMAS", domainId=1, schemaId=1, name="x")
        Loaded(file.sqlite(tmp_path / "a.sqlite"), db=tmp_path / "a.duckdb")
        path = export("2025.3").sqlite(tmp_path / "b.sqlite")
        ingester = NsysIngester()
        (capture,) = ingester.find([path])
        with duckdb.connect() as scratch:
            list(ingester.read(capture, scratch, Options(cores=1)))
        assert went == []
