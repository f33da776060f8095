"""Queries for the rows of an SQLite table, and checks of the batches they return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tracedb_nsys.export.integer_limits import whole_sql
from tracedb_nsys.export.protocol import ROW, TEXT, Unsound, schema


def select(table: str, columns: Sequence[str], number: str, where: str, is_query: bool = False) -> str:
    """Return the query. The driver takes a column's type from its first value, so all values are cast to one type.

    Without casts a single fraction turns a column of nanoseconds into doubles; without a typed first row a text column
    that begins with NULLs becomes an integer column. Integer columns alone need no such row, which saves a fifth.
    """
    casts = ", ".join(f"CAST({quoted(name)} AS BLOB)" if name in TEXT else whole_sql(quoted(name)) for name in columns)
    rows = f"SELECT {number}, {casts} FROM {table if is_query else quoted(table)} {where}"
    if TEXT.isdisjoint(columns):
        return rows
    first = ", ".join("x''" if name in TEXT else "0" for name in columns)
    return f"SELECT 0, {first} UNION ALL {rows}"


def check_order(table: str, batches: Sequence[pa.RecordBatch]) -> None:
    """Raise ``Unsound`` unless row numbers are ascending."""
    last = None
    for batch in batches:
        numbers = batch[ROW].to_numpy()
        if len(numbers) and ((last is not None and numbers[0] <= last) or (numbers[1:] <= numbers[:-1]).any()):
            raise Unsound(f"{table}: rows are out of order")
        last = numbers[-1] if len(numbers) else last


def joined(
    table: str, whole: pa.RecordBatch, texts: Sequence[pa.RecordBatch], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``whole`` with the columns of ``texts`` added. Raises ``Unsound`` if the rows do not match."""
    done = 0
    for batch in texts:
        part = whole.slice(done, batch.num_rows)
        if not part[ROW].equals(batch[ROW]):
            raise Unsound(f"{table}: rows are out of order")
        done += batch.num_rows
        arrays = [(batch if name in TEXT else part)[name] for name in columns]
        yield pa.RecordBatch.from_arrays([part[ROW], *arrays], schema=schema(columns))
    if done != whole.num_rows:
        raise Unsound(f"{table}: rows are out of order")


def numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches with their rows numbered from 1."""
    done = 0
    for batch in batches:
        numbers = pa.array(range(done + 1, done + batch.num_rows + 1), pa.int64())
        yield pa.RecordBatch.from_arrays([numbers, *batch.columns[1:]], schema=batch.schema)
        done += batch.num_rows


def quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
