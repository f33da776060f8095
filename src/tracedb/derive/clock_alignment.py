"""Align the clocks of ranks and hosts at the end of an ingest: fills ``main.clock_alignment``.

The statements are ``sql/derive/clock_*.sql``; these functions only run them. Alignment involves several captures, so it
is computed after all captures of a call are loaded, and for the whole file: its input is small.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from tracedb.derive import across_captures
from tracedb.storage import pending_facts, resources, statements

_TABLES = ("clock_end", "clock_difference", "clock_slope", "clock_link", "clock_found")
MEMORY_LIMIT = "2GB"
"""Only collectives are matched: 48 captures take 0.15 GB. A load's own limit is meant for one capture at a time."""


def align_file(database: Path, memory_limit: str = MEMORY_LIMIT, if_owed: bool = False) -> None:
    """Fill the table of a database; ``if_owed``: unless nothing was loaded since it was last done, by any process.

    Raises ``DatabaseBusy`` while another process holds the database, ``TracedbError`` if memory runs out; the table is
    unchanged in both cases.
    """
    across_captures.derive(
        database,
        pending_facts.CLOCK_ALIGNMENT,
        align,
        memory_limit,
        if_owed,
        f"matching their collectives to align clocks takes more than {memory_limit}; load them into several files, by "
        "configuration",
    )


def align(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the table of the current catalog, and mark it done. Call inside a transaction."""
    pending_facts.settle(connection, pending_facts.CLOCK_ALIGNMENT)
    connection.execute("DELETE FROM main.clock_alignment")
    ((sets,),) = connection.execute(
        """SELECT count(*) FROM (
               SELECT s.set_id FROM v1._capture_set AS s GROUP BY s.set_id HAVING count(*) > 1)"""
    ).fetchall()
    if not sets:
        return
    _run(connection, "clock_ends")
    if _has_messages(connection):
        _run(connection, "clock_messages")
    _run(connection, "clock_links")
    while _run(connection, "clock_reference"):
        while _run(connection, "clock_propagate"):
            pass
    connection.execute(
        """INSERT INTO main.clock_alignment BY NAME
           SELECT f.capture_id, f.reference_capture_id, f.at_ns, f.offset_ns,
               1e6 * CASE WHEN f.applied_drift <> 0 THEN f.applied_drift ELSE f.drift END AS drift_ppm,
               f.applied_drift <> 0 AS uses_drift, f.calls, f.span_ns, f.residual_median_ns, f.residual_p99_ns
           FROM clock_found AS f ORDER BY f.capture_id"""
    )
    for table in _TABLES:
        connection.execute(f"DROP TABLE temp.{table}")


def _has_messages(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether sends are recorded, so that matching them is worth the time."""
    ((found,),) = connection.execute(
        "SELECT count(*) FROM (FROM main.collective_call AS c WHERE lower(c.collective) = 'send' LIMIT 1)"
    ).fetchall()
    return bool(found)


def _run(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    """Run the statements of ``sql/derive/NAME.sql`` and return the number of rows the last one wrote."""
    return statements.run(connection, resources.text("sql", "derive", f"{name}.sql"))
