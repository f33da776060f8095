"""Facts too dear for a view, worked out once at load: nesting of ranges, and the range around each GPU event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from tracedb import nesting, nesting_few

if TYPE_CHECKING:
    from tracedb.clipping import Passing

INSERT_ANNOTATIONS = """
INSERT INTO main.annotation BY NAME
SELECT ? AS capture_id, a.* REPLACE (n.parent_id AS parent_id, n.depth AS depth)
FROM annotation_in AS a LEFT JOIN {nested} AS n ON a.annotation_id = n.item_id
"""
LAUNCHED = """
SELECT l.start_ns, l.start_ns + l.duration_ns, k.event_id, l.thread_id
FROM main.kernel_event AS k
INNER JOIN main.launch AS l ON l.capture_id = $capture AND k.launch_id = l.launch_id
WHERE k.capture_id = $capture
"""
STARTED = "SELECT start_ns, start_ns, event_id, NULL FROM main.kernel_event WHERE capture_id = $capture"
RANGES = "style NOT IN ('mark', 'gpu_projection') AND (duration_ns IS NOT NULL OR is_open)"


def begin(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the temp table that takes a capture's annotations until their parents are known."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE annotation_in AS SELECT * EXCLUDE (capture_id) FROM main.annotation LIMIT 0"
    )


def finish(connection: duckdb.DuckDBPyConnection, capture_id: int, passing: Passing | None) -> None:
    """Write the capture's annotations with parent and depth, its annotation_kernel and clipped_event rows.

    Inside its transaction, after all other rows of it. ``passing`` may know already which events are clipped.
    """
    amd = connection.execute("SELECT 1 FROM main.device WHERE capture_id = ? AND vendor = 'AMD' LIMIT 1", [capture_id])
    if amd.fetchall():
        from tracedb import clipping  # its arrays take time to import

        clipping.clip(connection, capture_id, passing)
    if not _nest_few(connection, capture_id):
        _nest_many(connection, capture_id)
    connection.execute("DROP TABLE temp.annotation_in")


def _nest_few(connection: duckdb.DuckDBPyConnection, capture_id: int) -> bool:
    """Nest ranges and find those around events without SQL; False where they are many, where any cross or is open."""
    ((launches, events),) = connection.execute(
        """SELECT (SELECT count(*) FROM main.launch WHERE capture_id = $capture),
            (SELECT count(*) FROM main.kernel_event WHERE capture_id = $capture)""",
        {"capture": capture_id},
    ).fetchall()
    if max(launches, events) > nesting_few.MOST:
        return False
    ranges = connection.execute(
        f"""SELECT coalesce(thread_id, -1), start_ns, start_ns + duration_ns, annotation_id FROM annotation_in
        WHERE {RANGES} LIMIT {nesting_few.MOST + 1}"""
    ).fetchall()
    if len(ranges) > nesting_few.MOST or any(end is None for _, _, end, _ in ranges):
        return False
    nested = nesting_few.nest([nesting_few.Range(*found) for found in ranges])
    if nested is None:
        return False
    _write_nested(connection, capture_id, nested)
    if nested and events:
        _write_around(connection, capture_id, nested, is_launched=bool(launches))
    return True


def _write_nested(connection: duckdb.DuckDBPyConnection, capture_id: int, nested: Sequence[nesting_few.Nested]) -> None:
    found = pa.table(  # noqa: F841 - DuckDB finds it by name
        {
            "item_id": pa.array([item.number for item, _, _ in nested], pa.int64()),
            "parent_id": pa.array([parent.number if parent else None for _, parent, _ in nested], pa.int64()),
            "depth": pa.array([depth for _, _, depth in nested], pa.int32()),
        }
    )
    connection.execute(INSERT_ANNOTATIONS.format(nested="found"), [capture_id])


def _write_around(
    connection: duckdb.DuckDBPyConnection, capture_id: int, nested: Sequence[nesting_few.Nested], is_launched: bool
) -> None:
    """Write the innermost range around each launch, by thread and by process; without launches, around each start."""
    events = connection.execute(LAUNCHED if is_launched else STARTED, {"capture": capture_id}).fetchall()
    thread_of = {event: thread for _, _, event, thread in events}
    rows = []
    for event, item in nesting_few.enclose(nested, [nesting_few.Call(*found[:3]) for found in events]):
        rows.append((item.number, event, "process" if is_launched else "time"))
        if is_launched and thread_of[event] == item.lane:
            rows.append((item.number, event, "thread"))
    annotations, found, rules = zip(*rows, strict=True) if rows else ((), (), ())
    around = pa.table(  # noqa: F841 - DuckDB finds it by name
        {
            "annotation_id": pa.array(annotations, pa.int64()),
            "event_id": pa.array(found, pa.int64()),
            "rule": pa.array(rules, pa.string()),
        }
    )
    connection.execute(
        "INSERT INTO main.annotation_kernel BY NAME SELECT ?::INTEGER AS capture_id, * FROM around", [capture_id]
    )


def _nest_many(connection: duckdb.DuckDBPyConnection, capture_id: int) -> None:
    """Nest ranges and find those around events, however many there are."""
    crossing = nesting.nest(
        connection,
        f"""SELECT annotation_id AS item_id, 0 AS lane_a, coalesce(thread_id, -1) AS lane_b, start_ns,
            coalesce(start_ns + duration_ns, {_last_ns(connection, capture_id)}) AS end_ns, annotation_id AS tie
        FROM annotation_in WHERE {RANGES}""",
    )
    connection.execute(INSERT_ANNOTATIONS.format(nested="nest_out"), [capture_id])
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE lane_span AS
        SELECT lane_b, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM nest_out GROUP BY lane_b"""
    )
    ((launches,),) = connection.execute(
        "SELECT count(*) FROM main.launch WHERE capture_id = ?", [capture_id]
    ).fetchall()
    if launches:
        _by_launch(connection, capture_id, crossing)
    else:
        _by_time(connection, capture_id, crossing)
    nesting.drop(connection)
    connection.execute("DROP TABLE temp.lane_span")


