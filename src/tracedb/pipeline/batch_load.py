"""Load captures into the database, keeping it open for as short as possible."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

import duckdb

from tracedb import ingester
from tracedb.errors import DatabaseBusy, TracedbError
from tracedb.ingester import Begun, Ingester, Registered
from tracedb.pipeline.capture_load import Announce, Job, Progress
from tracedb.pipeline.known_captures import Known
from tracedb.pipeline.task import MEMORY_LIMIT, Outcome, Request, Task
from tracedb.pipeline.writable_database import opened, prepare
from tracedb.storage import template_database
from tracedb.storage.connection import NotMoved, open_read_only, workbench

READ_SECONDS = 2.0
"""Read for at most this long before writing: the rows are held in memory, and long reads give many."""
SMALL_BYTES = 2 << 20
MOST_TOGETHER = 32

Turn = Callable[[], AbstractContextManager[None]]


def together(tasks: Sequence[Task], jobs: int) -> list[list[Task]]:
    """Group the tasks to be loaded in one go, small ones of a source together; the longest come first."""
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


def load_one_by_one(
    tasks: Sequence[Task],
    request: Request,
    known: dict[int, set[str]],
    progress: Progress,
    report: Callable[[Outcome], None],
    begun: Begun | None = None,
) -> None:
    """Load every task in this process and call ``report`` with each outcome as it comes.

    ``begun``: the early read of the largest capture, which is loaded first. Once another process has held the database
    for too long, no further capture is started.
    """
    largest = max(tasks, key=lambda task: task.size_bytes)
    busy: str | None = None
    for group in together(tasks, 1):
        if busy is None:
            outcomes = load(group, request, known, progress, begun=begun if group[0] is largest else None)
        else:
            outcomes = [task.failed(busy) for task in group]
        busy = busy or busy_reason(outcomes)
        for outcome in outcomes:
            report(outcome)


def busy_reason(outcomes: Sequence[Outcome]) -> str | None:
    """Return the message about the process that holds the database, if that is why a capture was not loaded."""
    return next((outcome.error for outcome in outcomes if outcome.is_busy), None)


def load(
    tasks: Sequence[Task],
    request: Request,
    known: dict[int, set[str]],
    progress: Progress = lambda done: None,
    turn: Turn = nullcontext,
    begun: Begun | None = None,
    announce: Announce = lambda task, outcome: None,
) -> list[Outcome]:
    """Load captures of one source, each in one transaction; the database is locked only while rows are written.

    Opening and closing it takes longer than loading a small capture, so that is done once for all captures read within
    ``READ_SECONDS``. ``turn`` is entered before it is opened and left after it is closed. ``begun``: the early read of
    the first capture. ``announce`` is called before each commit. A faulty file is reported in its outcome and leaves
    the database unchanged; so do all captures not loaded because another process held the database for too long.
    Raises ``KeyboardInterrupt`` and tracedb's own errors.
    """
    jobs = [Job(task, request, progress, begun if place == 0 else None, announce) for place, task in enumerate(tasks)]
    waiting = deque(job for job in jobs if not job.is_settled(known))
    source = ingester.load(tasks[0].source)[0]
    try:
        while waiting:
            _load_some(waiting, source, turn)
        for job in jobs:
            if job.is_to_repeat:
                job.repeat()
                _load_some(deque([job]), source, turn)
    except DatabaseBusy as error:
        for job in jobs:
            if not job.is_done:
                job.fail(error)
    return [job.outcome for job in jobs]


def _load_some(waiting: deque[Job], source: tuple[Registered, Ingester], turn: Turn) -> None:
    """Read jobs, at least one, until the reading time is used up, and write their rows."""
    request = waiting[0].request
    wanted = source[1].memory_limit if isinstance(source[1], ingester.Weighed) else MEMORY_LIMIT
    taken: list[Job] = []
    ends = time.monotonic() + READ_SECONDS
    with ExitStack() as stack:
        try:
            bench = stack.enter_context(workbench(request.memory_limit or wanted, request.cores, request.database))
        except (TracedbError, OSError, duckdb.Error) as error:  # the folder is not writable
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
    try:
        with opened(bench, database) as is_placed:
            try:
                _write_attached(jobs, database)
            finally:
                if is_placed and not any(job.outcome.loaded for job in jobs):
                    template_database.remove_if_empty(bench, database)
    except DatabaseBusy:
        raise
    except NotMoved as error:
        held = _digests(database)
        for job in jobs:
            if job.outcome.error is None and not job.is_held(held):
                job.fail(error)
            elif job.outcome.loaded:
                job.outcome.unfinished = str(error)
    except (TracedbError, OSError, duckdb.Error) as error:
        for job in jobs:
            if not job.is_done:
                job.fail(error)


def _digests(database: Path) -> set[str]:
    """Return the digests of the committed captures; empty if they cannot be read."""
    try:
        with open_read_only(database) as connection:
            return Known(connection).digests
    except (TracedbError, duckdb.Error):
        return set()


def _write_attached(jobs: Sequence[Job], database: Path) -> None:
    known: Known | None = None
    for place, job in enumerate(jobs):
        known = _write_one(job, database, known)
        job.close()  # before the database under it is closed
        if job.broke_engine:
            _repeat(jobs[place + 1 :])
            return
        if job.could_not_commit:
            for other in jobs[place + 1 :]:
                other.give_up(job)
            return


def _write_one(job: Job, database: Path, known: Known | None) -> Known | None:
    """Write a capture; the first one also brings tables and views up to date, in the same transaction.

    ``known``: the captures in the database; None until something is committed. Returns the updated set.
    """
    with job.faults_told(), job.committed() as connection:
        found = known or _prepared(connection, database)
        job.write(found)
    if job.outcome.loaded:
        job.add_to(found)
        return found
    return known


def _prepared(connection: duckdb.DuckDBPyConnection, database: Path) -> Known:
    prepare(connection, database)
    found = Known(connection)
    if found.is_empty:
        template_database.mark_new(connection)
    return found


def _repeat(jobs: Sequence[Job]) -> None:
    """Load jobs with a fresh engine each: the one that read them failed in another job."""
    for job in jobs:
        job.is_to_repeat = job.outcome.error is None
