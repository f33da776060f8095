"""What is to be loaded, and what became of it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tracedb.errors import UsageError
from tracedb.ingester import Begun, Capture, Options
from tracedb.pipeline.labels import compile_regex

SIZE = re.compile(r"[0-9.]+ *([KMGT]i?)?B", re.IGNORECASE)
MEMORY_LIMIT = "150MB"
"""For the database engine of one job, where its ingester asks for no other; a job then stays below 400 MB."""


@dataclass(frozen=True)
class Request:
    """What the user asked to ingest, and how."""

    paths: tuple[Path, ...]
    database: Path
    labels: dict[str, str] = field(default_factory=dict)
    labels_from: str | None = None
    memory_limit: str | None = None
    """For the database engine of each job; None for what the ingester asks for, or ``MEMORY_LIMIT``."""
    ingester: str | None = None
    python_stacks: bool = False
    memory_events: bool = False
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    first_capture_id: int = 1

    def __post_init__(self) -> None:
        """Raise ``UsageError`` for a limit or a regex that cannot be used."""
        if self.memory_limit is not None and not SIZE.fullmatch(self.memory_limit):
            raise UsageError(f"--memory-limit takes a size such as 500MB or 2GiB, not {self.memory_limit!r}")
        if self.labels_from is not None:
            compile_regex(self.labels_from)


def options_of(request: Request, progress: Callable[[int], None] | None, begun: Begun | None = None) -> Options:
    """Return what an ingester is told; without ``progress`` it reads for the second time."""
    return Options(
        request.python_stacks,
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
    """Place in the order of the paths: captures are numbered in it, whichever is read first."""
    total: int = 1
    """How many tasks there are."""
    changed_ns: int = 0
    """When the latest of its files was changed; 0 where nobody looked."""
    told: Path | None = None
    """The path that users know its first file by, where that is a member of an archive."""
    copies: tuple[Path, ...] = ()
    """Paths of captures of this call with the same bytes, which are not loaded."""

    @property
    def path(self) -> Path:
        """The path that is stored and told of."""
        return self.told or self.capture.files[0]

    def failed(self, reason: str) -> Outcome:
        """Return that nothing was loaded, and why."""
        return Outcome(self.path, self.size_bytes, error=reason)


def state_of(paths: Sequence[Path]) -> tuple[int, int]:
    """Return the bytes of files, and when the latest was changed, in ns since 1970. Raises OSError."""
    found = [path.stat() for path in paths]
    return sum(file.st_size for file in found), max((file.st_mtime_ns for file in found), default=0)


@dataclass(frozen=True)
class Found:
    """What discovery and detection gave."""

    tasks: list[Task]
    unrecognised: list[tuple[Path, str]]
    failed: list[tuple[Path, str]] = field(default_factory=list)
    """Files that are not loaded for a fault, and the fault: a reader failed on one, or two claim it."""
    archives: list[Path] = field(default_factory=list)

    def failures(self) -> list[Outcome]:
        """Return what became of the files that failed."""
        return [Outcome(path, 0, error=reason) for path, reason in self.failed]


@dataclass
class Loaded:
    """One capture row as written, with its issues as (code, severity, count, detail)."""

    capture_id: int
    rank: int | None
    status: str
    labels: dict[str, str]
    events_read: int | None
    """This and the next two: None where the ingester does not say."""
    events_skipped: int | None
    rows_written: int | None
    kernels: int
    issues: list[tuple[str, str, int, str]]
    samples: int = 0
    """Operator samples that came as one number each, without events."""
    has_counters: bool = False
    """Whether hardware counters were read: then its kernels may all be dispatches that were not plain runs."""


@dataclass(frozen=True)
class KnownAs:
    """The capture that holds the bytes of a file already; the first one, where the file gave several."""

    capture_id: int
    path: str
    labels: dict[str, str]
    """Labels that it has, with those that were given to it now."""
    given: dict[str, str]
    """Labels of this call (``--label``) that it did not have, and has now."""
    missing: dict[str, str]
    """Labels that the path of this file tells and the capture does not have."""


@dataclass
class Outcome:
    """What became of one capture file: its captures, or why it failed, or that it was loaded before."""

    path: Path
    size_bytes: int
    loaded: list[Loaded] = field(default_factory=list)
    error: str | None = None
    is_known: bool = False
    is_busy: bool = False
    """Whether it failed because another process held the database for too long."""
    unfinished: str | None = None
    """What is still to be done for what was loaded, and why it was not."""
    sha256: str | None = None
    """Of what was loaded or is known."""
    known_as: KnownAs | None = None

    @property
    def is_faulty(self) -> bool:
        """Whether anything was skipped or repaired for a fault of the file."""
        return any(severity == "warning" for item in self.loaded for _, severity, _, _ in item.issues)
