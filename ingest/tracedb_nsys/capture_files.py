"""Find the captures of nsys among files, and which files record the same session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tracedb.ingester import Capture

SUFFIX = ".parquet"
MAGIC = b"SQLite format 3\x00"
SQLITE, PARQUET, REPORT, STREAM = "sqlite", "parquet", "report", "stream"
PREFERENCE = (SQLITE, PARQUET, REPORT, STREAM)
REPORT_MAGIC = b"NVIDIA Tegra Profiler Report"
STREAM_MAGIC = b"U3w[END]NVIDIA Nsight Systems Stream"
ENDINGS = {".nsys-rep": REPORT, ".qdrep": REPORT, ".qdstrm": STREAM, ".sqlite": SQLITE}
FOLDER_ENDING = "_pqtdir"


def kind_of(path: Path) -> str | None:
    """Return the kind of a file by its content, or by name if empty or damaged; None if it is not from nsys."""
    if path.name.endswith(SUFFIX):
        return PARQUET
    named = next((kind for ending, kind in ENDINGS.items() if path.name.endswith(ending)), None)
    if path.stat().st_size == 0:
        return named
    with path.open("rb") as file:
        start = file.read(64)
    if start.startswith(MAGIC):
        from tracedb_nsys.export.sqlite import is_nsys  # imports Arrow

        return SQLITE if is_nsys(path) else None
    if start.startswith(REPORT_MAGIC):
        return REPORT
    if start.startswith(STREAM_MAGIC):
        return STREAM
    return None if named == SQLITE else named


def captures(files: Sequence[Path]) -> Iterator[Capture]:
    """Yield a capture for each recorded session; further recordings of the session are its duplicates."""
    sessions: dict[tuple[Path, str], list[tuple[bool, int, tuple[Path, ...]]]] = {}
    for kind, recording in _recordings(files):
        is_empty = not any(path.stat().st_size for path in recording)
        sessions.setdefault(_session(kind, recording[0]), []).append((is_empty, PREFERENCE.index(kind), recording))
    for found in sessions.values():
        first, *others = sorted(found)
        yield Capture(files=first[2], duplicates=tuple(path for _, _, paths in others for path in paths))


def recording_names(paths: Iterable[Path]) -> list[str]:
    """Return the names of recordings; for a Parquet export, the folder's name."""
    return list(dict.fromkeys(path.parent.name if path.name.endswith(SUFFIX) else path.name for path in paths))


def _recordings(files: Sequence[Path]) -> Iterator[tuple[str, tuple[Path, ...]]]:
    folders: dict[Path, list[Path]] = {}
    for path in files:
        try:
            kind = kind_of(path)
        except OSError:
            continue
        if kind == PARQUET:
            folders.setdefault(path.parent, []).append(path)
        elif kind is not None:
            yield kind, (path,)
    if folders:
        from tracedb_nsys.export.protocol import is_export  # imports Arrow
    for paths in folders.values():
        if is_export(path.name.removesuffix(SUFFIX) for path in paths):
            yield PARQUET, tuple(sorted(paths))


def _session(kind: str, path: Path) -> tuple[Path, str]:
    """Return the folder and base name that all recordings of a session share."""
    if kind == PARQUET:
        folder = path.parent
        return folder.parent, folder.name.removesuffix(FOLDER_ENDING)
    return path.parent, _stem(path.name, (*ENDINGS, ".db"))


def _stem(name: str, endings: Iterable[str]) -> str:
    """Return the name without endings; report.nsys-rep.sqlite, too, gives report."""
    for ending in endings:
        if name.endswith(ending) and name != ending:
            return _stem(name.removesuffix(ending), endings)
    return name
