"""Ranges and marks: NVTX with its domains, and the calls of MPI, OpenACC, cuBLAS and cuDNN."""

from __future__ import annotations

import duckdb

from tracedb.ingester.issues import Account

MARKS = (34, 65)
PUSH_POP = (59, 70)
START_END = (60, 71)
DOMAIN_CREATE = 75
DEFINITIONS = (33, 39, 75, 76, 97, 98, 99)
USABLE = """start_ns > -4611686018427387904 AND start_ns < 4611686018427387904 AND (
    event_type IN (34, 65) OR end_ns IS NULL OR (end_ns >= start_ns AND end_ns < 4611686018427387904)
)"""


def prepare(connection: duckdb.DuckDBPyConnection, account: Account) -> None:
    """Create ``staged_range`` from the staged rows, and count those that give no range."""
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE staged_domain AS
        SELECT n.gpid, n.domain_id, arg_min(coalesce(t.value, n.text), coalesce(n.start_ns, 0)) AS domain
        FROM staged_nvtx AS n
        LEFT JOIN staged_text AS t ON n.name = t.id
        WHERE n.event_type = 75
        GROUP BY n.gpid, n.domain_id
        """
    )
    _count(connection, account)
    connection.execute(RANGE_VIEW)


def _count(connection: duckdb.DuckDBPyConnection, account: Account) -> None:
    known = (*MARKS, *PUSH_POP, *START_END)
    defined, other, unknown, lost, crossing = connection.execute(
        f"""SELECT
            count(*) FILTER (event_type IN {DEFINITIONS}),
            count(*) FILTER (event_type NOT IN {(*DEFINITIONS, *known)}),
            count(*) FILTER (event_type IS NULL),
            count(*) FILTER (event_type IN {known} AND coalesce(NOT ({USABLE}), true)),
            count(*) FILTER (event_type IN {known} AND is_elsewhere)
        FROM staged_nvtx"""
    ).fetchall()[0]
    account.left_aside("nvtx_definitions", defined, "NVTX rows that name domains, categories, threads and devices")
    account.left_aside("nvtx_other", other, "NVTX rows that are neither ranges nor marks")
    account.lost("event_unreadable", unknown, f"{unknown} rows of NVTX_EVENTS have no known event type")
    account.lost("times_unusable", lost, f"{lost} rows of NVTX_EVENTS end before they start or have no start")
    account.noted("range_over_threads", crossing, "ranges that ended on another thread; nsys counts them for none")


def last_ns(connection: duckdb.DuckDBPyConnection) -> int | None:
    """Return the last time in any NVTX row of all processes: nsys counts open ranges until then."""
    ((last,),) = connection.execute(
        f"SELECT max(greatest(start_ns, end_ns)) FROM staged_nvtx WHERE {USABLE}"
    ).fetchall()
    return None if last is None else int(last)


RANGE_VIEW = f"""
CREATE OR REPLACE TEMP VIEW staged_range AS
SELECT
    n.annotation_id, n.gpid,
    CASE WHEN NOT n.is_elsewhere THEN n.tid END AS tid,
    CASE
        WHEN n.event_type IN {MARKS} THEN 'mark' WHEN n.event_type IN {PUSH_POP} THEN 'push_pop' ELSE 'start_end'
    END AS style,
    n.name, n.text, d.domain, n.start_ns,
    CASE WHEN n.event_type NOT IN {MARKS} THEN n.end_ns - n.start_ns END AS duration_ns,
    n.event_type NOT IN {MARKS} AND n.end_ns IS NULL AS is_open,
    n.json, n.json_text
FROM (FROM staged_nvtx WHERE event_type IN {(*MARKS, *PUSH_POP, *START_END)} AND {USABLE}) AS n
LEFT JOIN staged_domain AS d ON n.gpid IS NOT DISTINCT FROM d.gpid AND n.domain_id = d.domain_id
UNION ALL
SELECT
    annotation_id, gpid, tid, 'user' AS style, name, NULL AS text, domain, start_ns, duration_ns, false AS is_open,
    NULL AS json, NULL AS json_text
FROM staged_other
"""
ANNOTATION_SQL = """
SELECT
    r.annotation_id, coalesce(t.value, r.text, '(string ' || r.name || ')', '(no name)') AS name, r.domain, r.style,
    (r.gpid >> 24) & 16777215 AS process_id, r.tid::BIGINT AS thread_id, r.start_ns, r.duration_ns, r.is_open
FROM part_range AS r
LEFT JOIN staged_text AS t ON r.name = t.id
ORDER BY r.start_ns, r.annotation_id
"""
