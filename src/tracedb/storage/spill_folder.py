"""Private folders for data that exceeds memory, for unpacked files and for files being written.

Each is locked while in use. A killed run leaves its folder behind; the next command that uses the same parent folder
(the database's, or the system's for temporary files) removes it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path

if sys.platform != "win32":
    import fcntl

BOOT = Path("/proc/sys/kernel/random/boot_id")


@contextmanager
def spill_folder(beside: Path, or_elsewhere: bool = False) -> Iterator[str]:
    """Create a private folder next to ``beside``, and remove the leftovers of dead processes.

    If the parent directory does not exist, or ``or_elsewhere`` is set and it is not writable, use the system's
    temporary directory. Raises OSError, which names the parent directory.
    """
    system = Path(tempfile.gettempdir())
    folder = beside.parent if beside.parent.is_dir() else system
    for place in {folder, system}:
        _clear(place)
    while True:
        made = _made(folder, system if or_elsewhere else None)
        number = _locked(made, waits=True)
        try:
            if not made.is_dir():  # removed as a leftover before it was locked
                continue
            yield str(made)
        finally:
            shutil.rmtree(made, ignore_errors=True)
            if number is not None:
                os.close(number)
        return


def temporary_folder() -> AbstractContextManager[str]:
    """Create such a folder in the system's temporary directory."""
    return spill_folder(Path(tempfile.gettempdir()) / "any")


def _made(folder: Path, other: Path | None) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=_prefix(), dir=folder))
    except OSError as error:
        if other is None or other == folder:
            raise OSError(error.errno, os.strerror(error.errno or 0), str(folder)) from error
        return _made(other, None)


def _clear(folder: Path) -> None:
    """Remove spill folders whose lock no process of this machine has held since boot."""
    if not BOOT.exists():
        return
    found: list[Path] = []
    with suppress(OSError), os.scandir(folder) as entries:  # a glob takes several times as long
        found = [Path(entry.path) for entry in entries if entry.name.startswith(_prefix())]
    for path in found:
        number = _locked(path, waits=False)
        if number is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(number)


@cache
def _prefix() -> str:
    """Return the prefix of folder names. Locks of other machines may be invisible, so their folders are left alone."""
    try:
        boot = BOOT.read_bytes()
    except OSError:
        return ".tracedb-"
    return f".tracedb-{hashlib.sha256(boot).hexdigest()[:8]}-"


def _locked(folder: Path, waits: bool) -> int | None:
    """Lock a folder; returns the descriptor to close, None if it cannot be locked."""
    if sys.platform == "win32":
        return None
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except OSError:
            os.close(number)
            return None
        return number
    return None
