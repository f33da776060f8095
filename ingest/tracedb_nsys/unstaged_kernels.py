"""Turn the kernels of a large export into schema rows while it is being read, without staging them.

Staging is needed only if an export may hold several processes, or NCCL payloads, which are joined to kernels. Otherwise
everything is known when a kernel is read: its call from the calls read before, its name from the string table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import duckdb
import pyarrow as pa

from tracedb.ingester import ReadAgain, Rows
from tracedb.storage.schema import ROW_GROUP
from tracedb_nsys import schema_rows

SMALLEST_ROWS = 500_000
GROUPS = 2
"""Row groups yielded at once: two cores write one each, and no group is split."""


class UnstagedKernels:
    """Converts tables of kernels into schema rows as they are read."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        query: str,
        valid: str,
        texts: Callable[[list[int]], Mapping[int, str]],
    ) -> None:
        """``query``: select list that gives staged rows of a table; ``texts`` returns strings of the export by id."""
        self._connection = connection
        self._query = query
        self._valid = valid
        self._texts = texts
        self.nameless = 0
        """Number of kernels whose name the export lacks."""
        self.replaced = 0
        """Number of names with bytes that are not UTF-8."""
        self._has_unknown = False
        connection.execute("CREATE OR REPLACE TEMP TABLE direct_text (id BIGINT, value VARCHAR)")

    def rows(self, table: pa.Table) -> Rows:
        """Return the rows of kernels; they must be consumed before the next call."""
        connection = self._connection
        feed = table  # noqa: F841 - found by its name; what is registered would live as long as the transaction
        made = f"SELECT * FROM (SELECT {self._query} FROM feed) WHERE {self._valid}"
        self._name(table)
        connection.execute(
            f"""INSERT INTO staged_total BY NAME
            SELECT gpid, device_id, count(*) AS kernels FROM ({made}) GROUP BY gpid, device_id"""
        )
        if self._has_unknown:
            ((nameless,),) = connection.execute(
                f"""SELECT count(*) FROM ({made}) WHERE name IN (SELECT id FROM direct_text WHERE value IS NULL)"""
            ).fetchall()
            self.nameless += nameless
        return Rows("kernel_event", connection.sql(schema_rows.DIRECT_SQL.format(kernels=made)), 0, is_ordered=False)

    def _name(self, feed: pa.Table) -> None:
        """Read the names not met before."""
        found = self._connection.execute(
            f"""SELECT DISTINCT name FROM (SELECT {self._query} FROM feed)
            WHERE name IS NOT NULL AND name NOT IN (SELECT id FROM direct_text)"""
        ).fetchall()
        if not found:
            return
        texts = self._texts([number for (number,) in found])
        rows = [(number, texts.get(number)) for (number,) in found]
        self._connection.executemany("INSERT INTO direct_text VALUES (?, ?)", rows)
        self._has_unknown = self._has_unknown or len(texts) < len(rows)
        self.replaced += sum("\ufffd" in text for text in texts.values())


def check(processes: list[int | None], direct: int) -> None:
    """Raise ``ReadAgain`` if an export whose kernels were not staged turns out to hold several processes."""
    if direct and len(processes) > 1:
        raise ReadAgain


def grouped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield tables of whole row groups, then the remainder."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        while rows >= GROUPS * ROW_GROUP:
            table = pa.Table.from_batches(held)
            yield _in_groups(table.slice(0, GROUPS * ROW_GROUP))
            held = table.slice(GROUPS * ROW_GROUP).to_batches()
            rows -= GROUPS * ROW_GROUP
    if rows:
        yield _in_groups(pa.Table.from_batches(held))


def _in_groups(table: pa.Table) -> pa.Table:
    """Return a table whose batches are row groups."""
    sizes = [batch.num_rows for batch in table.to_batches()]
    if all(size == ROW_GROUP for size in sizes[:-1]) and sizes[-1] <= ROW_GROUP:
        return table
    return pa.Table.from_batches(table.combine_chunks().to_batches(max_chunksize=ROW_GROUP))
