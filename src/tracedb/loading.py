"""Captures into the database, which is opened for as short as can be."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

import duckdb

from tracedb import blank, ingester, schema, timefaults, views
from tracedb.database import ALIAS, attach, attached, check_version, in_memory, is_ours, workbench
from tracedb.errors import DatabaseBusy, TracedbError
from tracedb.ingester import Begun, Ingester, Registered
from tracedb.job import Job, Progress
from tracedb.known import Known
from tracedb.tasks import MEMORY_LIMIT, Outcome, Request, Task

READ_SECONDS = 2.0
"""After so long what was read is written: it lies in memory, and is large where reading it took long."""
SMALL_BYTES = 2 << 20
MOST_TOGETHER = 32

Turn = Callable[[], AbstractContextManager[None]]


def together(tasks: Sequence[Task], jobs: int) -> list[list[Task]]:
    """Return the tasks in groups that are loaded in one go, small ones of a source together; the longest come first."""
    groups: list[list[Task]] = [[task] for task in tasks if task.size_bytes > SMALL_BYTES]
    groups.sort(key=lambda group: -group[0].size_bytes)
    by_source: dict[str, list[Task]] = {}
    for task in tasks:
        if task.size_bytes <= SMALL_BYTES:
            by_source.setdefault(task.source, []).append(task)
    for small in by_source.values():
        each = min(MOST_TOGETHER, -(-len(small) // (2 * jobs)))
        groups += [small[first : first + each] for first in range(0, len(small), each)]
    return groups


def load(
    tasks: Sequence[Task],
    request: Request,
    known: dict[int, set[str]],
    progress: Progress = lambda done: None,
    turn: Turn = nullcontext,
    begun: Begun | None = None,
) -> list[Outcome]:
    """Load captures of one source, each in one transaction; the database is locked only while rows are written.

    Opening and closing it takes longer than loading a small capture, so that is done once for as many as are read in
    ``READ_SECONDS``. ``turn`` is entered before it is opened and left after it is closed. ``begun``: what reads the
    first capture already. A fault of a file is in its outcome, and leaves the database as it was. Raises
    ``DatabaseBusy``, ``KeyboardInterrupt`` and errors of our own.
    """
    jobs = [Job(task, request, progress, begun if place == 0 else None) for place, task in enumerate(tasks)]
    waiting = deque(job for job in jobs if not job.is_settled(known))
    source = next(pair for pair in ingester.load(tasks[0].source))
    while waiting:
        _load_some(waiting, source, turn)
    for job in jobs:
        if job.is_to_repeat:
            job.repeat()
            _load_some(deque([job]), source, turn)
    return [job.outcome for job in jobs]


def _load_some(waiting: deque[Job], source: tuple[Registered, Ingester], turn: Turn) -> None:
    """Take jobs, at least one, for as long as reading them may last, and write what they gave."""
    request = waiting[0].request
    wanted = source[1].memory_limit if isinstance(source[1], ingester.Weighed) else MEMORY_LIMIT
    taken: list[Job] = []
    ends = time.monotonic() + READ_SECONDS
    with ExitStack() as stack:
        try:
            bench = stack.enter_context(workbench(request.memory_limit or wanted, request.cores, request.database))
        except (TracedbError, OSError, duckdb.Error) as error:  # the folder cannot be written
            waiting.popleft().fail(error)
            return
        try:
            while waiting and (not taken or time.monotonic() < ends):
                taken.append(waiting.popleft())
                taken[-1].read(source, bench)
                if taken[-1].broke_engine:
                    _repeat(taken[:-1])
                    return
            ready = [job for job in taken if job.is_ready]
            if ready:
                with turn():
                    _write(ready, bench, request.database)
        finally:
            for job in taken:
                job.close()


def _write(jobs: Sequence[Job], bench: duckdb.DuckDBPyConnection, database: Path) -> None:
    existed = database.exists()
    try:
        is_copy = not existed and blank.place(database)
        with attached(bench, database):
            _write_attached(jobs, database, is_copy)
    except DatabaseBusy:
        raise
    except (TracedbError, OSError, duckdb.Error) as error:
        for job in jobs:
            if job.outcome.error is None:
                job.fail(error)
    finally:
        if not existed and not any(job.outcome.loaded for job in jobs):
            _remove_if_empty(database)


def _write_attached(jobs: Sequence[Job], database: Path, is_copy: bool) -> None:
    """Write; the tables and views come with the first capture that is written."""
    known: Known | None = None

    def make_ready(connection: duckdb.DuckDBPyConnection) -> Known:
        if known is not None:
            return known
        prepare(connection, database)
        if is_copy:
            blank.mark_new(connection)
        return Known(connection)

    for place, job in enumerate(jobs):
        known = job.write(make_ready) or known
        job.close()  # before the database is closed below it
        if job.broke_engine:
            _repeat(jobs[place + 1 :])
            return
        if job.could_not_commit:
            for other in jobs[place + 1 :]:
                other.give_up(job)
            return


def _repeat(jobs: Sequence[Job]) -> None:
    """Have jobs loaded by an engine of their own: the one that they were read with failed under another."""
    for job in jobs:
        job.is_to_repeat = job.outcome.error is None


def _remove_if_empty(database: Path) -> None:
    """Remove a file that this run created and that nothing was committed to."""
    if not database.exists():
        return
    try:
        with in_memory() as connection:
            attach(connection, database, ALIAS)
            connection.execute(f"USE {ALIAS}")
            empty = not is_ours(connection) or connection.execute("FROM main.capture LIMIT 1").fetchone() is None
    except (TracedbError, duckdb.Error):
        return
    if empty:
        database.unlink(missing_ok=True)


def prepare(connection: duckdb.DuckDBPyConnection, database: Path) -> None:
    """Give the attached database its tables and views, where it is new or its views are older than ours.

    What was worked out by other bounds of times than those that are set is worked out anew.
    """
    from tracedb import __version__

    if not is_ours(connection):
        schema.apply(connection, __version__)
        views.install(connection)
        return
    check_version(connection, database)
    if views.outdated(connection):
        added = schema.complete(connection)
        views.install(connection)
        timefaults.renew(connection, even_if_unchanged="main.time_bound" in added)
        return
    timefaults.renew(connection)
