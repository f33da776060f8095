"""Columns of many blocks gathered into whole row groups of DuckDB, in buffers that are filled again and again.

New memory for each would cost as much as parsing: the system gives it zeroed, page by page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tracedb.storage.schema import ROW_GROUP

Numbers = npt.NDArray[np.int64]
LARGEST = int(np.iinfo(np.int64).max)
NONE = int(np.iinfo(np.int64).min)
"""Stands for a value that is not there."""
BAD = NONE + 1
"""Stands for one that is there and cannot be read; ``Stage.put`` accounts for it."""
ROWS = 4 * ROW_GROUP
"""So many rows are handed on at once: cores then write whole row groups side by side, and none is left broken."""


class Gathered(NamedTuple):
    """Columns of so many rows, in which ``NONE`` stands for no value. They hold until more is gathered."""

    columns: dict[str, Numbers]
    rows: int


class Gatherer:
    """Gathers columns of whole numbers."""

    def __init__(self) -> None:
        self._buffers: dict[str, Numbers] = {}
        self._filled = 0

    def add(self, columns: Mapping[str, Numbers], rows: int) -> Iterator[Gathered]:
        """Take rows; yield them whenever the buffers are full, to be used before the next are asked for."""
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
        """Yield what was added last."""
        if self._filled:
            rows, self._filled = self._filled, 0
            yield Gathered({name: buffer[:rows] for name, buffer in self._buffers.items()}, rows)
