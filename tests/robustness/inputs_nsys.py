"""Mutated nsys exports: SQLite by page reader and Arrow driver; Parquet; staged or direct."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from readers.nsys.test_nsys_unstaged_kernels import export
from robustness import nsys_event_counts
from robustness.invariants import Case, Way
from robustness.mutations import CELLS, Dice, changed_bytes, changed_database
from robustness.reader_results import compared, counted, of_nsys
from support.nsys_files import ERAS, Nsys
from support.nsys_loaded import step
from tracedb.ingester import Capture
from tracedb_nsys import ingester, unstaged_kernels
from tracedb_nsys.export import parquet, sqlite, sqlite_check

__all__ = ["ingester", "make_parquet", "make_sqlite"]

COUNTED = {
    "kernel": "CUPTI_ACTIVITY_KIND_KERNEL",
    "memcpy": "CUPTI_ACTIVITY_KIND_MEMCPY",
    "memset": "CUPTI_ACTIVITY_KIND_MEMSET",
    "launch": "CUPTI_ACTIVITY_KIND_RUNTIME",
}
USUAL = Way("compiled pages")
DIRECT = ((unstaged_kernels, "SMALLEST_ROWS", 1), (unstaged_kernels, "ROW_GROUP", 3))
FEW_ROWS = ((sqlite, "BATCH_ROWS", 2), (sqlite, "PIECE_BATCHES", 1))
OTHERS = (
    Way("ADBC", is_python=True),
    Way("pieces of few rows", FEW_ROWS),
    Way("pieces of few rows by ADBC", FEW_ROWS, is_python=True),
)
DIRECT_WAYS = (
    Way("direct", (*DIRECT, *FEW_ROWS), cores=2),
    Way("direct by ADBC", DIRECT, cores=2, is_python=True),
)
PARQUET = (Way("parquet", ((parquet, "BATCH_ROWS", 3),)), Way("parquet, direct", DIRECT, cores=2))
TYPES = (
    pa.int32(),
    pa.uint64(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.bool_(),
    pa.dictionary(pa.int32(), pa.string()),
)


def _makers() -> list[Callable[[], Nsys]]:
    steps = [partial(step, era) for era in ERAS]
    return [*steps, *(partial(export, era, 6) for era in ERAS[2:]), partial(export, "2025.3", 60)]


@cache
def _databases() -> list[bytes]:
    """Return sound exports, some with small pages, so that tables are trees."""
    found = []
    with TemporaryDirectory() as folder:
        for number, maker in enumerate(_makers()):
            path = maker().sqlite(Path(folder) / f"{number}.sqlite")
            if number % 2 == 0:
                with closing(sqlite3.connect(path)) as connection:
                    connection.execute("PRAGMA page_size = 512")
                    connection.execute("VACUUM")
            found.append(path.read_bytes())
    return found


@cache
def _folders() -> list[Mapping[str, pa.Table]]:
    with TemporaryDirectory() as folder:
        made = [maker().parquet(Path(folder) / str(number)) for number, maker in enumerate(_makers()[2:8])]
        return [{path.stem: pq.read_table(path) for path in sorted(each.iterdir())} for each in made]


def make_sqlite(dice: Dice, folder: Path) -> Case:
    """Make an export in SQLite."""
    data = dice.choice(_databases())
    if dice.randrange(3):
        data = changed_database(dice, data, dice.choice((1, 2, 4)))
    for _ in range(dice.choice((0, 1, 1, 4))):
        data = (
            _changed_pages(dice, data) if dice.randrange(2) else changed_bytes(dice, data, least=dice.choice((0, 100)))
        )
    path = folder / "report.sqlite"
    path.write_bytes(data)
    common = ((sqlite_check, "SMALL", 0),) if dice.randrange(2) else ()
    usual, other, direct_way = (
        Way(way.name, (*way.patches, *common), way.cores, way.is_python)
        for way in (USUAL, dice.choice(OTHERS), dice.choice(DIRECT_WAYS))
    )
    ways = ((usual, other), (usual, direct_way), (usual,), *[()] * 17)[dice.randrange(20)]

    def early(capture: Capture) -> tuple[str, list[str]]:
        found = [(way, of_nsys(capture, way)) for way in (usual, other)]
        return found[0][1]["state"], compared(found) + counted(path, found[0][1])

    def account() -> tuple[str, list[str]]:
        return nsys_event_counts.judged([path], ingested, nsys_event_counts.in_sqlite(path))

    ingested = dice.choice((usual, other, direct_way))
    return Case([path], ways, lambda: _counted(path), early, account)


def _changed_pages(dice: Dice, data: bytes) -> bytes:
    """Change one byte of a page where its cells are told, or put a page in another's place."""
    size = int.from_bytes(data[16:18], "big") if len(data) > 100 else 0
    if size < 512 or len(data) < 3 * size:
        return data
    at, other = (dice.randrange(1, len(data) // size) * size for _ in range(2))
    changed = bytearray(data)
    if dice.randrange(3) == 0:
        changed[at : at + size] = data[other : other + size]
    else:
        changed[at + dice.randrange(24)] = dice.choice((0, 1, 2, 5, 10, 13, 127, 128, 255))
    return bytes(changed)


def _counted(path: Path) -> dict[str, int] | None:
    """Count the rows with SQLite itself; None where it cannot read them all."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            if connection.execute("PRAGMA quick_check").fetchall() != [("ok",)]:
                return None
            there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            return {
                kind: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for kind, table in COUNTED.items()
                if table in there
            }
    except (sqlite3.Error, UnicodeDecodeError):
        return None


def make_parquet(dice: Dice, folder: Path) -> Case:
    """Make an export as a folder of Parquet files."""
    tables = dict(dice.choice(_folders()))
    for _ in range(dice.choice((0, 1, 2))):
        name = dice.choice(list(tables))
        changed = _changed_table(dice, tables[name])
        if changed is None and len(tables) > 2:
            del tables[name]
        elif changed is not None:
            tables[name] = changed
    target = folder / "report_pqtdir"
    target.mkdir()
    for name, table in tables.items():
        pq.write_table(table, target / f"{name}.parquet", row_group_size=dice.choice((2, 1000)))
    files = sorted(target.iterdir())
    for _ in range(dice.choice((0, 0, 1, 2))):
        path = dice.choice(files)
        path.write_bytes(changed_bytes(dice, path.read_bytes()))
    counts = {kind: tables[name].num_rows for kind, name in COUNTED.items() if name in tables}

    def early(capture: Capture) -> tuple[str, list[str]]:
        found = [(way, of_nsys(capture, way)) for way in PARQUET]
        return found[0][1]["state"], compared(found)

    def account() -> tuple[str, list[str]]:
        return nsys_event_counts.judged(files, ingested, nsys_event_counts.in_parquet(files))

    ways, ingested = (PARQUET, PARQUET[:1], *[()] * 8)[dice.randrange(10)], dice.choice(PARQUET)
    return Case(files, ways, lambda: counts, early, account)


def _changed_table(dice: Dice, table: pa.Table) -> pa.Table | None:
    """Return a table with a column, its type or values changed; None where it is to be left out."""
    place, kind = dice.randrange(table.num_columns), dice.randrange(7)
    name, column = table.column_names[place], table.column(place)
    if kind == 0:
        return table.drop_columns([name]) if table.num_columns > 1 else table
    if kind == 1:
        return None
    if kind == 2:
        return table.rename_columns([f"x{item}" if item == name else item for item in table.column_names])
    if kind == 3:
        return pa.concat_tables([table, table.slice(dice.randrange(table.num_rows))]) if table.num_rows else table
    try:
        if kind == 4:
            return table.set_column(place, name, column.cast(dice.choice(TYPES)))
        values: list[Any] = column.to_pylist()
        values[dice.randrange(len(values))] = dice.choice(CELLS)
        changed = pa.array(values, column.type if kind == 5 else None)
        return table.set_column(place, name, changed)
    except (pa.ArrowException, OverflowError, IndexError, TypeError):
        return table
