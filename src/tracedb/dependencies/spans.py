"""The spans of time that a critical path covers: the steps of a capture, else all of it."""

from __future__ import annotations

import numpy as np

from tracedb.dependencies.path import Graph, Span
from tracedb.dependencies.recorded import NONE, Numbers


def of_steps(graph: Graph) -> list[Span]:
    """Return the span of each step, or one of the whole capture where no step is marked.

    A step lasts from the start of its range to its end, or to the end of the GPU work launched in it, if that is later.
    Several threads may mark one step: it is then all of their ranges.
    """
    recorded = graph.recorded
    ranges = recorded.ranges
    marks = np.flatnonzero(ranges.step >= 0)
    if not len(recorded.gpu.start):
        return []
    if not len(marks):
        return [_whole(graph)]
    launched = np.where(recorded.gpu.call >= 0, graph.causes.call_start, recorded.gpu.start)
    order = np.argsort(launched, kind="stable")
    found = []
    for step in np.unique(ranges.step[marks]).tolist():
        mine = marks[ranges.step[marks] == step]
        found.append(_span(graph, step, int(ranges.start[mine].min()), int(ranges.end[mine].max()), launched, order))
    return found


def _span(graph: Graph, step: int, begin: int, end: int, launched: Numbers, order: Numbers) -> Span:
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
