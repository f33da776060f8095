"""Staging tables in the scratch connection: narrow rows as they are in the file, before linking."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType

import duckdb
import pyarrow as pa

from tracedb_torch.int_columns import joined, narrowed
from tracedb_torch.staging_columns import COLUMNS, DDL, NUMBERED, SCANNED

FLUSH_ROWS = 60_000
HELD = SCANNED
"""Tables that are queried in Arrow memory while all rows take at most ``HELD_BYTES``."""
NARROWED = (*HELD, "text", "message")
HELD_BYTES = 64 << 20  # about 550 MB of JSON


DAY_NS = 86_400_000_000_000


@dataclass
class Met:
    """Statistics of a staging table, collected while reading: for a small trace a query costs as much as linking."""

    rows: int = 0
    zeros: int = 0
    """Rows that start at 0."""
    early: int = 0
    """Rows that start within a day of 0."""
    processes: set[int] = field(default_factory=set)
    """Number of processes; exact for one, at least two if there are several."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Count a batch with columns start and process."""
        self.rows += batch.num_rows
        starts = batch.column("start_ns").to_numpy()
        if starts.min() <= DAY_NS:
            self.zeros += int((starts == 0).sum())
            self.early += int((starts <= DAY_NS).sum())
        if len(self.processes) < 2:
            found = batch.column("pid").to_numpy(zero_copy_only=False)
            self.processes |= {int(found.min()), int(found.max())}

    @property
    def are_late(self) -> bool:
        """Whether most rows start more than a day after 0 (the lower median)."""
        return self.early < (self.rows + 1) // 2


class Stage:
    """Collects Arrow batches per staging table.

    The rows of a file of common size stay in Arrow memory and DuckDB reads them there. Those of a larger file are
    inserted into temporary tables, a few batches at a time, by one background thread; DuckDB spills them to disk when
    memory runs out.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._waiting: dict[str, list[pa.RecordBatch]] = {name: [] for name in COLUMNS}
        self.met = {name: Met() for name in NUMBERED}
        self._rows = 0
        self._bytes = 0
        self._is_held = True
        self._is_shown = False
        self._has_messages = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tracedb-stage")
        self._pending: Future[None] | None = None

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self._pending is not None and not self._pending.done():
            self._connection.interrupt()
        self._thread.shutdown(wait=True, cancel_futures=True)

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Add a batch whose columns are in the table's order."""
        if not batch.num_rows:
            return
        if table in NUMBERED:
            self.met[table].add(batch)
        if table in NARROWED and self._is_held:
            batch = narrowed(batch)
        self._has_messages = self._has_messages or table == "message"
        self._waiting[table].append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._is_held and self._bytes > HELD_BYTES:
            self._is_held = False
            self._create(COLUMNS)
        if not self._is_held and self._rows >= FLUSH_ROWS:
            self._flush(COLUMNS)

    @property
    def has_messages(self) -> bool:
        """Whether any event describes a collective."""
        return self._has_messages

    def finish(self) -> None:
        """Stop accepting batches."""
        if not self._is_held:
            self._flush(COLUMNS)
            self._settle()

    @property
    def held(self) -> dict[str, list[pa.RecordBatch]] | None:
        """All batches by table, if they are in memory. Popping a table frees its memory."""
        return self._waiting if self._is_held else None

    def show(self) -> None:
        """Make all tables queryable as ``staged_NAME``; call after ``finish``."""
        if not self._is_held or self._is_shown:
            return
        self._is_shown = True
        self._create([name for name in COLUMNS if name not in HELD or not self._waiting[name]])
        for name, batches in self._waiting.items():
            if batches and name in HELD:
                self._show(name, batches)
            elif batches:
                self._insert({name: batches})

    def _create(self, names: Iterable[str]) -> None:
        for name in names:
            self._connection.execute(f"CREATE TEMP TABLE staged_{name} ({DDL[name]})")

    def _show(self, name: str, batches: list[pa.RecordBatch]) -> None:
        """Let queries read batches in place."""
        self._connection.register(f"held_{name}", joined(batches))
        chosen = ", ".join(f"{column}::{kind} AS {column}" for column, kind in COLUMNS[name].items())
        self._connection.execute(f"CREATE TEMP VIEW staged_{name} AS SELECT {chosen} FROM held_{name}")

    def _flush(self, names: Iterable[str]) -> None:
        """Hand the pending batches to the inserting thread, after it has finished the previous ones."""
        self._settle()
        ready = {name: self._waiting[name] for name in names if self._waiting.get(name)}
        self._waiting.update((name, []) for name in ready)
        self._rows = 0
        if ready:
            self._pending = self._thread.submit(self._insert, ready)

    def _settle(self) -> None:
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()

    def _insert(self, ready: dict[str, list[pa.RecordBatch]]) -> None:
        for name, batches in ready.items():
            self._connection.register("incoming", joined(batches))
            self._connection.execute(f"INSERT INTO staged_{name} FROM incoming")
            self._connection.unregister("incoming")


def drop_rows(connection: duckdb.DuckDBPyConnection, table: str, condition: str) -> None:
    """Delete the rows that match ``condition`` from a staging table."""
    connection.execute(f"CREATE TEMP TABLE kept AS FROM staged_{table} WHERE NOT coalesce({condition}, false)")
    ((views,),) = connection.execute(
        "SELECT count(*) FROM duckdb_views() WHERE view_name = ?", [f"staged_{table}"]
    ).fetchall()
    connection.execute(f"DROP {'VIEW' if views else 'TABLE'} temp.staged_{table}")
    connection.execute(f"ALTER TABLE kept RENAME TO staged_{table}")
