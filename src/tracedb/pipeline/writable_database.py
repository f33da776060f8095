"""Open the database for writing, with its tables and views up to date."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from tracedb.derive import time_faults
from tracedb.storage import pending_facts, schema, template_database, views
from tracedb.storage.connection import attached, check_version, is_ours


@contextmanager
def opened(connection: duckdb.DuckDBPyConnection, database: Path) -> Iterator[bool]:
    """Attach a database for writing, creating it if needed. Yields whether it was created.

    Raises what ``template_database.place`` and ``attached`` do.
    """
    is_placed = template_database.place(database)
    with attached(connection, database):
        yield is_placed


def prepare(connection: duckdb.DuckDBPyConnection, database: Path) -> None:
    """Create or update the tables and views of the attached database.

    Facts derived with time bounds other than the current ones are derived again.
    """
    from tracedb import __version__

    if not is_ours(connection):
        schema.apply(connection, __version__)
        views.install(connection)
        return
    check_version(connection, database)
    if views.outdated(connection) or not pending_facts.is_noted(connection):
        added = schema.complete(connection)
        views.install(connection)
        is_new = not added.isdisjoint(("main.time_bound", "main.overlapping_kernel"))
        time_faults.renew(connection, even_if_unchanged=is_new)
        if "main.critical_segment" in added and not is_new:
            from tracedb.derive import critical_segment  # imports numpy

            critical_segment.renew(connection)
        if "main.graph_link" in added:
            captures = connection.execute("SELECT capture_id FROM main.capture ORDER BY capture_id").fetchall()
            pending_facts.owe(connection, pending_facts.GRAPH_LINKS, [capture_id for (capture_id,) in captures])
        return
    time_faults.renew(connection)
