"""The tasks of an ingest and their outcomes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tracedb.errors import UsageError
from tracedb.ingester import Begun, Capture, Options
from tracedb.pipeline.labels import compile_regex
from tracedb.storage.database_file import size_of
from tracedb.storage.memory_size import SIZE

MEMORY_LIMIT = "150MB"
"""Memory limit of one job's engine, unless its ingester asks for another; keeps a job below 400 MB."""


@dataclass(frozen=True)
class Repaired:
    """A capture of a lake that is loaded again because its files are missing or damaged."""

    sha256: str
    part: int
    labels: dict[str, str]
    rank: int | None


@dataclass(frozen=True)
class Request:
    """What to ingest, and with which options."""

    paths: tuple[Path, ...]
    database: Path
    labels: dict[str, str] = field(default_factory=dict)
    labels_from: str | None = None
    memory_limit: str | None = None
    """Memory limit of each job's engine; None for the ingester's choice or ``MEMORY_LIMIT``."""
    ingester: str | None = None
    stacks: bool = True
    memory_events: bool = True
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    first_capture_id: int = 1
    lake: Path | None = None
    """The lake to load into, instead of the database."""
    repaired: tuple[Repaired, ...] = ()
    """Those of the lake; they keep their labels and ranks."""
    aligns: bool = True
    """Whether facts about several captures of a lake are derived at the end."""

    @property
    def beside(self) -> Path:
        """Where files may be unpacked: next to what is loaded into."""
        return self.database if self.lake is None else self.lake

    def __post_init__(self) -> None:
        """Raise ``UsageError`` for an invalid limit or regex."""
        if self.memory_limit is not None and not SIZE.fullmatch(self.memory_limit):
            raise UsageError(f"--memory-limit takes a size such as 500MB or 2GiB, not {self.memory_limit!r}")
        if self.labels_from is not None:
            compile_regex(self.labels_from)


def options_of(request: Request, progress: Callable[[int], None] | None, begun: Begun | None = None) -> Options:
    """Return the options for an ingester; without ``progress`` it reads for the second time."""
    return Options(
        request.stacks,
        request.memory_events,
        request.cores,
        progress or (lambda done: None),
        is_second=progress is None,
        begun=begun,
    )


@dataclass(frozen=True)
class Task:
    """One capture to load, and the ingester that claimed it."""

    capture: Capture
    source: str
    size_bytes: int
    number: int = 0
    """Position in path order; captures are numbered in it, whichever is read first."""
    total: int = 1
    """Total number of tasks."""
    changed_ns: int = 0
    """Latest modification time of its files; 0 if not checked."""
    told: Path | None = None
    """For a member of an archive, the path shown to users for its first file."""
    copies: tuple[Path, ...] = ()
    """Paths of identical captures in this call, which are not loaded."""

    @property
    def path(self) -> Path:
        """The path that is stored and shown."""
        return self.told or self.capture.files[0]

    def failed(self, reason: str) -> Outcome:
        """Return the outcome of a failed load, with the reason."""
        return Outcome(self.path, self.size_bytes, error=reason)


def state_of(paths: Sequence[Path]) -> tuple[int, int]:
    """Return the total size of files and their latest modification time, in ns since 1970. Raises OSError."""
    found = [path.stat() for path in paths]
    return sum(file.st_size for file in found), max((file.st_mtime_ns for file in found), default=0)


@dataclass(frozen=True)
class Found:
    """The result of discovery and detection."""

    tasks: list[Task]
    unrecognised: list[tuple[Path, str]]
    failed: list[tuple[Path, str]] = field(default_factory=list)
    """Files that are not loaded, with the reason: a reader failed, or two ingesters claim it."""
    archives: list[Path] = field(default_factory=list)
    databases: list[tuple[Path, Path]] = field(default_factory=list)
    """DuckDB files, perhaps of tracedb: where they are, and the path shown to users."""

    @property
    def size_bytes(self) -> int:
        """The size of everything that is to be read."""
        return sum(task.size_bytes for task in self.tasks) + sum(size_of(path) for path, _ in self.databases)

    def failures(self) -> list[Outcome]:
        """Return the outcomes of the files that failed."""
        return [Outcome(path, 0, error=reason) for path, reason in self.failed]


MEMORY_SNAPSHOT = "torch_memory"
"""Source of captures that hold events of PyTorch's memory allocator and nothing else."""


@dataclass
class Loaded:
    """One capture row as written, with its issues as (code, severity, count, detail)."""

    capture_id: int
    rank: int | None
    status: str
    labels: dict[str, str]
    events_read: int | None
    """This and the next two are None if the ingester does not give them."""
    events_skipped: int | None
    rows_written: int | None
    kernels: int
    issues: list[tuple[str, str, int, str]]
    samples: int = 0
    """Number of operator samples and of measured times: single measurements without events."""
    has_counters: bool = False
    """Whether hardware counters were read; if so, perhaps none of its kernels was a plain run."""
    has_graphs: bool = False
    """Whether a capture of the database launches graphs, whose kernels this one may explain."""
    is_snapshot: bool = False
    """Whether it is a memory snapshot, which has no kernels."""


@dataclass(frozen=True)
class KnownAs:
    """The capture that already holds a file's bytes; the first one, if the file gave several."""

    capture_id: int
    path: str
    labels: dict[str, str]
    """All its labels, including those added now."""
    given: dict[str, str]
    """Labels added by this call (``--label``)."""
    missing: dict[str, str]
    """Labels in the path of this file that the capture does not have."""


@dataclass
class Outcome:
    """The result for one capture file: its captures, or why it failed, or that it was loaded before."""

    path: Path
    size_bytes: int
    loaded: list[Loaded] = field(default_factory=list)
    error: str | None = None
    is_known: bool = False
    is_busy: bool = False
    """Whether it failed because another process held the database for too long."""
    unfinished: str | None = None
    """What is still pending for the loaded captures, and why."""
    sha256: str | None = None
    """Of the loaded or known captures."""
    known_as: KnownAs | None = None
    notes: list[str] = field(default_factory=list)
    """Warnings about the file as a whole."""

    @property
    def is_faulty(self) -> bool:
        """Whether anything was skipped or repaired because the file is faulty."""
        return any(severity == "warning" for item in self.loaded for _, severity, _, _ in item.issues)
