"""From paths to a database: discover, detect, read, load, derive; each stage only after the one before."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import duckdb
import pyarrow as pa

from tracedb import derive, ingester, labels, schema, views
from tracedb.database import attached, check_version, is_ours, open_read_only, transaction, workbench
from tracedb.errors import DatabaseBusy, ReadError, TracedbError, UsageError
from tracedb.ingester import Capture, Ingester, Options, Rows

MEMORY_LIMIT = "200MB"
NO_BYTES = "0 bytes"


@dataclass(frozen=True)
class Request:
    """What the user asked to ingest, and how."""

    paths: tuple[Path, ...]
    database: Path
    labels: dict[str, str] = field(default_factory=dict)
    labels_from: str | None = None
    memory_limit: str = MEMORY_LIMIT
    ingester: str | None = None
    python_stacks: bool = False
    memory_events: bool = False
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    first_capture_id: int = 1


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


@dataclass(frozen=True)
class Found:
    """What discovery and detection gave."""

    tasks: list[Task]
    unrecognised: list[tuple[Path, str]]


@dataclass
class Loaded:
    """One capture row as written, with its issues as (code, severity, count, detail)."""

    capture_id: int
    rank: int | None
    status: str
    labels: dict[str, str]
    events_read: int
    events_skipped: int
    rows_written: int
    kernels: int
    issues: list[tuple[str, str, int, str]]


@dataclass
class Outcome:
    """What became of one capture file: its captures, or why it failed, or that it was loaded before."""

    path: Path
    size_bytes: int
    loaded: list[Loaded] = field(default_factory=list)
    error: str | None = None
    is_known: bool = False

    @property
    def is_faulty(self) -> bool:
        """Whether anything was skipped or repaired for a fault of the file."""
        return any(severity == "warning" for item in self.loaded for _, severity, _, _ in item.issues)


def ingest(*paths: str | Path, db: str | Path, label: dict[str, str] | None = None) -> list[Outcome]:
    """Load traces into the database ``db``, one after the other; what ``tracedb ingest`` does, without printing.

    Raises ``UsageError`` for a path that is not there, ``DatabaseBusy`` while another process holds the database. A
    file that cannot be loaded has ``error`` in its outcome.
    """
    request = Request(tuple(Path(path) for path in paths), Path(db), labels=label or {})
    found = detect(discover(request.paths))
    known, free = known_captures(request.database)
    request = replace(request, first_capture_id=free)
    return [load(task, request, known) for task in found.tasks]


def discover(paths: Sequence[Path]) -> list[Path]:
    """Return the files at and below ``paths``, sorted. Raises ``UsageError`` for a path that is not there."""
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            for folder, names, below in os.walk(path):
                names.sort()
                for name in sorted(below):
                    files[Path(folder) / name] = None
        elif path.exists():
            files[path] = None
        else:
            raise UsageError(f"{path}: no such file or folder")
    return list(files)


def detect(files: Sequence[Path], only: str | None = None) -> Found:
    """Ask the ingesters which files they recognise.

    Raises ``UsageError`` where two claim one file, or where ``only`` names no ingester.
    """
    claims: dict[Path, str] = {}
    tasks: list[Task] = []
    readable = [path for path in files if path.is_file() and path.stat().st_size > 0]
    for registered, source in ingester.load(only):
        for capture in source.find(readable):
            for path in (*capture.files, *capture.duplicates):
                if path in claims:
                    raise UsageError(
                        f"{path}: both {claims[path]} and {registered.name} recognise it; choose with --ingester NAME"
                    )
                claims[path] = registered.name
            size = sum(path.stat().st_size for path in capture.files)
            tasks.append(Task(capture, registered.name, size))
    tasks.sort(key=lambda task: str(task.capture.files[0]))
    tasks = [replace(task, number=number, total=len(tasks)) for number, task in enumerate(tasks)]
    return Found(tasks, [(path, _why_not(path)) for path in files if path not in claims])


def _why_not(path: Path) -> str:
    if not path.is_file():
        return "not a regular file"
    try:
        return NO_BYTES if path.stat().st_size == 0 else "no ingester recognises its content"
    except OSError as error:
        return error.strerror or "unreadable"


def known_captures(database: Path) -> tuple[dict[int, set[str]], int]:
    """Return the digests already loaded by size in bytes, and the first free capture number."""
    if not database.exists():
        return {}, 1
    with open_read_only(database) as connection:
        rows = connection.execute("SELECT size_bytes, sha256 FROM main.capture WHERE sha256 IS NOT NULL").fetchall()
        free = connection.execute("SELECT coalesce(max(capture_id), 0) + 1 FROM main.capture").fetchone()
    known: dict[int, set[str]] = {}
    for size, digest in rows:
        known.setdefault(size, set()).add(digest)
    return known, free[0] if free else 1


def digest_of(paths: Sequence[Path]) -> str:
    """Return the SHA-256 over the bytes of all files."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def load(
    task: Task,
    request: Request,
    known: dict[int, set[str]],
    progress: Callable[[int], None] = lambda done: None,
    turn: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Outcome:
    """Load one capture in one transaction; the database is locked only while rows are written.

    ``turn`` is entered before the database is opened and left after it is closed. A fault of the file is in the
    outcome, and leaves the database as it was. Raises ``DatabaseBusy``, ``KeyboardInterrupt`` and errors of our own.
    """
    outcome = Outcome(task.capture.files[0], task.size_bytes)
    try:
        if task.size_bytes in known and digest_of(task.capture.files) in known[task.size_bytes]:
            outcome.is_known = True
            progress(task.size_bytes)
            return outcome
        _load(task, request, outcome, progress, turn)
    except DatabaseBusy:
        raise
    except TracedbError as error:
        outcome.error = str(error)
    except (OSError, duckdb.Error, pa.ArrowException, UnicodeError) as error:
        outcome.error = _one_line(error)
    return outcome


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, duckdb.OutOfMemoryException):
        return f"not enough memory ({text[:200]}); raise --memory-limit"
    return text[:500]


