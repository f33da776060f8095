"""Store answers of ``tracedb whatif`` in the table ``whatif``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tracedb.output import Answer
from tracedb.pipeline import writable_database
from tracedb.pipeline.task import MEMORY_LIMIT
from tracedb.storage.connection import attached, transaction, workbench

COLUMNS = (
    *("capture_id", "span", "scenario", "changes", "ranks", "rank", "steps", "measured_ns", "predicted_ns"),
    *("gain_percent", "bound_by", "limit_ns", "limit_percent"),
)


def write(database: Path, found: Answer, rows: Sequence[Sequence[object]]) -> None:
    """Store rows of an answer; those of the same recording, span and scenario are replaced."""
    places = [[column.name for column in found.columns].index(name) for name in COLUMNS]
    values = [[row[place] for place in places] for row in rows]
    with (
        workbench(MEMORY_LIMIT, 1, database) as connection,
        attached(connection, database),
        transaction(connection),
    ):
        writable_database.prepare(connection, database)
        connection.executemany(
            "DELETE FROM main.whatif WHERE capture_id = ? AND span = ? AND scenario = ?", [row[:3] for row in values]
        )
        connection.executemany(
            f"""INSERT INTO main.whatif ({", ".join(COLUMNS)}, predicted_at)
                VALUES ({", ".join("?" for _ in COLUMNS)}, current_timestamp::TIMESTAMP)""",
            values,
        )
