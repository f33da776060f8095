"""From paths to tasks: discover files, detect captures. Needs neither DuckDB nor Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tracedb import ingester
from tracedb.errors import UsageError
from tracedb.tasks import Found, Task, state_of

NO_BYTES = "0 bytes"


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
    states = {path: state for path in files if (state := _state(path)) is not None}
    for registered, source in ingester.load(only):
        for capture in source.find(list(states)):
            for path in (*capture.files, *capture.duplicates):
                if path in claims:
                    raise UsageError(
                        f"{path}: both {claims[path]} and {registered.name} recognise it; choose with --ingester NAME"
                    )
                claims[path] = registered.name
            sizes, changes = zip(*(states[path] for path in capture.files), strict=True)
            tasks.append(Task(capture, registered.name, sum(sizes), changed_ns=max(changes)))
    tasks.sort(key=lambda task: str(task.capture.files[0]))
    tasks = [replace(task, number=number, total=len(tasks)) for number, task in enumerate(tasks)]
    return Found(tasks, [(path, _why_not(path)) for path in files if path not in claims])


def _state(path: Path) -> tuple[int, int] | None:
    """Return the size of a regular file, which may be 0, and when it was changed; None for anything else."""
    try:
        return state_of([path]) if path.is_file() else None
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
