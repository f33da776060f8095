"""Build columns from the fields of decoded events. Values that their field cannot have become NULL and are counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tracedb.ingester.issues import Account
from tracedb_torch.decode.values import LARGEST, bounded, ids, integers, number, process_number
from tracedb_torch.int_columns import UNUSABLE
from tracedb_torch.staging_columns import COLUMNS

NO_CORRELATION = frozenset((0, -1, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF))
MOST_SMALL = (1 << 31) - 1


class CheckedFields:
    """Builds columns for the events of a block and counts lost values in ``account``."""

    def __init__(self) -> None:
        self.processes: dict[int | str | None, int] = {}
        """Process numbers by the ``pid`` that events carry."""
        self.account = Account()
        """Counts of the current block."""

    def counted(self, name: str, values: pa.Array, lost: int) -> pa.Array:
        """Return the values of a field, and count the lost ones."""
        self.account.unreadable(name, lost)
        return values

    def whole(self, name: str, values: Sequence[int | None], least: int = 0, most: int = LARGEST) -> pa.Array:
        """Return the values of a field; NULL where one is out of bounds."""
        return self.counted(name, *bounded(values, least, most))

    def place(self, name: str, values: Sequence[int | None], most: int = LARGEST) -> pa.Array:
        """Return device or stream numbers; ``UNUSABLE`` where one is out of bounds."""
        return self.counted(name, *bounded(values, 0, most, UNUSABLE))

    def correlation(self, values: Sequence[int | None]) -> pa.Array:
        """Return correlation ids; the profilers' several spellings of "none" become NULL, so that they never join.

        A negative id, also one that is negative when read as signed, still joins but is stored in no row.
        """
        if not NO_CORRELATION.isdisjoint(values):
            values = [None if value in NO_CORRELATION else value for value in values]
        found, lost = bounded(values)
        self.account.unreadable("correlation", lost)
        return ids(values) if lost else found

    def sizes(self, what: str, values: Sequence[Any]) -> dict[str, pa.Array]:
        """Return three size columns; all three are NULL where one is not a size."""
        if values.count(None) == len(values):
            return {f"{what}_{axis}": integers(values) for axis in "xyz"}
        if {*map(type, values)} == {tuple}:
            columns = [bounded(column) for column in zip(*values, strict=True)]
            if not any(lost for _, lost in columns):
                return {f"{what}_{axis}": column for axis, (column, _) in zip("xyz", columns, strict=True)}
        sizes = [_size(value) for value in values]
        good = [None if size is None or not 0 <= min(size) <= max(size) <= LARGEST else size for size in sizes]
        self.account.unreadable(what, good.count(None) - values.count(None))
        rows = [size or (None, None, None) for size in good]
        return {f"{what}_{axis}": integers([row[place] for row in rows]) for place, axis in enumerate("xyz")}

    def process_numbers(self, pids: Sequence[int | str | None]) -> pa.Array:
        """Return a number for each event's process, and remember it in ``processes``."""
        different = set(pids)
        for pid in different:
            if pid not in self.processes:
                self.processes[pid] = process_number(pid)
        impossible = {pid for pid in different if type(pid) is int and not 0 <= pid <= LARGEST}
        if impossible:
            self.account.unreadable("pid", sum(pid in impossible for pid in pids))
        if len(different) == 1:
            return pa.array(np.full(len(pids), self.processes[pids[0]], np.int64))
        return integers([self.processes[pid] for pid in pids])

    def check_places(
        self, pids: Sequence[int | str | None], tids: Sequence[int | str | None], args: Sequence[Any]
    ) -> None:
        """Count unusable pids and tids that stand in for a missing device and stream number."""
        if None in [found.device for found in args]:
            self.check_devices(pid for pid, found in zip(pids, args, strict=True) if found.device is None)
        if None in [found.stream for found in args]:
            streams = (number(tid) or 0 for tid, found in zip(tids, args, strict=True) if found.stream is None)
            self.account.unreadable("tid", sum(stream < 0 for stream in streams))

    def check_devices(self, pids: Iterable[int | str | None]) -> None:
        """Count pids that stand in for a device number and have too many bits for one."""
        self.account.unreadable("pid", sum(self.processes[pid] > MOST_SMALL for pid in pids))


def external(newer: Sequence[int | None], older: Sequence[int | None] | None) -> pa.Array:
    """Return external ids, of the newer key or else of the older one; 0 means none."""
    if older is not None and older.count(None) != len(older):
        newer = [new if new is not None else old for new, old in zip(newer, older, strict=True)]
    if 0 in newer:
        newer = [value or None for value in newer]
    return ids(newer)


def _size(value: tuple[int, ...] | str | None) -> tuple[int, ...] | None:
    """Return three sizes, also from a text such as ``[8, 1, 1]``; None if it is not three sizes."""
    if not isinstance(value, str):
        return value
    parts = [part.strip() for part in value.strip("()[] ").split(",")]
    if 1 <= len(parts) <= 3 and all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        return (*map(int, parts), *[1] * (3 - len(parts)))
    return None


def batch_of(table: str, **columns: pa.Array) -> pa.RecordBatch:
    """Return rows of a staging table; every column must be given."""
    names = list(COLUMNS[table])
    assert len(columns) == len(names), (table, set(columns) ^ set(names))
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)
