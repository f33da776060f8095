"""A whole ingest: what is known before, and what is worked out at the end. Loading a capture is ``loading.py``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tracedb.errors import EmptyDatabase
from tracedb.pipeline import completion
from tracedb.pipeline.batch import load, together
from tracedb.pipeline.discovery import found_in
from tracedb.pipeline.task import Outcome, Request
from tracedb.storage.connection import open_read_only
from tracedb.storage.database_file import check_writable


def ingest(*paths: str | Path, db: str | Path, label: dict[str, str] | None = None) -> list[Outcome]:
    """Load traces into the database ``db``, one after the other; what ``tracedb ingest`` does, without printing.

    Raises ``UsageError`` for a path that is not there, ``DatabaseBusy`` while another process holds the database. A
    file that cannot be loaded has ``error`` in its outcome.
    """
    request = Request(tuple(Path(path) for path in paths), Path(db), labels=label or {})
    with found_in(request.paths, request.database) as found:
        known, free = known_captures(request.database)
        request = replace(request, first_capture_id=free)
        outcomes = found.failures()
        outcomes += [outcome for tasks in together(found.tasks, 1) for outcome in load(tasks, request, known)]
    finish(request, outcomes)
    return outcomes


def finish(request: Request, outcomes: Sequence[Outcome]) -> None:
    """Work out what concerns several captures, once all are loaded; where none was, what an earlier ingest left undone.

    Raises ``DatabaseBusy``, and ``TracedbError`` where the database cannot be written.
    """
    loaded = [item.capture_id for outcome in outcomes for item in outcome.loaded]
    if loaded == [1] and request.first_capture_id == 1:
        return  # alone in its file, a capture has no clock to be put beside
    if loaded:
        completion.complete(request.database)
    elif request.database.exists():
        completion.repair(request.database)


def known_captures(database: Path) -> tuple[dict[int, set[str]], int]:
    """Return the digests already loaded by size in bytes, and the first free capture number.

    Raises ``TracedbError`` where there is no database and none can be made.
    """
    if not database.exists():
        check_writable(database)
        return {}, 1
    try:
        with open_read_only(database) as connection:
            rows = connection.execute("SELECT size_bytes, sha256 FROM main.capture WHERE sha256 IS NOT NULL").fetchall()
            free = connection.execute("SELECT coalesce(max(capture_id), 0) + 1 FROM main.capture").fetchone()
    except EmptyDatabase:
        return {}, 1
    known: dict[int, set[str]] = {}
    for size, digest in rows:
        known.setdefault(size, set()).add(digest)
    return known, free[0] if free else 1
