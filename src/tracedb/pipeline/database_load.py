"""Add tracedb databases to the database of an ingest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tracedb.errors import DatabaseBusy, TracedbError
from tracedb.pipeline import after_load, capture_edit, merge
from tracedb.pipeline.task import Outcome, Request
from tracedb.storage.database_file import size_of


def load_databases(
    databases: Sequence[tuple[Path, Path]], request: Request, progress: Callable[[int], None]
) -> tuple[list[Outcome], TracedbError | None]:
    """Copy the captures of databases, each in one transaction, and complete the target.

    ``databases``: where each is, and the path shown to users. Returns an outcome for each, and why the work across
    captures failed, if it did. Raises ``DatabaseBusy`` while another process holds the target.
    """
    outcomes = []
    for path, told in databases:
        outcome = Outcome(told, size_of(path))
        try:
            added = merge.add(path, request.database, request.labels, request.memory_limit)
        except DatabaseBusy:
            raise
        except TracedbError as error:
            outcome.error = str(error).removeprefix(f"{path}: ")
        else:
            outcome.loaded = [item.loaded for item in added.captures if not item.is_known]
            outcome.is_known = not outcome.loaded
            known = [item.loaded.capture_id for item in added.captures if item.is_known]
            if known and request.labels:
                capture_edit.label_known(request.database, known, request.labels)
            outcome.notes = merge.differing_settings(added)
        progress(outcome.size_bytes)
        outcomes.append(outcome)
    try:
        if not all(outcome.error for outcome in outcomes):
            after_load.complete(request.database)
    except TracedbError as error:
        return outcomes, error
    return outcomes, None
