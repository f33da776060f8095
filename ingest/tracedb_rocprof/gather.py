"""Columns of many blocks gathered into whole row groups of DuckDB, in buffers that are filled again and again.

New memory for each would cost as much as parsing: the system gives it zeroed, page by page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb.schema import ROW_GROUP

Numbers = npt.NDArray[np.int64]
NONE = np.iinfo(np.int64).min
"""Stands for a value that is not there."""
ROWS = 2 * ROW_GROUP
"""So many rows are handed on at once: two cores then write a row group each, and none is left broken."""


class Gatherer:
    """Gathers columns of whole numbers. A table that it gives holds until more is added."""

    def __init__(self) -> None:
        self._buffers: dict[str, Numbers] = {}
        self._filled = 0

    def add(self, columns: Mapping[str, Numbers], rows: int) -> Iterator[pa.Table]:
        """Take rows; yield a table whenever one is full, which is to be used before the next is asked for."""
        for name in columns.keys() - self._buffers.keys():
            self._buffers[name] = np.full(ROWS, NONE, np.int64)
        first = 0
        while first < rows:
            taken = min(rows - first, ROWS - self._filled)
            end = self._filled + taken
            for name, buffer in self._buffers.items():
                buffer[self._filled : end] = columns[name][first : first + taken] if name in columns else NONE
            self._filled = end
            first += taken
            if self._filled == ROWS:
                yield from self.rest()

    def rest(self) -> Iterator[pa.Table]:
        """Yield what was added last."""
        if self._filled:
            rows, self._filled = self._filled, 0
            yield pa.table({name: _array(buffer[:rows]) for name, buffer in self._buffers.items()})


def _array(values: Numbers) -> pa.Array:
    missing = values == NONE
    return pa.array(values, mask=missing) if missing.any() else pa.array(values)
