"""The rows of one nsys capture: read it, link it, split it by process and report the counts."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from tracedb.ingester import Capture, Options, Rows
from tracedb.ingester.issues import Account
from tracedb.ingester.name_patterns import GRAPH_LAUNCH
from tracedb.ingester.rows import CaptureRow, capture_row, issue_rows
from tracedb_nsys import export_issues, gpu_metrics, nccl_payloads, ranges, schema_rows, unstaged_kernels
from tracedb_nsys.capture_files import PARQUET, REPORT, kind_of, recording_names
from tracedb_nsys.export import nsys_rep
from tracedb_nsys.export.parquet import ParquetExport
from tracedb_nsys.export.protocol import GRAPH, KERNEL, Export
from tracedb_nsys.export.sqlite import SqliteExport
from tracedb_nsys.export.table_roles import tables_of
from tracedb_nsys.gpus import devices
from tracedb_nsys.header import Header, header_of, metadata_text
from tracedb_nsys.staging import UNREAD, Stage

EXPORTING = 0.5  # share of the progress bar for `nsys export`
SEVERAL = "one export held several processes; each became a capture of its own"
RECORD_AGAIN = "record again with `nsys profile --trace=cuda,nvtx`"
WSL = "WSL2 with this driver records calls but no kernels; update the driver or record on Linux itself"
NO_ACCESS = (
    "the GPU could not be traced (permissions, a container, WSL2): see `nsys status -e`, try a newer nsys or "
    "CuptiUseRawGpuTimestamps=false in its configuration"
)
ONLY_GRAPHS = "its {} graph launches hold the kernels; record again with `nsys profile --cuda-graph-trace=node`"


def rows_of(capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
    """Yield the rows of an export; every process gives one part."""
    progress = _Progress(sum(path.stat().st_size for path in capture.files), options)
    export, share = _open(capture.files, progress)
    account = Account()
    header = header_of(export)
    stage = Stage(scratch, export, account, options.cores, lambda done: progress.advance(done * share))
    yield from stage.fill(may_bypass_staging=options.cores > 1 and not options.is_second)
    progress.finish()
    export_issues.of_header(header, account)
    others = recording_names(capture.duplicates)
    account.noted("duplicate_recording", len(others), f"of the same capture, not read: {', '.join(others)}")
    processes = schema_rows.prepare(scratch, account)
    direct_rows = stage.direct_rows()
    unstaged_kernels.check(processes, direct_rows)
    if len(processes) > 1:
        account.noted("several_processes", len(processes), SEVERAL)
    has_kernels = any(export.count(table) for role in (KERNEL, GRAPH) for table in tables_of(role, export.tables))
    shared = (
        [number for (number,) in scratch.execute(schema_rows.SHARED_DEVICES).fetchall()] if len(processes) > 1 else []
    )
    for part, gpid in enumerate(processes):
        schema_rows.use(scratch, gpid, part == 0, len(processes) == 1)
        yield from schema_rows.rows(scratch, part, stage.kernels_are_sorted)
        used = scratch.execute(schema_rows.USED_DEVICES).fetchall()
        gpus = devices(header, gpid, [device for (device,) in used], shared)
        yield Rows("device", gpus, part)
        gpu_metrics.use(scratch, header, gpid, gpus["device_id"].to_pylist())
        yield Rows("device_condition", scratch.sql(gpu_metrics.ROWS), part)
        gpu = _rows(scratch, "part_gpu") + direct_rows
        mine = account if part == len(processes) - 1 else Account()
        if mine is account:
            clocks = gpu_metrics.unplaced(scratch)
            account.left_aside("gpu_metrics", clocks, "clocks of GPUs that no recorded process sees; skipped")
        is_idle = not gpu or not has_kernels
        if is_idle:
            mine.noted("no_gpu_activity", 1, _what_is_missing(account) or _why_no_gpu(scratch, header, gpu))
        yield Rows("ingest_issue", issue_rows(mine), part)
        status = "repaired" if account.is_repaired else "no_gpu_activity" if is_idle else "complete"
        read = stage.events_read if len(processes) == 1 else None
        row = _capture(scratch, header, gpid, status, mine.skipped, read, direct_rows)
        yield Rows("capture", row, part)


class _Progress:
    """Converts shares of the work into bytes of the files."""

    def __init__(self, size: int, options: Options) -> None:
        self._size = size
        self._report = options.progress
        self._share = 0.0
        self._told = 0
        self._lock = threading.Lock()  # rows come from several threads

    def advance(self, share: float) -> None:
        with self._lock:
            self._share += share
            done = min(int(self._share * self._size), self._size)
            if done > self._told:
                self._report(done - self._told)
                self._told = done

    def finish(self) -> None:
        self.advance(1.0)


def _open(files: Sequence[Path], progress: _Progress) -> tuple[Export, float]:
    """Open the export; returns it and the share of the work that reading takes."""
    kind = kind_of(files[0])
    if kind == PARQUET:
        return ParquetExport(files), 1.0
    nsys_rep.check_complete(files[0])
    if kind == REPORT:
        exported = nsys_rep.export(files[0], lambda share: progress.advance(share * EXPORTING))
        return SqliteExport(exported), 1.0 - EXPORTING
    return SqliteExport(files[0]), 1.0


def _rows(scratch: duckdb.DuckDBPyConnection, table: str) -> int:
    ((count,),) = scratch.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(count)


def _capture(
    scratch: duckdb.DuckDBPyConnection,
    header: Header,
    gpid: int | None,
    status: str,
    skipped: int,
    events_read: int | None,
    direct_rows: int,
) -> pa.Table:
    """Return the capture row of a process; ``events_read`` is counted by query if one export holds several."""
    written = direct_rows + sum(_rows(scratch, f"part_{table}") for table in schema_rows.PARTS)
    written += _rows(scratch, f"({gpu_metrics.ROWS})")
    pid = (gpid >> 24) & 0xFFFFFF if gpid is not None else None
    place = nccl_payloads.place(scratch)
    rank = header.mpi_ranks.get(pid) if pid is not None else None
    metadata = metadata_text(header, last_annotation_ns=ranges.last_ns(scratch))
    row = CaptureRow(
        status=status,
        events_read=written + skipped if events_read is None else events_read,
        events_skipped=skipped,
        rows_written=written,
        host=header.host,
        pid=pid,
        rank=place.rank if rank is None else rank,
        world_size=place.world_size,
        tool_version=header.tool_version,
        clock_zero_unix_ns=header.clock_zero_unix_ns,
        metadata=metadata,
    )
    return capture_row(row)


def _what_is_missing(account: Account) -> str:
    """Return which possible GPU work gave no row; empty if everything was read."""
    unread = [issue.detail for code, issue in account.issues.items() if code.startswith(UNREAD)]
    lost = account.lost_events
    return "; ".join(unread) or (f"events skipped as unreadable: {lost:,}; kernels may be among them" if lost else "")


def _why_no_gpu(scratch: duckdb.DuckDBPyConnection, header: Header, copies: int) -> str:
    """Return why no kernel was recorded, as far as the export shows."""
    calls, spans = _rows(scratch, "part_launch"), _rows(scratch, "part_range")
    had = ((copies, "copies and memsets"), (calls, "API calls"), (spans, "ranges and marks"))
    what = ", ".join(f"{count:,} {noun}" for count, noun in had if count)
    ((graphs,),) = scratch.execute(
        """SELECT count(*) FROM part_launch
        WHERE name IN (SELECT id FROM link_call_name WHERE contains(value, ?))""",
        [GRAPH_LAUNCH],
    ).fetchall()
    hint = RECORD_AGAIN
    if graphs:
        hint = ONLY_GRAPHS.format(graphs)
    elif calls:
        hint = WSL if header.release and "microsoft" in header.release.lower() else NO_ACCESS
    said = f"; nsys says: {header.warnings[0]}" if header.warnings else ""
    return f"{f'only {what} were recorded' if what else 'nothing was recorded'}; {hint}{said}"
