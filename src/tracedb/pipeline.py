"""From paths to tasks: discover files, detect captures. Loading them is ``loading.py``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tracedb import clocks, ingester, views
from tracedb.database import attached, open_read_only, transaction, workbench
from tracedb.errors import DatabaseBusy, UsageError
from tracedb.loading import load, prepare
from tracedb.tasks import Found, Outcome, Request, Task

NO_BYTES = "0 bytes"


def ingest(*paths: str | Path, db: str | Path, label: dict[str, str] | None = None) -> list[Outcome]:
    """Load traces into the database ``db``, one after the other; what ``tracedb ingest`` does, without printing.

    Raises ``UsageError`` for a path that is not there, ``DatabaseBusy`` while another process holds the database. A
    file that cannot be loaded has ``error`` in its outcome.
    """
    request = Request(tuple(Path(path) for path in paths), Path(db), labels=label or {})
    found = detect(discover(request.paths))
    known, free = known_captures(request.database)
    request = replace(request, first_capture_id=free)
    outcomes = [load(task, request, known) for task in found.tasks]
    finish(request, outcomes)
    return outcomes


def finish(request: Request, outcomes: Sequence[Outcome]) -> None:
    """Work out what concerns several captures, once all are loaded; where none was, only bring the views up to date.

    Raises ``DatabaseBusy``, and ``TracedbError`` where the database cannot be written.
    """
    if any(outcome.loaded for outcome in outcomes):
        clocks.align_file(request.database)
    elif any(outcome.is_known for outcome in outcomes):
        with suppress(DatabaseBusy):  # nothing was to be written, so nobody need be asked to leave
            _renew_views(request)


def _renew_views(request: Request) -> None:
    """Install the views of this tracedb where the file has another's."""
    with open_read_only(request.database) as connection:
        if not views.outdated(connection):
            return
    with (
        workbench(clocks.MEMORY_LIMIT, 1, request.database) as connection,
        attached(connection, request.database, wait_seconds=0),
        transaction(connection),
    ):
        prepare(connection, request.database)


def discover(paths: Sequence[Path]) -> list[Path]:
    """Return the files at and below ``paths``, sorted. Raises ``UsageError`` for a path that is not there."""
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            files.update(dict.fromkeys(_below(path)))
        elif path.exists():
            files[path] = None
        else:
            raise UsageError(f"{path}: no such file or folder")
    return list(files)


def _below(top: Path) -> Iterator[Path]:
    """Yield the files of a folder and of all below, also where a link leads to one; each folder once."""
    seen: set[tuple[int, int]] = set()
    for folder, names, below in os.walk(top, followlinks=True):
        identity = Path(folder).stat()
        if (identity.st_dev, identity.st_ino) in seen:
            names.clear()
            continue
        seen.add((identity.st_dev, identity.st_ino))
        names.sort()
        for name in sorted(below):
            yield Path(folder) / name


def detect(files: Sequence[Path], only: str | None = None) -> Found:
    """Ask the ingesters which files they recognise.

    Raises ``UsageError`` where two claim one file, or where ``only`` names no ingester.
    """
    claims: dict[Path, str] = {}
    tasks: list[Task] = []
    sizes = {path: size for path in files if (size := _size(path)) is not None}
    for registered, source in ingester.load(only):
        for capture in source.find(list(sizes)):
            for path in (*capture.files, *capture.duplicates):
                if path in claims:
                    raise UsageError(
                        f"{path}: both {claims[path]} and {registered.name} recognise it; choose with --ingester NAME"
                    )
                claims[path] = registered.name
            size = sum(sizes[path] for path in capture.files)
            tasks.append(Task(capture, registered.name, size))
    tasks.sort(key=lambda task: str(task.capture.files[0]))
    tasks = [replace(task, number=number, total=len(tasks)) for number, task in enumerate(tasks)]
    return Found(tasks, [(path, _why_not(path)) for path in files if path not in claims])


def _size(path: Path) -> int | None:
    """Return the size of a regular file, which may be 0; None for anything else."""
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


def _why_not(path: Path) -> str:
    if not path.is_file():
        return "not a regular file"
    try:
        with path.open("rb") as file:
            return "no ingester recognises its content" if file.read(1) else NO_BYTES
    except OSError as error:
        return error.strerror or "unreadable"


def known_captures(database: Path) -> tuple[dict[int, set[str]], int]:
    """Return the digests already loaded by size in bytes, and the first free capture number."""
    if not database.exists():
        return {}, 1
    with open_read_only(database) as connection:
        rows = connection.execute("SELECT size_bytes, sha256 FROM main.capture WHERE sha256 IS NOT NULL").fetchall()
        free = connection.execute("SELECT coalesce(max(capture_id), 0) + 1 FROM main.capture").fetchone()
    known: dict[int, set[str]] = {}
    for size, digest in rows:
        known.setdefault(size, set()).add(digest)
    return known, free[0] if free else 1
