"""Read NCCL's metadata from the payloads of its NVTX ranges, if an export holds them as JSON text."""

from __future__ import annotations

from typing import NamedTuple

import duckdb

from tracedb.intervals import nesting

DOMAIN = "NCCL"
COMMUNICATOR = "NCCL communicator ID"
BYTES = "Message size [bytes]"
RANKS = "No. of ranks"
RANK = "Rank"


class Place(NamedTuple):
    """Rank and world size of a process."""

    rank: int | None
    world_size: int | None


def link(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill temp table ``link_collective`` from the innermost NCCL range around each kernel's launch."""
    connection.execute(
        PAYLOADS,
        {
            "domain": DOMAIN,
            "communicator": _path(COMMUNICATOR),
            "bytes": _path(BYTES),
            "ranks": _path(RANKS),
            "rank": _path(RANK),
        },
    )
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE link_collective (
            event_id BIGINT, bytes BIGINT, collective VARCHAR, group_name VARCHAR, group_size INTEGER
        )"""
    )
    ((told,),) = connection.execute("SELECT count(bytes) FROM link_payload").fetchall()
    if not told:
        return
    crossing = nesting.nest(
        connection,
        """SELECT annotation_id AS item_id, 0 AS lane_a, tid AS lane_b, start_ns, start_ns + duration_ns AS end_ns,
            annotation_id AS tie FROM link_payload
        WHERE bytes IS NOT NULL AND tid IS NOT NULL AND duration_ns IS NOT NULL""",
    )
    nesting.enclose(
        connection,
        """SELECT l.launch_id AS call_id, 0 AS lane_a, l.tid AS lane_b, l.start_ns, l.start_ns + l.duration_ns AS end_ns
        FROM part_launch AS l WHERE l.tid IS NOT NULL AND l.launch_id IN (SELECT launch_id FROM part_kernel)""",
        crossing=crossing,
    )
    connection.execute(COLLECTIVES)
    nesting.drop(connection)


def place(connection: duckdb.DuckDBPyConnection) -> Place:
    """Return rank and world size of the current process in its largest communicator. Call after ``link``."""
    rows = connection.execute(
        """SELECT rank, ranks FROM link_payload WHERE rank IS NOT NULL AND ranks IS NOT NULL
        ORDER BY ranks DESC, start_ns LIMIT 1"""
    ).fetchall()
    return Place(*rows[0]) if rows else Place(None, None)


def _path(key: str) -> str:
    return f'$."{key}"'


PAYLOADS = """
CREATE OR REPLACE TEMP TABLE link_payload AS
WITH told AS (
    SELECT
        r.annotation_id, r.tid, r.start_ns, r.duration_ns, coalesce(n.value, r.text) AS name,
        coalesce(r.json_text, j.value) AS json
    FROM part_range AS r
    LEFT JOIN staged_text AS n ON r.name = n.id
    LEFT JOIN staged_text AS j ON r.json = j.id
    WHERE r.domain = $domain AND (r.json_text IS NOT NULL OR r.json IS NOT NULL)
)

SELECT
    annotation_id, tid, start_ns, duration_ns, name,
    json ->> $communicator AS communicator,
    TRY_CAST(json ->> $bytes AS BIGINT) AS bytes,
    TRY_CAST(json ->> $ranks AS INTEGER) AS ranks,
    TRY_CAST(json ->> $rank AS INTEGER) AS rank
FROM told
WHERE json_valid(json)
"""
COLLECTIVES = """
INSERT INTO link_collective
WITH size AS (SELECT communicator, max(ranks) AS ranks FROM link_payload GROUP BY communicator)

SELECT g.event_id, any_value(p.bytes), any_value(p.name), any_value(p.communicator), any_value(s.ranks)
FROM call_out AS o
INNER JOIN link_payload AS p ON o.item_id = p.annotation_id
INNER JOIN part_kernel AS g ON o.call_id = g.launch_id
LEFT JOIN size AS s ON p.communicator = s.communicator
GROUP BY g.event_id
"""
