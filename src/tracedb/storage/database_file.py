"""Examine the file at a database path by its bytes before any engine opens it."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path

from tracedb.errors import TracedbError

if sys.platform != "win32":
    import fcntl

HEADER_BYTES = 3 * 4096
"""Size of the main header and the two headers that DuckDB writes alternately."""
CHECKPOINT_MARK = 256
"""Upper estimate of the bytes a checkpoint writes into the log before moving it; every capture is larger."""
HEAD_BYTES = 512
DUCKDB_MAGIC = b"DUCK"
VERSION_AT = slice(12, 20)
UNSAFE = "?\\" if os.sep == "/" else "?"
"""Characters DuckDB misreads: it takes text after ``?`` as parameters, and a backslash as a separator."""
READS = "`tracedb ingest FILE` reads"
KINDS: tuple[tuple[bytes, str], ...] = (
    (b"SQLite format 3\x00", f"this is SQLite, not a tracedb database; {READS} nsys exports and rocpd files"),
    (b"PAR1", f"this is Parquet, not a tracedb database; {READS} nsys exports (--type=parquetdir)"),
    (b"\x1f\x8b", f"this is gzip, not a tracedb database; {READS} compressed traces"),
    (b"\x28\xb5\x2f\xfd", f"this is zstd, not a tracedb database; {READS} compressed traces"),
    (b"PK\x03\x04", f"this is a zip archive, not a tracedb database; {READS} archives of traces"),
    (b"NVIDIA Tegra Profiler Report", f"this is a report of nsys, not a tracedb database; {READS} it"),
    (b"U3w[END]NVIDIA Nsight Systems Stream", "this is a raw stream of nsys, not a tracedb database"),
    (b"\x89HDF", "this is HDF5, not a tracedb database; export SQLite from nsys instead"),
)
STORAGE_VERSIONS = {
    64: "v0.9.0 to v1.1",
    65: "v1.2.0",
    66: "v1.3.0",
    67: "v1.4.0",
    68: "v1.5.0",
    69: "v2.0.0",
    999: "v2.0.0",
}
"""Version number in the header of a DuckDB file → the releases that write it by default."""
OTHER = "name another file with --db"
NEWER = re.compile(r"version number (\d+), but we can only read version\D*(\d+)(?: and (\d+))?")


def absolute(path: Path) -> Path:
    """Return the path in a form that DuckDB never takes for a protocol, a home folder or memory.

    Raises ``TracedbError`` for a path that DuckDB would read differently.
    """
    found = path.absolute()
    for spelling in (str(found), os.path.realpath(found)):
        if wrong := next((letter for letter in UNSAFE if letter in spelling), None):
            raise TracedbError(
                f"{path}: DuckDB cannot use a database whose path holds {wrong} ({spelling}); rename the file "
                "or folder, or put the database elsewhere with --db"
            )
    return found


def check(path: Path) -> None:
    """Raise ``TracedbError`` if there is something at ``path`` that is not a readable DuckDB file."""
    try:
        if path.is_dir():
            raise TracedbError(f"{path}: is a folder, not a database; name a file with --db")
        if not stat.S_ISREG(path.stat().st_mode):
            raise TracedbError(f"{path}: is not a regular file, so it cannot be a database; {OTHER}")
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise TracedbError(f"{path}: cannot be read: {error.strerror or error}") from error
    if head[8:12] != DUCKDB_MAGIC:
        raise TracedbError(f"{path}: cannot be opened as a DuckDB database: {_kind(head)}")


def is_unwritten(path: Path) -> bool:
    """Whether a file is shorter than the first thing DuckDB writes into a new one, and has no other content."""
    try:
        if not path.is_file() or path.stat().st_size >= HEADER_BYTES:
            return False
        begin = path.read_bytes()
    except OSError:
        return False
    return begin[8:12] == DUCKDB_MAGIC or not any(begin)


def identity(path: Path) -> tuple[int, int] | None:
    """Return the identity (device and inode) of the file at a path; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def log_of(path: Path) -> Path:
    """Return the path of the log in which DuckDB keeps committed data until it is moved into the file."""
    return path.with_name(path.name + ".wal")


