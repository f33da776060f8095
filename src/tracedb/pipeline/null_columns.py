"""NULL columns that cost almost nothing."""

from __future__ import annotations

import pyarrow as pa

from tracedb.storage import schema


class Blanks:
    """NULL columns for those of ``kernel_event`` that are not given; none of them has a default.

    DuckDB would create a constant for each and write it out value by value, which costs more than reading a column.
    """

    def __init__(self) -> None:
        self._schema: pa.Schema | None = None
        self._zeros = pa.py_buffer(b"")

    def added(self, rows: pa.Table) -> pa.Table:
        """Return the rows with these columns added; all share one buffer."""
        if self._schema is None:
            self._schema = schema.arrow("kernel_event")
        count = rows.num_rows
        if self._zeros.size < 8 * (count + 1):
            self._zeros = pa.py_buffer(bytes(8 * (count + 1)))
        given = set(rows.schema.names)
        for field in self._schema:
            if field.name in given:
                continue
            if pa.types.is_string(field.type):
                buffers = [self._zeros] * 3  # validity, offsets and text data
            elif pa.types.is_primitive(field.type):
                buffers = [self._zeros] * 2
            else:
                continue
            rows = rows.append_column(field, pa.Array.from_buffers(field.type, count, buffers, count))
        return rows
