"""Recognise files that tracedb does not read: results of other tools, and recordings in formats it has no reader for.

Each gets a line that says what it is and what to do instead.
"""

from __future__ import annotations

import csv
import re
import zipfile
from pathlib import Path

FIRST_BYTES = 1 << 16
MOST_BYTES = 1 << 20
"""Bytes of a workbook's list of sheets that are unpacked at most."""
VARIANCE = {"kernel_name", "kernel_time_min_us", "kernel_time_max_us", "time_diff_us"}
COMMS = {"operation_id", "operation_name", "Collective name", "comm_latency_mean"}
TRACELENS_SHEETS = {
    *("gpu_timeline", "ops_summary_by_category", "ops_summary", "ops_unique_args", "unified_perf_summary", "GEMM"),
    *("coll_analysis", "nccl_long", "nccl_summary_implicit_sync", "nccl_summary_long", "kernel_summary"),
}
SWEEP_SHEETS = {"All_Data", "Pivot_Time_ms", "Pivot_Percent", "Summary_By_Config", "NCCL_Data"}
AGAIN = "ingest the traces it was made from, then"


def told(path: Path, start: bytes) -> str | None:
    """Return what a file is and what to do instead, or None if it is not known; ``start``: its first bytes."""
    try:
        if start.startswith(b"PK\x03\x04"):
            return _of_workbook(path)
        if path.suffix.lower() == ".csv":
            return _of_table(path)
        return _of_recording(path, start)
    except (OSError, csv.Error, zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError):
        return None


def is_known(path: Path) -> bool:
    """Whether ``told`` has something to say of a file."""
    try:
        if not path.is_file():  # opening a pipe would wait for a writer
            return False
        with path.open("rb") as file:
            return told(path, file.read(8)) is not None
    except OSError:
        return False


def _of_table(path: Path) -> str | None:
    with path.open("rb") as file:
        line = file.readline(FIRST_BYTES).decode("utf-8-sig", errors="replace")
    columns = set(next(csv.reader([line]), []))
    if columns >= VARIANCE:
        which = "with the collectives beside them" if "overlapping_collective_count" in columns else "of a sweep"
        return f"time variance of GEMMs {which}: a result, no trace; {AGAIN} `tracedb export variance-csv -o FOLDER`"
    if columns >= COMMS:
        return f"collectives of a sweep: a result, no trace; {AGAIN} `tracedb export xlsx -o FOLDER`"
    return None


def _of_workbook(path: Path) -> str | None:
    with zipfile.ZipFile(path) as packed, packed.open("xl/workbook.xml") as file:
        listed = file.read(MOST_BYTES).decode(errors="replace")
    sheets = set(re.findall(r'<(?:\w+:)?sheet\b[^>]*?\bname="([^"]*)"', listed))
    if len(sheets & TRACELENS_SHEETS) > 1 or sheets & {"nccl_summary_implicit_sync", "nccl_long"}:
        return (
            f"a workbook of TraceLens: a result, no trace; {AGAIN} `tracedb report tracelens-gpu-timeline`, "
            "`report gemm-variance`, `report collectives`, each with -o FILE.xlsx"
        )
    if sheets & SWEEP_SHEETS:
        return f"a workbook of a sweep: a result, no trace; {AGAIN} `tracedb export xlsx -o FOLDER`"
    return None


def _of_recording(path: Path, start: bytes) -> str | None:
    if _is_perfetto(path, start):
        return (
            "a Perfetto trace (pftrace), which is not read; of rocprofv3 record with --output-format csv json rocpd, "
            "of torch.profiler export the JSON trace"
        )
    parts = (path.name, *(parent.name for parent in list(path.parents)[:2]))
    is_thread_trace = path.suffix.lower() == ".att" or re.fullmatch(r"se\d+_sm\d+_sl\d+_wv\d+\.json", path.name)
    if is_thread_trace or any(re.match(r"(stats_)?ui_output_agent_", part) for part in parts):
        return (
            "a thread trace of rocprofv3 (--att), instructions of single waves, which are not read; record a kernel "
            "trace with rocprofv3 --kernel-trace --output-format csv json rocpd"
        )
    if path.suffix.lower() in (".otf2", ".otf"):
        return "an OTF2 trace, which is not read; of rocprofv3 record with --output-format csv json rocpd"
    return None


def _is_perfetto(path: Path, start: bytes) -> bool:
    """Whether a file is a sequence of packets: tag 0x0a, a length, and after so many bytes the next tag."""
    if start[:1] != b"\n":
        return False
    with path.open("rb") as file:
        head = file.read(FIRST_BYTES)
    size = place = 0
    for place, byte in enumerate(head[1:6], 1):
        size |= (byte & 0x7F) << 7 * (place - 1)
        if not byte & 0x80:
            break
    following = place + 1 + size
    if not size:
        return False
    return path.suffix.lower() in (".pftrace", ".perfetto-trace") or head[following : following + 1] == b"\n"
