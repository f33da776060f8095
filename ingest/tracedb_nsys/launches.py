"""Find the API call that launched a GPU event: the one with its process and correlation id.

A join of millions of calls with millions of kernels exceeds the memory of a load; sorted arrays with eight bytes per
call fit, and are faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb_nsys.export.protocol import ROW

Numbers = npt.NDArray[np.int64]
UNKNOWN = -(1 << 63)
"""Stands for a process that is not recorded; never a serialized id, and unchanged by the mask."""
PROCESS_MASK = -1 << 24
FAR = 1 << 62  # later times are invalid, see staging_sql.DURATION
LARGEST = (1 << 32) - 2  # correlation ids are unsigned 32-bit numbers; the largest means none


class Calls:
    """The calls by process and correlation id. Add all of them, then look up."""

    def __init__(self) -> None:
        self._pieces: dict[int, list[npt.NDArray[np.uint64]]] = {}
        self._sorted: dict[int, npt.NDArray[np.uint64]] = {}

    def add(self, batch: pa.RecordBatch, base: int) -> None:
        """Add the calls of a batch; those without usable times give no row and launch nothing."""
        correlations = _column(batch, "correlationId", 0)
        numbers = _column(batch, ROW, 0) + base
        processes = _column(batch, "globalTid", UNKNOWN) & PROCESS_MASK
        start, end = _column(batch, "start", FAR), _column(batch, "end", UNKNOWN)
        usable = (correlations > 0) & (correlations <= LARGEST) & (numbers < 1 << 32)
        usable &= (end >= start) & (start > -FAR) & (end < FAR)
        packed = (correlations.astype(np.uint64) << np.uint64(32)) | numbers.astype(np.uint64)
        for process in np.unique(processes).tolist():
            self._pieces.setdefault(process, []).append(packed[usable & (processes == process)])

    def finish(self) -> None:
        """Sort the calls; among several with one id the first comes first."""
        for process in list(self._pieces):
            packed = np.concatenate(self._pieces.pop(process))
            packed.sort()
            self._sorted[process] = packed

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the number of the call for each row of a batch with correlationId and globalPid; NULL if none."""
        correlations = _column(batch, "correlationId", 0)
        processes = _column(batch, "globalPid", UNKNOWN) & PROCESS_MASK
        found = np.zeros(len(correlations), np.int64)
        for process in np.unique(processes).tolist():
            mine = processes == process
            found[mine] = self._look_up(process, correlations[mine])
        return pa.array(found, mask=found == 0)

    def _look_up(self, process: int, correlations: Numbers) -> Numbers:
        packed = self._of_process(process)
        if packed is None or not len(packed):
            return np.zeros(len(correlations), np.int64)
        usable = (correlations > 0) & (correlations <= LARGEST)
        wanted = np.where(usable, correlations, 0).astype(np.uint64)
        place = np.minimum(np.searchsorted(packed, wanted << np.uint64(32)), len(packed) - 1)
        found = packed[place]
        is_same = usable & (found >> np.uint64(32) == wanted)
        return np.where(is_same, found & np.uint64(0xFFFFFFFF), 0).astype(np.int64)

    def _of_process(self, process: int) -> npt.NDArray[np.uint64] | None:
        """Return the calls of a process; if one side does not record processes, the calls that remain."""
        if process == UNKNOWN and len(self._sorted) == 1:
            return next(iter(self._sorted.values()))
        return self._sorted.get(process, self._sorted.get(UNKNOWN))


def _column(batch: pa.RecordBatch, name: str, absent: int) -> Any:
    """Return a column as integers, with ``absent`` for NULLs and for a missing column."""
    if name not in batch.schema.names:
        return np.full(batch.num_rows, absent, np.int64)
    column = batch[name]
    return (column.fill_null(absent) if column.null_count else column).to_numpy()
