"""The output file: never one that the command reads, and replaced as a whole or not at all."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tracedb.errors import TracedbError
from tracedb.storage.spill_folder import spill_folder

DUCKDB_MAGIC = b"DUCK"  # at byte 8
ADVICE = "give -o another name"


def refuse_overwriting(out: Path | None, database: Path | None = None, inputs: Iterable[Path] = ()) -> None:
    """Raise ``TracedbError`` if ``out``, or stdout for None, is the database, one of its files, or an input.

    Files are compared by identity, so that links and other spellings of a path are found; files that do not exist yet
    by their folder's identity and their name.
    """
    found = _state(out)
    if out is None and (found is None or not stat.S_ISREG(found.st_mode)):
        return
    named = "standard output" if out is None else str(out)
    if database is not None and _is_database(out, found, database):
        raise TracedbError(f"{named} is the database {database}, which an answer would replace; {ADVICE}")
    for path in inputs:
        if _is_same(out, found, path):
            raise TracedbError(f"{named} is {path}, which this command reads and an answer would replace; {ADVICE}")
    if out is not None and found is not None and stat.S_ISREG(found.st_mode) and _holds_duckdb(out):
        raise TracedbError(f"{out} is a DuckDB database, which an answer would replace; {ADVICE}")


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Yield a path in the folder of ``out`` to write to; it replaces ``out`` at the end of the block.

    If the block raises, ``out`` is unchanged. A pipe, a device, or the file behind stdout is yielded itself. Raises
    ``TracedbError`` if the folder is missing or not writable.
    """
    before = _state(out)
    if before is not None and _is_stream(before):
        yield out
        for number in _streams(before):  # so that the shell's later output is appended, not written over the answer
            with suppress(OSError):
                os.lseek(number, 0, os.SEEK_END)
        return
    if before is not None and stat.S_ISDIR(before.st_mode):
        raise TracedbError(f"{out} is a folder; name a file in it with -o")
    target = Path(os.path.realpath(out))  # a link stays a link
    folder = target.parent
    if not folder.is_dir():
        raise TracedbError(f"{out}: cannot be written: there is no folder {folder}")
    with _room(folder, target) as room:
        aside = Path(room) / target.name
        yield aside
        if before is not None:
            with suppress(OSError):
                aside.chmod(stat.S_IMODE(before.st_mode))
        aside.replace(target)


@contextmanager
def _room(folder: Path, target: Path) -> Iterator[str]:
    """Yield a private folder in ``folder``."""
    with ExitStack() as stack:
        try:
            room = stack.enter_context(spill_folder(target))
        except OSError as error:
            raise TracedbError(f"{target}: the folder {folder} cannot be written: {error.strerror}") from error
        yield room


def _state(out: Path | None) -> os.stat_result | None:
    """Return the file status of ``out``, or of stdout for None; None if it does not exist."""
    try:
        return os.fstat(1) if out is None else out.stat()
    except OSError:
        return None


def _is_stream(found: os.stat_result) -> bool:
    return (not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode)) or bool(_streams(found))


def _streams(found: os.stat_result) -> list[int]:
    """Return which of stdout and stderr lead to the file, as with ``-o /dev/stdout``."""
    streams = []
    for number in (1, 2):
        with suppress(OSError):
            if os.path.samestat(os.fstat(number), found):
                streams.append(number)
    return streams


def _is_same(out: Path | None, found: os.stat_result | None, path: Path) -> bool:
    there = _state(path)
    if found is not None and there is not None:
        return os.path.samestat(found, there)
    return found is None and there is None and out is not None and _place(out) == _place(path)


def _is_database(out: Path | None, found: os.stat_result | None, database: Path) -> bool:
    """Whether it is the database or its log, which may be next to the path as given or as resolved."""
    if _is_same(out, found, database):
        return True
    for path in (database, Path(os.path.realpath(database))):
        log = path.with_name(path.name + ".wal")
        if _is_same(out, found, log):
            return True
        if out is not None:
            (folder, name), (beside, start) = _place(out), _place(log.parent / log.name)
            if folder == beside and name.startswith(start):
                return True
    return False


def _place(path: Path) -> tuple[object, str]:
    """Return the folder of a path, and its name normalised for case and accents."""
    real = Path(os.path.realpath(path))
    name = unicodedata.normalize("NFC", real.name).casefold()
    try:
        folder = real.parent.stat()
    except OSError:
        return str(real.parent), name
    return (folder.st_dev, folder.st_ino), name


def _holds_duckdb(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == DUCKDB_MAGIC
    except OSError:
        return False
