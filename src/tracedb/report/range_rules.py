"""Choose the rule of range membership, and report how another rule would differ. All in SQL.

Rule ``process`` adds to a range what other threads launch while it is open. Autograd launches the backward pass on its
own thread, so this is what someone who marks a training step expects. Parallel worker threads each have ranges of the
same name, and there rule ``thread`` tells their work apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.report import shared_work
from tracedb.report.capture_counts import number

if TYPE_CHECKING:
    import duckdb

MOST_NAMES = 3

_BESIDE = """
CREATE OR REPLACE TEMP TABLE launched_beside AS
WITH other AS (
    SELECT m.capture_id, m.annotation_id, m.event_id
    FROM main.annotation_kernel AS m
    SEMI JOIN temp.selected_capture AS s ON s.capture_id = m.capture_id
    ANTI JOIN (
        SELECT t.capture_id, t.annotation_id, t.event_id FROM main.annotation_kernel AS t WHERE t.rule = 'thread'
    ) AS o ON o.capture_id = m.capture_id AND o.annotation_id = m.annotation_id AND o.event_id = m.event_id
    WHERE m.rule = 'process'
)
SELECT o.capture_id, o.annotation_id, l.thread_id, count(*) AS events, sum(e.duration_ns) AS total_ns
FROM other AS o
INNER JOIN main.kernel_event AS e
    ON e.capture_id = o.capture_id AND e.event_id = o.event_id AND e.time_fault IS NULL
LEFT JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
GROUP BY o.capture_id, o.annotation_id, l.thread_id
"""
"""GPU events that only rule process puts into a range, by innermost range and launching thread."""

_SUMS = """
WITH own AS (
    SELECT m.capture_id, m.annotation_id, sum(e.duration_ns) AS total_ns
    FROM main.annotation_kernel AS m
    SEMI JOIN temp.launched_beside AS b ON b.capture_id = m.capture_id
    INNER JOIN main.kernel_event AS e ON e.capture_id = m.capture_id AND e.event_id = m.event_id
    WHERE m.rule = 'thread' AND e.time_fault IS NULL
    GROUP BY m.capture_id, m.annotation_id
),
lanes AS (
    SELECT DISTINCT r.capture_id, r.domain, r.name, r.thread_id FROM {version}._range AS r WHERE {condition}
),
parts AS (
    SELECT o.capture_id, o.annotation_id, NULL AS thread_id, o.total_ns AS own_ns, 0 AS added_ns FROM own AS o
    UNION ALL
    SELECT b.capture_id, b.annotation_id, b.thread_id, 0 AS own_ns, b.total_ns AS added_ns
    FROM temp.launched_beside AS b
)
SELECT
    r.name,
    sum(p.own_ns) AS own_ns,
    sum(p.added_ns) AS added_ns,
    coalesce(sum(p.added_ns) FILTER (n.thread_id IS NOT NULL), 0) AS peers_ns
FROM parts AS p
INNER JOIN {version}._annotation_ancestor AS a ON a.capture_id = p.capture_id AND a.annotation_id = p.annotation_id
INNER JOIN {version}._range AS r ON r.capture_id = a.ancestor_capture_id AND r.annotation_id = a.ancestor_id
LEFT JOIN lanes AS n
    ON n.capture_id = r.capture_id AND n.domain IS NOT DISTINCT FROM r.domain AND n.name = r.name
    AND n.thread_id = p.thread_id
