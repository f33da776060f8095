"""Completing a database: views brought up to date, facts over several captures worked out, the log moved into it.

Every command that writes ends with this, and so does an ingest that finds nothing new: what a killed process, a full
disk or a busy database left undone is done by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tracedb.derive import clock_alignment, time_faults
from tracedb.errors import EmptyDatabase
from tracedb.pipeline.preparation import prepare
from tracedb.pipeline.task import MEMORY_LIMIT, Outcome, Request
from tracedb.storage import pending_facts, views
from tracedb.storage.connection import attached, open_read_only, transaction, workbench
from tracedb.storage.database_file import log_of, size_of

WORK: dict[str, Callable[[Path], None]] = {
    pending_facts.CLOCK_ALIGNMENT: lambda database: clock_alignment.align_file(database, if_owed=True)
}
"""Fact → what works it out for a database, where it is owed, and settles it."""


def after(request: Request, outcomes: Sequence[Outcome]) -> None:
    """Work out what concerns several captures, after all are loaded; if none was, what an earlier ingest left undone.

    Raises ``DatabaseBusy``, and ``TracedbError`` where the database cannot be written.
    """
    loaded = [item.capture_id for outcome in outcomes for item in outcome.loaded]
    if loaded == [1] and request.first_capture_id == 1:
        return  # the only capture of a file has no other clock to be aligned with
    if loaded:
        complete(request.database)
    elif request.database.exists():
        repair(request.database)


def complete(database: Path) -> None:
    """Work out every fact that is owed. Raises ``DatabaseBusy`` and ``TracedbError``; what is committed stays."""
    for work in WORK.values():
        work(database)


def repair(database: Path) -> None:
    """Complete a database into which nothing new was loaded; it is only looked at where nothing is missing.

    Raises ``DatabaseBusy`` and ``TracedbError``.
    """
    try:
        with open_read_only(database) as connection:
            is_outdated = bool(views.outdated(connection)) or time_faults.are_changed(connection)
            is_owing = not WORK.keys().isdisjoint(pending_facts.owed(connection))
    except EmptyDatabase:
        return
    if is_outdated or size_of(log_of(database)):  # something committed lies in the log, not in the file
        with (
            workbench(MEMORY_LIMIT, 1, database) as connection,
            attached(connection, database),
            transaction(connection),
        ):
            prepare(connection, database)
    if is_owing or is_outdated:  # times judged anew owe an alignment
        complete(database)
