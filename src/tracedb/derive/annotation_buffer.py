"""A capture's annotations until all are known: few are held as they come, more lie in a temporary table."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from tracedb.derive.arrow_rows import are_integers, column
from tracedb.derive.time_extent import Extent
from tracedb.intervals import small_nesting
from tracedb.intervals.small_nesting import Nested, Range

NO_RANGES = ("mark", "gpu_projection")
"""Styles of annotations that enclose nothing on the host."""
NUMBERS = ("annotation_id", "thread_id", "start_ns", "duration_ns")


class Annotations:
    """Takes the rows of ``annotation`` of a capture, and writes them once parents are known."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._held: list[pa.Table] = []
        self._count = 0
        self._is_table = False

    def take(self, incoming: pa.RecordBatch | pa.Table | duckdb.DuckDBPyRelation) -> None:
        """Take rows."""
        if not isinstance(incoming, duckdb.DuckDBPyRelation) and self._may_be_held(incoming):
            self._count += incoming.num_rows
            self._held.append(pa.Table.from_batches([incoming]) if isinstance(incoming, pa.RecordBatch) else incoming)
            return
        self.into_table()
        self._count += self._insert(incoming)

    def _may_be_held(self, incoming: pa.RecordBatch | pa.Table) -> bool:
        is_few = self._count + incoming.num_rows <= small_nesting.MOST
        return is_few and not self._is_table and _is_plain(incoming.schema)

    def into_table(self) -> None:
        """Have all rows in temp table ``annotation_in``."""
        if not self._is_table:
            self._is_table = True
            self._connection.execute(
                """CREATE OR REPLACE TEMP TABLE annotation_in AS
                SELECT * EXCLUDE (capture_id) FROM main.annotation LIMIT 0"""
            )
            self._connection.execute("ALTER TABLE annotation_in ALTER is_open SET DEFAULT false")
            for rows in self._held:
                self._insert(rows)
            self._held.clear()

    def _insert(self, incoming: pa.RecordBatch | pa.Table | duckdb.DuckDBPyRelation) -> int:
        ((count,),) = self._connection.execute("INSERT INTO annotation_in BY NAME SELECT * FROM incoming").fetchall()
        return int(count)

    def extent(self) -> Extent:
        """Return how many rows there are, their first and last start, and the longest duration, in ns."""
        if self._is_table:
            (row,) = self._connection.execute(
                "SELECT count(*), min(start_ns), max(start_ns), max(duration_ns) FROM temp.annotation_in"
            ).fetchall()
            return Extent(*row)
        starts = [start for rows in self._held for start in column(rows, "start_ns") if start is not None]
        lengths = [length for rows in self._held for length in column(rows, "duration_ns") if length is not None]
        return Extent(len(starts), min(starts, default=None), max(starts, default=None), max(lengths, default=None))

    def few(self) -> list[Range] | None:
        """Return the ranges whose times can be true; None where there are many, or one is open or faulty."""
        if self._count > small_nesting.MOST:
            return None
        if self._is_table:
            self._held = [self._connection.sql("FROM temp.annotation_in").to_arrow_table()]
        found = []
        for rows in self._held:
            columns = [column(rows, name) for name in ("style", "is_open", "thread_id", "start_ns", "duration_ns")]
            faults = column(rows, "time_fault")
            for number, style, is_open, lane, start, duration, fault in zip(
                column(rows, NUMBERS[0]), *columns, faults, strict=True
            ):
                if style not in NO_RANGES and (duration is not None or is_open) and fault is None:
                    if duration is None or start is None or number is None:
                        return None
                    found.append(Range(-1 if lane is None else lane, start, start + duration, number))
        return found

    def write(self, capture_id: int, nested: Sequence[Nested]) -> None:
        """Write the few rows with parent and depth."""
        found = {item.number: (parent.number if parent else None, depth) for item, parent, depth in nested}
        for rows in self._held:
            above = [found.get(number, (None, None)) for number in column(rows, "annotation_id")]
            kept = {name: rows[name] for name in rows.column_names if name not in ("parent_id", "depth")}
            kept["parent_id"] = pa.array([parent for parent, _ in above], pa.int64())
            kept["depth"] = pa.array([depth for _, depth in above], pa.int32())
            complete = pa.table(kept)  # noqa: F841 - DuckDB finds it by name
            self._connection.execute(
                f"INSERT INTO main.annotation BY NAME SELECT {int(capture_id)}::INTEGER AS capture_id, * FROM complete"
            )

    def drop(self) -> None:
        """Give up what is held."""
        self._held.clear()
        if self._is_table:
            self._connection.execute("DROP TABLE temp.annotation_in")


def _is_plain(schema: pa.Schema) -> bool:
    """Whether numbers are what they look like in Python; others are converted by the table."""
    kind = schema.field("is_open").type if "is_open" in schema.names else pa.null()
    return are_integers(schema, NUMBERS) and (pa.types.is_boolean(kind) or pa.types.is_null(kind))
