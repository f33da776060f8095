"""Damaged pages that SQLite does not notice while reading an export: no row is lost silently."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from readers.nsys.test_nsys_faults import reader  # noqa: F401 - a fixture
from readers.nsys.test_nsys_unstaged_kernels import from_the_start  # noqa: F401 - a fixture
from support.nsys_files import Nsys
from support.nsys_loaded import Loaded, change, many, step
from tracedb.errors import ReadError
from tracedb_nsys.export import sqlite_check
from tracedb_nsys.export.parquet import ParquetExport

pytestmark = pytest.mark.usefixtures("only_few_views")

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
ROWS = 1000
LEAF, INTERIOR = 13, 5


class Pages:
    """The pages of a table in an SQLite file, to be spoilt."""

    def __init__(self, path: Path, table: str = KERNEL) -> None:
        self.path = path
        self.data = bytearray(path.read_bytes())
        with closing(sqlite3.connect(path)) as connection:
            query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
            ((root,),) = connection.execute(query, [table]).fetchall()
            ((self.size,),) = connection.execute("PRAGMA page_size").fetchall()
        self.root = (root - 1) * self.size
        assert self.data[self.root] == INTERIOR

    def number(self, at: int, size: int) -> int:
        return int.from_bytes(self.data[at : at + size], "big")

    def leaves(self) -> list[int]:
        """Offsets of the leaves below the root, but the rightmost."""
        cells = self.number(self.root + 3, 2)
        keys = [self.root + self.number(self.root + 12 + 2 * cell, 2) for cell in range(cells)]
        return [(self.number(key, 4) - 1) * self.size for key in keys]

    def row_number(self, leaf: int, cell: int) -> int:
        """Offset of the number of a row, of two bytes."""
        at = leaf + self.number(leaf + 8 + 2 * cell, 2)
        while self.data[at] & 0x80:
            at += 1
        return at + 1

    def write(self) -> None:
        self.path.write_bytes(self.data)


def higher(pages: Pages) -> None:
    leaf = pages.leaves()[5]
    pages.data[pages.row_number(leaf, 3)] ^= 0x08


def lower(pages: Pages) -> None:
    leaf = pages.leaves()[5]
    pages.data[pages.row_number(leaf, 3)] &= 0x81


def twice(pages: Pages) -> None:
    """Two neighbours of one number: no other row is hidden, but ids would no longer be unique."""
    leaf = pages.leaves()[5]
    first, second = pages.row_number(leaf, 3), pages.row_number(leaf, 4)
    pages.data[first : first + 2] = pages.data[second : second + 2]


def key_of_a_branch(pages: Pages) -> None:
    """The branch with row 257, where a range of rows begins in these tests, says that its rows are lower."""
    cells = range(pages.number(pages.root + 3, 2))
    keys = [pages.root + pages.number(pages.root + 12 + 2 * cell, 2) + 4 for cell in cells]
    at = next(key for key in keys if pages.data[key] & 0x80 and pages.number(key, 2) >= 0x8201)
    pages.data[at : at + 2] = b"\x81\x00"


def first_row(pages: Pages) -> None:
    """The least number is what ranges of rows begin at."""
    leaf = pages.leaves()[0]
    pages.data[pages.row_number(leaf, 0)] |= 0x40


HIDING: list[Callable[[Pages], None]] = [higher, lower, twice, key_of_a_branch, first_row]


def spoilt(folder: Path, how: Callable[[Pages], None], made: Nsys | None = None) -> Path:
    pages = Pages((made or many(ROWS)).sqlite(folder / "a.sqlite"))
    how(pages)
    pages.write()
    return pages.path


@pytest.fixture(params=["checked as a whole", "too large for that"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What tells of damage: SQLite's check of all pages, or its count of the rows."""
    if request.param != "checked as a whole":
        monkeypatch.setattr(sqlite_check, "SMALL", 0)


@pytest.mark.usefixtures("reader", "size")
@pytest.mark.parametrize("how", HIDING)
def test_rows_that_a_search_does_not_find_are_read(tmp_path: Path, how: Callable[[Pages], None]) -> None:
    found = Loaded(spoilt(tmp_path, how), db=tmp_path / "a.duckdb")
    assert found.errors == []
    columns = ("count(*)", "count(DISTINCT event_id)", "sum(start_ns)::BIGINT", "sum(duration_ns)::BIGINT")
    assert found.rows("kernel_event", *columns) == [(ROWS, ROWS, 5 * ROWS * (ROWS - 1), 5 * ROWS)]
    assert found.one("capture", "status", "events_read", "events_skipped") == ("repaired", ROWS, 0)
    assert found.one("ingest_issue", "code", "severity", "count", "skipped") == ("file_damaged", "warning", 1, 0)


def fewer_cells(pages: Pages) -> None:
    leaf = pages.leaves()[5]
    cells = pages.number(leaf + 3, 2)
    pages.data[leaf + 3 : leaf + 5] = (cells - 3).to_bytes(2, "big")


def fewer_branches(pages: Pages) -> None:
    cells = pages.number(pages.root + 3, 2)
    pages.data[pages.root + 3 : pages.root + 5] = (cells - 1).to_bytes(2, "big")


def another_page(pages: Pages) -> None:
    """A page of the table stands where another one stood."""
    leaves = pages.leaves()
    pages.data[leaves[5] : leaves[5] + pages.size] = pages.data[leaves[3] : leaves[3] + pages.size]