WHERE r.style <> 'python_function' AND {condition}
GROUP BY r.name
HAVING sum(p.added_ns) > 0
"""
"""Time of GPU events by range name: launched on its thread, added by rule process, and the part of the latter launched
by threads that have ranges of that name themselves. ``{{condition}}`` selects ranges ``r``."""


def compare(connection: duckdb.DuckDBPyConnection, version: str, condition: str) -> None:
    """Compute how much the rules differ for the ranges that a condition on ``r`` selects.

    The result is ``temp.rule_difference``, with a row per range name where rule process adds GPU work.
    """
    shared_work.last("rule_difference", (version, condition), lambda: _compare(connection, version, condition))


def _compare(connection: duckdb.DuckDBPyConnection, version: str, condition: str) -> None:
    connection.execute(_BESIDE)
    ((count,),) = connection.execute("SELECT count(*) FROM temp.launched_beside").fetchall()
    sums = _SUMS.format(version=version, condition=condition)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE rule_difference AS {sums}{'' if count else ' LIMIT 0'}"  # the joins are slow
    )


def default(connection: duckdb.DuckDBPyConnection, wanted: str | None) -> str:
    """Return the rule for those ranges: the requested one, else process; time if launches were not recorded.

    If threads with ranges of that name themselves launched most of what process adds, the rule is thread.
    """
    rules = shared_work.ask(
        connection,
        """SELECT DISTINCT m.rule FROM main.annotation_kernel AS m SEMI JOIN temp.selected_capture AS s
           ON s.capture_id = m.capture_id""",
    )
    if rules == [("time",)]:
        return "time"
    if wanted is not None:
        return wanted
    ((is_side_by_side,),) = connection.execute(
        "SELECT coalesce(sum(d.peers_ns) * 2 > sum(d.added_ns), false) FROM temp.rule_difference AS d"
    ).fetchall()
    return "thread" if is_side_by_side else "process"


def warnings(connection: duckdb.DuckDBPyConnection, rule: str) -> list[str]:
    """Return how the answer would differ under the other rule, and what is in no range under either."""
    unlaunched = [] if rule == "time" else shared_work.once("unlaunched", lambda: _unlaunched(connection))
    return _differing(connection, rule) + unlaunched


def _differing(connection: duckdb.DuckDBPyConnection, rule: str) -> list[str]:
    rows = connection.execute(
        f"""SELECT format('{{}}: {{:.1f}} % of {{:.3f}} ms',
                       d.name, 100.0 * d.added_ns / (d.own_ns + d.added_ns), (d.own_ns + d.added_ns) / 1e6),
                   count(*) OVER (), sum(d.peers_ns) OVER () > 0
            FROM temp.rule_difference AS d ORDER BY d.added_ns DESC, d.name LIMIT {MOST_NAMES}"""
    ).fetchall()
    if not rows or rule not in ("process", "thread"):
        return []
    more = rows[0][1] - len(rows)
    shares = "; ".join(text for text, _, _ in rows) + (f"; and {number(more, 'more range')}" if more > 0 else "")
    if rule == "thread":
        return [
            f"ranges hold a kernel by rule thread: GPU work that other threads launched meanwhile is left out "
            f"({shares}); --rule process takes it in"
        ]
    peers = ", also of threads that have ranges of that name themselves" if rows[0][2] else ""
    return [
        f"ranges hold a kernel by rule process: GPU work that other threads launched meanwhile is taken in "
        f"({shares}){peers}; --rule thread leaves it out"
    ]


def _unlaunched(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Report GPU events that cannot be in any range, since their launch was not recorded though others were."""
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE unlaunched AS
           SELECT e.capture_id, e.event_id, e.duration_ns FROM main.kernel_event AS e
           SEMI JOIN temp.selected_capture AS s ON s.capture_id = e.capture_id
           SEMI JOIN (SELECT DISTINCT l.capture_id FROM main.launch AS l) AS l ON l.capture_id = e.capture_id
           WHERE e.launch_id IS NULL AND e.time_fault IS NULL"""
    )
    ((count,),) = connection.execute("SELECT count(*) FROM temp.unlaunched").fetchall()
    if not count:
        return []
    ((count, percent),) = connection.execute(
        """WITH outside AS (
               SELECT u.duration_ns FROM temp.unlaunched AS u
               ANTI JOIN (
                   SELECT m.capture_id, m.event_id FROM main.annotation_kernel AS m
                   SEMI JOIN temp.unlaunched AS n ON n.capture_id = m.capture_id AND n.event_id = m.event_id
               ) AS m ON m.capture_id = u.capture_id AND m.event_id = u.event_id
           )
           SELECT count(*), format('{:.1f}', 100.0 * sum(o.duration_ns) / (
               SELECT sum(e.duration_ns) FROM main.kernel_event AS e
               SEMI JOIN temp.selected_capture AS s ON s.capture_id = e.capture_id WHERE e.time_fault IS NULL))
           FROM outside AS o"""
    ).fetchall()
    if not count:
        return []
    return [f"GPU events whose launch was not recorded are in no range: {count:,} ({percent} % of the GPU time)"]
