"""Buffer a capture's annotations until all are known: in memory if they are few, else in a temporary table."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

from tracedb.derive.arrow_rows import are_integers, column
from tracedb.derive.time_extent import Extent
from tracedb.intervals.native_nesting import NOTHING, Nested, Ranges

NO_RANGES = ("mark", "gpu_projection")
"""Styles of annotations that enclose nothing on the host."""
RANGES = f"""
SELECT coalesce(thread_id, -1) AS lane, start_ns, coalesce(start_ns + duration_ns, {{last_ns}}) AS end_ns, annotation_id
FROM temp.annotation_in
WHERE style NOT IN {NO_RANGES} AND (duration_ns IS NOT NULL OR is_open) AND time_fault IS NULL
"""
INSERT_NESTED = """
INSERT INTO main.annotation BY NAME
SELECT ? AS capture_id, a.* REPLACE (n.parent_id AS parent_id, n.depth AS depth)
FROM annotation_in AS a LEFT JOIN nest_out AS n ON a.annotation_id = n.item_id
"""
"""Writes ``annotation_in`` with parents and depths from ``nest_out``."""
MOST_HELD = 5_000
"""Rows kept in memory: creating a temporary table takes longer than processing this many in Python."""
MOST_RANGES = 250_000
"""Ranges nested in memory: with the results they take about 50 MB."""
NUMBERS = ("annotation_id", "thread_id", "start_ns", "duration_ns")


class Annotations:
    """Collects the rows of ``annotation`` of a capture, and writes them once parents are known."""

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
        is_few = self._count + incoming.num_rows <= MOST_HELD
        return is_few and not self._is_table and _is_plain(incoming.schema)

    def into_table(self) -> None:
        """Move all rows to temp table ``annotation_in``."""
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
        """Return the number of rows, their first and last start, and the longest duration, in ns."""
        if self._is_table:
            (row,) = self._connection.execute(
                "SELECT count(*), min(start_ns), max(start_ns), max(duration_ns) FROM temp.annotation_in"
            ).fetchall()
            return Extent(*row)
        starts = [start for rows in self._held for start in column(rows, "start_ns") if start is not None]
        lengths = [length for rows in self._held for length in column(rows, "duration_ns") if length is not None]
        return Extent(len(starts), min(starts, default=None), max(starts, default=None), max(lengths, default=None))

    def ranges(self, last_ns: Callable[[], int]) -> Ranges | None:
        """Return the ranges with valid times; None if there are too many, or one has no number or start.

        ``last_ns`` gives the end assumed for ranges still open; it is called once all rows are in the table.
        """
        if not self._is_table:
            held = self._held_ranges()
            if held is not None:
                return held
            self.into_table()
        if self._count > MOST_RANGES:
            return None
        found = self._connection.sql(RANGES.format(last_ns=int(last_ns()))).to_arrow_table()
        if any(column.null_count for column in found.columns):
            return None
        return Ranges(*(column.to_numpy() for column in found.columns))

    def _held_ranges(self) -> Ranges | None:
        """Return the ranges held in memory; None if one is open, or has no number or start."""
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
                    found.append((-1 if lane is None else lane, start, start + duration, number))
        return Ranges(*np.array(found, np.int64).reshape(-1, 4).T)

    def write(self, capture_id: int, nested: Nested) -> None:
        """Write the rows with parent and depth."""
        if self._is_table:
            parents = pa.array(nested.parent, pa.int64(), mask=nested.parent == NOTHING)
            nest_out = pa.table([nested.ranges.item, parents, nested.depth], ["item_id", "parent_id", "depth"])
            self._connection.register("nest_out", nest_out)
            self._connection.execute(INSERT_NESTED, [capture_id])
            self._connection.unregister("nest_out")
            return
        above = zip(nested.parent.tolist(), nested.depth.tolist(), strict=True)
        found = dict(zip(nested.ranges.item.tolist(), above, strict=True))
        for rows in self._held:
            here = [found.get(number, (NOTHING, None)) for number in column(rows, "annotation_id")]
            kept = {name: rows[name] for name in rows.column_names if name not in ("parent_id", "depth")}
            kept["parent_id"] = pa.array([None if parent == NOTHING else parent for parent, _ in here], pa.int64())
            kept["depth"] = pa.array([depth for _, depth in here], pa.int32())
            complete = pa.table(kept)  # noqa: F841 - DuckDB finds it by name
            self._connection.execute(
                f"INSERT INTO main.annotation BY NAME SELECT {int(capture_id)}::INTEGER AS capture_id, * FROM complete"
            )

    def drop(self) -> None:
        """Release the held rows."""
        self._held.clear()
        if self._is_table:
            self._connection.execute("DROP TABLE temp.annotation_in")


def _is_plain(schema: pa.Schema) -> bool:
    """Whether numbers have the schema's types; others are converted by the table."""
    kind = schema.field("is_open").type if "is_open" in schema.names else pa.null()
    return are_integers(schema, NUMBERS) and (pa.types.is_boolean(kind) or pa.types.is_null(kind))
