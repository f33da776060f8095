"""Captures with identical bytes: one is loaded, and labels that only the others have are reported."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

from tracedb.pipeline import capture_edit, labels
from tracedb.pipeline.digest import digest_of
from tracedb.pipeline.task import KnownAs, Outcome, Request, Task
from tracedb.storage.connection import open_read_only

END_BYTES = 4096
"""Bytes compared at both ends of files of equal size before hashing them whole: different traces rarely agree there."""


def first_of_each(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks without those identical to an earlier one; these become its ``copies``, in order.

    Only captures of equal size are read. Which one is loaded does not depend on which is read first.
    """
    copies: dict[int, list[Task]] = {}
    for alike in _groups([task for task in tasks if task.size_bytes], lambda task: task.size_bytes):
        for with_ends in _groups(alike, _ends):
            for first, *others in _groups(with_ends, lambda task: digest_of(task.capture.files)):
                copies[first.number] = others
    left_out = {task.number for others in copies.values() for task in others}
    return [
        replace(task, copies=tuple(copy.path for copy in copies.get(task.number, ())))
        for task in tasks
        if task.number not in left_out
    ]


def _groups(tasks: Iterable[Task], key: Callable[[Task], Hashable]) -> list[list[Task]]:
    """Return the tasks that share a key with another one; an unreadable file is left to its own load."""
    groups: dict[Hashable, list[Task]] = {}
    for task in tasks:
        try:
            groups.setdefault(key(task), []).append(task)
        except OSError:
            continue
    return [group for group in groups.values() if len(group) > 1]


def _ends(task: Task) -> Hashable:
    found = []
    for path in task.capture.files:
        with path.open("rb") as file:
            found.append(file.read(END_BYTES))
            file.seek(max(file.seek(0, 2) - END_BYTES, 0))
            found.append(file.read())
    return tuple(found)


def outcomes_of(tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes of the copies, given those of the loaded tasks."""
    of_path = {outcome.path: outcome for outcome in outcomes}
    found = []
    for task in tasks:
        for path in task.copies:
            first = of_path[task.path]
            copy = Outcome(path, task.size_bytes, sha256=first.sha256, is_known=first.error is None)
            if first.error is not None:
                copy.error = f"has the same bytes as {task.path}, which could not be loaded"
            found.append(copy)
    return found


def look_up(request: Request, outcomes: Iterable[Outcome]) -> None:
    """Record which capture each known file is, and add the labels of this call to it.

    Labels that only paths tell are reported as missing: the same bytes may be at several paths. Raises ``DatabaseBusy``
    and ``TracedbError``.
    """
    known = {outcome.sha256: outcome for outcome in outcomes if outcome.is_known and outcome.sha256}
    if not known:
        return
    with open_read_only(request.database) as connection:
        rows = connection.execute(
            """SELECT sha256, list(capture_id ORDER BY capture_id), arg_min(path, capture_id),
                arg_min(labels, capture_id)
            FROM main.capture WHERE list_contains(?, sha256) GROUP BY sha256""",
            [list(known)],
        ).fetchall()
    stored = {digest: (numbers, path, has or {}) for digest, numbers, path, has in rows}
    to_label: set[int] = set()
    for outcome in outcomes:
        if outcome.is_known and outcome.sha256 in stored:
            numbers, path, has = stored[outcome.sha256]
            given = {key: value for key, value in request.labels.items() if has.get(key) != value}
            told, _ = labels.placed(outcome.path, request.labels_from, request.labels, None)
            has = {**has, **given}
            missing = {key: value for key, value in told.items() if has.get(key) != value}
            outcome.known_as = KnownAs(numbers[0], path, dict(sorted(has.items())), given, missing)
            to_label.update(numbers if given else ())
    if to_label:
        capture_edit.label_known(request.database, sorted(to_label), request.labels)