def _load(
    task: Task,
    request: Request,
    outcome: Outcome,
    progress: Callable[[int], None],
    turn: Callable[[], AbstractContextManager[None]],
) -> None:
    registered, source = next(pair for pair in ingester.load(task.source))
    options = Options(request.python_stacks, request.memory_events, request.cores, progress)
    hashing = _Hashing(task.capture.files)
    existed = request.database.exists()
    with workbench(request.memory_limit, request.cores, request.database) as connection:
        rows = source.read(task.capture, connection, options)
        first = next(rows, None)
        if first is None:
            raise ReadError(f"ingester {registered.name} gave no rows")
        with turn():
            try:
                with attached(connection, request.database), transaction(connection):
                    connection.execute("SET preserve_insertion_order = true")
                    _prepare(connection, request.database)
                    digest = hashing.result()
                    seen = connection.execute(
                        "SELECT count(*) FROM main.capture WHERE sha256 = ?", [digest]
                    ).fetchone()
                    if seen and seen[0]:
                        outcome.is_known = True
                    else:
                        stamp = f"{registered.distribution} {registered.version}"
                        loader = _Loader(connection, task, request, digest, stamp)
                        outcome.loaded = loader.run(first, rows)
            except BaseException:
                if not existed:
                    _remove_if_empty(request.database)
                raise


def _remove_if_empty(database: Path) -> None:
    """Remove a file that this run created and that nothing was committed to."""
    try:
        with duckdb.connect(str(database), read_only=True) as connection:
            empty = not is_ours(connection)
    except duckdb.Error:
        return
    if empty:
        database.unlink(missing_ok=True)


def _prepare(connection: duckdb.DuckDBPyConnection, database: Path) -> None:
    from tracedb import __version__

    if not is_ours(connection):
        schema.apply(connection, __version__)
        views.install(connection)
        return
    check_version(connection, database)
    if views.outdated(connection):
        views.install(connection)


