"""Load results of Nsight Compute: a GPU event for each profiled kernel, and its metrics as counters.

The kernels ran one at a time, several times over, with the clocks locked unless told otherwise. They are therefore
counted dispatches (``kernel_event.is_counted``), which reports of time leave out. ncu records no start times: kernels
are numbered in the order of their launches, and all starts are 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracedb.errors import ReadError
from tracedb.ingester import Capture, Options, Rows
from tracedb_ncu import report
from tracedb_ncu.csv_records import NO_METRICS, Record, header_line, records, sizes
from tracedb_ncu.report import is_readable

if TYPE_CHECKING:
    import duckdb

    from tracedb.ingester.issues import Account

REPORT = ".ncu-rep"
EXPORT = (
    "a report of Nsight Compute, which only NVIDIA's tools read; install the package ncu-report, or export it with "
    "`ncu --import FILE.ncu-rep --page raw --csv > FILE.csv` and ingest that"
)
DURATION = "gpu__time_duration.sum"
BATCH = 2_000
MOST = (1 << 31) - 1
KERNEL = """process_id BIGINT, event_id BIGINT, name VARCHAR, device_id INTEGER, stream_id BIGINT, context_id BIGINT,
    grid_x BIGINT, grid_y BIGINT, grid_z BIGINT, block_x BIGINT, block_y BIGINT, block_z BIGINT, arch VARCHAR"""
KERNELS = """
SELECT
    k.event_id, 'kernel' AS kind, k.name, 0::BIGINT AS start_ns,
    coalesce(round(d.value)::BIGINT, 0) AS duration_ns, k.device_id, k.stream_id, k.context_id,
    k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z, true AS is_counted
FROM ncu_kernel AS k
LEFT JOIN (
    SELECT c.event_id, max(c.value) AS value FROM ncu_counter AS c
    WHERE c.name = $duration AND c.value BETWEEN 0 AND 9e18 GROUP BY c.event_id
) AS d ON d.event_id = k.event_id
WHERE k.process_id IS NOT DISTINCT FROM $process
ORDER BY k.device_id, k.event_id
"""
COUNTERS = """
SELECT c.event_id, c.name, c.value
FROM ncu_counter AS c
INNER JOIN ncu_kernel AS k ON k.event_id = c.event_id
WHERE k.process_id IS NOT DISTINCT FROM $process
ORDER BY c.event_id, c.name
"""
DEVICES = """
SELECT DISTINCT ON (k.device_id)
    k.device_id, true AS is_used, 'NVIDIA' AS vendor, 'sm_' || replace(k.arch, '.', '') AS arch
