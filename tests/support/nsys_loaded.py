"""Sample exports of nsys; loads such files, and asks the database that comes of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb

from support.loading import opened
from support.nsys_files import Nsys, process, thread
from tracedb.pipeline import run as pipeline


class Loaded:
    """A database that one call of ingest made."""

    def __init__(self, *paths: Path, db: Path) -> None:
        self.outcomes = pipeline.ingest(*paths, db=db)
        self.errors = [outcome.error for outcome in self.outcomes if outcome.error is not None]
        self.db = db

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Open the database for questions of the test's own."""
        return duckdb.connect(str(self.db), read_only=True)

    def rows(self, table: str, *columns: str, order: str = "ALL") -> list[Any]:
        """Rows of a table, of one column as bare values."""
        with opened(self.db) as connection:
            found = connection.execute(f"SELECT {', '.join(columns)} FROM main.{table} ORDER BY {order}").fetchall()
        return [row[0] for row in found] if len(columns) == 1 else found

    def one(self, table: str, *columns: str) -> Any:
        """The only row of a table."""
        (row,) = self.rows(table, *columns)
        return row

    @property
    def issues(self) -> dict[str, int]:
        """Counts by code, summed over captures."""
        return dict(self.rows("ingest_issue GROUP BY code", "code", "sum(count)::BIGINT"))

    @property
    def error(self) -> str:
        (error,) = self.errors
        assert error is not None and "\n" not in error
        return error

    def held(self, rule: str = "thread") -> list[tuple[str, int]]:
        """Names of ranges with the starts of the GPU events in them, those of inner ranges included."""
        with opened(self.db) as connection:
            return connection.execute(
                """
                WITH RECURSIVE held AS (
                    SELECT capture_id, annotation_id, event_id FROM main.annotation_kernel WHERE rule = $rule
                    UNION
                    SELECT h.capture_id, a.parent_id, h.event_id FROM held AS h
                    INNER JOIN main.annotation AS a USING (capture_id, annotation_id)
                    WHERE a.parent_id IS NOT NULL
                )
                SELECT a.name, k.start_ns FROM held
                INNER JOIN main.annotation AS a USING (capture_id, annotation_id)
                INNER JOIN main.kernel_event AS k USING (capture_id, event_id)
                ORDER BY ALL
                """,
                {"rule": rule},
            ).fetchall()


def load(folder: Path, export: Nsys, name: str = "report.sqlite") -> Loaded:
    """Write an export into the folder and load it."""
    return Loaded(export.sqlite(folder / name), db=folder / "run.duckdb")


def step(era: str = "2025.3") -> Nsys:
    """One step: a range around two launches, a copy, a memset and waits."""
    made = Nsys(era)
    made.domain(1, "NCCL")
    made.range(100, 500, "forward")
    made.range(150, 300, "ncclAllReduce", domain=1)
    made.launch(200, 1000, 1100, "ncclDevKernel_AllReduce")
    made.launch(400, 1200, 1500)
    copied = made.call(600, 620, "cudaMemcpyAsync_v3020")
    made.copy(1600, 1700, correlation=None, correlationId=copied)
    made.add(
        "MEMSET", start=1800, end=1810, deviceId=0, contextId=1, streamId=7, globalPid=process(), bytes=64, value=0
    )
    made.add(
        "SYNCHRONIZATION", start=100, end=9000, deviceId=0, contextId=1, streamId=7, globalPid=process(), syncType=3
    )
    made.add("OSRT_API", start=1, end=2, globalTid=thread(), nameId=made.string("poll"))
    return made


def many(count: int) -> Nsys:
    made = Nsys()
    for number in range(count):
        made.kernel(number * 10, number * 10 + 5, f"k{number % 7}", correlation=number + 1)
    return made


def change(path: Path, *statements: str) -> Path:
    """Run statements on an export."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path
