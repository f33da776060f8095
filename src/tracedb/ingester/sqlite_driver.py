"""Rows of SQLite queries as Arrow batches, through the Arrow project's SQLite driver (ADBC)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from tracedb.errors import ReadError


def batches(
    address: str, query: str, batch_rows: int, fault: Callable[[Exception], ReadError]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query, ``batch_rows`` at a time; ``address`` is the URI of the file.

    The driver gives each column the type of its first value: 64-bit integer, double, text or bytes. Raises ``fault``
    of the driver's error, and ``ReadError`` if the driver cannot be loaded.
    """
    try:
        import adbc_driver_sqlite.dbapi as driver
    except ImportError as error:
        raise ReadError(
            f"SQLite files are read with adbc-driver-sqlite, which cannot be loaded ({error}); install it again"
        ) from error
    try:
        with driver.connect(address) as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": batch_rows})
            cursor.execute(query)
            yield from cursor.fetch_record_batch()
    except (driver.Error, pa.ArrowException, OSError) as error:
        raise fault(error) from error
