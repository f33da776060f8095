"""Tell processes apart: nearly every file holds one, merged files hold several."""

from __future__ import annotations

import duckdb

from tracedb.ingester.issues import Account
from tracedb_torch.staging_columns import NUMBERED


def processes(connection: duckdb.DuckDBPyConnection) -> list[int]:
    """Return the numbers of the main processes in the staged rows; a single stray row does not count as a process.

    A process counts if its calls launched GPU work; if no process has such calls, if it ran operators or ranges.
    """
    launching = connection.execute(
        """SELECT pid FROM staged_launch
        WHERE correlation_id IN (SELECT correlation_id FROM staged_gpu WHERE correlation_id IS NOT NULL)
        GROUP BY pid ORDER BY min(launch_id)"""
    ).fetchall()
    if launching:
        return [pid for (pid,) in launching]
    called = connection.execute("SELECT pid FROM staged_launch GROUP BY pid ORDER BY count(*) DESC, pid").fetchall()
    if called:
        return [called[0][0]]
    busy = connection.execute(
        """SELECT pid, count(*) AS rows FROM (
            SELECT pid FROM staged_op UNION ALL SELECT pid FROM staged_annotation WHERE style != 'gpu_projection'
        ) GROUP BY pid ORDER BY rows DESC, pid"""
    ).fetchall()
    return [busy[0][0]] if busy else []


def use_all(connection: duckdb.DuckDBPyConnection) -> None:
    """Assign every staged row to the current process."""
    for table in NUMBERED:
        connection.execute(f"CREATE OR REPLACE TEMP VIEW part_{table} AS FROM staged_{table}")


def split(connection: duckdb.DuckDBPyConnection, pids: list[int], account: Account) -> None:
    """Find the process of every GPU row and projection of a merged file: ``staged_part(event_id, pid)``.

    A correlation id identifies the launch only within its process, so several launches may match a GPU row. Launches
    with another External id are excluded. If the file has one process after the other, the nearest remaining launch in
    the file is taken; otherwise the n-th GPU row of an id goes with its n-th launch. With as many GPUs as processes,
    all rows of a GPU go to the process that most of them belong to.
    """
    account.noted("several_processes", len(pids), "one file held several processes; each became a capture of its own")
    connection.execute(CANDIDATES)
    ((clash,),) = connection.execute(CLASHES).fetchall()
    connection.execute(IN_ORDER if clash else NEAREST)
    homes = dict(connection.execute(HOMES).fetchall())
    ((lanes,),) = connection.execute("SELECT count(DISTINCT pid) FROM staged_gpu").fetchall()
    by_lane = lanes == len(pids) == len(set(homes.values()))
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE staged_part AS
        WITH home AS ({HOMES})

        SELECT g.event_id, coalesce(CASE WHEN NOT $by_lane THEN c.pid END, h.pid, $first) AS pid, g.pid AS lane
        FROM staged_gpu AS g
        LEFT JOIN part_choice AS c ON g.event_id = c.event_id
        LEFT JOIN home AS h ON g.pid = h.lane
        """,
        {"by_lane": by_lane, "first": pids[0]},
    )
    connection.execute(PROJECTIONS, {"first": pids[0]})
    connection.execute(SYNCS, {"first": pids[0]})


# Ties are broken by the lowest number, so that a file always gives the same rows. Two 64-bit sort keys are packed into
# one 128-bit number, which compares faster than a struct.
FIRST_OF_TWO = 1 << 64
HOMES = f"""
SELECT lane, arg_min(pid, pid - rows::HUGEINT * {FIRST_OF_TWO}) AS pid
FROM (SELECT lane, pid, count(*) AS rows FROM part_choice GROUP BY lane, pid)
GROUP BY lane
"""
CANDIDATES = """
CREATE OR REPLACE TEMP TABLE part_candidate AS
SELECT
    g.event_id, g.pid AS lane, g.correlation_id, g.start_ns, l.pid, l.launch_id, l.start_ns AS launch_ns,
    g.external_id IS NOT DISTINCT FROM l.external_id AS is_same_op
FROM staged_gpu AS g
INNER JOIN staged_launch AS l ON g.correlation_id = l.correlation_id
QUALIFY is_same_op OR NOT bool_or(is_same_op) OVER (PARTITION BY g.event_id)
"""
NEAREST = f"""
CREATE OR REPLACE TEMP TABLE part_choice AS
SELECT
    event_id, any_value(lane) AS lane,
    arg_min(pid, abs(launch_id - event_id)::HUGEINT * {FIRST_OF_TWO} + launch_id) AS pid
