"""Exports as a folder of Parquet files, one per table (`nsys export --type=parquetdir`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tracedb.errors import ReadError
from tracedb_nsys.capture_files import SUFFIX
from tracedb_nsys.export.integer_limits import ANY, Odd, number_of, text_of, whole_numbers, within
from tracedb_nsys.export.protocol import ROW, STRINGS, decoded, schema

BATCH_ROWS = 32_768
ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError)
"""Raised by Arrow for a damaged file; its column names may not be UTF-8."""


class ParquetExport:
    """An export in a folder of Parquet files."""

    format = "parquet"

    def __init__(self, files: Sequence[Path]) -> None:
        """Raises ``ReadError`` for an incomplete Parquet file."""
        import pyarrow.parquet as pq

        self.odd: Counter[tuple[str, str]] = Counter()
        self._rows_read: dict[str, int] = {}
        """Rows read of each table whose footer counts another number."""
        self._files: dict[str, Any] = {}
        self.tables: dict[str, Sequence[str]] = {}
        for path in files:
            try:
                file = pq.ParquetFile(path)
                self.tables[path.name.removesuffix(SUFFIX)] = file.schema_arrow.names
                self._files[path.name.removesuffix(SUFFIX)] = file
            except ERRORS as error:
                raise _damaged(path.name, error) from error

    def count(self, table: str) -> int:
        """Return the number of rows."""
        return int(self._files[table].metadata.num_rows)

    def stored_rows(self, table: str) -> int:
        """Return the same as ``count``: a Parquet footer is exact."""
        return self.count(table)

    def upper_bound(self, table: str) -> int:
        """Return the same as ``count``: a Parquet footer is exact."""
        return self.count(table)

    def small(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the values of a small table; a missing column gives None."""
        if table not in self._files:
            return []
        known = [name for name in columns if name in self.tables[table]]
        try:
            rows = self._files[table].read(columns=known).to_pylist()
        except ERRORS as error:
            raise _damaged(table, error) from error
        return [tuple(_plain(row.get(name)) for name in columns) for row in rows]

    def batches(self, table: str, columns: Sequence[str], parts: int) -> list[Iterator[pa.RecordBatch]]:
        """Return one iterator over the rows: decoding is fast enough."""
        return [self._batches(table, columns)]

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return strings of the export by id, those that exist."""
        wanted = set(numbers)
        rows = ((number_of(number, ANY[0]), text_of(value)) for number, value in self.small(STRINGS, ("id", "value")))
        return {
            number: value for number, value in rows if number in wanted and number is not None and value is not None
        }

    def verify(self, table: str, rows: int) -> None:
        """Compare the number of rows read with the file's footer."""
        if rows != self.count(table):
            self._rows_read[table] = rows

    def distrust(self, fault: str) -> None:
        """Do nothing: there is only one way to read Parquet."""

    def losses(self) -> tuple[int, str] | None:
        """Return the number of missing rows and a text naming their tables; None if none is missing."""
        if not self._rows_read:
            return None
        counts = [(table, rows, self.count(table)) for table, rows in self._rows_read.items()]
        lines = [f"{table}: {rows:,} rows read, the footer says {count:,}" for table, rows, count in counts]
        return sum(max(count - rows, 0) for _, rows, count in counts), "; ".join(lines)

    def _batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted, done = schema(columns), 0

        def odd(column: str, count: int) -> None:
            self.odd[table, column] += count

        try:
            for batch in self._files[table].iter_batches(BATCH_ROWS, columns=list(columns)):
                numbers = pa.array(np.arange(done + 1, done + batch.num_rows + 1, dtype=np.int64))
                arrays = [
                    numbers if field.name == ROW else _as_wanted_type(batch[field.name], field, odd) for field in wanted
                ]
                yield within(pa.RecordBatch.from_arrays(arrays, schema=wanted), table, odd)
                done += batch.num_rows
        except ERRORS as error:
            raise _damaged(table, error) from error


def _as_wanted_type(column: pa.Array, field: pa.Field, odd: Odd) -> pa.Array:
    """Return the column as 64-bit integers or text, whatever the writer chose."""
    if field.type != pa.string():
        return whole_numbers(column, field.name, odd)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.binary())
    elif not pa.types.is_binary(column.type):
        column = pa.array([None if item is None else text_of(item) for item in column.to_pylist()], pa.string())
    return decoded(column)


def _plain(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _damaged(name: str, error: BaseException) -> ReadError:
    said = " ".join(str(error).split())[:200]
    return ReadError(
        f"{name.removesuffix(SUFFIX)}{SUFFIX} cannot be read ({said}); copy it or export it again with "
        "`nsys export --type=parquetdir`"
    )
