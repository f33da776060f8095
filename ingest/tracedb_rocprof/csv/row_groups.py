"""Gather the columns of many blocks into whole row groups of DuckDB, in reusable buffers.

New memory for each would cost as much as parsing, since the system zeroes it page by page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tracedb.storage.schema import ROW_GROUP
from tracedb_rocprof.missing import NONE

Numbers = npt.NDArray[np.int64]
LARGEST = int(np.iinfo(np.int64).max)
ROWS = 4 * ROW_GROUP
"""Rows yielded at once: cores then write whole row groups in parallel, and none is split."""


class Gathered(NamedTuple):
    """Columns of rows, with ``NONE`` for a missing value. Valid until more is gathered."""

    columns: dict[str, Numbers]
    rows: int


class Gatherer:
    """Gathers integer columns."""

    def __init__(self) -> None:
        self._buffers: dict[str, Numbers] = {}
        self._filled = 0

    def add(self, columns: Mapping[str, Numbers], rows: int) -> Iterator[Gathered]:
        """Add rows; yield whenever the buffers are full. The result must be consumed before the next call."""
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

    def rest(self) -> Iterator[Gathered]:
        """Yield the remaining rows."""
        if self._filled:
            rows, self._filled = self._filled, 0
            yield Gathered({name: buffer[:rows] for name, buffer in self._buffers.items()}, rows)