FROM part_candidate
GROUP BY event_id
"""
CLASHES = f"""
WITH nearest AS (
    SELECT
        event_id, correlation_id,
        arg_min(launch_id, abs(launch_id - event_id)::HUGEINT * {FIRST_OF_TWO} + launch_id) AS launch_id
    FROM part_candidate
    GROUP BY event_id, correlation_id
),

taken AS (
    SELECT correlation_id, count(*) AS rows, count(DISTINCT launch_id) AS launches FROM nearest GROUP BY correlation_id
),

offered AS (SELECT correlation_id, count(DISTINCT launch_id) AS launches FROM part_candidate GROUP BY correlation_id)

SELECT count(*)
FROM taken AS t
INNER JOIN offered AS o ON t.correlation_id = o.correlation_id
WHERE t.rows >= o.launches AND t.launches < o.launches
"""
IN_ORDER = f"""
CREATE OR REPLACE TEMP TABLE part_choice AS
WITH numbered AS (
    SELECT
        *,
        dense_rank() OVER (PARTITION BY correlation_id, is_same_op ORDER BY start_ns, event_id) - 1 AS event_place,
        dense_rank() OVER (PARTITION BY correlation_id, is_same_op ORDER BY launch_ns, launch_id) - 1 AS launch_place
    FROM part_candidate
),

counted AS (
    SELECT
        *,
        max(event_place) OVER (PARTITION BY correlation_id, is_same_op) + 1 AS events,
        max(launch_place) OVER (PARTITION BY event_id) + 1 AS launches
    FROM numbered
)

SELECT
    event_id, any_value(lane) AS lane,
    arg_min(
        pid, abs(launch_place - event_place * launches // events)::HUGEINT * {FIRST_OF_TWO} + launch_id
    ) AS pid
FROM counted
GROUP BY event_id
"""
PROJECTIONS = f"""
CREATE OR REPLACE TEMP TABLE staged_projection AS
WITH projection AS (
    SELECT annotation_id, pid AS lane, start_ns, start_ns + duration_ns AS end_ns
    FROM staged_annotation
    WHERE style = 'gpu_projection'
),

placed AS (
    SELECT p.event_id, p.pid, p.lane, g.start_ns
    FROM staged_part AS p
    INNER JOIN staged_gpu AS g ON p.event_id = g.event_id
)

SELECT a.annotation_id, coalesce(
    arg_min(p.pid, abs(p.event_id - a.annotation_id)::HUGEINT * {FIRST_OF_TWO} + p.event_id), $first
) AS pid
FROM projection AS a
LEFT JOIN placed AS p ON a.lane = p.lane AND p.start_ns BETWEEN a.start_ns AND a.end_ns
GROUP BY a.annotation_id
"""

# A synchronization carries the number of its device as process, like GPU rows.
SYNCS = f"""
CREATE OR REPLACE TEMP TABLE staged_sync_part AS
WITH home AS (
    SELECT lane, arg_min(pid, pid - rows::HUGEINT * {FIRST_OF_TWO}) AS pid
    FROM (SELECT lane, pid, count(*) AS rows FROM staged_part GROUP BY lane, pid)
    GROUP BY lane
)

SELECT s.sync_id, coalesce(h.pid, $first) AS pid
FROM staged_sync AS s
LEFT JOIN home AS h ON s.pid = h.lane
"""


def use(connection: duckdb.DuckDBPyConnection, pid: int, is_first: bool) -> None:
    """Select the rows of process ``pid``; rows of no known process go with the first."""
    known = "pid IN (SELECT DISTINCT pid FROM staged_part)"
    for table in NUMBERED:
        mine = f"pid = {pid}" + (f" OR NOT ({known})" if is_first else "")
        if table == "gpu":
            mine = f"event_id IN (SELECT event_id FROM staged_part WHERE pid = {pid})"
        elif table == "sync":
            mine = f"sync_id IN (SELECT sync_id FROM staged_sync_part WHERE pid = {pid})"
        elif table == "annotation":
            projected = f"annotation_id IN (SELECT annotation_id FROM staged_projection WHERE pid = {pid})"
            mine = f"CASE WHEN style = 'gpu_projection' THEN {projected} ELSE {mine} END"
        connection.execute(f"CREATE OR REPLACE TEMP TABLE part_{table} AS FROM staged_{table} WHERE {mine}")
