"""Find the recordings of ROCm's profilers: the files of each process, and duplicates in other formats."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tracedb.ingester import Capture
from tracedb.ingester.decompress import opened
from tracedb_rocprof.csv import headers

ROCPD, JSON, CSV, RPD = "rocpd", "json", "csv", "rpd"
LEGACY_JSON, LEGACY_CSV, LEGACY_DB = "legacy json", "legacy csv", "legacy db"
STATS, EMPTY = "stats", "empty"
PREFERENCE = (ROCPD, JSON, CSV, LEGACY_JSON, LEGACY_CSV, RPD, LEGACY_DB)
SQLITE_MAGIC = b"SQLite format 3\x00"
JSON_MARK = b'"rocprofiler-sdk-tool"'
LEGACY_JSON_MARK = re.compile(rb'\A\s*\{.*"traceEvents"\s*:.*"args"\s*:\s*\{[^{}]*"BeginNs"\s*:', re.DOTALL)
HEAD = 1 << 16
JSON_HEAD = 1 << 12
DOMAINS = (
    "kernel|memory_copy|memory_allocation|scratch_memory|regions|domain|"
    r"(?:hip|hsa|marker|rccl|rocdecode|rocjpeg)(?:_\w+?)?_api"
)
NAME = re.compile(
    rf"(?:(?P<stem>.*?)_)?(?:(?:{DOMAINS})_(?:trace|stats)|counter_collection(?:_trace)?|agent_info|results(?:\.stats)?)"
    r"\.(?:csv|json|db)(?:\.gz|\.zst)?",
    re.IGNORECASE,
)
TRACE_NAME = re.compile(
    rf"(?:.*_)?(?:(?:{DOMAINS})_trace|counter_collection(?:_trace)?)\.csv(?:\.gz|\.zst)?", re.IGNORECASE
)
"""File names that only rocprofv3 uses: such a file must have a known header."""
ENDING = re.compile(r"(?:\.(?:csv|json|db|rpd|gz|zst))+$", re.IGNORECASE)
NUMBERED = re.compile(r"(?P<words>.*?)(?P<number>\d+)")
RANK_WORDS = re.compile(r"(?i)procid|proc_id|mpi|slurm")
HAS_RANK = re.compile(r"(?i)rank")


@dataclass
class Process:
    """The files of one process by kind, and its statistics."""

    files: dict[str, list[Path]] = field(default_factory=dict)

    def capture(self, rank: int | None) -> Capture | None:
        """Return the capture: the best recording, with the others as duplicates; None if there is none."""
        kinds = [kind for kind in PREFERENCE if kind in self.files]
        if not kinds:
            return None
        beside = self.files.get(STATS, []) + self.files.get(EMPTY, [])
        groups = [sorted(self.files[kind], key=_place) for kind in kinds]
        owner = next((place for place, kind in enumerate(kinds) if kind in (CSV, LEGACY_CSV)), 0)
        groups[owner] += sorted(beside)
        return Capture(tuple(groups[0]), rank, tuple(path for group in groups[1:] for path in group))


def _place(path: Path) -> tuple[bool, str]:
    """Return the order of a set's files; the kernel file comes first and names the capture."""
    return "kernel_trace" not in path.name, path.name


def kind_of(path: Path) -> str | None:
    """Return the kind of a file by its content, or by name if empty; None if it is not from ROCm."""
    if path.stat().st_size == 0:
        return EMPTY if NAME.fullmatch(path.name) else None
    head = _head(path)
    if head.startswith(SQLITE_MAGIC):
        return _kind_of_database(path, head)
    if JSON_MARK in head[:JSON_HEAD]:
        return JSON
    if LEGACY_JSON_MARK.search(head):
        return LEGACY_JSON
    header = headers.header_of(head.lstrip(b"\r\n").partition(b"\n")[0])
    if header is None:
        return CSV if TRACE_NAME.fullmatch(path.name) else None
    return {headers.STATS: STATS, headers.LEGACY: LEGACY_CSV}.get(header.domain, CSV)


def _head(path: Path) -> bytes:
    with opened(path) as file:
        return file.read(HEAD)


def _kind_of_database(path: Path, head: bytes) -> str | None:
    """Return the kind of an SQLite file by its tables; if damaged or compressed, by names in its first bytes."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            connection.text_factory = bytes  # a damaged file may hold any bytes
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            names = [name.decode(errors="replace") for (name,) in found]
    except (sqlite3.Error, UnicodeDecodeError):  # raised for a damaged schema
        names = re.findall(r"rocpd_[a-z_]+", head.decode("latin-1"))
    return kind_of_tables(names)


def kind_of_tables(names: Sequence[str]) -> str | None:
    """Return the kind of a database by the names of its tables."""
    if any(name.startswith(("rocpd_info_", "rocpd_kernel_dispatch")) for name in names):
        return ROCPD
    if {"rocpd_op", "rocpd_api"}.issubset(names):
        return RPD
    return LEGACY_DB if {"HIP", "OPS"}.issubset(names) or {"KERN", "COPY"}.issubset(names) else None


def captures(files: Sequence[Path]) -> Iterator[Capture]:
    """Yield a capture for each process."""
    found: dict[tuple[Path, str], Process] = {}
    for path in files:
        try:
            kind = kind_of(path)
        except OSError:
            continue
        if kind is not None:
            process = found.setdefault((path.parent, stem_of(path.name)), Process())
            process.files.setdefault(kind, []).append(path)
    ranks = _ranks([place for place, process in found.items() if process.capture(None)])
    for place, process in found.items():
        capture = process.capture(ranks.get(place))
        if capture is not None:
            yield capture


def stem_of(name: str) -> str:
    """Return the key shared by the files of one process."""
    match = NAME.fullmatch(name)
    return (match["stem"] or "") if match else ENDING.sub("", name)


def _ranks(places: Sequence[tuple[Path, str]]) -> dict[tuple[Path, str], int]:
    """Return the ranks by the numbers in names, if processes in one folder count from 0 without a gap.

    This tells ``-o %rank%`` and names made of MPI or Slurm variables from process ids.
    """
    numbers: dict[tuple[Path, str], tuple[str, int]] = {}
    for folder, stem in places:
        match = NUMBERED.fullmatch(stem)
        if match and len(match["number"]) < 8 and (not match["words"] or RANK_WORDS.search(match["words"])):
            numbers[folder, stem] = (match["words"], int(match["number"]))
    ranks: dict[tuple[Path, str], int] = {}
    for up in (0, 1):
        groups: dict[tuple[Path, str], list[tuple[Path, str]]] = {}
        for place, (words, _) in numbers.items():
            if place not in ranks:
                folder = place[0].parent if up else place[0]
                groups.setdefault((folder, words), []).append(place)
        for group in groups.values():
            found = sorted(numbers[place][1] for place in group)
            if len(found) > 1 and found == list(range(len(found))):
                ranks.update((place, numbers[place][1]) for place in group)
    return {
        place: rank
        for place, rank in ranks.items()
        if not HAS_RANK.search(place[1]) and not HAS_RANK.search(place[0].name)
    }
