"""The outcome of every shape of a sweep: the table main.sample_status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tracedb.errors import EmptyDatabase
from tracedb.pipeline import writable_database
from tracedb.pipeline.task import MEMORY_LIMIT
from tracedb.sampling.recording import Outcome
from tracedb.sampling.sweep import Shape
from tracedb.storage.connection import open_read_only, transaction, workbench


@dataclass(frozen=True)
class Series:
    """Samples that belong together: one operator with one element type on one device, in one regime."""

    operator: str
    dtype: str
    device: str
    regime: str | None = None
    """steady or rested; None for collectives."""


def known(database: Path, series: Series) -> dict[tuple[tuple[str, int], ...], str]:
    """Return shape → latest status, for the shapes of a series in the database."""
    if not database.exists():
        return {}
    try:
        with open_read_only(database) as connection:
            rows = connection.execute(
                """SELECT s.shape, arg_max(s.status, s.sampled_at) FROM main.sample_status AS s
                WHERE s.operator = ? AND s.dtype = ? AND s.device = ? AND s.regime IS NOT DISTINCT FROM ?
                GROUP BY s.shape""",
                [series.operator, series.dtype, series.device, series.regime],
            ).fetchall()
    except EmptyDatabase:
        return {}
    return {key(shape): status for shape, status in rows}


def key(shape: Shape) -> tuple[tuple[str, int], ...]:
    """Return a shape as a key that does not depend on the order of its parameters."""
    return tuple(sorted(shape.items()))


def write(database: Path, series: Series, outcomes: Sequence[Outcome], capture_id: int | None) -> None:
    """Add a row for each shape; creates the database if there is none."""
    with (
        workbench(MEMORY_LIMIT, 1, database) as connection,
        writable_database.opened(connection, database),
        transaction(connection),
    ):
        writable_database.prepare(connection, database)
        for outcome in outcomes:
            _insert(connection, series, outcome, capture_id if outcome.status == "sampled" else None)


def _insert(connection: duckdb.DuckDBPyConnection, series: Series, outcome: Outcome, capture_id: int | None) -> None:
    connection.execute(
        """INSERT INTO main.sample_status
        VALUES ($capture, $operator, $dtype, $device, map($names::VARCHAR[], $values::BIGINT[]), $status, $detail,
            current_timestamp::TIMESTAMP, $regime)""",
        {
            "operator": series.operator,
            "dtype": series.dtype,
            "device": series.device,
            "names": list(outcome.shape),
            "values": list(outcome.shape.values()),
            "status": outcome.status,
            "detail": outcome.detail,
            "capture": capture_id,
            "regime": series.regime,
        },
    )
