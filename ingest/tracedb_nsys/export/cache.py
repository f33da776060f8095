"""The cache of exported reports, keyed by the report's bytes and bounded in age and size.

Only the owner can read it, and ``scrub`` has removed private data from the exports.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import time
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

from tracedb.storage.spill_folder import temporary_folder

MOST_BYTES = 20 << 30
MOST_AGE_S = 30 * 86_400.0
"""Exports unused for this long are removed; then the least recently used ones until the rest is small enough."""
ENDING = ".bare.sqlite"
"""Exports without this suffix were kept unscrubbed by an older tracedb and are removed."""


def folder() -> Path:
    """Return the cache folder."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "tracedb" / "nsys"


def place(report: Path) -> Path:
    """Return the path of a report's export, whether it exists or not.

    If the folder belongs to another user, or cannot be created or made private, this is a temporary path that is
    removed when the process ends.
    """
    with report.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return (_usable() or _passing()) / f"{digest}{ENDING}"


def keep(draft: Path, target: Path) -> None:
    """Move a new export into place, readable by its owner only. Raises OSError."""
    draft.chmod(0o600)
    draft.replace(target)


def used(export: Path) -> None:
    """Record that an export was used now."""
    with suppress(OSError):  # the cache may be read-only
        os.utime(export)


def clean(keep: Path) -> None:
    """Remove exports that are too old or exceed the size limit; ``keep`` stays."""
    now = time.time()
    kept = 0
    for export in sorted(keep.parent.glob("*.sqlite"), key=lambda path: _age(path, now)):
        with suppress(OSError):  # another process may have removed it
            size = export.stat().st_size
            is_whole = not export.name.endswith(ENDING)
            if export != keep and (is_whole or kept + size > MOST_BYTES or _age(export, now) > MOST_AGE_S):
                export.unlink()
            else:
                kept += size


def _usable() -> Path | None:
    """Return the folder, created and private to its owner; None if that is impossible."""
    found = folder()
    try:
        found.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "geteuid") and {found.lstat().st_uid, found.stat().st_uid} != {os.geteuid()}:
            return None
        found.chmod(0o700)
        for export in found.glob("*.sqlite"):
            if export.stat().st_mode & 0o077:
                export.chmod(0o600)
    except OSError:
        return None
    return found


@cache
def _passing() -> Path:
    """Return a private temporary folder that is removed when the process ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return Path(stack.enter_context(temporary_folder()))


def _age(path: Path, now: float) -> float:
    try:
        return now - path.stat().st_mtime
    except OSError:
        return 0.0
