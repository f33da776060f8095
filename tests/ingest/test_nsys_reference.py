"""The tables of an nsys export give the very numbers of `nsys stats`: every row of every reference CSV, as printed."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tracedb import pipeline

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
REFERENCE = SHARED / "reference" / "nsys"
EXPORTS = ("single_forward", "single_train", "single_bf16", "single_graph", "fsdp_4gpu")
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not REFERENCE.is_dir(), reason="the real traces are not beside the repository"),
]

RANGE_NAME = "CASE WHEN domain IS NULL THEN name ELSE domain || ':' || name END"
STYLE = "CASE style WHEN 'push_pop' THEN 'PushPop' ELSE 'StartEnd' END"
RANGES = f"""(
    SELECT *, {RANGE_NAME} AS full_name, {STYLE} AS printed_style FROM main.annotation
    WHERE style IN ('push_pop', 'start_end')
)"""
# Which launches lie in which ranges by rule thread: the innermost ranges and all around them.
HELD = """
WITH RECURSIVE held AS (
    SELECT capture_id, annotation_id, event_id FROM main.annotation_kernel WHERE rule = 'thread'
    UNION
    SELECT h.capture_id, a.parent_id AS annotation_id, h.event_id
    FROM held AS h
    INNER JOIN main.annotation AS a ON h.capture_id = a.capture_id AND h.annotation_id = a.annotation_id
    WHERE a.parent_id IS NOT NULL
)
"""
PROJECTED = f"""
{HELD},

projected AS (
    SELECT
        h.capture_id, h.annotation_id, max(k.start_ns + k.duration_ns) - min(k.start_ns) AS projected_ns,
        count(DISTINCT k.correlation_id) AS ops
    FROM held AS h
    INNER JOIN main.kernel_event AS k ON h.capture_id = k.capture_id AND h.event_id = k.event_id AND k.kind <> 'graph'
    GROUP BY h.capture_id, h.annotation_id
),

