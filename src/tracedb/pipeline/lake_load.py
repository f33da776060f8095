"""Load captures into a lake: each through a database of its own, so that any number of processes may load at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb

from tracedb.errors import TracedbError
from tracedb.ingester import Begun
from tracedb.lake import align, export, repair
from tracedb.lake.write import LakeWriter
from tracedb.pipeline import batch_load, duplicates, labels
from tracedb.pipeline.capture_load import Announce
from tracedb.pipeline.task import MEMORY_LIMIT, Found, KnownAs, Outcome, Repaired, Request, Task
from tracedb.pipeline.worker_pool import load_by_workers
from tracedb.storage import error_lines, lake_manifest
from tracedb.storage.connection import attached, connect, transaction, workbench
from tracedb.storage.database_file import size_of
from tracedb.storage.spill_folder import temporary_folder

Progress = Callable[[int], None]


def load(
    tasks: Sequence[Task],
    request: Request,
    known: dict[int, set[str]],
    progress: Progress = lambda done: None,
    begun: Begun | None = None,
    announce: Announce = lambda task, outcome: None,
) -> list[Outcome]:
    """Load captures of one source into the lake of the request; a failure is reported in the outcomes.

    ``begun``: the early read of the first capture. ``announce`` is called for each capture before the first is written.
    """
    assert request.lake is not None
    with temporary_folder() as folder:
        staged = Path(folder) / "staged.duckdb"
        outcomes = batch_load.load(
            tasks, replace(request, database=staged, first_capture_id=1), known, progress, begun=begun
        )
        if any(outcome.loaded for outcome in outcomes):
            try:
                _move(staged, request, Path(folder), tasks, outcomes, announce)
            except (TracedbError, OSError, duckdb.Error) as error:
                for outcome in outcomes:
                    if outcome.loaded:
                        outcome.loaded, outcome.error = [], error_lines.one_line(error)
    return outcomes


def load_found(
    found: Found, request: Request, jobs: int | None, progress: Progress
) -> tuple[list[Outcome], TracedbError | None]:
    """Load everything found into the lake of the request, and derive facts about several captures of this call.

    Returns the outcomes in path order, and why the facts could not be derived, if so. Raises ``TracedbError`` if the
    lake cannot be written.
    """
    root = request.lake
    assert root is not None
    lake = lake_manifest.create(root)
    outcomes = [
        *found.failures(),
        *(_add_database(path, told, request, root, progress) for path, told in found.databases),
    ]
    faulty: list[repair.Faulty] = []
    if found.tasks:
        known = lake_manifest.known_sources(lake)
        faulty = repair.faulty_entries(lake, known.keys() & {task.size_bytes for task in found.tasks})
        repair.forget(known, faulty)
        again = (item for entry in faulty for item in entry.captures)
        repaired = tuple(Repaired(item.sha256, item.part, item.labels, item.rank) for item in again)
        request = replace(request, repaired=repaired)
        outcomes += _load_tasks(found.tasks, request, known, jobs, progress)
    outcomes.sort(key=lambda outcome: str(outcome.path))
    try:
        repair.remove_replaced(lake, faulty)
        look_up(root, request, outcomes)
        brought = [item.labels for outcome in outcomes for item in outcome.loaded]
        # Those known before count: a process that was killed may have loaded them, and not come to this.
        brought += [outcome.known_as.labels for outcome in outcomes if outcome.known_as]
        if len(brought) > 1 and request.aligns:
            align.align(root, {lake_manifest.run_name(item) for item in brought})
    except TracedbError as error:
        return outcomes, error
    return outcomes, None


def _load_tasks(
    tasks: Sequence[Task], request: Request, known: dict[int, set[str]], jobs: int | None, progress: Progress
) -> list[Outcome]:
    cores = os.cpu_count() or 1
    workers = min(jobs or cores, len(tasks))
    request = replace(request, cores=max(cores // workers, 1) if jobs is None else 1 if workers > 1 else cores)
    first = duplicates.first_of_each(tasks)
    outcomes: list[Outcome] = []
    if workers == 1 or len(first) == 1:
        for group in batch_load.together(first, 1):
            outcomes += load(group, request, known, progress)
    else:
        load_by_workers(first, request, known, workers, progress, outcomes.append)
    return outcomes + duplicates.outcomes_of(first, outcomes)


def _add_database(path: Path, told: Path, request: Request, root: Path, progress: Progress) -> Outcome:
    outcome = Outcome(told, size_of(path))
    try:
        done = export.export(path, root)
        outcome.is_known = not done.written
        outcome.notes = [f"{done.written} captures written into the lake, {done.known} known before"]
        if request.labels:
            given = ", ".join(f"{key}={value}" for key, value in request.labels.items())
            outcome.notes.append(f"its captures have the labels of the database, without {given}")
    except TracedbError as error:
        outcome.error = str(error).removeprefix(f"{path}: ")
    progress(outcome.size_bytes)
    return outcome


def _move(
    staged: Path,
    request: Request,
    folder: Path,
    tasks: Sequence[Task],
    outcomes: Sequence[Outcome],
    announce: Announce,
) -> None:
    """Give the loaded captures their numbers in the lake, and write them there. ``outcomes``: one for each task."""
    assert request.lake is not None
    if request.repaired:
        _keep_labels(staged, request.repaired, outcomes)
    connection = connect(staged)
    try:
        writer = LakeWriter(connection, lake_manifest.opened(request.lake), folder)
        numbers = {item.here: item.held.capture_id for item in writer.captures}
        for task, outcome in zip(tasks, outcomes, strict=True):
            for item in outcome.loaded:
                item.capture_id = numbers[item.capture_id]
            if outcome.loaded:
                announce(task, outcome)
        writer.write(writer.captures)
    finally:
        connection.close()


def _keep_labels(staged: Path, repaired: Sequence[Repaired], outcomes: Sequence[Outcome]) -> None:
    """Give captures that are written again the labels and rank that they have in the lake."""
    held = {(item.sha256, item.part): item for item in repaired}
    with workbench(MEMORY_LIMIT, 1, staged) as bench, attached(bench, staged) as connection, transaction(connection):
        there = connection.execute("SELECT capture_id, sha256, part FROM main.capture").fetchall()
        parts = {number: held[digest, part] for number, digest, part in there if (digest, part) in held}
        for number, item in parts.items():
            connection.execute(
                "UPDATE main.capture SET labels = map(?::VARCHAR[], ?::VARCHAR[]), rank = ? WHERE capture_id = ?",
                [list(item.labels), list(item.labels.values()), item.rank, number],
            )
    for outcome in outcomes:
        again = [item for item in outcome.loaded if item.capture_id in parts]
        for loaded in again:
            loaded.labels, loaded.rank = dict(parts[loaded.capture_id].labels), parts[loaded.capture_id].rank
        if again:
            outcome.notes.append(
                "its files in the lake were missing or damaged; they are written again, with its labels"
            )


def look_up(root: Path, request: Request, outcomes: Sequence[Outcome]) -> None:
    """Record which capture each known file is, and which labels of this call it lacks: a lake's are not changed."""
    lake = lake_manifest.opened(root)
    for outcome in outcomes:
        if not outcome.is_known or not outcome.sha256:
            continue
        held = lake_manifest.find(lake, outcome.sha256, outcome.size_bytes)
        if held is not None:
            told, _ = labels.placed(outcome.path, request.labels_from, request.labels, None)
            missing = {key: value for key, value in told.items() if held.labels.get(key) != value}
            outcome.known_as = KnownAs(held.capture_id, held.path or "", dict(sorted(held.labels.items())), {}, missing)
