"""From paths to tasks: discover files, detect captures. Needs neither DuckDB nor Arrow."""

from __future__ import annotations

import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tracedb import ingester
from tracedb.errors import UsageError
from tracedb.ingester import Capture, Ingester
from tracedb.pipeline import archives, known_results
from tracedb.pipeline.task import Found, Task, state_of
from tracedb.storage.database_file import DUCKDB_MAGIC
from tracedb.storage.error_lines import is_interrupt, one_line

NO_BYTES = "0 bytes"
NOT_READ = (
    (BOM_UTF16_LE, "text in UTF-16; convert it with iconv -f UTF-16 -t UTF-8"),
    (BOM_UTF16_BE, "text in UTF-16; convert it with iconv -f UTF-16 -t UTF-8"),
    (b"PK\x03\x04", "a zip archive by its content; archives are read if their names end in .zip"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive, which is not read; unpack it"),
    (b"Rar!", "a RAR archive, which is not read; unpack it"),
    (b"\xfd7zXZ\x00", "compressed with xz, which is read only of archives (.tar.xz); unpack it"),
    (b"BZh", "compressed with bzip2, which is read only of archives (.tar.bz2); unpack it"),
)
"""First bytes of files that no ingester reads, and the message about them."""


@contextmanager
def found_in(paths: Sequence[Path], beside: Path, only: str | None = None) -> Iterator[Found]:
    """Yield what is found at and below ``paths``; archives are unpacked into a folder next to ``beside`` meanwhile.

    Raises ``UsageError`` as ``discover`` and ``detect`` do.
    """
    files = discover(paths)
    packed = [path for path in files if archives.is_archive(path)]
    with archives.unpacked(packed, beside) as members:
        found = detect([*(path for path in files if path not in set(packed)), *members.files], only)
        if only is None:
            found = _with_databases(found, beside)
        yield _told(found, members, packed) if packed else found


def _with_databases(found: Found, target: Path) -> Found:
    """Return the result with DuckDB files that no ingester recognises as databases to add, except the target."""
    left, databases = [], []
    for path, reason in found.unrecognised:
        if not _is_duckdb(path):
            left.append((path, reason))
        elif target.exists() and path.samefile(target):
            left.append((path, "the database that is loaded into"))
        else:
            databases.append((path, path))
    return replace(found, unrecognised=left, databases=databases)


def _is_duckdb(path: Path) -> bool:
    try:
        if not path.is_file():  # opening a pipe would wait for a writer
            return False
        with path.open("rb") as file:
            return file.read(12)[8:] == DUCKDB_MAGIC
    except OSError:
        return False


def _told(found: Found, members: archives.Unpacked, packed: list[Path]) -> Found:
    """Return the result with members of archives under the paths shown to users."""

    def known(path: Path) -> Path:
        return members.told.get(path, path)

    tasks = [replace(task, told=members.told.get(task.capture.files[0])) for task in found.tasks]
    tasks.sort(key=lambda task: str(task.path))
    return Found(
        [replace(task, number=number) for number, task in enumerate(tasks)],
        [*((known(path), reason) for path, reason in found.unrecognised), *members.left],
        [*((known(path), reason) for path, reason in found.failed), *members.failed],
        packed,
        [(path, known(path)) for path, _ in found.databases],
    )


def discover(paths: Sequence[Path]) -> list[Path]:
    """Return the files at and below ``paths``, sorted. Raises ``UsageError`` for a path that does not exist."""
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
    """Yield the files of a folder and all folders below, following links; each folder once."""
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

    A file that two ingesters claim, or that makes one fail while no other claims it, is in ``failed``; other files are
    not affected. Raises ``UsageError`` if ``only`` names no ingester.
    """
    claims: dict[Path, str] = {}
    faulty: dict[Path, str] = {}
    rivals: dict[Path, str] = {}
    tasks: list[Task] = []
    states = {path: state for path in files if (state := _state(path)) is not None}
    for registered, source in ingester.load(only):
        asked, faults = _ask(registered.name, source, states)
        faulty.update(faults)
        found = [task for task in asked if task.capture.refused is None]
        faulty.update((task.path, task.capture.refused) for task in asked if task.capture.refused is not None)
        tasks += found
        for task in found:
            for path in (*task.capture.files, *task.capture.duplicates):
                first = claims.setdefault(path, registered.name)
                if first != registered.name:
                    rivals[path] = f"both {first} and {registered.name} recognise it; choose with --ingester NAME"
    failed = {path: reason for path, reason in faulty.items() if path not in claims} | rivals
    for task in tasks:
        disputed = next((path for path in task.capture.files if path in rivals), None)
        if disputed is not None:
            failed.setdefault(task.capture.files[0], f"{disputed}, which belongs to it: {rivals[disputed]}")
    tasks = [task for task in tasks if rivals.keys().isdisjoint(task.capture.files)]
    tasks.sort(key=lambda task: str(task.capture.files[0]))
    tasks = [replace(task, number=number, total=len(tasks)) for number, task in enumerate(tasks)]
    left = [path for path in files if path not in claims and path not in failed]
    return Found(tasks, [(path, _why_not(path)) for path in left], sorted(failed.items()))


def _ask(name: str, source: Ingester, states: dict[Path, tuple[int, int]]) -> tuple[list[Task], dict[Path, str]]:
    """Return what an ingester finds, and the files that make it fail: single files, else a whole folder, else all."""
    faults: dict[Path, str] = {}
    for split in (_singly, _by_folder):
        files = [path for path in states if path not in faults]
        found, fault = _found(name, source, files, states)
        if fault is None:
            return found, faults
        for group in split(files):
            if (fault := _found(name, source, group, states)[1]) is not None:
                faults.update(dict.fromkeys(group, fault))
    files = [path for path in states if path not in faults]
    found, fault = _found(name, source, files, states)
    return found, faults if fault is None else faults | dict.fromkeys(files, fault)


def _singly(files: Sequence[Path]) -> list[list[Path]]:
    return [[path] for path in files]


def _by_folder(files: Sequence[Path]) -> list[list[Path]]:
    groups: dict[Path, list[Path]] = {}
    for path in files:
        groups.setdefault(path.parent, []).append(path)
    return list(groups.values())


def _found(
    name: str, source: Ingester, files: Sequence[Path], states: dict[Path, tuple[int, int]]
) -> tuple[list[Task], str | None]:
    """Return the tasks that an ingester finds among files; if it fails, none, and the fault."""
    try:
        return [_task(capture, name, states) for capture in source.find(files)], None
    except Exception as error:  # a reader's fault on one file must not stop the others
        if is_interrupt(error):
            raise KeyboardInterrupt from error
        return [], one_line(error, name)


def _task(capture: Capture, name: str, states: dict[Path, tuple[int, int]]) -> Task:
    sizes, changes = zip(*(states.get(path) or state_of([path]) for path in capture.files), strict=True)
    return Task(capture, name, sum(sizes), changed_ns=max(changes))


def _state(path: Path) -> tuple[int, int] | None:
    """Return the size of a regular file, which may be 0, and its modification time; None for anything else."""
    try:
        return state_of([path]) if path.is_file() else None
    except OSError:
        return None


def _why_not(path: Path) -> str:
    if not path.is_file():
        return "not a regular file"
    try:
        with path.open("rb") as file:
            start = file.read(8)
        if said := known_results.told(path, start):
            return said
        if said := next((words for magic, words in NOT_READ if start.startswith(magic)), None):
            return said
        return (
            "no ingester recognises its content; if it goes with other files, name their folder" if start else NO_BYTES
        )
    except OSError as error:
        return error.strerror or "unreadable"
