"""Ingest every nsys input into its own database, and compare its event counts with independent ones.

The independent counts come from Python's sqlite3, which walks the tables in page order, and from the footers of
Parquet files. A file that cannot be read must be rejected as a whole and leave nothing behind.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from robustness.invariants import RAW_WORDS, Way
from tracedb.pipeline.run import ingest

DATABASE = "account.duckdb"
NO_EVENTS = ("TARGET_INFO_", "META_DATA_", "ENUM_", "DIAGNOSTIC_EVENT", "StringIds")
TIMES = {"start", "timestamp", "rawTimestamp", "startedAt"}
ACCOUNT = """
WITH gave AS (
    SELECT e.capture_id FROM main.kernel_event AS e
    UNION ALL SELECT l.capture_id FROM main.launch AS l
    UNION ALL SELECT a.capture_id FROM main.annotation AS a
    UNION ALL SELECT f.capture_id FROM main.frame AS f
    UNION ALL SELECT o.capture_id FROM main.op AS o
    UNION ALL SELECT n.capture_id FROM main.counter AS n
    UNION ALL SELECT m.capture_id FROM main.memory_event AS m
    UNION ALL SELECT s.capture_id FROM main.synchronization AS s
)
SELECT
    c.status, c.events_read, c.events_skipped, c.rows_written,
    (SELECT count(*) FROM gave AS g WHERE g.capture_id = c.capture_id) AS rows,
    (SELECT coalesce(sum(i.skipped), 0) FROM main.ingest_issue AS i WHERE i.capture_id = c.capture_id) AS skipped,
    (SELECT count(*) FROM main.ingest_issue AS i WHERE i.capture_id = c.capture_id AND i.severity = 'warning') AS warned
FROM main.capture AS c
ORDER BY c.capture_id
"""


def judged(files: Sequence[Path], way: Way, counted: int | None) -> tuple[str, list[str]]:
    """Ingest one capture in one way; return its state, and what is wrong with its account or with how it was refused.

    ``counted``: how many events another reader counts; None where it cannot read them all.
    """
    folder = files[0].parent if files[0].suffix != ".parquet" else files[0].parent.parent
    before = set(folder.rglob("*"))
    with way.taken():
        outcomes = ingest(*files, db=folder / DATABASE)
    if not outcomes:
        return "not claimed", [*_left(folder, before)]
    if len(outcomes) != 1:
        return "several", [f"account: {len(outcomes)} outcomes of one capture"]
    (outcome,) = outcomes
    if outcome.error is not None:
        wrong = [f"account: refused in raw words: {outcome.error}"] if RAW_WORDS.search(outcome.error) else []
        wrong += [] if outcome.error.strip() else ["account: refused without a reason"]
        wrong += [f"account: refused, and {len(outcome.loaded)} captures loaded"] if outcome.loaded else []
        return "refused", [*wrong, *_left(folder, before)]
    with duckdb.connect(str(folder / DATABASE), read_only=True) as connection:
        captures = connection.execute(ACCOUNT).fetchall()
    (folder / DATABASE).unlink()
    return "+".join(sorted({row[0] for row in captures})), [*_unbalanced(captures, counted), *_left(folder, before)]


def _unbalanced(captures: Sequence[tuple[Any, ...]], counted: int | None) -> Iterator[str]:
    """Tell where the account of a database does not add up, or differs from the count."""
    if not captures:
        yield "account: loaded, and no capture in the database"
    for status, read, skipped, written, rows, issues, _ in captures:
        if (read, skipped, written) != (rows + issues, issues, rows):
            said = f"{read} events read, {skipped} skipped, {written} written"
            yield f"account: {status}: {said}; the database has {rows} rows, its issues {issues} skipped"
    read, warnings = sum(row[1] for row in captures), sum(row[-1] for row in captures)
    if counted is None:
        if not warnings:
            yield f"account: {read} events read without a warning, and another reader cannot read them all"
    elif read != counted:
        yield f"account: {read} events read, {warnings} warnings, another reader counts {counted}"


def _left(folder: Path, before: set[Path]) -> Iterator[str]:
    """Tell what lies in the folder that was not there before."""
    for path in sorted(set(folder.rglob("*")) - before):
        yield f"account: {path.relative_to(folder)} is left"


def is_of_events(table: str, columns: Iterable[str]) -> bool:
    """Whether rows of a table are events, which the account has to have."""
    if table.startswith(NO_EVENTS):
        return False
    return table.startswith("CUPTI_ACTIVITY_KIND_") or table == "NVTX_EVENTS" or not TIMES.isdisjoint(columns)


def in_sqlite(path: Path) -> int | None:
    """Count the events of an export with Python's sqlite3: rows by the order of pages, the same row met twice once.

    None where some of them cannot be read.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            connection.text_factory = bytes
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return sum(_rows(connection, name.decode()) for name in names)
    except (sqlite3.Error, UnicodeDecodeError):
        return None


def _rows(connection: sqlite3.Connection, table: str) -> int:
    name = '"' + table.replace('"', '""') + '"'
    columns = [row[1].decode(errors="replace") for row in connection.execute(f"PRAGMA table_info({name})")]
    if not is_of_events(table, columns):
        return 0
    try:
        return len(set(connection.execute(f"SELECT +rowid, * FROM {name} NOT INDEXED")))
    except sqlite3.OperationalError as error:
        if "no such column" not in str(error):
            raise
        return len(connection.execute(f"SELECT * FROM {name}").fetchall())


def in_parquet(files: Sequence[Path]) -> int | None:
    """Count the events of an export by the footers of its files; None where one cannot be read."""
    try:
        found = {path.name.removesuffix(".parquet"): pq.ParquetFile(path) for path in files}
        return sum(
            int(file.metadata.num_rows) for table, file in found.items() if is_of_events(table, file.schema_arrow.names)
        )
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None
