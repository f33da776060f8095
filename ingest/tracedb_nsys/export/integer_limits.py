"""Limits of integer columns. Values outside of them become NULL and are counted.

SQLite types values, not columns, and a damaged file holds anything. A value that is not an integer, or is outside of
its column's limits, is odd. It is never rounded, truncated or wrapped. Odd times become ``ODD`` instead of NULL, since
a range whose end is NULL is still open; rows with such a time are lost.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from tracedb_nsys.export.protocol import ROW, SYNC, TIMES
from tracedb_nsys.export.table_roles import role_of

LARGEST = (1 << 63) - 1
ODD = -LARGEST
"""Replaces a value that is not an integer; outside of the limits of every column."""
EXACT = 1 << 53
"""A double holds every integer up to here exactly."""
ANY = (ODD + 1, LARGEST)
TIME = (-LARGEST - 1, LARGEST)
UNSIGNED_31 = (0, (1 << 31) - 1)
UNSIGNED_32 = (0, (1 << 32) - 1)
ID = (0, LARGEST - 1)
BLOCK = (0, (1 << 15) - 1)
LIMITS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(TIMES, TIME),
    **dict.fromkeys(("deviceId", "contextId", "streamId", "copyKind", "eventType"), UNSIGNED_31),
    **dict.fromkeys(("gridX", "gridY", "gridZ", "registersPerThread"), UNSIGNED_31),
    **dict.fromkeys(("staticSharedMemory", "dynamicSharedMemory"), UNSIGNED_31),
    **dict.fromkeys(("blockX", "blockY", "blockZ"), BLOCK),
    **dict.fromkeys(("globalPid", "globalTid", "endGlobalTid"), ID),
    "bytes": (0, 1 << 50),
    "correlationId": (-1, (1 << 32) - 1),  # unsigned; 0 and the largest mean none, and so does -1 in old exports
}
"""Least and greatest value by column; columns not listed may hold ``ANY``."""
Odd = Callable[[str, int], None]
"""Called with a column's name and how many odd values became NULL."""


def limits(column: str, table: str) -> tuple[int, int]:
    """Return the least and the greatest value of a column.

    A synchronization that concerns no single stream has the largest unsigned 32-bit number for its stream.
    """
    if column == "streamId" and role_of(table) == SYNC:
        return UNSIGNED_32
    return LIMITS.get(column, ANY)


def whole_sql(quoted: str) -> str:
    """Return SQL for SQLite's value of a column if it is an integer, however it is typed; else ``ODD``."""
    cast = f"CAST({quoted} AS INTEGER)"
    return (
        f"CASE typeof({quoted}) WHEN 'integer' THEN {quoted} WHEN 'null' THEN NULL"
        f" WHEN 'real' THEN CASE WHEN {quoted} = {cast} AND abs({quoted}) < {EXACT} THEN {cast} ELSE {ODD} END"
        f" WHEN 'text' THEN CASE WHEN CAST({cast} AS TEXT) = {quoted} THEN {cast} ELSE {ODD} END ELSE {ODD} END"
    )


def within(batch: pa.RecordBatch, table: str, odd: Odd) -> pa.RecordBatch:
    """Return the batch of a table with NULL for integers outside of their column's limits."""
    import pyarrow.compute as pc  # costs 6 MiB, and the compiled reader reads most exports without it

    for place, field in enumerate(batch.schema):
        if field.name == ROW or field.type != pa.int64():
            continue
        least, most = limits(field.name, table)
        found = pc.min_max(batch.column(place))
        low, high = found["min"].as_py(), found["max"].as_py()
        if low is None or (low >= least and high <= most):
            continue
        column = batch.column(place)
        is_odd = pc.or_kleene(pc.less(column, least), pc.greater(column, most))
        odd(field.name, int(pc.sum(is_odd).as_py()))
        kept = pc.if_else(is_odd, pa.scalar(None, pa.int64()), column)
        batch = batch.set_column(place, field, kept)
    return batch


def whole_numbers(column: pa.Array, name: str, odd: Odd) -> pa.Array:
    """Return a column of any type as 64-bit integers; unsigned ones keep their bits."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return whole_numbers(column.dictionary_decode(), name, odd)
    if kind == pa.uint64():
        return column.view(pa.int64())
    if pa.types.is_integer(kind) or pa.types.is_null(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.int64())
    if pa.types.is_temporal(kind) and kind.bit_width == 64:
        return column.view(pa.int64())
    numbers = [None if item is None else _number(item, ODD) for item in column.to_pylist()]
    if name not in TIMES:
        if count := numbers.count(ODD):
            odd(name, count)
        numbers = [None if number == ODD else number for number in numbers]
    return pa.array(numbers, pa.int64())


def _number(item: object, other: int) -> int:
    """Return a value as an integer, as ``whole_sql`` does in SQLite; ``other`` for an odd one."""
    if isinstance(item, float):
        return int(item) if item.is_integer() and abs(item) < EXACT else other
    if isinstance(item, int):
        return int(item) if abs(item) <= LARGEST else other
    if isinstance(item, str) and len(item) <= 20 and item.isascii() and item.removeprefix("-").isdecimal():
        number = int(item)
        return number if str(number) == item and abs(number) <= LARGEST else other
    return other


def number_of(value: object, least: int = 0, most: int = LARGEST) -> int | None:
    """Return a single value of a small table as an integer; None if it is not one within the limits."""
    number = _number(value, ODD)
    return number if number != ODD and least <= number <= most else None


def text_of(value: object) -> str | None:
    """Return a single value of a small table as text; bytes that are not UTF-8 are replaced."""
    if value is None:
        return None
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
