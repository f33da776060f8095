"""Exports as a folder of Parquet files, one a table (`nsys export --type=parquetdir`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tracedb.errors import ReadError
from tracedb_nsys.recordings import SUFFIX
from tracedb_nsys.tables import ROW, STRINGS, decoded, schema

BATCH_ROWS = 32_768


class ParquetExport:
    """An export in a folder of Parquet files."""

    format = "parquet"

    def __init__(self, files: Sequence[Path]) -> None:
        """Raises ``ReadError`` for a file that is no whole Parquet file."""
        import pyarrow.parquet as pq

        self._files: dict[str, Any] = {}
        for path in files:
            try:
                self._files[path.name.removesuffix(SUFFIX)] = pq.ParquetFile(path)
            except (pa.ArrowException, OSError) as error:
                raise _damaged(path.name, error) from error
        self.tables: Mapping[str, Sequence[str]] = {
            table: file.schema_arrow.names for table, file in self._files.items()
        }

    def count(self, table: str) -> int:
        """Return the number of rows."""
        return int(self._files[table].metadata.num_rows)

    def about(self, table: str) -> int:
        """Return the number of rows."""
        return self.count(table)

    def small(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the values of a small table; a column that is not there gives None."""
        if table not in self._files:
            return []
        known = [name for name in columns if name in self.tables[table]]
        try:
            rows = self._files[table].read(columns=known).to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise _damaged(table, error) from error
        return [tuple(_plain(row.get(name)) for name in columns) for row in rows]

    def batches(self, table: str, columns: Sequence[str], parts: int) -> list[Iterator[pa.RecordBatch]]:
        """Return one iterator over the rows: decoding is fast enough."""
        return [self._batches(table, columns)]

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return strings of the export by their numbers, as far as it has them."""
        wanted = set(numbers)
        return {
            int(number): str(value)
            for number, value in self.small(STRINGS, ("id", "value"))
            if number in wanted and value is not None
        }

    def _batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted, done = schema(columns), 0
        try:
            for batch in self._files[table].iter_batches(BATCH_ROWS, columns=list(columns)):
                numbers = pa.array(np.arange(done + 1, done + batch.num_rows + 1, dtype=np.int64))
                arrays = [numbers if field.name == ROW else _pinned(batch[field.name], field.type) for field in wanted]
                yield pa.RecordBatch.from_arrays(arrays, schema=wanted)
                done += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise _damaged(table, error) from error


def _pinned(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the column as 64-bit integers or text, whatever the writer chose; unsigned ids keep their bits."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kind == pa.string():
        return decoded(column if pa.types.is_binary(column.type) else column.cast(pa.binary()))
    if column.type == pa.uint64():
        return column.view(pa.int64())
    if pa.types.is_temporal(column.type):
        return column.view(pa.int64()) if column.type.bit_width == 64 else column.cast(pa.int64())
    return column.cast(kind, safe=False)


def _plain(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _damaged(name: str, error: BaseException) -> ReadError:
    said = " ".join(str(error).split())[:200]
    return ReadError(
        f"{name.removesuffix(SUFFIX)}{SUFFIX} cannot be read ({said}); copy it or export it again with "
        "`nsys export --type=parquetdir`"
    )