def size_of(path: Path) -> int:
    """Return the size of a file in bytes; 0 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Lock a file as DuckDB does; it must not be attached here. Yields whether the lock was free. Raises OSError."""
    with path.open("r+b") as file:
        if sys.platform != "win32":
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
        yield True


def withdraw(path: Path, before: int, written: int) -> None:
    """Truncate the log of a file from ``written`` bytes to ``before``, unless another process has written to it.

    Data reported as failed must not appear once there is room.
    """
    log = log_of(path)
    with suppress(OSError), held(path) as is_held:
        if is_held and written <= size_of(log) <= written + CHECKPOINT_MARK:
            if before:
                os.truncate(log, before)
            else:
                log.unlink()


def check_writable(path: Path) -> None:
    """Raise ``TracedbError`` if a database at ``path`` cannot be created or written, with the reason."""
    absolute(path)
    folder = path.parent
    if not folder.is_dir():
        raise TracedbError(f"{path}: there is no folder {folder}; create it first, or {OTHER}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TracedbError(f"{path}: {unwritable(folder)}")
    if path.exists() and not os.access(path, os.W_OK):
        raise TracedbError(f"{path}: the file cannot be written; make it writable, or {OTHER}")


def unwritable(folder: Path, error: OSError | None = None) -> str:
    """Say that a folder is not writable."""
    why = f" ({error.strerror})" if error is not None else ""
    return f"the folder {folder} cannot be written{why}, which a database and its log need; {OTHER}"


def fault(path: Path, error: Exception) -> str:
    """Say why DuckDB did not open a file that looks like a DuckDB file."""
    said = str(error)
    number = storage_version(path)
    found = NEWER.search(said)
    if found or (number is not None and number not in STORAGE_VERSIONS):
        known = "does not read"
        if found:
            known = f"reads {found[2]} to {found[3]}" if found[3] else f"reads {found[2]}"
        return (
            f"{path}: has DuckDB's storage version {found[1] if found else number}, and the installed DuckDB "
            f"{metadata.version('duckdb')} {known}; install a newer duckdb (pip install -U duckdb), or ingest again"
        )
    if type(error).__name__ == "OutOfMemoryException":
        return f"{path}: cannot be opened: not enough memory; raise --memory-limit if given, or use a larger machine"
    if "encrypt" in said.lower():
        return f"{path}: is an encrypted DuckDB database, which tracedb does not open; {OTHER}"
    if re.search(r"replaying|\bWAL\b", said):
        return (
            f"{path}: its log {path.name}.wal is damaged or of another database; "
            "move the log away to open the state before it"
        )
    if found := re.search(
        r"No space left on device|Too many open files|Input/output error|Read-only file system", said
    ):
        return f"{path}: cannot be opened: {found[0]}"
    return (
        f"{path}: cannot be opened as a DuckDB database: it is damaged or cut short; ingest the traces into a new one"
    )


def is_damage(error: Exception) -> bool:
    """Whether a DuckDB error comes from the file's content and not from the query."""
    return type(error).__name__ in ("SerializationException", "FatalException") or "Corrupt database file" in str(error)


def damage(path: Path, error: Exception) -> str:
    """Say that a file is damaged, and where."""
    place = re.search(r"block at location (\d+)", str(error))
    where = f" at byte {int(place[1]):,}" if place else ""
    return f"{path}: is damaged{where}: the data there is not what was written; ingest the traces into a new one"


def storage_version(path: Path) -> int | None:
    """Return the version in the header of a DuckDB file; None for any other file."""
    try:
        with path.open("rb") as file:
            head = file.read(VERSION_AT.stop)
    except OSError:
        return None
    return int.from_bytes(head[VERSION_AT], "little") if head[8:12] == DUCKDB_MAGIC else None


def _kind(head: bytes) -> str:
    if not head:
        return f"the file is empty; remove it, and `tracedb ingest PATH` creates it again, or {OTHER}"
    if named := next((words for magic, words in KINDS if head.startswith(magic)), None):
        return named
    if head[257:262] == b"ustar":
        return f"this is a tar archive, not a tracedb database; {READS} archives of traces"
    bare = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if bare[:1] in (b"{", b"["):
        return f"this is JSON, not a tracedb database; {READS} traces"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" not in head:
        return f"this is text, not a tracedb database; {READS} traces"
    return f"not a valid DuckDB database file; {OTHER}"
