"""The nsys ingester: which files are captures.

The readers are imported only when a file is read: looking through a folder needs neither DuckDB nor Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.ingester import Capture, Options, Rows
from tracedb_nsys.capture_files import captures

if TYPE_CHECKING:
    import duckdb


class NsysIngester:
    """Reads captures of Nsight Systems."""

    name = "nsys"
    memory_limit = "400MB"

    def describe(self) -> dict[str, str]:
        """Say which reader of large tables is in use."""
        from tracedb_nsys.export import native_pages

        return {"reader": native_pages.state()}

    def find(self, files: Sequence[Path]) -> Iterable[Capture]:
        """Claim SQLite and Parquet exports and reports; of one capture's recordings, the first in that order."""
        return captures(files)

    def read(self, capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
        """Yield the rows of an export; every process gives one part."""
        from tracedb_nsys.capture import rows_of

        yield from rows_of(capture, scratch, options)
