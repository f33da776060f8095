"""The rows of one trace: read it, link it, split it by process and report the counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import duckdb
import pyarrow as pa

from tracedb.errors import ReadError
from tracedb.ingester import Capture, Options, Rows
from tracedb.ingester.issues import Account
from tracedb.ingester.name_patterns import GRAPH_LAUNCH
from tracedb.ingester.rows import CaptureRow, Device, capture_row, device_rows, issue_rows
from tracedb_torch import trace_kinds
from tracedb_torch.decode.block_decoder import DEVICE_EVENTS
from tracedb_torch.decode.event_types import CATEGORIES, GPU
from tracedb_torch.header import Header, header_of
from tracedb_torch.link import counted, rows_arrays, vendors
from tracedb_torch.link import processes as parts
from tracedb_torch.link.link_sql import Linker
from tracedb_torch.link.numpy_columns import Held
from tracedb_torch.link.rows_arrays import HeldLinker
from tracedb_torch.link.rules import Rules, Seen, rules_of
from tracedb_torch.split.scan_ahead import Reading
from tracedb_torch.staging import HELD, Stage, drop_rows
from tracedb_torch.staging_columns import NUMBERED
from tracedb_torch.trace_kinds import Claim
from tracedb_torch.trace_reader import Reader

SAME_IDS = 0.1  # when this share of operators repeats another's id, two processes wrote into the trace
OWN_CODES = {"profiler_spans", "overhead_events", "synchronization_events", "python_functions", "memory_events"}
"""Issue codes of events that give no row but that only torch.profiler writes."""
ABSOLUTE_FROM_NS = 10**17  # a clock above this counts from 1970


def rows_of(capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
    """Yield the rows of a trace; a merged trace of several processes gives one part per process."""
    path = capture.files[0]
    claim, what = trace_kinds.claim_of(path)
    if claim is Claim.OTHER:
        raise ReadError(what)
    reading = options.begun if isinstance(options.begun, Reading) else Reading(path, options)
    stream = reading.stream
    with closing(reading), Stage(scratch) as stage:
        reader = Reader(stage, options)
        reader.read(reading.source)
        options.has_read()
    account = reader.account
    if stream.fault and stream.is_complete:
        account.mended("stream_damaged", 1, stream.fault)
    elif stream.fault:
        account.is_cut = True
        account.warned("stream_damaged", 1, stream.fault)
    header = header_of(reader.trace, account)
    _check(account)
    if not (header.is_torch or any(met.rows for met in stage.met.values()) or OWN_CODES & account.issues.keys()):
        raise ReadError(trace_kinds.other(_categories(account)))
    dropped = _drop_zero_times(scratch, account, stage)
    vendor = header.vendor or vendors.of_rows(stage, scratch)
    pids = _processes(scratch, stage, dropped)
    _check_single(scratch, stage, header, account, len(pids))
    linker = _linked(stage, rules_of(header, reader.has_fractions), account, dropped or len(pids) > 1)
    if linker is None:
        stage.show()
        linker = Linker(scratch, rules_of(header, reader.has_fractions), account, stage.has_messages)
    if len(pids) > 1:
        parts.split(scratch, pids, account)
    written = None if dropped or len(pids) > 1 else sum(met.rows for met in stage.met.values())
    for part, pid in enumerate(pids or [None]):
        if len(pids) > 1 and pid is not None:
            parts.use(scratch, pid, part == 0)
        elif isinstance(linker, Linker):
            parts.use_all(scratch)
        yield from linker.rows(part)
        seen = linker.seen()
        yield Rows("device", _devices(seen, header, account, vendor), part)
        is_last = part == max(len(pids), 1) - 1
        counters = counted.number(scratch) if stage.met["counted"].rows else 0
        yield from _closing(scratch, capture, header, account, pid, part, len(pids), is_last, written, counters, seen)


def _categories(account: Account) -> set[str]:
    return {code.partition(":")[2] for code in account.issues if ":" in code}


def _processes(scratch: duckdb.DuckDBPyConnection, stage: Stage, dropped: bool) -> list[int]:
    callers = stage.met["launch"].processes
    if len(callers) == 1 and not dropped:
        return list(callers)
    stage.show()
    return parts.processes(scratch)


def _linked(stage: Stage, rules: Rules, account: Account, is_chosen: bool) -> HeldLinker | Linker | None:
    """Link in memory, if the rows are held there and none has counters; else None.

    ``is_chosen``: SQL dropped rows or told them apart.
    """
    if stage.held is None or is_chosen or not stage.met["gpu"].rows or stage.met["counted"].rows:
        return None
    return rows_arrays.linker(Held(stage.held), rules, account)


def _check(account: Account) -> None:
    cut = account.issues.get("event_cut")
    if account.is_cut and account.events_read == (cut.count if cut else 0):
        raise ReadError("the file ends before its first whole event; record or copy it again")


def _check_single(
    scratch: duckdb.DuckDBPyConnection, stage: Stage, header: Header, account: Account, processes: int
) -> None:
    """Raise ``ReadError`` if a damaged file mixes two traces: two processes, or the same ids twice."""
    damage = [account.issues[code] for code in ("event_unreadable", "event_repaired") if code in account.issues]
    if not damage:
        return
    stage.show()
    ((ids, different),) = scratch.execute(
        "SELECT count(external_id), count(DISTINCT external_id) FROM staged_op"
    ).fetchall()
    if "event_unreadable" in account.issues and ids - different > SAME_IDS * ids:
        what = f"the ids of {ids - different} operators occur twice in it"
    elif processes > 1 and ("event_unreadable" in account.issues or header.rank is not None):
        what = f"it holds events of {processes} processes"
    else:
        return
    raise ReadError(
        f"the file is damaged ({damage[0].detail}) and {what}: several processes wrote to it at once; let each rank "
        "export to its own path"
    )


def _drop_zero_times(scratch: duckdb.DuckDBPyConnection, account: Account, stage: Stage) -> bool:
    """Drop rows whose time was clamped to 0 while all others are absolute times: a clock fault.

    Returns whether any row was dropped.
    """
    dropped = False
    for table in HELD:
        met = stage.met[table]
        if met.zeros and met.are_late:
            stage.show()
            drop_rows(scratch, table, "start_ns = 0")
            account.lost("timestamp_zero", met.zeros, f"{table} rows with ts 0 in a trace whose clock is far from 0")
            dropped = True
    return dropped


def _devices(seen: Seen, header: Header, account: Account, vendor: str | None) -> pa.Table:
    used = [device for device in seen.devices if device < 1 << 31]
    listed = {item["id"]: item for item in header.devices if item["id"] is not None}
    if len(listed) == 1 and len(used) == 1 and used[0] not in listed:
        # On ROCm, rows carry the physical device number and deviceProperties the visible one.
        (listed_id,) = listed
        listed = {used[0]: listed.pop(listed_id)}
        account.noted("device_renumbered", 1, f"properties of device {listed_id} are taken for device {used[0]}")
    return device_rows(
        _device(number, listed.get(number, {}), vendor, number in used) for number in sorted({*used, *listed})
    )


def _device(number: int, properties: dict[str, Any], vendor: str | None, is_used: bool) -> Device:
    vendor = vendors.of_name(properties.get("name")) or vendor
    major, minor = properties.get("computeMajor"), properties.get("computeMinor")
    arch = None
    if major is not None and minor is not None:
        arch = {"AMD": f"gfx{major}{minor}x", "NVIDIA": f"sm_{major}{minor}"}.get(vendor or "")
    return Device(
        device_id=number,
        is_used=is_used,
        vendor=vendor,
        name=properties.get("name") or None,
        sm_count=properties.get("numSms"),
        memory_bytes=properties.get("totalGlobalMem"),
        arch=arch,
    )


def _closing(
    scratch: duckdb.DuckDBPyConnection,
    capture: Capture,
    header: Header,
    account: Account,
    pid: int | None,
    part: int,
    processes: int,
    is_last: bool,
    written: int | None,
    counters: int,
    seen: Seen,
) -> Iterator[Rows]:
    """Yield the issues and the capture row of a part. Issues of the whole merged file come with the last part.

    ``written``: number of rows of the part besides ``counters``, one for each event; None if they must be counted.
    """
    if written is None:
        counts = " + ".join(f"(SELECT count(*) FROM part_{table})" for table in NUMBERED)
        ((written,),) = scratch.execute(f"SELECT {counts}").fetchall()
    for other in capture.duplicates:
        account.noted("duplicate_recording", 1, f"{other.name} holds the same trace and was not read")
    if not seen.rows:
        account.noted("no_gpu_activity", 1, _why_no_gpu(scratch, account))
    skipped = account.skipped if is_last else 0
    status = "truncated" if account.is_cut else "repaired" if account.is_repaired else "complete"
    if status == "complete" and not seen.rows:
        status = "no_gpu_activity"
    rank = header.rank
    if processes > 1:
        name = scratch.execute("SELECT name FROM staged_process WHERE pid = ?", [pid]).fetchall()
        rank = _rank_in(name[0][0] if name else None)
    if is_last:
        yield Rows("ingest_issue", issue_rows(account), part)
    row = CaptureRow(
        status=status,
        events_read=account.events_read if processes <= 1 else written + skipped,
        events_skipped=skipped,
        rows_written=written + counters,
        host=header.host,
        pid=pid if pid is not None and pid >= 0 else None,
        rank=rank,
        world_size=header.world_size,
        tool_version=header.tool_version,
        clock_zero_unix_ns=_clock_zero(header, seen.first_ns, scratch),
        metadata=header.metadata,
    )
    yield Rows("capture", capture_row(row), part)


def _rank_in(name: str | None) -> int | None:
    found = re.search(r"(?i)rank[\s_\-\[=:]*(\d{1,6})", name or "")
    return int(found[1]) if found else None


def _clock_zero(header: Header, first_ns: int | None, scratch: duckdb.DuckDBPyConnection) -> int | None:
    """Unix time of the trace's zero: its base; 0 if ts is absolute; None for a small clock without a base."""
    if header.base_ns is not None:
        return header.base_ns
    if first_ns is None:
        ((first_ns,),) = scratch.execute("SELECT min(start_ns) FROM part_op").fetchall()
    return 0 if first_ns is not None and first_ns > ABSOLUTE_FROM_NS else None


def _why_no_gpu(scratch: duckdb.DuckDBPyConnection, account: Account) -> str:
    unread = {code: issue.count for code, issue in account.issues.items() if code.startswith(DEVICE_EVENTS)}
    if unread:
        named = ", ".join(f"{count} of category {code.removeprefix(DEVICE_EVENTS)}" for code, count in unread.items())
        return f"the trace has device events, but in categories that tracedb does not read: {named}"
    if lost := account.lost_among({name for name, kind in CATEGORIES.items() if kind == GPU}):
        return f"events skipped as unreadable: {lost:,}; kernels may be among them"
    ((graphs,),) = scratch.execute(
        """SELECT count(*) FROM part_launch AS l INNER JOIN staged_text AS t ON l.name = t.id
        WHERE contains(t.value, ?)""",
        [GRAPH_LAUNCH],
    ).fetchall()
    if graphs:
        return f"{graphs} graph launches but no kernels; record again with graph nodes traced"
    ((calls,),) = scratch.execute("SELECT count(*) FROM part_launch").fetchall()
    if calls:
        return "runtime calls but no kernels, copies or memsets were recorded"
    return "CPU activity only; record with ProfilerActivity.CUDA"
