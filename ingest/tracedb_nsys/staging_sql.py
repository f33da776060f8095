"""SQL templates that turn an export's columns into those of the staging tables; ``{name}`` is a column or NULL."""

from __future__ import annotations

from tracedb_nsys.export.protocol import GRAPH, MEMCPY, MEMSET

STAGED = {
    "kernel": """event_id BIGINT, gpid BIGINT, name BIGINT, start_ns BIGINT, duration_ns BIGINT, device_id INTEGER,
        context_id INTEGER, stream_id INTEGER, correlation_id BIGINT, launch_id BIGINT, graph_id BIGINT,
        graph_node_id BIGINT, registers INTEGER, static_shared INTEGER, dynamic_shared INTEGER, grid_x INTEGER,
        grid_y INTEGER, grid_z INTEGER, block_x SMALLINT, block_y SMALLINT, block_z SMALLINT""",
    "copy": """event_id BIGINT, kind UTINYINT, gpid BIGINT, start_ns BIGINT, duration_ns BIGINT, device_id INTEGER,
        context_id INTEGER, stream_id INTEGER, correlation_id BIGINT, launch_id BIGINT, graph_id BIGINT,
        graph_node_id BIGINT, bytes BIGINT, copy_kind INTEGER""",
    "launch": """launch_id BIGINT, gpid BIGINT, tid INTEGER, name BIGINT, start_ns BIGINT, duration_ns BIGINT,
        correlation_id BIGINT""",
    "sync": """sync_id BIGINT, gpid BIGINT, kind VARCHAR, start_ns BIGINT, duration_ns BIGINT, device_id INTEGER,
        context_id INTEGER, stream_id BIGINT, cuda_event_id BIGINT, record_id BIGINT, correlation_id BIGINT""",
    "record": """gpid BIGINT, device_id INTEGER, context_id INTEGER, stream_id BIGINT, cuda_event_id BIGINT,
        record_id BIGINT, correlation_id BIGINT""",
    "nvtx": """annotation_id BIGINT, gpid BIGINT, tid INTEGER, is_elsewhere BOOLEAN, event_type INTEGER, name BIGINT,
        text VARCHAR, domain_id BIGINT, start_ns BIGINT, end_ns BIGINT, json BIGINT, json_text VARCHAR""",
    "other": """annotation_id BIGINT, gpid BIGINT, tid INTEGER, domain VARCHAR, name BIGINT, start_ns BIGINT,
        duration_ns BIGINT""",
    "text": "id BIGINT, value VARCHAR",
    "total": "gpid BIGINT, device_id INTEGER, kernels BIGINT",
}
"""The staging tables. ``gpid`` is the serialized id of a process, ``tid`` the thread within it. ``copy`` also holds
memsets and graph replays, told apart by ``kind``. ``total`` counts the kernels that bypassed ``kernel``."""
COPY, SET, REPLAY = 1, 2, 3
NAMED = (("kernel", "name"), ("launch", "name"), ("nvtx", "name"), ("nvtx", "json"), ("other", "name"))
"""Columns of staging tables that refer to strings."""

