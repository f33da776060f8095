"""kernel-csv: kernels as comma-separated lines. A complete third-party ingester for tracedb.

A file starts with the line ``# kernel-csv 1``, then a header, then one line per kernel: name, device,
stream, start_ns, duration_ns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import duckdb

from tracedb.errors import ReadError
from tracedb.ingester import Capture, Options, Rows

MAGIC = b"# kernel-csv 1"
HEADER = "name,device,stream,start_ns,duration_ns"

LINES = """
CREATE OR REPLACE TEMP TABLE csv_line AS
WITH line AS (
    SELECT
        name,
        try_cast(device AS INTEGER) AS device_id,
        try_cast(stream AS BIGINT) AS stream_id,
        try_cast(start_ns AS BIGINT) AS start_ns,
        try_cast(duration_ns AS BIGINT) AS duration_ns,
        regexp_full_match(concat(start_ns, ' ', duration_ns), '-?[0-9]+ [0-9]+') AS is_whole
    FROM read_csv($path, auto_detect = false, skip = 2, delim = ',', quote = '"', escape = '"',
        null_padding = true, strict_mode = false, columns = {'name': 'VARCHAR', 'device': 'VARCHAR',
        'stream': 'VARCHAR', 'start_ns': 'VARCHAR', 'duration_ns': 'VARCHAR'})
)
SELECT
    row_number() OVER (ORDER BY start_ns, device_id, stream_id, duration_ns, name) AS event_id,
    name, device_id, stream_id, start_ns, duration_ns,
    coalesce(name <> '' AND is_whole AND try(start_ns + duration_ns) IS NOT NULL, false) AS is_sound
FROM line
"""
KERNELS = "SELECT * EXCLUDE (is_sound), 'kernel' AS kind FROM csv_line WHERE is_sound"
DEVICES = "SELECT DISTINCT device_id, true AS is_used FROM csv_line WHERE is_sound AND device_id IS NOT NULL"
ISSUES = """
SELECT
    'line_unreadable' AS code, 'warning' AS severity, count(*) AS count, count(*) AS skipped,
    'lines without a name, a start and a duration' AS detail
FROM csv_line WHERE NOT is_sound HAVING count(*) > 0
"""
ACCOUNT = """
SELECT
    CASE WHEN NOT coalesce(bool_or(is_sound), false) THEN 'no_gpu_activity'
        WHEN bool_and(is_sound) THEN 'complete' ELSE 'repaired' END AS status,
    'kernel-csv 1' AS tool_version,
    count(*) AS events_read,
    count(*) FILTER (NOT is_sound) AS events_skipped,
    count(*) FILTER (is_sound) AS rows_written
FROM csv_line
"""


class KernelCsv:
    """Reads kernel-csv files. DuckDB does the work; rows pass as relations over the scratch connection."""

    name = "kernel-csv"

    def find(self, files: Sequence[Path]) -> Iterable[Capture]:
        """Claim files by their first line. tracedb takes the rank from the path."""
        for path in files:
            try:
                with path.open("rb") as file:
                    if file.readline(100).rstrip() == MAGIC:
                        yield Capture((path,))
            except OSError:
                continue  # tracedb lists it as not recognised

    def read(self, capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
        """Yield the rows of one file; the capture row with the event counts comes last."""
        (path,) = capture.files
        with path.open(encoding="utf-8", errors="replace") as file:
            file.readline()
            header = file.readline().strip()
        if header != HEADER:
            raise ReadError(f"the second line is {header!r}, not {HEADER!r}")
        scratch.execute(LINES, {"path": str(path)})
        options.progress(path.stat().st_size)
        for table, query in (("kernel_event", KERNELS), ("device", DEVICES), ("ingest_issue", ISSUES)):
            yield Rows(table, scratch.sql(query))
        yield Rows("capture", scratch.sql(ACCOUNT))


ingester = KernelCsv()
