"""Turn the kernels of a large file into schema rows while it is being read, without staging them.

Staging costs as much as parsing. It is needed only if rows of other files are joined to kernels, or if names are
settled only at the end of a file. Without it, an agent's GPU is decided when the agent first appears.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from tracedb.ingester import ReadAgain, Rows
from tracedb.storage.schema import ROW_GROUP
from tracedb_rocprof.agents import gpus_of
from tracedb_rocprof.csv import headers
from tracedb_rocprof.csv.headers import Header
from tracedb_rocprof.csv.row_groups import Gathered, Numbers
from tracedb_rocprof.metadata import Recording
from tracedb_rocprof.missing import NONE
from tracedb_rocprof.staging import Stage

SMALLEST_BYTES = 32 << 20
COLUMNS = {
    "event_id": "event_id",
    "start_ns": "start_ns",
    "duration_ns": "duration_ns",
    "stream": "stream_id",
    "queue": "queue_id",
    "correlation": "correlation_id",
    "graph": "graph_id",
    "graph_node": "graph_node_id",
    "vgprs": "registers_per_thread",
    "static_bytes": "static_shared_bytes",
    "shared_bytes": "shared_bytes",
}
"""Staged column → column of the schema, for columns that are copied unchanged."""
HALF = 31
"""Low bits of a duration that are summed apart: numpy sums weights as doubles, which whole sums would exceed."""


def is_possible(headed: list[tuple[int, Header]]) -> bool:
    """Whether the kernels of a set, given as size in bytes and header per file, can skip staging.

    Kernels that calls are joined to cannot; that is known once the calls have been read.
    """
    kernels = [(size, header) for size, header in headed if header.domain in (headers.KERNEL, headers.LEGACY)]
    return (
        sum(size for size, _ in kernels) >= SMALLEST_BYTES
        and not any(header.domain == headers.COUNTER for _, header in headed)
        and not any(header.has(column) for _, header in kernels for column in ("guid", "process_id", "replay_pass"))
    )


class UnstagedKernels:
    """Converts columns of kernels into schema rows as the stage releases them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._texts = pa.array([], pa.string())
        self._proc: int | None = None
        self.devices: dict[str, int] = {}
        """Device by agent label, for the agents met so far; -1 if unknown."""
        self._calls: Counter[int] = Counter()
        """Number of kernels by agent number."""

    def rows(self, batch: Gathered, recording: Recording) -> Rows:
        """Return the rows of kernels; they must be consumed before the next call.

        Raises ``ReadAgain`` if a new agent changes which GPU an earlier one is.
        """
        columns, count = batch
        self._sum_up(columns, count)
        made = {
            "kind": pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array(["kernel"])),
            "name": self._names(columns["name"]),
            "is_counted": pa.array(np.zeros(count, np.bool_)),
        }
        if "agent" in columns:
            made["device_id"] = self._devices(columns["agent"], recording)
        for name, target in COLUMNS.items():
            if name in columns:
                made[target] = _array(columns[name])
        for axis in "xyz":
            if f"block_{axis}" in columns:
                block = _sizes(columns[f"block_{axis}"])
                made[f"block_{axis}"] = _array(block)
                if f"grid_{axis}" in columns:
                    made[f"grid_{axis}"] = _grids(columns[f"grid_{axis}"], block)
        in_groups = pa.table(made).to_batches(max_chunksize=ROW_GROUP)  # DuckDB reads each batch in one thread
        return Rows("kernel_event", pa.Table.from_batches(in_groups), 0, is_ordered=False)

    def _sum_up(self, columns: dict[str, Numbers], count: int) -> None:
        """Add calls and time by kernel name to ``staged_total``, for the check against the tool's own statistics."""
        self._proc = int(columns["proc"][0])
        places, durations = columns["name"] + 1, columns["duration_ns"]
        calls = np.bincount(places)
        high, low = (np.bincount(places, half) for half in (durations >> HALF, durations & (1 << HALF) - 1))
        found = np.flatnonzero(calls)
        feed = pa.table(  # noqa: F841 - DuckDB finds it by name
            {"name": found - 1, "calls": calls[found], "high": high[found].astype(np.int64), "low": low[found]}
        )
        self._stage.connection.execute(
            f"""INSERT INTO staged_total
            SELECT ?, name, calls, high::HUGEINT * {1 << HALF} + low::BIGINT, ? FROM feed""",
            [self._proc, int(columns["event_id"][count - 1])],
        )

    def _names(self, names: Numbers) -> pa.DictionaryArray:
        """Return the names; texts are numbered from 1 in order of appearance."""
        new = self._stage.texts.table(len(self._texts))["value"]
        if len(new):
            self._texts = pa.concat_arrays([self._texts, *new.chunks])
        places = (names - 1).astype(np.int32)
        texts = self._texts
        if int(names.min()) < 1:
            places[names < 1] = len(texts)
            texts = pa.concat_arrays([texts, pa.array(["(no name)"])])
        return pa.DictionaryArray.from_arrays(pa.array(places), texts, safe=False)

    def _devices(self, agents: Numbers, recording: Recording) -> pa.Array:
        """Return the device of each kernel."""
        places = np.maximum(agents, 0)
        calls = np.bincount(places)
        seen = np.flatnonzero(calls).tolist()
        self._calls.update(dict(zip(seen, calls[seen].tolist(), strict=True)))
        self._assign_new_agents(seen, recording)
        of_agent = np.full(self._stage.agents.count + 1, -1, np.int32)
        for label, device in self.devices.items():
            of_agent[self._stage.agents.number(label)] = device
        return _array(of_agent[places], -1)

    def _assign_new_agents(self, agents: list[int], recording: Recording) -> None:
        """Map agents to devices, if there is a new agent."""
        labels = {self._stage.agents.text(number): number for number in agents if number > 0}
        if labels.keys() <= self.devices.keys():
            return
        known = recording.agents_of(self._stage.processes.text(1))
        found, _, _ = gpus_of({**self.devices, **labels}, known)
        self.check(found)
        self.devices = {label: found.get(label, -1) for label in {**self.devices, **labels}}

    def count(self, proc: int, label: str) -> int:
        """Return how many kernels of a process and agent were not staged."""
        return self._calls[self._stage.agents.number(label)] if proc == self._proc else 0

    def finish(self) -> None:
        """Stage the agents met so far."""
        for label in self.devices:
            self._stage.connection.execute(
                "INSERT INTO staged_seen VALUES (?, ?)", [self._proc, self._stage.agents.number(label)]
            )

    def check(self, found: dict[str, int]) -> None:
        """Raise ``ReadAgain`` unless the final devices are those already written."""
        if any(found.get(label, -1) != device for label, device in self.devices.items()):
            raise ReadAgain


def _array(values: np.ndarray[tuple[int], np.dtype[np.signedinteger]], none: int = NONE) -> pa.Array:
    """Return an Arrow array in which every value up to ``none`` is NULL; ``NONE`` is always among them."""
    if int(values.min()) > none:
        return pa.array(values)
    return pa.array(values, mask=values <= none)


def _sizes(blocks: Numbers) -> Numbers:
    """Return block sizes; 0 becomes NULL."""
    return blocks if int(blocks.min()) > 0 else np.where(blocks == 0, NONE, blocks)


def _grids(grid: Numbers, block: Numbers) -> pa.Array:
    """Return the number of blocks of each grid, which is given in work-items."""
    low, high = int(block.min()), int(block.max())
    if low == high > 0 and int(grid.min()) >= 0:
        return pa.array(grid if low == 1 else (grid + (low - 1)) // low)
    is_there = (grid != NONE) & (block != NONE)
    grid, block = np.where(is_there, grid, 0), np.where(is_there, block, 1)
    return pa.array((grid + (block - 1)) // block, mask=~is_there)