# A serialized id encodes hardware, virtual machine and process, and the thread in its last 24 bits.
PROCESS, THREAD = str(-1 << 24), str((1 << 24) - 1)
# Rows that end before they start, or whose times would overflow sums, get no duration and are skipped.
DURATION = """CASE
    WHEN "end" >= start AND start > -4611686018427387904 AND "end" < 4611686018427387904 THEN "end" - start
END"""
CORRELATION = "CASE WHEN {correlationId} NOT IN (0, -1, 4294967295) THEN {correlationId} END"
COMMON = """
    row + $base AS event_id,
    {globalPid} & $process AS gpid,
    start AS start_ns,
    $duration AS duration_ns,
    TRY_CAST({deviceId} AS INTEGER) AS device_id,
    TRY_CAST({contextId} AS INTEGER) AS context_id,
    TRY_CAST({streamId} AS INTEGER) AS stream_id,
    $correlation AS correlation_id,
    nullif({graphNodeId}, 0) AS graph_node_id,
    launch AS launch_id
"""
SIZES = ", ".join(
    f"TRY_CAST({{{what}{axis.upper()}}} AS {kind}) AS {what}_{axis}"
    for what, kind in (("grid", "INTEGER"), ("block", "SMALLINT"))
    for axis in "xyz"
)
KERNELS = f"""{COMMON},
    coalesce({{demangledName}}, {{mangledName}}, {{shortName}}) AS name,
    nullif({{graphId}}, 0) AS graph_id,
    TRY_CAST({{registersPerThread}} AS INTEGER) AS registers,
    TRY_CAST({{staticSharedMemory}} AS INTEGER) AS static_shared,
    TRY_CAST({{dynamicSharedMemory}} AS INTEGER) AS dynamic_shared,
    {SIZES}
"""
COPIES = {
    MEMCPY: f"{COMMON}, {COPY} AS kind, {{bytes}} AS bytes, TRY_CAST({{copyKind}} AS INTEGER) AS copy_kind",
    MEMSET: f"{COMMON}, {SET} AS kind, {{bytes}} AS bytes",
    GRAPH: f"{COMMON}, {REPLAY} AS kind, coalesce({{graphId}}, {{graphExecId}}) AS graph_id",
}
LAUNCH = """
    row + $base AS launch_id,
    {globalTid} & $process AS gpid,
    ({globalTid} & $thread)::INTEGER AS tid,
    {nameId} AS name,
    start AS start_ns,
    $duration AS duration_ns,
    $correlation AS correlation_id
"""
SYNC = """
    row + $base AS sync_id,
    {globalPid} & $process AS gpid,
    CASE {syncType} WHEN 1 THEN 'event' WHEN 2 THEN 'stream_wait' WHEN 3 THEN 'stream' WHEN 4 THEN 'context'
        ELSE 'other' END AS kind,
    start AS start_ns,
    $duration AS duration_ns,
    TRY_CAST({deviceId} AS INTEGER) AS device_id,
    TRY_CAST({contextId} AS INTEGER) AS context_id,
    CASE WHEN {streamId} BETWEEN 0 AND 4294967294 THEN {streamId} END AS stream_id,
    CASE WHEN {eventId} BETWEEN 0 AND 4294967294 THEN {eventId} END AS cuda_event_id,
    CASE WHEN {eventSyncId} BETWEEN 0 AND 4294967294 THEN {eventSyncId} END AS record_id,
    $correlation AS correlation_id
"""
RECORD = """
    {globalPid} & $process AS gpid,
    TRY_CAST({deviceId} AS INTEGER) AS device_id,
    TRY_CAST({contextId} AS INTEGER) AS context_id,
    CASE WHEN {streamId} BETWEEN 0 AND 4294967294 THEN {streamId} END AS stream_id,
    CASE WHEN {eventId} BETWEEN 0 AND 4294967294 THEN {eventId} END AS cuda_event_id,
    CASE WHEN {eventSyncId} BETWEEN 0 AND 4294967294 THEN {eventSyncId} END AS record_id,
    $correlation AS correlation_id
"""
NVTX = """
    row + $base AS annotation_id,
    {globalTid} & $process AS gpid,
    ({globalTid} & $thread)::INTEGER AS tid,
    coalesce({endGlobalTid} <> {globalTid}, false) AS is_elsewhere,
    TRY_CAST({eventType} AS INTEGER) AS event_type,
    {textId} AS name,
    {text} AS text,
    {domainId} AS domain_id,
    {start} AS start_ns,
    {end} AS end_ns,
    {jsonTextId} AS json,
    {jsonText} AS json_text
"""
OTHER = """
    row + $base AS annotation_id,
    {globalTid} & $process AS gpid,
    ({globalTid} & $thread)::INTEGER AS tid,
    coalesce({textId}, {nameId}) AS name,
    start AS start_ns,
    $duration AS duration_ns
"""
DOMAINS = (
    ("MPI_", "MPI"),
    ("CUPTI_ACTIVITY_KIND_OPENACC_", "OpenACC"),
    ("CUBLAS_EVENTS", "cuBLAS"),
    ("CUDNN_EVENTS", "cuDNN"),
)
"""Prefixes of call tables that become ranges, and the ranges' domain."""


def filled(template: str, names: dict[str, str], base: int) -> str:
    """Return the SQL of a template, with ``base`` added to the row numbers."""
    parts = {"duration": DURATION, "correlation": CORRELATION, "process": PROCESS, "thread": THREAD, "base": str(base)}
    for name, text in parts.items():
        template = template.replace(f"${name}", text)
    return template.format_map(names)


def domain_of(table: str) -> str | None:
    """Return the domain of a call table that becomes ranges; None for other tables."""
    return next((domain for prefix, domain in DOMAINS if table.startswith(prefix)), None)
