"""The folder beside the database into which a run spills what its memory does not hold; killed runs leave theirs."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

if sys.platform != "win32":
    import fcntl

BOOT = Path("/proc/sys/kernel/random/boot_id")


@contextmanager
def spill_folder(beside: Path) -> Iterator[str]:
    """Make a folder beside ``beside``, held by a lock on itself as long as it is used; take away those of the dead.

    Where there is no such folder to be beside in, it is made in the system's. Raises OSError.
    """
    folder = beside.parent if beside.parent.is_dir() else None
    if folder is not None:
        _clear(folder)
    while True:
        with tempfile.TemporaryDirectory(prefix=_prefix(), dir=folder, ignore_cleanup_errors=True) as made:
            number = _locked(Path(made), waits=True)
            try:
                if not Path(made).is_dir():  # taken for a dead one's before it was locked
                    continue
                yield made
            finally:
                if number is not None:
                    os.close(number)
        return


def _clear(folder: Path) -> None:
    """Remove spill folders that no process of this machine, since it was started, holds any more."""
    if not BOOT.exists():
        return
    for path in folder.glob(f"{_prefix()}*"):
        number = _locked(path, waits=False)
        if number is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(number)


@cache
def _prefix() -> str:
    """Return how the names begin. Locks of other machines may not be seen here, so folders of theirs are left alone."""
    try:
        boot = BOOT.read_bytes()
    except OSError:
        return ".tracedb-"
    return f".tracedb-{hashlib.sha256(boot).hexdigest()[:8]}-"


def _locked(folder: Path, waits: bool) -> int | None:
    """Lock a folder; returns the number to close, None where it cannot be locked."""
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
