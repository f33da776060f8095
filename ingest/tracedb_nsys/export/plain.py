"""SQLite through Python's standard library, where the Arrow driver has no wheel."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing

import pyarrow as pa
from pyarrow import csv

from tracedb_nsys.export.protocol import ROW, TEXT, schema


def numbers(
    connection: sqlite3.Connection, table: str, columns: Sequence[str], rows: range, step: int
) -> Iterator[pa.RecordBatch]:
    """Yield whole numbers of the rows with these numbers; ``table`` is quoted, ``columns`` are SQL expressions.

    SQLite writes the rows of a batch as lines of text, which Arrow reads: no object is made for a value, and the
    interpreter's lock is free meanwhile, so that other threads read other rows.
    """
    names = [ROW, *(str(place) for place in range(len(columns)))]
    line = f"printf('{','.join(['%s'] * len(names))}', rowid, {', '.join(columns)})"
    query = f"SELECT group_concat({line}, char(10)) FROM {table} WHERE rowid BETWEEN ? AND ?"
    connection.text_factory = bytes
    reading = csv.ReadOptions(column_names=names, use_threads=False)
    types = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.int64()), strings_can_be_null=True)
    with closing(connection):
        for first in range(rows.start, rows.stop, step):
            ((lines,),) = connection.execute(query, [first, min(first + step, rows.stop) - 1]).fetchall()
            if lines is not None:
                found = csv.read_csv(io.BytesIO(lines), reading, convert_options=types)
                yield from found.combine_chunks().to_batches()


def values(
    connection: sqlite3.Connection, query: str, columns: Sequence[str], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query, whose first column is the row's number; text comes as bytes."""
    kinds = [pa.int64(), *(pa.binary() if name in TEXT else pa.int64() for name in columns)]
    with closing(connection):
        cursor = connection.execute(query)
        while rows := cursor.fetchmany(batch_rows):
            arrays = [pa.array(items, kind) for items, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=schema(columns).names)
