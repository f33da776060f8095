"""Clocks among the sampled metrics of the GPUs (``nsys profile --gpu-metrics-devices``), as ``device_condition``."""

from __future__ import annotations

import re
from collections.abc import Collection

import duckdb

from tracedb_nsys.export.protocol import Export
from tracedb_nsys.header import Header

TABLE, METRICS = "GPU_METRICS", "TARGET_INFO_GPU_METRICS"
COLUMNS = ("timestamp", "typeId", "metricId", "value")
SM = re.compile(r"\b(GPC|SM) Clock\b", re.IGNORECASE)
MEMORY = re.compile(r"\b(DRAM|Memory|MEM) (Clock|Frequency)\b", re.IGNORECASE)
STAGED = "time_ns BIGINT, gpu INTEGER, is_memory BOOLEAN, mhz DOUBLE"
# The low byte of a type is the number of the GPU. Values are in Hz, also where the metric's name says MHz; releases
# before 2025.5 write them as signed 32-bit integers, so that more than 2.1 GHz is negative.
INSERT = """
INSERT INTO staged_condition
SELECT
    m.timestamp AS time_ns, (m.typeId & 255)::INTEGER AS gpu, c.is_memory,
    CASE WHEN m.hertz >= 1e5 THEN m.hertz / 1e6 ELSE m.hertz END AS mhz
FROM (
    SELECT f.timestamp, f.typeId, f.metricId, v.value + CASE WHEN v.value < 0 THEN 4294967296 ELSE 0 END AS hertz
    FROM ({feeds}) AS f, LATERAL (SELECT try_cast(f.value AS DOUBLE) AS value) AS v
) AS m
INNER JOIN staged_clock_metric AS c ON c.metric_id = m.metricId AND coalesce(c.type_id = m.typeId, true)
WHERE m.timestamp IS NOT NULL AND m.typeId IS NOT NULL AND m.hertz IS NOT NULL
"""
ROWS = """
SELECT
    g.device_id, s.time_ns,
    avg(s.mhz) FILTER (NOT s.is_memory) AS sm_clock_mhz,
    avg(s.mhz) FILTER (s.is_memory) AS memory_clock_mhz
FROM staged_condition AS s
INNER JOIN part_gpu_number AS g ON g.gpu = s.gpu
GROUP BY g.device_id, s.time_ns
ORDER BY g.device_id, s.time_ns
"""


def prepare(connection: duckdb.DuckDBPyConnection, export: Export) -> bool:
    """Create the staging tables; returns whether the export has metrics that are clocks."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE staged_condition ({STAGED})")
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE staged_clock_metric (type_id BIGINT, metric_id BIGINT, is_memory BOOLEAN)"
    )
    connection.execute("CREATE OR REPLACE TEMP TABLE placed_gpu (gpu INTEGER)")
    if not set(COLUMNS).issubset(export.tables.get(TABLE, ())) or METRICS not in export.tables:
        return False
    found = [
        (type_id, metric_id, bool(MEMORY.search(name)))
        for type_id, metric_id, name in export.small(METRICS, ("typeId", "metricId", "metricName"))
        if isinstance(metric_id, int) and isinstance(name, str) and (SM.search(name) or MEMORY.search(name))
    ]
    if found:
        connection.executemany("INSERT INTO staged_clock_metric VALUES (?, ?, ?)", found)
    return bool(found)


def use(connection: duckdb.DuckDBPyConnection, header: Header, gpid: int | None, devices: Collection[int]) -> None:
    """Map the GPUs of the machine to the device numbers of a process, as ``gpus.devices`` does."""
    pid = (gpid >> 24) & 0xFFFFFF if gpid is not None else None
    device_numbers = {row["gpuId"]: row["cudaId"] for row in header.device_numbers if row["pid"] == pid}
    numbers = {gpu["id"]: gpu["cuDevice"] for gpu in header.gpus if gpu["id"] is not None}
    connection.execute("CREATE OR REPLACE TEMP TABLE part_gpu_number (gpu INTEGER, device_id INTEGER)")
    for (gpu,) in connection.execute("SELECT DISTINCT gpu FROM staged_condition").fetchall():
        place = device_numbers.get(gpu) if header.device_numbers else numbers.get(gpu)
        place = gpu if place is None and not header.device_numbers else place
        if place is not None and (place in devices or not devices):
            connection.execute("INSERT INTO part_gpu_number VALUES (?, ?)", [gpu, place])
            connection.execute("INSERT INTO placed_gpu VALUES (?)", [gpu])


def unplaced(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the number of clocks of GPUs that are no device of any process so far."""
    ((found,),) = connection.execute(
        "SELECT count(*) FROM staged_condition WHERE gpu NOT IN (SELECT gpu FROM placed_gpu)"
    ).fetchall()
    return int(found)
