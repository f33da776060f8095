"""Complete a database: update views, derive facts across captures, and move the log into the file.

Every command that writes ends with this, as does an ingest that finds nothing new: so the next command finishes what a
killed process, a full disk or a busy database left undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tracedb.derive import clock_alignment, graph_links, time_faults
from tracedb.errors import EmptyDatabase
from tracedb.pipeline.task import MEMORY_LIMIT, Outcome, Request
from tracedb.pipeline.writable_database import prepare
from tracedb.storage import pending_facts, views
from tracedb.storage.connection import attached, open_read_only, transaction, workbench
from tracedb.storage.database_file import log_of, size_of

WORK: dict[str, Callable[[Path], None]] = {
    pending_facts.CLOCK_ALIGNMENT: lambda database: clock_alignment.align_file(database, if_owed=True),
    pending_facts.GRAPH_LINKS: lambda database: graph_links.link_file(database, if_owed=True),
}
"""Fact → the function that derives it for a database if it is pending, and marks it done."""


def after(request: Request, outcomes: Sequence[Outcome]) -> None:
    """Derive facts across captures after all are loaded; if none was, finish what an earlier ingest left undone.

    Raises ``DatabaseBusy``, and ``TracedbError`` if the database cannot be written.
    """
    loaded = [item.capture_id for outcome in outcomes for item in outcome.loaded]
    has_graphs = any(item.has_graphs for outcome in outcomes for item in outcome.loaded)
    if loaded == [1] and request.first_capture_id == 1 and not has_graphs:
        return  # a single capture has no other clock to be aligned with
    if loaded:
        complete(request.database, WORK if has_graphs else [pending_facts.CLOCK_ALIGNMENT])
    elif request.database.exists():
        repair(request.database)


def complete(database: Path, facts: Iterable[str] = tuple(WORK)) -> None:
    """Derive pending facts. Raises ``DatabaseBusy`` and ``TracedbError``; committed captures stay."""
    for fact in facts:
        WORK[fact](database)


def repair(database: Path) -> None:
    """Complete a database into which nothing new was loaded; it is opened for reading only if nothing is pending.

    Raises ``DatabaseBusy`` and ``TracedbError``.
    """
    try:
        with open_read_only(database) as connection:
            is_outdated = bool(views.outdated(connection)) or time_faults.are_changed(connection)
            is_owing = not WORK.keys().isdisjoint(pending_facts.owed(connection))
    except EmptyDatabase:
        return
    if is_outdated or size_of(log_of(database)):  # committed data is still in the log, not in the file
        with (
            workbench(MEMORY_LIMIT, 1, database) as connection,
            attached(connection, database),
            transaction(connection),
        ):
            prepare(connection, database)
    if is_owing or is_outdated:  # rejudged times require a new alignment
        complete(database)
