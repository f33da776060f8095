"""A whole ingest, in order: discover files, load every capture, complete the database.

Both the command line and ``tracedb.ingest`` use this. DuckDB and Arrow are imported while a large trace is already
being read, so this module must not import them at its top.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tracedb.errors import TracedbError
from tracedb.pipeline.discovery import found_in
from tracedb.pipeline.early_read import begin
from tracedb.pipeline.task import Found, Outcome, Request
from tracedb.storage.heeded_interrupt import heeded

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Result:
    """The outcome of every file, and why the work across captures failed, if it did."""

    outcomes: list[Outcome]
    """In path order."""
    unfinished: TracedbError | None


def ingest(
    *paths: str | Path,
    db: str | Path = "trace.duckdb",
    label: dict[str, str] | None = None,
    labels_from: str | None = None,
    jobs: int | None = 1,
    memory_limit: str | None = None,
    ingester: str | None = None,
    stacks: bool = True,
    memory_events: bool = True,
    lake: str | Path | None = None,
    progress: Progress = lambda done: None,
) -> list[Outcome]:
    """Load traces into the database ``db``, or into ``lake``: like ``tracedb ingest``, without printing.

    ``jobs``: number of files read at once, each by its own process if more than one; None for the number of cores.
    ``labels_from``, ``memory_limit`` (such as ``500MB``), ``ingester`` and the two switches are the options of these
    names; ``progress`` is called with the number of bytes newly read. Returns an outcome for each capture file, in
    path order; if a file cannot be loaded, its outcome has ``error``.

    Raises ``UsageError`` for a path that does not exist or an invalid option, ``DatabaseBusy`` while another process
    holds the database, and ``TracedbError`` if the database cannot be written.
    """
    request = Request(
        tuple(Path(path) for path in paths),
        Path(db),
        labels=label or {},
        labels_from=labels_from,
        memory_limit=memory_limit,
        ingester=ingester,
        stacks=stacks,
        memory_events=memory_events,
        lake=None if lake is None else Path(lake),
    )
    with heeded(), found_in(request.paths, request.beside, request.ingester) as found:
        result = load_found(found, request, jobs, progress)
    if result.unfinished is not None:
        raise result.unfinished
    return result.outcomes


def load_found(found: Found, request: Request, jobs: int | None, progress: Progress) -> Result:
    """Load the captures found, ``jobs`` files at once (None: number of cores), and complete the database.

    Raises ``DatabaseBusy`` and ``TracedbError`` if nothing could be loaded because of the database.
    """
    outcomes = found.failures()
    unfinished: TracedbError | None = None
    if request.lake is not None:
        from tracedb.pipeline import lake_load

        return Result(*lake_load.load_found(found, request, jobs, progress))
    if found.databases:
        from tracedb.pipeline.database_load import load_databases

        added, unfinished = load_databases(found.databases, request, progress)
        outcomes += added
    if found.tasks:
        cores = os.cpu_count() or 1
        workers = min(jobs or cores, len(found.tasks))
        for_each = max(cores // workers, 1) if jobs is None else 1 if workers > 1 else cores
        loaded, unfinished = _load(found, replace(request, cores=for_each), workers, progress)
        outcomes += loaded
    outcomes.sort(key=lambda outcome: str(outcome.path))
    return Result(outcomes, unfinished)


def _load(
    found: Found, request: Request, workers: int, progress: Progress
) -> tuple[list[Outcome], TracedbError | None]:
    largest = max(found.tasks, key=lambda task: task.size_bytes)  # loaded first
    begun = begin(largest, request, progress) if workers == 1 else None
    try:
        from tracedb.pipeline import after_load, duplicates, known_captures
        from tracedb.pipeline.batch_load import load_one_by_one

        known, free = known_captures.in_database(request.database)
        request = replace(request, first_capture_id=free)
        outcomes: list[Outcome] = []
        tasks = duplicates.first_of_each(found.tasks)
        if workers == 1 or len(tasks) == 1:
            load_one_by_one(tasks, request, known, progress, outcomes.append, begun)
        else:
            from tracedb.pipeline.worker_pool import load_by_workers

            load_by_workers(tasks, request, known, workers, progress, outcomes.append)
        outcomes += duplicates.outcomes_of(tasks, outcomes)
    finally:
        if begun is not None:
            begun.close()
    try:
        duplicates.look_up(request, outcomes)
        after_load.after(request, outcomes)
    except TracedbError as error:
        return outcomes, error  # loaded captures stay, and are reported first
    return outcomes, None
