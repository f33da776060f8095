"""The spans of time that a critical path covers: the steps of a capture, else all of it."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb
import numpy as np

from tracedb.dependencies.path import Graph, Span
from tracedb.dependencies.recorded_arrays import NONE, Numbers

Window = tuple[int, int]
"""Begin and end, in ns after the first GPU event of a run."""


def of_steps(graph: Graph) -> list[Span]:
    """Return the span of each marked step (ProfilerStep#N), or one of the whole capture where none is.

    A step lasts from the start of its range to its end, or to the end of the GPU work launched in it, if that is later.
    Several threads may mark one step: it is then all of their ranges.
    """
    ranges = graph.recorded.ranges
    marks = np.flatnonzero(ranges.step >= 0)
    steps = np.unique(ranges.step[marks]).tolist()
    mine = {step: marks[ranges.step[marks] == step] for step in steps}
    return between(
        graph, [(step, int(ranges.start[mine[step]].min()), int(ranges.end[mine[step]].max())) for step in steps]
    )


def chosen(connection: duckdb.DuckDBPyConnection, graph: Graph, capture_id: int) -> list[Span]:
    """Return the same for the steps of ``v1._step``, which are those marked unless a range was chosen as step."""
    rows = connection.execute(
        """SELECT t.step, min(a.start_ns), max(a.start_ns + a.duration_ns)
           FROM v1._step AS t
           INNER JOIN main.annotation AS a ON a.capture_id = t.capture_id AND a.annotation_id = t.annotation_id
           WHERE t.capture_id = ? AND t.step IS NOT NULL AND a.duration_ns IS NOT NULL
           GROUP BY t.step ORDER BY t.step""",
        [capture_id],
    )
    return between(graph, rows.fetchall())


def in_window(connection: duckdb.DuckDBPyConnection, graph: Graph, capture_id: int, window: Window) -> list[Span]:
    """Return the span of a window of time, which is treated like the range of a step; none if nothing lies in it."""
    if not len(graph.recorded.gpu.start):
        return []
    ((zero,),) = connection.execute(RUN_START, [capture_id, capture_id]).fetchall()
    whole = _whole(graph)
    begin, end = max(zero + window[0], whole.begin), min(zero + window[1], whole.end)
    return between(graph, [(None, begin, end)]) if begin < end else []


RUN_START = """
WITH firsts AS (
    SELECT
        k.capture_id, e.first_ns,
        coalesce(v1._common_time(e.first_ns, k.clock, k.zero_ns, k.offset_ns, k.at_ns, k.stretch), e.first_ns)
            AS common_ns,
        k.clock = 'incomparable' AS is_alone
    FROM v1._common_clock AS k
    INNER JOIN (
        SELECT e.capture_id, min(e.start_ns) AS first_ns
        FROM main.kernel_event AS e
        WHERE e.time_fault IS NULL
        GROUP BY e.capture_id
    ) AS e ON e.capture_id = k.capture_id
    WHERE k.set_id = (SELECT o.set_id FROM v1._common_clock AS o WHERE o.capture_id = ?)
)
SELECT f.first_ns - CASE WHEN f.is_alone THEN 0 ELSE f.common_ns - (SELECT min(o.common_ns) FROM firsts AS o) END
FROM firsts AS f
WHERE f.capture_id = ?
"""
"""Time of the first GPU event of a run on the clock of one of its captures: the zero of a window, as in plot gantt."""


def between(graph: Graph, steps: Iterable[tuple[int | None, int, int]]) -> list[Span]:
    """Return the spans of steps, given as number, start and end of their range; without any, the whole capture."""
    recorded = graph.recorded
    if not len(recorded.gpu.start):
        return []
    launched = np.where(recorded.gpu.call >= 0, graph.causes.call_start, recorded.gpu.start)
    order = np.argsort(launched, kind="stable")
    return [_span(graph, *step, launched, order) for step in steps] or [_whole(graph)]


def _span(graph: Graph, step: int | None, begin: int, end: int, launched: Numbers, order: Numbers) -> Span:
    gpu = graph.recorded.gpu
    first, last = np.searchsorted(launched, (begin, end), sorter=order)
    inside = order[first:last]
    if len(inside):
        latest = int(inside[np.argmax(gpu.end[inside])])
        if gpu.end[latest] > end:
            return Span(step, begin, int(gpu.end[latest]), latest, end)
    return Span(step, begin, end, NONE, end)


def _whole(graph: Graph) -> Span:
    """Return the span from the first to the last operator, call or GPU event."""
    recorded = graph.recorded
    parts = [part for part in (recorded.gpu, recorded.calls, recorded.ops) if len(part.start)]
    begin = min(int(part.start.min()) for part in parts)
    host_end = max([begin, *(int(part.end.max()) for part in parts[1:])])
    latest = int(np.argmax(recorded.gpu.end))
    end = int(recorded.gpu.end[latest])
    return Span(None, begin, end, latest, host_end) if end > host_end else Span(None, begin, host_end, NONE, host_end)
