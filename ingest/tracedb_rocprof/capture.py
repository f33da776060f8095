"""The rows of one capture of ROCm's profilers: read it, link it, split it by process and report the counts."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import duckdb
import pyarrow as pa

from tracedb.errors import ReadError
from tracedb.ingester import Capture, Options, Rows
from tracedb.ingester.decompress import on_disk
from tracedb.ingester.issues import Account
from tracedb.ingester.rows import CaptureRow, capture_row, issue_rows
from tracedb_rocprof import capture_files, schema_rows, stats_check
from tracedb_rocprof.agents import devices, gpus_of
from tracedb_rocprof.csv.set_reader import SetReader
from tracedb_rocprof.metadata import Recording
from tracedb_rocprof.rocpd.reader import RocpdReader
from tracedb_rocprof.rpd import RpdReader
from tracedb_rocprof.staging import Stage
from tracedb_rocprof.unstaged_kernels import UnstagedKernels

SEVERAL = "one recording held several processes; each became a capture of its own"
REFUSED = (
    "an SQLite database of rocprof v1 (tables HIP, OPS, KERN), which is not read; load the results.csv next to it, or "
    "record with rocprofv3"
)
RECORD_AGAIN = "record again with `rocprofv3 --kernel-trace`"


def rows_of(capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
    """Yield the rows of a recording; every process gives one part."""
    account = Account()
    stage = Stage(scratch, account)
    schema_rows.begin(scratch)
    direct = UnstagedKernels(stage)
    recording = yield from _fill(stage, direct, capture, options)
    if not stage.processes.count:
        stage.processes.number("")  # the first process, to which rows without one belong
    direct.finish()
    stage.finish()
    for file, said in recording.stats:
        stats_check.compare(scratch, account, file, said)
    others = [path.name for path in capture.duplicates]
    account.noted("duplicate_recording", len(others), f"of the same process, left aside: {', '.join(others)}")
    stats_check.unknown_names(scratch, account, stage.texts.unknown)
    made = schema_rows.prepare(scratch, account)
    found = schema_rows.processes(scratch) or [stage.processes.number("")]
    if len(found) > 1:
        account.noted("several_processes", len(found), SEVERAL)
    for part, proc in enumerate(found):
        mine = account if part == len(found) - 1 else Account()
        yield from _process(scratch, stage, direct, recording, proc, part, mine)
        is_idle = not _count(scratch, "kernel", proc) + _count(scratch, "counter", proc)
        copies = _count(scratch, "copy", proc)
        if is_idle:
            mine.noted("no_gpu_activity", 1, _why_no_gpu(scratch, recording, proc, copies, account.lost_events))
        yield Rows("ingest_issue", issue_rows(mine), part)
        read = stage.events_read + made if len(found) == 1 else None
        yield Rows("capture", _capture(scratch, recording, proc, account, mine, is_idle, read), part)


def _fill(
    stage: Stage, direct: UnstagedKernels, capture: Capture, options: Options
) -> Generator[Rows, None, Recording]:
    """Read the files into the staging tables; yields the kernels that need no staging."""
    path = capture.files[0]
    kind = capture_files.kind_of(path)
    if kind in (capture_files.CSV, capture_files.LEGACY_CSV, capture_files.EMPTY, capture_files.STATS):
        may_bypass_staging = options.cores > 1 and not options.is_second
        tables = SetReader(stage, options.cores, options.progress, may_bypass_staging)
        for batch in tables.read(capture.files):
            yield direct.rows(batch, tables.recording)
        return tables.recording
    if kind == capture_files.JSON:
        from tracedb_rocprof.json.document import JsonReader  # imports a JSON decoder

        found = JsonReader(stage, options.progress).read(path)
        found.stats = _stats(stage, capture, options)
        return found
    if kind == capture_files.LEGACY_JSON:
        from tracedb_rocprof.json.v1_trace import ChromeReader

        return ChromeReader(stage, options.progress).read(path)
    if kind in (capture_files.ROCPD, capture_files.RPD):
        reader = RocpdReader if kind == capture_files.ROCPD else RpdReader
        with on_disk(path) as database:
            found = reader(stage).read(database)
        options.progress(path.stat().st_size)
        return found
    raise ReadError(REFUSED)


def _stats(stage: Stage, capture: Capture, options: Options) -> list[tuple[str, dict[int, tuple[int, int]]]]:
    """Return the contents of the statistics files of a recording."""
    beside = [path for path in capture.files[1:] if capture_files.kind_of(path) == capture_files.STATS]
    tables = SetReader(stage, options.cores, options.progress)
    for _ in tables.read(beside):
        pass
    return tables.recording.stats


def _process(
    scratch: duckdb.DuckDBPyConnection,
    stage: Stage,
    direct: UnstagedKernels,
    recording: Recording,
    proc: int,
    part: int,
    account: Account,
) -> Iterator[Rows]:
    """Yield events and devices of a process."""
    agents = recording.agents_of(stage.processes.text(proc))
    names = {number: stage.agents.text(number) for number in range(1, stage.agents.count + 1)}
    numbers = [
        agent for (agent,) in scratch.execute(schema_rows.GPU_AGENTS, {"proc": proc}).fetchall() if agent in names
    ]
    found, guessed, unknown = gpus_of([names[number] for number in numbers], agents)
    direct.check(found)
    if guessed:
        said = ", ".join(f"{label} = device {found[label]}" for label in guessed)
        why = "without agent_info" if not agents else "not in agent_info"
        account.noted("device_guessed", len(guessed), f"agents numbered by their order, {why}: {said}")
    stats_check.unknown_agents(
        scratch, account, proc, {number: names[number] for number in numbers if names[number] in unknown}, direct
    )
    schema_rows.use(scratch, proc, {number: found[names[number]] for number in numbers if names[number] in found})
    is_sorted = stage.order.is_kept and len(stage.order.agents) < 2
    yield from schema_rows.rows(scratch, proc, part, is_sorted)
    used = {found[names[number]] for number in numbers if names[number] in found}
    yield Rows("device", devices(agents, used, recording.vendor), part)
    yield stage.registers.rows(proc, part, stage.texts.text)


def _count(scratch: duckdb.DuckDBPyConnection, table: str, proc: int) -> int:
    ((count,),) = scratch.execute(f"SELECT count(*) FROM staged_{table} WHERE proc = ?", [proc]).fetchall()
    if table == "kernel":
        ((calls,),) = scratch.execute("SELECT sum(calls) FROM staged_total WHERE proc = ?", [proc]).fetchall()
        count += calls or 0
    return int(count)


def _rows_written(scratch: duckdb.DuckDBPyConnection, proc: int) -> int:
    """Return the number of rows from the events of a process."""
    ((counters, made),) = scratch.execute(
        """SELECT (SELECT count(*) FROM link_counter WHERE proc = $proc),
            (SELECT count(*) FROM link_dispatch WHERE proc = $proc AND is_kernel)""",
        {"proc": proc},
    ).fetchall()
    return (
        int(counters) + int(made) + sum(_count(scratch, name, proc) for name in schema_rows.TABLES if name != "counter")
    )


def _capture(
    scratch: duckdb.DuckDBPyConnection,
    recording: Recording,
    proc: int,
    account: Account,
    mine: Account,
    is_idle: bool,
    read: int | None,
) -> pa.Table:
    """Return the capture row of a process; ``read`` is counted by query if a recording holds several."""
    written = _rows_written(scratch, proc)
    status = "no_gpu_activity" if is_idle and not _count(scratch, "copy", proc) else "complete"
    if account.is_repaired:
        status = "repaired"
    if recording.is_cut:
        status = "truncated"
    place = recording.places.get(proc)
    row = CaptureRow(
        status=status,
        events_read=written + mine.skipped if read is None else read,
        events_skipped=mine.skipped,
        rows_written=written,
        host=place.host if place else None,
        pid=place.pid if place else None,
        rank=place.rank if place else None,
        world_size=place.world_size if place else None,
        tool_version=recording.tool_version,
        metadata=recording.metadata_text,
        source=recording.source,
    )
    return capture_row(row)


def _why_no_gpu(scratch: duckdb.DuckDBPyConnection, recording: Recording, proc: int, copies: int, lost: int) -> str:
    """Return what was recorded instead of kernels; the kinds of ``lost`` events are unknown."""
    if lost:
        return f"events skipped as unreadable: {lost:,}; kernels may be among them"
    had = (
        (copies, "copies"),
        (_count(scratch, "call", proc), "API calls"),
        (_count(scratch, "marker", proc), "ranges and marks"),
    )
    what = ", ".join(f"{count:,} {noun}" for count, noun in had if count)
    place = recording.places.get(proc)
    whose = f" in process {place.pid}" if place and place.pid is not None else ""
    return f"no kernel dispatches{whose}, {f'only {what}' if what else 'nothing else either'}; {RECORD_AGAIN}"
