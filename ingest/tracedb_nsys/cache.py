"""The folder in which exports of reports are kept: found again by the report's bytes, bounded in age and size."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 20 << 30
MOST_AGE_S = 30 * 86_400.0
"""Exports that were not used for so long are removed, and then the longest unused until the rest is small enough."""
DRAFT = "export-"
DRAFT_AGE_S = 86_400.0  # what a killed process left; no export takes that long


def folder() -> Path:
    """Return the folder that exports are kept in."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "tracedb" / "nsys"


def place(report: Path) -> Path:
    """Return where the export of a report is kept, whether it is there or not."""
    with report.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return folder() / f"{digest}.sqlite"


def used(export: Path) -> None:
    """Remember that an export was used now."""
    with suppress(OSError):  # a cache that others may read only
        os.utime(export)


def clean(keep: Path) -> None:
    """Remove what is too old or too much, and drafts of processes that were killed; ``keep`` stays."""
    now = time.time()
    for draft in folder().glob(f"{DRAFT}*"):
        if _age(draft, now) > DRAFT_AGE_S:
            shutil.rmtree(draft, ignore_errors=True)
    kept = 0
    for export in sorted(folder().glob("*.sqlite"), key=lambda path: _age(path, now)):
        with suppress(OSError):  # another process may have removed it
            kept += export.stat().st_size
            if export != keep and (kept > MOST_BYTES or _age(export, now) > MOST_AGE_S):
                export.unlink()


def _age(path: Path, now: float) -> float:
    try:
        return now - path.stat().st_mtime
    except OSError:
        return 0.0
