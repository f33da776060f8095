"""The registers and scratch memory that kernels use, each distinct combination once.

They belong to the code of a kernel, so that a trace of millions of dispatches has a few hundred combinations; three
more columns of every dispatch would cost ingest some percent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tracedb.ingester import Rows
from tracedb.storage import schema
from tracedb_rocprof.csv.row_groups import Numbers
from tracedb_rocprof.missing import NONE

EXTRA = ("accum_vgprs", "sgprs", "scratch_bytes")
"""Columns of dispatches that are kept here instead of with each dispatch."""
KEYS = ("proc", "name", "vgprs", *EXTRA)
FACTORS = tuple(pow(0x9E3779B97F4A7C15, power, 1 << 64) for power in range(1, len(KEYS) + 1))
SLOT_BITS = 16
TABLE = "kernel_resource"


class Registers:
    """Collects the combinations of all dispatches."""

    def __init__(self) -> None:
        self._seen = np.zeros(1 << SLOT_BITS, np.uint64)
        """Hash of the combination met last in each slot, so that only others are looked at in Python."""
        self._found: dict[tuple[int, ...], None] = {}

    def take(self, columns: dict[str, Numbers]) -> None:
        """Add the combinations of some dispatches; the columns have equal lengths, ``NONE`` is a missing value."""
        if not len(columns["name"]):
            return
        hashes = np.zeros(len(columns["name"]), np.uint64)
        product = np.empty_like(hashes)
        for name, factor in zip(KEYS, FACTORS, strict=True):
            values = columns.get(name)
            if values is None or (values[0] == values[-1] and int(values.min()) == int(values.max())):
                hashes += np.uint64(factor * (int(values[0]) if values is not None else 0) % (1 << 64))
            else:
                hashes += np.multiply(values.view(np.uint64), np.uint64(factor), out=product)
        slots = np.right_shift(hashes, np.uint64(64 - SLOT_BITS), out=product).view(np.int64)
        new = np.flatnonzero(self._seen[slots] != hashes)
        if not len(new):
            return
        _, first = np.unique(hashes[new], return_index=True)
        places = new[first]
        self._seen[slots[places]] = hashes[places]
        for place in places.tolist():
            combination = tuple(int(columns[name][place]) if name in columns else NONE for name in KEYS)
            self._found[combination] = None

    def rows(self, proc: int, part: int, text: Any) -> Rows:
        """Return the combinations of a process; ``text`` gives the text of a name's number."""
        mine = sorted(found[1:] for found in self._found if found[0] == proc)
        columns = [[None if value == NONE else value for value in values] for values in zip(*mine, strict=True)]
        names, *numbers = columns or [[] for _ in KEYS[1:]]
        declared = schema.arrow(TABLE)
        texts = [text(number) if number is not None and number > 0 else "(no name)" for number in names]
        arrays = [pa.array(values, pa.int32()) for values in numbers]
        made = dict(zip(declared.names, [pa.array(texts, pa.string()), *arrays], strict=True))
        return Rows(TABLE, pa.table(made), part)