@pytest.mark.usefixtures("reader", "size")
@pytest.mark.parametrize("how", [fewer_cells, fewer_branches, another_page])
def test_rows_that_are_gone_are_counted(tmp_path: Path, how: Callable[[Pages], None]) -> None:
    found = Loaded(spoilt(tmp_path, how), db=tmp_path / "a.duckdb")
    assert found.errors == []
    rows = found.one("kernel_event", "count(*)")
    assert 900 < rows < ROWS
    assert found.one("capture", "status", "rows_written") == ("repaired", rows)
    code, severity, count, detail = found.one("ingest_issue", "code", "severity", "count", "detail")
    assert (code, severity, count) == ("file_damaged", "warning", ROWS - rows)
    assert f"{KERNEL}: {rows:,} rows read" in detail and "1,000" in detail


@pytest.mark.usefixtures("size")
def test_a_table_that_begins_elsewhere(tmp_path: Path) -> None:
    """The schema names a page of the table that is not its first: what lies below it is a sound table of its own."""

    def moved(pages: Pages) -> None:
        with closing(sqlite3.connect(pages.path)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            leaf = pages.leaves()[5] // pages.size + 1
            connection.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = ?", [leaf, KERNEL])
            connection.commit()
        pages.data = bytearray(pages.path.read_bytes())

    found = Loaded(spoilt(tmp_path, moved), db=tmp_path / "a.duckdb")
    assert found.one("capture", "status") == "repaired"
    assert "file_damaged" in found.issues


def test_calls_and_ranges_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links between rows are those of the whole file; texts of ranges stand beside the numbers of their rows."""
    monkeypatch.setattr(sqlite_check, "SMALL", 0)
    made = Nsys()
    for at in range(ROWS):
        made.range(at * 100, at * 100 + 90, f"range {at}", registered=False)
        made.launch(at * 100 + 10, at * 100 + 50, at * 100 + 55)
    path = made.sqlite(tmp_path / "a.sqlite")
    whole = Loaded(path, db=tmp_path / "whole.duckdb")
    for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
        pages = Pages(path, table)
        higher(pages)
        pages.write()
    found = Loaded(path, db=tmp_path / "a.duckdb")
    assert found.one("capture", "status", "rows_written") == ("repaired", 3 * ROWS)
    assert found.held() == whole.held()
    assert len(found.held()) == ROWS


@pytest.mark.usefixtures("size")
def test_events_left_aside_are_those_that_there_are(tmp_path: Path) -> None:
    """SQLite counts what a page says it holds: 128 here, where there is one row, and one that the damage makes."""
    path, table = step().sqlite(tmp_path / "a.sqlite"), "OSRT_API"
    whole = Loaded(path, db=tmp_path / "whole.duckdb")
    assert whole.issues["osrt_api"] == 1
    with closing(sqlite3.connect(path)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [table]).fetchall()
        ((page_size,),) = connection.execute("PRAGMA page_size").fetchall()
    data, at = bytearray(path.read_bytes()), (root - 1) * page_size
    assert data[at] == LEAF
    data[at + 3 : at + 5] = (128).to_bytes(2, "big")
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchall() == [(128,)]
        rows = len(set(connection.execute(f"SELECT +rowid, * FROM {table} NOT INDEXED")))
    found = Loaded(path, db=tmp_path / "a.duckdb")
    assert found.one("capture", "status") == "repaired"
    assert found.issues["osrt_api"] == rows < 3
    assert "file_damaged" in found.issues


@pytest.mark.usefixtures("from_the_start")
def test_kernels_that_bypassed_staging_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_check, "SMALL", 0)
    found = Loaded(spoilt(tmp_path, higher), db=tmp_path / "a.duckdb")
    assert found.errors == []
    assert found.one("capture", "status", "rows_written") == ("repaired", ROWS)


@pytest.mark.usefixtures("reader", "size")
def test_rows_that_were_deleted_are_no_damage(tmp_path: Path) -> None:
    path = change(many(ROWS).sqlite(tmp_path / "a.sqlite"), f"DELETE FROM {KERNEL} WHERE rowid % 3 = 0 OR rowid < 100")
    change(path, f"CREATE INDEX of_starts ON {KERNEL} (start)")
    found = Loaded(path, db=tmp_path / "a.duckdb")
    assert found.one("capture", "status") == "complete"
    assert found.issues == {}


def test_ids_of_tables_that_begin_late_do_not_meet(tmp_path: Path) -> None:
    """Copies are numbered after the kernels, whose numbers here begin at 900."""
    made = many(ROWS)
    for at in range(ROWS):
        made.copy(at * 10, at * 10 + 1)
    path = change(made.sqlite(tmp_path / "a.sqlite"), f"DELETE FROM {KERNEL} WHERE rowid < 900")
    found = Loaded(path, db=tmp_path / "a.duckdb")
    assert found.rows("kernel_event", "count(*)", "count(DISTINCT event_id)") == [(ROWS + 101, ROWS + 101)]


def test_rows_that_a_footer_of_parquet_has_and_its_pages_have_not(tmp_path: Path) -> None:
    folder = many(10).parquet(tmp_path / "a_pqtdir")
    export = ParquetExport(sorted(folder.iterdir()))
    export.verify(KERNEL, 10)
    assert export.losses() is None
    export.verify(KERNEL, 7)
    lost, detail = export.losses() or (0, "")
    assert lost == 3 and KERNEL in detail and "7" in detail and "10" in detail


def test_a_column_of_parquet_whose_name_is_no_text(tmp_path: Path) -> None:
    folder = many(10).parquet(tmp_path / "a_pqtdir")
    path = folder / f"{KERNEL}.parquet"
    path.write_bytes(path.read_bytes().replace(b"gridX", b"gri\x96X"))
    with pytest.raises(ReadError, match=f"{KERNEL}.parquet cannot be read"):
        ParquetExport(sorted(folder.iterdir()))