FROM ncu_kernel AS k
WHERE k.process_id IS NOT DISTINCT FROM $process AND k.device_id IS NOT NULL
ORDER BY k.device_id
"""


class NcuIngester:
    """Reads a CSV file or a report of Nsight Compute; each process in a CSV file is a capture."""

    name = "ncu"

    def find(self, files: Sequence[Path]) -> Iterable[Capture]:
        """Claim CSV files by their header, and reports by their name; a report beside its CSV file is a duplicate."""
        reports = {path.with_suffix(""): path for path in files if path.suffix.lower() == REPORT}
        for path in files:
            if path.suffix.lower() != REPORT and header_line(path) is not None:
                same = reports.pop(path.with_suffix(""), None)
                yield Capture((path,), duplicates=() if same is None else (same,))
        for path in reports.values():
            yield Capture((path,), refused=None if is_readable() else EXPORT)

    def read(self, capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
        """Yield the kernels of each process with their counters. Raises ``ReadError`` if the header is gone."""
        from tracedb.ingester.issues import Account
        from tracedb.ingester.rows import CaptureRow, capture_row, issue_rows

        path = capture.files[0]
        account = Account()
        for other in capture.duplicates:
            account.noted("duplicate_recording", 1, f"{other.name} holds the same results and was not read")
        scratch.execute(f"CREATE OR REPLACE TEMP TABLE ncu_kernel ({KERNEL})")
        scratch.execute("CREATE OR REPLACE TEMP TABLE ncu_counter (event_id BIGINT, name VARCHAR, value DOUBLE)")
        _stage(scratch, _records(path), account)
        options.progress(path.stat().st_size)
        found = scratch.execute("SELECT DISTINCT process_id FROM ncu_kernel ORDER BY 1").fetchall()
        processes = [process for (process,) in found] or [None]
        for part, process in enumerate(processes):
            given = {"process": process}
            yield Rows("kernel_event", scratch.sql(KERNELS, params={**given, "duration": DURATION}), part)
            yield Rows("counter", scratch.sql(COUNTERS, params=given), part)
            yield Rows("device", scratch.sql(DEVICES, params=given).to_arrow_table(), part)
            ((kernels, counters),) = scratch.execute(
                f"SELECT (SELECT count(*) FROM ncu_kernel WHERE process_id IS NOT DISTINCT FROM $process), "
                f"(SELECT count(*) FROM ({COUNTERS}))",
                given,
            ).fetchall()
            lost = account.skipped if part == len(processes) - 1 else 0
            if part == len(processes) - 1:
                yield Rows("ingest_issue", issue_rows(account), part)
            status = "repaired" if account.is_repaired else "complete" if kernels else "no_gpu_activity"
            written = kernels + counters
            yield Rows(
                "capture",
                capture_row(
                    CaptureRow(status, written + lost, lost, written, pid=process, tool_version="Nsight Compute")
                ),
                part,
            )


def _records(path: Path) -> Iterator[Record]:
    """Return the records of a file. Raises ``ReadError`` if it has none that can be read."""
    if path.suffix.lower() != REPORT:
        skipped = header_line(path)
        if skipped is None:
            raise ReadError("it no longer holds the header of a CSV file of ncu")
        return records(path, skipped)
    if not is_readable():
        raise ReadError(EXPORT)
    found = report.records(path)
    first = next(found, None)
    if first is None:
        raise ReadError(f"no results that ncu-report reads; if it is a report, {EXPORT.partition('or ')[2]}")
    return chain((first,), found)


def _stage(scratch: duckdb.DuckDBPyConnection, rows: Iterator[Record], account: Account) -> None:
    """Put all records into the temporary tables, in batches."""
    import pyarrow as pa

    numbers: dict[tuple[str, str], int] = {}
    while batch := list(islice(rows, BATCH)):
        kernels: list[tuple[Any, ...]] = []
        counters: list[tuple[int, str, float]] = []
        for record in batch:
            if record.fault:
                account.lost(
                    "line_unreadable", 1, "rows that cannot be used", place=f"line {record.line} {record.fault}"
                )
                continue
            key = record.identity["Process ID"], record.identity["ID"]
            if key not in numbers:
                numbers[key] = len(numbers)
                kernels.append(_kernel(numbers[key], record))
            for metric in record.metrics:
                if metric.name.startswith(NO_METRICS):
                    account.left_aside("machine_metrics", 1, "columns that describe the machine, not the kernel")
                elif metric.value is None:
                    account.left_aside("counter_text", 1, "metrics whose value is no number")
                else:
                    counters.append((numbers[key], metric.name, metric.value))
        for table, values in (("ncu_kernel", kernels), ("ncu_counter", counters)):
            if values:
                columns = scratch.sql(f"FROM {table} LIMIT 0").to_arrow_table().schema
                arrays = [
                    pa.array(column, kind.type) for column, kind in zip(zip(*values, strict=True), columns, strict=True)
                ]
                incoming = pa.table(arrays, schema=columns)  # noqa: F841 - DuckDB finds it by name
                scratch.execute(f"INSERT INTO {table} FROM incoming")


def _kernel(number: int, record: Record) -> tuple[Any, ...]:
    found = record.identity
    grid, block = (sizes(found[name]) or (None, None, None) for name in ("Grid Size", "Block Size"))
    device, stream, context, process = (_number(found[name]) for name in ("Device", "Stream", "Context", "Process ID"))
    return (process, number, found["Kernel Name"], device, stream, context, *grid, *block, found["CC"] or None)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and int(text) <= MOST else None