def _last_ns(connection: duckdb.DuckDBPyConnection, capture_id: int) -> int:
    """Return when ranges still open are taken to end: at the last time that ranges and marks tell.

    A source whose file tells more of them than this capture holds says so in the metadata.
    """
    ((last_ns,),) = connection.execute(
        """SELECT coalesce(max(greatest(a.start_ns, a.start_ns + a.duration_ns, c.last_ns)), 0)
        FROM annotation_in AS a
        CROSS JOIN (
            SELECT CASE WHEN json_valid(metadata)
                THEN TRY_CAST(metadata ->> '$.last_annotation_ns' AS BIGINT) END AS last_ns
            FROM main.capture WHERE capture_id = ?
        ) AS c""",
        [capture_id],
    ).fetchall()
    return int(last_ns)


def _by_launch(connection: duckdb.DuckDBPyConnection, capture_id: int, crossing: bool) -> None:
    """Rules process and thread: the launch call lies inside the range, on any thread or on the launching one."""
    nesting.enclose(
        connection,
        f"""SELECT l.launch_id AS call_id, 0 AS lane_a, s.lane_b, l.start_ns, l.start_ns + l.duration_ns AS end_ns
        FROM main.launch AS l
        INNER JOIN lane_span AS s ON l.start_ns >= s.start_ns AND l.start_ns <= s.end_ns
        WHERE l.capture_id = {int(capture_id)} AND l.launch_id IN (
            SELECT launch_id FROM main.kernel_event WHERE capture_id = {int(capture_id)} AND launch_id IS NOT NULL
        )""",
        crossing=crossing,
    )
    connection.execute(
        """
        INSERT INTO main.annotation_kernel BY NAME
        WITH found AS (
            SELECT k.event_id, c.item_id AS annotation_id, coalesce(c.lane_b = l.thread_id, false) AS is_own_thread
            FROM call_out AS c
            INNER JOIN main.launch AS l ON l.capture_id = $capture AND c.call_id = l.launch_id
            INNER JOIN main.kernel_event AS k ON k.capture_id = $capture AND l.launch_id = k.launch_id
        )

        SELECT $capture AS capture_id, annotation_id, event_id, 'process' AS rule FROM found
        UNION ALL
        SELECT $capture AS capture_id, annotation_id, event_id, 'thread' AS rule FROM found WHERE is_own_thread
        """,
        {"capture": capture_id},
    )


def _by_time(connection: duckdb.DuckDBPyConnection, capture_id: int, crossing: bool) -> None:
    """Rule time: the GPU event starts inside the range."""
    nesting.enclose(
        connection,
        f"""SELECT k.event_id AS call_id, 0 AS lane_a, s.lane_b, k.start_ns, k.start_ns AS end_ns
        FROM main.kernel_event AS k
        INNER JOIN lane_span AS s ON k.start_ns >= s.start_ns AND k.start_ns <= s.end_ns
        WHERE k.capture_id = {int(capture_id)}""",
        crossing=crossing,
    )
    connection.execute(
        """INSERT INTO main.annotation_kernel BY NAME
        SELECT ? AS capture_id, item_id AS annotation_id, call_id AS event_id, 'time' AS rule FROM call_out""",
        [capture_id],
    )
