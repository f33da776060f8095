"""Loading traces by the command, and looking into the database."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
from click.testing import Result

from support.command import run
from support.readings import instance
from support.traces import HEADER, document, launched, write
from tracedb.storage import schema, template_database
from tracedb.storage.connection import quoted


@cache
def empty_database() -> bytes:
    """The content of a database without captures; all workers of a run use the same template."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.duckdb"
        assert template_database.place(path)
        return path.read_bytes()


@contextmanager
def empty_connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database of its own, with all tables and views and no rows; creating the views takes seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.duckdb"
        path.write_bytes(empty_database())
        with duckdb.connect(str(path)) as connection:
            yield connection


def own_cache(folder: Path) -> Path:
    """Make a cache folder for one test, with the template of a database, since making one takes long."""
    empty_database()  # has the template made
    home = folder / "tracedb"
    home.mkdir(parents=True)
    for template in (Path(os.environ["XDG_CACHE_HOME"]) / "tracedb").glob("empty-*.duckdb"):
        shutil.copy(template, home)
    return folder


COUNTED = (*schema.INGESTED_TABLES, "capture", "annotation_kernel")


def ingest(*paths: Path, db: Path, jobs: int = 1, flags: Sequence[str] = (), new: bool = False) -> Result:
    """Run the command. The database is there afterwards, empty if nothing was loaded, unless it is to be ``new``.

    It is not made before: opening one to look for known captures takes a quarter of the time of a small load.
    """
    if not new:
        empty_database()  # has the template made, which ``own_cache`` copies
    done = run("ingest", *paths, "--db", db, "--jobs", str(jobs), "--format", "json", *flags)
    if not new and not db.exists() and db.parent.is_dir():
        db.write_bytes(empty_database())
    return done


NUMBERS = count()


@contextmanager
def opened(db: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database for reading in the engine that all tests share; starting one takes longer than most questions."""
    name = f"asked_{next(NUMBERS)}"
    with instance().cursor() as connection:
        connection.execute(f"ATTACH {quoted(str(db))} AS {name} (READ_ONLY)")
        try:
            connection.execute(f"USE {name}")
            yield connection
        finally:
            connection.execute("USE memory")
            connection.execute(f"DETACH {name}")


def ask(db: Path, query: str) -> list[tuple[Any, ...]]:
    with opened(db) as connection:
        return connection.execute(query).fetchall()


def contents(db: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables, but for the time of loading."""
    with opened(db) as connection:
        return {
            table: connection.execute(
                f"SELECT * {'EXCLUDE (ingested_at)' if table == 'capture' else ''} FROM main.{table} ORDER BY ALL"
            ).fetchall()
            for table in COUNTED
        }


def trace(path: Path, count: int = 3, rank: int | None = None) -> Path:
    header = HEADER if rank is None else {**HEADER, "distributedInfo": {"rank": rank, "world_size": 4}}
    return write(path, launched(count), header=header)


def broken(path: Path) -> Path:
    content = document(launched(3))
    return write(path, content + content)
