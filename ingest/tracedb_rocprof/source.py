"""The ingester of ROCm's profilers: which files are captures.

The readers are imported only when a file is read: looking through a folder needs neither DuckDB nor Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.ingester import Capture, Options, Rows
from tracedb_rocprof import capture_files

if TYPE_CHECKING:
    import duckdb


class RocprofIngester:
    """Reads recordings of rocprofv3, rocpd, and the profilers before them."""

    name = "rocprof"
    memory_limit = "500MB"

    def describe(self) -> dict[str, str]:
        """Say which CSV parser is in use."""
        from tracedb_rocprof.csv import native_parser

        return {"reader": native_parser.state()}

    def find(self, files: Sequence[Path]) -> Iterable[Capture]:
        """Claim a capture for each process; of its recordings, the first of database, JSON, CSV."""
        return capture_files.captures(files)

    def read(self, capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
        """Yield the rows of a recording; every process gives one part."""
        from tracedb_rocprof.capture import rows_of

        yield from rows_of(capture, scratch, options)
