"""Copy the rows of an attached database, with new numbers for its captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from tracedb.storage.connection import identifier

OTHER = "merged"
"""Alias of the input while it is attached."""
BATCH = "merged_capture"
"""Temporary table of the input's captures and their numbers in the target."""


def shared_columns(here: Sequence[str], there: Sequence[str]) -> str:
    """Return the columns that both tables have, as SQL."""
    return ", ".join(identifier(name) for name in here if name in there)


def number_captures(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill ``temp.merged_capture``: each capture of the input with its number in the target, new or known.

    The digest and the part of its file tell whether it is known; where it has no digest, its path and time of ingest.
    """
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE {BATCH} AS
        WITH found AS (
            SELECT o.capture_id, min(c.capture_id) AS known_id
            FROM {OTHER}.main.capture AS o
            LEFT JOIN main.capture AS c ON c.part = o.part AND CASE
                WHEN o.sha256 IS NULL THEN c.sha256 IS NULL AND c.path = o.path AND c.ingested_at = o.ingested_at
                ELSE c.sha256 = o.sha256 END
            GROUP BY o.capture_id
        )
        SELECT
            f.capture_id,
            coalesce(f.known_id, (SELECT coalesce(max(c.capture_id), 0) FROM main.capture AS c)
                + count(*) FILTER (f.known_id IS NULL) OVER (ORDER BY f.capture_id))::INTEGER AS new_id,
            f.known_id IS NOT NULL AS is_known
        FROM found AS f"""
    )


def number_replays(connection: duckdb.DuckDBPyConnection) -> None:
    """Set the variable ``merged_replays`` to the highest number of a replay in the target."""
    connection.execute(
        "SET VARIABLE merged_replays = (SELECT coalesce(max(r.replay_id), 0)::INTEGER FROM main.replay_run AS r)"
    )


def copy_rows(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    here: Sequence[str],
    there: Sequence[str],
    labels: Mapping[str, str],
) -> int:
    """Copy the rows of a table and return their number; those about no capture only if they are not there yet."""
    columns = [name for name in here if name in there]
    listed = shared_columns(here, there)
    if "capture_id" not in columns:
        new = f"SELECT {listed} FROM {OTHER}.main.{table} EXCEPT SELECT {listed} FROM main.{table}"
        return _inserted(connection, table, listed, new)
    given = "map_concat(o.labels, map(?::VARCHAR[], ?::VARCHAR[]))" if table == "capture" and labels else "o.labels"
    taken = {name: f"o.{identifier(name)}" for name in columns} | {"capture_id": "n.new_id"}
    if "replay_id" in taken:
        taken["replay_id"] = "o.replay_id + getvariable('merged_replays')"
    if "labels" in taken and table == "capture":
        taken["labels"] = given
    new = f"""SELECT {", ".join(taken.values())} FROM {OTHER}.main.{table} AS o
              INNER JOIN temp.{BATCH} AS n ON n.capture_id = o.capture_id AND NOT n.is_known"""
    rows = _inserted(connection, table, listed, new, [list(labels), list(labels.values())] if "?" in new else [])
    if table != "capture":
        general = f"SELECT {listed} FROM {{}}main.{table} WHERE capture_id IS NULL"
        rows += _inserted(connection, table, listed, f"{general.format(OTHER + '.')} EXCEPT {general.format('')}")
    return rows


def _inserted(
    connection: duckdb.DuckDBPyConnection, table: str, listed: str, query: str, values: Sequence[object] = ()
) -> int:
    done = connection.execute(f"INSERT INTO main.{table} ({listed}) {query}", list(values)).fetchone()
    return int(done[0]) if done else 0