class _Hashing:
    """Hashes files beside the reading; hashing releases the interpreter lock."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._digest: str | None = None
        self._error: OSError | None = None
        self._thread = Thread(target=self._run, args=(paths,), name="tracedb-hash", daemon=True)
        self._thread.start()

    def _run(self, paths: Sequence[Path]) -> None:
        try:
            self._digest = digest_of(paths)
        except OSError as error:
            self._error = error

    def result(self) -> str:
        self._thread.join()
        if self._digest is None:
            raise self._error or OSError("the file could not be hashed")
        return self._digest


class _Loader:
    """Writes the rows of one task; every part becomes a capture."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, task: Task, request: Request, digest: str, stamp: str
    ) -> None:
        self._connection = connection
        self._task = task
        self._request = request
        self._digest = digest
        self._stamp = stamp
        self._ids: dict[int, int] = {}
        self._open: int | None = None
        self._loaded: list[Loaded] = []

    def run(self, first: Rows, rest: Iterator[Rows]) -> list[Loaded]:
        """Insert everything and derive; returns the captures written."""
        self._insert(first)
        for rows in rest:
            self._insert(rows)
        if self._open is not None:
            raise ReadError("the ingester gave rows but no capture row")
        return self._loaded

    def _insert(self, rows: Rows) -> None:
        connection = self._connection
        if self._open is None:
            self._open = rows.part
            self._ids[rows.part] = self._free_id(rows.part)
            derive.begin(connection)
        if rows.part != self._open:
            raise ReadError("the ingester gave rows of a part before the capture row of the part before")
        capture_id = self._ids[rows.part]
        if rows.table == "capture":
            self._capture(rows, capture_id)
            return
        if rows.table not in schema.INGESTED_TABLES:
            raise ReadError(f"the ingester gave rows of {rows.table!r}, which is no table that ingesters fill")
        incoming = rows.data  # noqa: F841 - DuckDB finds it by name
        if rows.table == "annotation":
            connection.execute("INSERT INTO annotation_in BY NAME SELECT * FROM incoming")
            return
        connection.execute(
            f"INSERT INTO main.{rows.table} BY NAME SELECT {int(capture_id)}::INTEGER AS capture_id, * FROM incoming"
        )

    def _free_id(self, part: int) -> int:
        """Return the number for a capture: by the order of the paths where that is free, else the next."""
        wanted = self._request.first_capture_id + self._task.number
        taken, free = self._connection.execute(
            "SELECT count(*) FILTER (capture_id = ?), coalesce(max(capture_id), 0) + 1 FROM main.capture", [wanted]
        ).fetchall()[0]
        if part or taken:
            return max(int(free), self._request.first_capture_id + self._task.total)
        return wanted

    def _capture(self, rows: Rows, capture_id: int) -> None:
        connection, path = self._connection, self._task.capture.files[0]
        incoming = rows.data  # noqa: F841 - DuckDB finds it by name
        connection.execute(
            f"INSERT INTO main.capture BY NAME SELECT {int(capture_id)}::INTEGER AS capture_id, "
            f"'{self._task.source}' AS source, * FROM incoming"
        )
        found = labels.from_path(path)
        regex_rank = None
        if self._request.labels_from is not None:
            match = labels.compile_regex(self._request.labels_from).search(path.as_posix())
            named = {key: value for key, value in (match.groupdict() if match else {}).items() if value is not None}
            rank_text = named.pop("rank", None)
            regex_rank = int(rank_text) if rank_text and re.fullmatch(r"\d{1,7}", rank_text) else None
            found.update(named)
        found.update(self._request.labels)
        path_rank = regex_rank if regex_rank is not None else labels.rank_from_path(path)
        if self._task.capture.rank is not None:
            path_rank = self._task.capture.rank
        connection.execute(
            """UPDATE main.capture SET path = $path, part = $part, sha256 = $sha256, size_bytes = $size,
                rank = coalesce(rank, $rank), labels = map_from_entries($labels::STRUCT(k VARCHAR, v VARCHAR)[]),
                ingester = $ingester, ingested_at = $now
            WHERE capture_id = $capture""",
            {
                "path": str(path),
                "part": rows.part,
                "sha256": self._digest,
                "size": self._task.size_bytes,
                "rank": path_rank,
                "labels": [{"k": key, "v": value} for key, value in sorted(found.items())],
                "ingester": self._stamp,
                "now": datetime.now(UTC).replace(tzinfo=None),
                "capture": capture_id,
            },
        )
        self._note_rank(capture_id, path_rank)
        derive.finish(connection, capture_id)
        self._loaded.append(self._read_back(capture_id))
        self._open = None

    def _note_rank(self, capture_id: int, path_rank: int | None) -> None:
        row = self._connection.execute("SELECT rank FROM main.capture WHERE capture_id = ?", [capture_id]).fetchone()
        rank = row[0] if row else None
        if rank is not None and path_rank is not None and rank != path_rank:
            self._connection.execute(
                "INSERT INTO main.ingest_issue VALUES (?, 'rank_conflict', 'note', 1, 0, ?)",
                [capture_id, f"the trace says rank {rank}, the path {path_rank}; the trace's is kept"],
            )

    def _read_back(self, capture_id: int) -> Loaded:
        row = self._connection.execute(
            """SELECT rank, status, labels, coalesce(events_read, 0), coalesce(events_skipped, 0),
                coalesce(rows_written, 0),
                (SELECT count(*) FROM main.kernel_event AS k WHERE k.capture_id = c.capture_id AND k.kind = 'kernel')
            FROM main.capture AS c WHERE capture_id = ?""",
            [capture_id],
        ).fetchone()
        assert row is not None
        issues = self._connection.execute(
            "SELECT code, severity, count, coalesce(detail, '') FROM main.ingest_issue WHERE capture_id = ? ORDER BY code",
            [capture_id],
        ).fetchall()
        rank, status, found, read, skipped, written, kernels = row
        return Loaded(capture_id, rank, status, dict(found), read, skipped, written, kernels, issues)
