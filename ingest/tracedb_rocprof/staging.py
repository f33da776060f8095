"""Staging tables in the scratch connection: rows as recorded, with numbers for texts and agents, before linking.

Every format fills the same tables. ``proc`` distinguishes the processes of one recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb.ingester.issues import Account
from tracedb_rocprof.csv.row_groups import Gathered, Gatherer, Numbers
from tracedb_rocprof.missing import NONE
from tracedb_rocprof.registers import EXTRA, KEYS, Registers
from tracedb_rocprof.string_ids import Texts

FAR = 1 << 62  # later times are invalid: sums would overflow
HOUR_NS = 3_600_000_000_000

EVENT = "event_id BIGINT, proc INTEGER, name INTEGER, start_ns BIGINT, duration_ns BIGINT, correlation BIGINT"
STAGED = {
    "kernel": f"""{EVENT}, agent INTEGER, queue BIGINT, stream BIGINT, dispatch BIGINT, replay BIGINT, graph BIGINT,
        graph_node BIGINT, vgprs INTEGER, static_bytes INTEGER, shared_bytes INTEGER, block_x INTEGER, block_y INTEGER,
        block_z INTEGER, grid_x BIGINT, grid_y BIGINT, grid_z BIGINT""",
    "copy": f"{EVENT}, source INTEGER, target INTEGER, queue BIGINT, stream BIGINT, bytes BIGINT",
    "call": f"{EVENT}, tid BIGINT, pid BIGINT",
    "marker": f"{EVENT}, tid BIGINT, pid BIGINT, style VARCHAR",
    "counter": f"""{EVENT}, agent INTEGER, queue BIGINT, dispatch BIGINT, vgprs BIGINT, static_bytes BIGINT,
        counter BIGINT, value DOUBLE""",
    "text": "id BIGINT, value VARCHAR",
    "total": "proc INTEGER, name INTEGER, calls BIGINT, total_ns HUGEINT, last_event_id BIGINT",
    "seen": "proc INTEGER, agent INTEGER",
}
"""The staging tables. ``grid`` is in work-items as recorded; ``name`` and ``counter`` are numbers of texts.
``total`` sums up the kernels that bypassed ``kernel``, whose event_ids are at most its last one; ``seen`` has the
agents of these."""
GPU = ("kernel", "copy", "counter")
NARROW = ("vgprs", *EXTRA, "static_bytes", "shared_bytes", "block_x", "block_y", "block_z")
GRIDS = ("grid_x", "grid_y", "grid_z")
LIMITS = {**dict.fromkeys(NARROW, 1 << 31), **dict.fromkeys(GRIDS, 1 << 32)}
"""Columns with an upper limit; those of a dispatch have 32 bits."""
NUMBERS = ("correlation", "queue", "stream", "dispatch", "graph", "graph_node", "replay", "bytes", "tid", "pid")
GIVEN = ("name", "agent", "source", "target", "counter")
"""Columns of text numbers; -1 means none."""
UNSIGNED = (*LIMITS, *NUMBERS, *GIVEN)
"""Columns without negative values."""
NOUNS = {"kernel": "dispatches", "copy": "copies", "call": "calls", "marker": "ranges", "counter": "counters"}
WORDS = {
    "static_bytes": "static LDS",
    "shared_bytes": "LDS",
    "vgprs": "VGPR count",
    "accum_vgprs": "accumulation VGPR count",
    "sgprs": "SGPR count",
    "scratch_bytes": "scratch size",
    "tid": "thread",
    "pid": "process",
}
HELD_ROWS = 1 << 18
"""Kernels held back and sorted before half of them are staged."""


@dataclass
class Order:
    """Whether the events of one agent are ordered by start."""

    last_ns: int = NONE
    agents: set[int] = field(default_factory=set)
    is_kept: bool = True

    def follow(self, starts: Numbers, agents: npt.NDArray[Any]) -> None:
        """Add the next events."""
        if not len(starts):
            return
        self.agents.update(np.unique(agents).tolist())
        rises = bool((starts[1:] >= starts[:-1]).all())
        self.is_kept = self.is_kept and rises and int(starts[0]) >= self.last_ns
        self.last_ns = int(starts[-1])


class Stage:
    """Takes columns of events, and stages those with usable times."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, account: Account) -> None:
        self.connection = connection
        self.account = account
        self.texts = Texts()
        self.agents = Texts()
        """Agents by recorded label."""
        self.processes = Texts()
        """Processes by key; the first has number 1."""
        self.order = Order()
        self.registers = Registers()
        self.events_read = 0
        self.bypasses_staging = False
        """Whether kernels with settled names are not staged but yielded by ``unstaged``."""
        self._ready: list[tuple[dict[str, Numbers], int]] = []
        self._gatherer = Gatherer()
        self._numbers: dict[str, int] = {}
        self._held: list[pa.Table] = []
        for name, columns in STAGED.items():
            connection.execute(f"CREATE OR REPLACE TEMP TABLE staged_{name} ({columns})")

    def put(
        self,
        table: str,
        rows: int,
        columns: dict[str, Any],
        start: Numbers,
        end: Numbers,
        *,
        is_settled: bool = True,
        is_plain: bool = False,
    ) -> None:
        """Stage events. Columns are Arrow or NumPy arrays; ``NONE`` is a missing, ``BAD`` an unreadable value.

        ``is_settled``: names will not change at the end of the file. ``is_plain``: no number is negative.
        """
        first = self._numbers.get(table, 0)
        self._numbers[table] = first + rows
        self.events_read += rows
        may_be_untimed = table == "counter"
        is_usable = self._usable(start, end, table in GPU, may_be_untimed)
        made = {"event_id": np.arange(first + 1, first + rows + 1, dtype=np.int64), "start_ns": start}
        with np.errstate(over="ignore"):
            made["duration_ns"] = end - start
        made.update(self._sound(table, columns, rows, is_plain))
        if any(name in made for name in EXTRA):
            self.registers.take({name: _whole(made[name], rows) for name in KEYS if name in made})
            for name in EXTRA:
                made.pop(name, None)
        if may_be_untimed:
            untimed = (start == NONE) | ((start == 0) & (end == 0))
            made["start_ns"] = np.where(untimed, 0, start)
            made["duration_ns"] = np.where(untimed, 0, made["duration_ns"])
        if table == "kernel" and self.bypasses_staging and is_settled:
            arrays = {name: _whole(values, rows) for name, values in made.items()}
            if not is_usable.all():
                arrays = {name: values[is_usable] for name, values in arrays.items()}
            self._ready.append((arrays, int(is_usable.sum())))
            return
        batch = pa.table({name: _arrow(values) for name, values in made.items()})
        if not is_usable.all():
            batch = batch.filter(pa.array(is_usable))
        if table == "kernel" and not self.bypasses_staging:
            self._held.append(batch)
            if sum(held.num_rows for held in self._held) >= HELD_ROWS:
                self._release(HELD_ROWS // 2)
        else:
            self.order.is_kept = self.order.is_kept and table != "kernel"
            self._insert(table, batch)

    def count(self, table: str) -> int:
        """Return how many events a table was given, usable or not."""
        return self._numbers.get(table, 0)

    def unstaged(self, is_last: bool = False) -> Iterator[Gathered]:
        """Yield the unstaged kernels in row groups; each must be consumed before the next."""
        for arrays, rows in self._ready:
            yield from self._gatherer.add(arrays, rows)
        self._ready = []
        if is_last:
            yield from self._gatherer.rest()

    def _release(self, rows: int | None = None) -> None:
        """Stage the first of the held kernels, sorted by start: the profiler flushes buffers out of order."""
        if not self._held:
            return
        held = pa.concat_tables(self._held, promote_options="default")  # a set's files differ in columns
        starts = held["start_ns"].to_numpy()
        if not bool((starts[1:] >= starts[:-1]).all()):
            held = held.take(pa.array(np.argsort(starts, kind="stable")))
        ready = held if rows is None else held.slice(0, rows)
        self._held = [] if rows is None else [held.slice(rows)]
        agents = ready["agent"].fill_null(0).to_numpy() if "agent" in ready.column_names else np.zeros(ready.num_rows)
        self.order.follow(ready["start_ns"].to_numpy(), agents)
        self._insert("kernel", ready)

    def _sound(self, table: str, columns: dict[str, Any], rows: int, is_plain: bool) -> dict[str, Any]:
        """Return the columns with impossible values counted and removed; a correlation id of 0 means none."""
        found = dict(columns)
        for name in LIMITS if is_plain else UNSIGNED:
            if name not in found:
                continue
            low, high = _extent(found[name], is_plain)
            if low >= 0 and (name not in LIMITS or high < LIMITS[name]):
                continue
            whole = _whole(found[name], rows)
            is_bad = (whole < 0) & (whole != NONE) & ~((whole == -1) & (name in GIVEN))
            if name in LIMITS:
                is_bad |= whole >= LIMITS[name]
            found[name] = np.where(is_bad, NONE, whole)
            self._unreadable(table, name, int(is_bad.sum()))
        if "value" in found:
            values = pa.array(found["value"])
            is_missing = np.array(values.is_null())
            is_bad = ~np.isfinite(values.to_numpy(zero_copy_only=False)) & ~is_missing
            if is_bad.any():
                found["value"] = pa.array(values.to_numpy(zero_copy_only=False), mask=is_bad | is_missing)
                self._unreadable(table, "value", int(is_bad.sum()))
        if "correlation" in found:
            ids = _whole(found["correlation"], rows)
            is_none = ids == 0
            if is_none.any():
                found["correlation"] = np.where(is_none, NONE, ids)
        return found

    def _unreadable(self, table: str, name: str, count: int) -> None:
        word = WORDS.get(name, name.replace("_", " "))
        self.account.mended(
            "field_unreadable", count, f"{word} of {NOUNS[table]} negative, too large or not a number; left empty"
        )

    def _usable(self, start: Numbers, end: Numbers, is_gpu: bool, may_be_untimed: bool) -> npt.NDArray[np.bool_]:
        """Return the mask of events with usable times, and count the others."""
        is_there = (start >= 0) & (start < FAR) & (end >= 0) & (end < FAR)
        is_zero = is_there & (end == 0) & (start == 0)
        if is_gpu:
            is_zero |= is_there & (start == 0) & (end > HOUR_NS)
        if may_be_untimed:
            is_there |= (start == NONE) & (end == NONE)
            is_zero[:] = False
        is_negative = is_there & ~is_zero & (end < start)
        self.account.lost("timestamp_unusable", int((~is_there).sum()), "events without readable times")
        self.account.lost("timestamp_zero", int(is_zero.sum()), "events whose times are 0")
        self.account.lost("duration_negative", int(is_negative.sum()), "events that end before they start")
        usable: npt.NDArray[np.bool_] = is_there & ~is_zero & ~is_negative
        return usable

    def _insert(self, table: str, batch: pa.Table) -> None:
        if batch.num_rows:
            self.connection.register("feed", batch)
            narrow = [f"TRY_CAST({name} AS INTEGER) AS {name}" for name in NARROW if name in batch.column_names]
            columns = f"* REPLACE ({', '.join(narrow)})" if narrow else "*"
            self.connection.execute(f"INSERT INTO staged_{table} BY NAME SELECT {columns} FROM feed")
            self.connection.unregister("feed")

    def damaged(self, damages: list[str]) -> None:
        """Report a compressed stream that is truncated or damaged."""
        for damage in damages:
            self.account.warned("stream_damaged", 1, f"{damage}; what comes before is loaded")

    def move(self, tables: Iterable[str], old: int, new: int) -> None:
        """Reassign the rows of a process in some tables to another one."""
        self._release()
        for table in tables:
            self.connection.execute(f"UPDATE staged_{table} SET proc = ? WHERE proc = ?", [new, old])

    def finish(self) -> None:
        """Stage the held rows and the texts, once everything that refers to them is there."""
        self._release()
        self._insert("text", self.texts.table())


def _arrow(values: Any) -> pa.Array:
    """Return an Arrow array with NULL for ``NONE``."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if values.dtype != np.int64:
        return pa.array(values)
    missing = values == NONE
    return pa.array(values, mask=missing) if missing.any() else pa.array(values)


def _extent(values: Any, is_plain: bool) -> tuple[int, int]:
    """Return the least and the largest value; the least is ``NONE`` if some are missing.

    ``is_plain``: none is negative, so 0 serves as the least and saves a pass.
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        if values.null_count:
            return NONE, 0
        values = values.to_numpy()
    if not len(values):
        return 0, 0
    return 0 if is_plain else int(values.min()), int(values.max())


def _whole(values: Any, rows: int) -> Numbers:
    """Return the values of an Arrow or NumPy array, with ``NONE`` for missing ones."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return numbers(values, rows)
    whole: Numbers = values.astype(np.int64, copy=False)
    return whole


def numbers(column: pa.Array | None, rows: int) -> Numbers:
    """Return a column as integers, with ``NONE`` for missing values."""
    if column is None:
        return np.full(rows, NONE, np.int64)
    found: Numbers = (column.fill_null(NONE) if column.null_count else column).to_numpy()
    return found