instance AS (
    SELECT r.full_name, r.printed_style, r.depth, r.duration_ns, p.projected_ns, p.ops, (
        SELECT count(*) FROM main.annotation AS c
        INNER JOIN projected AS q ON c.capture_id = q.capture_id AND c.annotation_id = q.annotation_id
        WHERE c.capture_id = r.capture_id AND c.parent_id = r.annotation_id
    ) AS children
    FROM {RANGES} AS r
    INNER JOIN projected AS p ON r.capture_id = p.capture_id AND r.annotation_id = p.annotation_id
)
"""
CALLS = """(
    SELECT
        l.process_id, l.thread_id, k.device_id, l.name AS api, k.name AS kernel,
        k.duration_ns AS k_ns, l.duration_ns AS a_ns,
        greatest(l.start_ns + l.duration_ns, k.start_ns + k.duration_ns) - l.start_ns AS t_ns,
        CASE WHEN k.start_ns >= l.start_ns + l.duration_ns THEN k.start_ns - l.start_ns - l.duration_ns END AS q_ns
    FROM main.kernel_event AS k
    INNER JOIN main.launch AS l ON k.capture_id = l.capture_id AND k.launch_id = l.launch_id
    WHERE k.kind = 'kernel'
)"""
KERNELS = "main.kernel_event WHERE kind = 'kernel'"
MEMORY = "main.kernel_event WHERE kind IN ('memcpy', 'memset')"


def spread(column: str) -> str:
    """Average, median, least, greatest, deviation."""
    return f"avg({column}), median({column}), min({column}), max({column}), coalesce(stddev_samp({column}), 0)"


def summary(source: str, *names: str, column: str = "duration_ns") -> str:
    """Total, count and the rest of a column, by names."""
    return f"SELECT sum({column})::BIGINT, count(*), {spread(column)}, {', '.join(names)} FROM {source} GROUP BY ALL"


def sizes(what: str) -> str:
    return f"format('{{:4d}} {{:4d}} {{:4d}}', {what}_x, {what}_y, {what}_z)"


# Per report: the query, columns as printed but for Time (%), which is a share of the totals here.
QUERIES = {
    "cuda_gpu_kern_sum": summary(KERNELS, "name"),
    "cuda_gpu_kern_gb_sum": summary(KERNELS, sizes("grid"), sizes("block"), "name"),
    "cuda_gpu_mem_time_sum": summary(MEMORY, "name"),
    "cuda_gpu_mem_size_sum": summary(MEMORY, "name", column="bytes"),
    "cuda_gpu_sum": summary(
        "main.kernel_event WHERE kind <> 'graph'", "if(kind = 'kernel', 'CUDA_KERNEL', 'MEMORY_OPER')", "name"
    ),
    "cuda_api_sum": summary("main.launch", "name"),
    "nvtx_pushpop_sum": summary(f"{RANGES} WHERE style = 'push_pop'", "full_name"),
    "nvtx_sum": summary(RANGES, "printed_style", "full_name"),
    "nvtx_kern_sum": f"""{HELD}
        SELECT
            r.full_name, r.printed_style, l.process_id, l.thread_id,
            count(DISTINCT (r.capture_id, r.annotation_id)) FILTER (r.annotation_id IS NOT NULL),
            count(*), sum(k.duration_ns)::BIGINT, {spread("k.duration_ns")}, k.name
        FROM main.kernel_event AS k
        LEFT JOIN main.launch AS l ON k.capture_id = l.capture_id AND k.launch_id = l.launch_id
        LEFT JOIN held AS h ON k.capture_id = h.capture_id AND k.event_id = h.event_id
        LEFT JOIN {RANGES} AS r ON h.capture_id = r.capture_id AND h.annotation_id = r.annotation_id
        WHERE k.kind = 'kernel'
        GROUP BY ALL""",
    "nvtx_gpu_proj_sum": f"""{PROJECTED}
        SELECT
            full_name, printed_style, sum(projected_ns)::BIGINT, sum(duration_ns)::BIGINT, count(*),
            {spread("projected_ns")}, sum(ops)::BIGINT, avg(ops), avg(depth), avg(children)
        FROM instance
        GROUP BY ALL""",
    "cuda_kern_exec_sum": f"""
        SELECT
            process_id, thread_id, device_id, count(*), count(q_ns),
            {spread("t_ns")}, {spread("a_ns")}, {spread("q_ns")}, {spread("k_ns")}, api, kernel
        FROM {CALLS}
        GROUP BY ALL""",
}
WITHOUT_SHARE = ("cuda_gpu_mem_size_sum", "nvtx_kern_sum", "nvtx_gpu_proj_sum", "cuda_kern_exec_sum")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, duckdb.DuckDBPyConnection]]:
    """Each export in a database of its own."""
    folder = tmp_path_factory.mktemp("nsys")
    found: dict[str, duckdb.DuckDBPyConnection] = {}
    for name in EXPORTS:
        db = folder / f"{name}.duckdb"
        (outcome,) = pipeline.ingest(SHARED / "data" / "nsys" / f"{name}.sqlite", db=db)
        assert outcome.error is None
        found[name] = duckdb.connect(str(db), read_only=True)
    yield found
    for connection in found.values():
        connection.close()


def cases() -> list[tuple[str, str]]:
    return [(name, path.stem) for name in EXPORTS for path in sorted((REFERENCE / name).glob("*.csv"))]


@pytest.mark.parametrize(("export", "report"), cases())
def test_every_row_is_that_of_nsys(loaded: dict[str, duckdb.DuckDBPyConnection], export: str, report: str) -> None:
    with (REFERENCE / export / f"{report}.csv").open(newline="") as file:
        header, *expected = list(csv.reader(file))
    rows = loaded[export].execute(QUERIES[report]).fetchall()
    if report not in WITHOUT_SHARE:
        total = sum(row[0] for row in rows)
        rows = [(row[0] * 100 / total, *row) for row in rows]
    if report == "cuda_gpu_mem_size_sum":
        rows = [tuple(megabytes(place, value) for place, value in enumerate(row)) for row in rows]
    assert len(rows[0]) == len(header)
    found = {key_of(row, header): row for row in rows}
    wanted = {key_of(row, header): row for row in expected}
    assert found.keys() == wanted.keys()
    faults = [
        (key, column, mine, printed)
        for key, line in wanted.items()
        for column, mine, printed in zip(header, found[key], line, strict=True)
        if not is_printed_as(mine, printed)
    ]
    assert faults == []


def megabytes(place: int, value: Any) -> Any:
    """All columns but the count and the name are sizes."""
    return value if place == 1 or isinstance(value, str) else value / 1e6


NAMES = (
    "Name", "Range", "Operation", "Category", "Style", "GridXYZ", "BlockXYZ", "PID", "TID", "DevId", "NVTX Range",
    "Kernel Name", "API Name",
)  # fmt: skip


def key_of(row: Any, header: list[str]) -> tuple[str, ...]:
    """What names the row: the columns that are no numbers."""
    told = [value for column, value in zip(header, row, strict=True) if column in NAMES]
    return tuple("" if value is None else str(value) for value in told)


def is_printed_as(mine: Any, printed: str) -> bool:
    """Whether the value is the printed one at its precision; at a tie of digits either neighbour is right."""
    if mine is None or printed == "":
        return mine is None and printed == ""
    if isinstance(mine, str):
        return bool(mine == printed)
    digits = len(printed.partition(".")[2])
    if not digits:
        return int(mine) == int(printed)
    return bool(abs(float(mine) - float(printed)) <= 0.5 * 10**-digits + 1e-9 * abs(float(mine)))
