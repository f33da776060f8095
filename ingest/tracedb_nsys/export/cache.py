"""The folder in which exports of reports are kept: found again by the report's bytes, bounded in age and size.

Only its owner may look into it, and ``scrub`` has taken out of the exports what nobody needs to know.
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
"""Exports that were not used for so long are removed, and then the longest unused until the rest is small enough."""
ENDING = ".bare.sqlite"
"""Exports without it are of a tracedb that kept them whole, and go."""


def folder() -> Path:
    """Return the folder that exports are to be kept in."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "tracedb" / "nsys"


def place(report: Path) -> Path:
    """Return where the export of a report is kept, whether it is there or not.

    Where the folder belongs to another user, or cannot be made or closed to others, that is a place which goes with
    this process.
    """
    with report.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return (_usable() or _passing()) / f"{digest}{ENDING}"


def keep(draft: Path, target: Path) -> None:
    """Put a new export into its place, for its owner only. Raises OSError."""
    draft.chmod(0o600)
    draft.replace(target)


def used(export: Path) -> None:
    """Remember that an export was used now."""
    with suppress(OSError):  # a cache that others may read only
        os.utime(export)


def clean(keep: Path) -> None:
    """Remove what is too old or too much; ``keep`` stays."""
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
    """Return the folder, made and closed to all but its owner; None where that cannot be."""
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
    """Return a private folder that is removed when the process ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return Path(stack.enter_context(temporary_folder()))


def _age(path: Path, now: float) -> float:
    try:
        return now - path.stat().st_mtime
    except OSError:
        return 0.0
