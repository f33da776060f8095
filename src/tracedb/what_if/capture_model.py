"""A capture's dependencies with the changes of a scenario applied to its durations and delays."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt

from tracedb.dependencies import recorded_arrays, spans, unnamed_waits
from tracedb.dependencies.causes import BY_LAUNCH, BY_STREAM, BY_WAIT, LONG_AGO
from tracedb.dependencies.host import union
from tracedb.dependencies.path import Graph, Span
from tracedb.dependencies.recorded_arrays import Mask, Numbers
from tracedb.dependencies.spans import Window
from tracedb.errors import NotCaptured
from tracedb.what_if import pricing
from tracedb.what_if.change import Change
from tracedb.what_if.pricing import Priced
from tracedb.what_if.scenario import COLLECTIVE, COPY, HOST, Scale, Scenario

RETURN_NS = 5_000
"""Most time that a synchronizing call takes besides waiting."""
EVER = np.array([LONG_AGO]), np.array([-LONG_AGO])
"""Start and end of the span that holds all others."""


@dataclass
class Effect:
    """What a scenario changes in one capture."""

    duration: Numbers
    """Of each GPU event."""
    is_gone: Mask
    """GPU events that are left out."""
    host: tuple[Numbers, npt.NDArray[np.float64]]
    """Times at which the factor on work of the host changes, and the factor from there."""
    silent: list[tuple[Numbers, Numbers]]
    """Spans without synchronizations."""
    matched: list[bool]
    """Whether each of the scenario's patterns matches anything."""


class CaptureModel:
    """What stays the same in all scenarios of a capture."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, capture_id: int, step: int | None, window: Window | None = None
    ) -> None:
        """Raises ``NotCaptured`` if the capture has no GPU work, not that step or window, or a span of no time."""
        self._connection = connection
        self.capture_id = capture_id
        self.graph = Graph(recorded_arrays.read(connection, capture_id))
        awaited = unnamed_waits.added(self.graph.recorded, self.graph.causes)
        self.causes = self.graph.causes._replace(awaited=awaited)
        found = self._spans(step, window)
        self.steps = len(found) if found[0].step is not None else 0
        self.is_whole = self.steps == 0 and window is None
        """Whether the span is the whole capture."""
        self.span = _joined(found)
        if self.span.end <= self.span.begin:
            raise NotCaptured(f"the steps or GPU work of capture {capture_id} take no time; record a longer run")
        self._known: dict[tuple[str, str], Mask] = {}
        self._priced: dict[Change, Priced] = {}
        self.is_collective, self.is_copy = self._kinds()

    def _spans(self, step: int | None, window: Window | None) -> list[Span]:
        capture_id = self.capture_id
        if not len(self.graph.recorded.gpu.start):
            raise NotCaptured(f"capture {capture_id} has no GPU activity; record again with the GPU traced")
        if window is not None:
            found = spans.in_window(self._connection, self.graph, capture_id, window)
            if not found:
                raise NotCaptured(f"nothing of capture {capture_id} is in the window, counted from the first GPU event")
            return found
        found = spans.chosen(self._connection, self.graph, capture_id)
        if step is not None:
            found = [span for span in found if span.step == step]
            if not found:
                raise NotCaptured(
                    f"capture {capture_id} has no step {step} (a range ProfilerStep#{step}, or of --step-range)"
                )
        return found

    def effect(self, scenario: Scenario, by: float = 1.0) -> Effect:
        """Return what the scenario changes, with a factor on all work but collectives."""
        gpu = self.graph.recorded.gpu
        factor = np.ones(len(gpu.start))
        is_gone = np.zeros(len(gpu.start), np.bool_)
        spans_of: list[tuple[Numbers, Numbers, float]] = []
        silent, matched = [], []
        for scale in scenario.scales:
            within = self._within(scale)
            if within is not None:
                spans_of.append((*within, scale.factor))
                if scale.is_removed:
                    silent.append(within)
            if (scale.key, scale.pattern) == ("class", HOST):
                matched.append(True)
                continue
            events = self._events(scale, within)
            matched.append(bool(events.any()) or (within is not None and len(within[0]) > 0))
            factor[events] *= scale.factor
            is_gone |= events & scale.is_removed
        if by != 1:
            factor[~self.is_collective] *= by
            # A host with less to launch than others spends the rest waiting, which more work would fill.
            spans_of.append((*EVER, min(by, 1.0)))
        priced = self.priced(scenario.priced)
        if priced is not None:
            factor *= priced.factor
        duration = gpu.end - gpu.start
        is_same = factor == 1
        duration = np.where(is_same, duration, np.rint(duration * factor).astype(np.int64))
        return Effect(duration, is_gone, _host_factors(spans_of), silent, matched)

    def priced(self, change: Change | None) -> Priced | None:
        """Return the factors of another card, or of other sizes. Raises ``NotCaptured`` if they cannot be known."""
        if change is None:
            return None
        if change not in self._priced:
            ids = self.graph.recorded.gpu.event_id
            self._priced[change] = pricing.priced(self._connection, self.capture_id, ids, change)
        return self._priced[change]

    def _within(self, scale: Scale) -> tuple[Numbers, Numbers] | None:
        """Return the spans of host work that are scaled; None for GPU work only."""
        if (scale.key, scale.pattern) == ("class", HOST):
            return EVER
        if scale.key not in ("range", "op"):
            return None
        rows = self._connection.execute(RANGES if scale.key == "range" else OPS, [self.capture_id, scale.pattern])
        start, end, thread = (np.ma.getdata(column).astype(np.int64) for column in rows.fetchnumpy().values())
        line = self.graph.host
        if len(line.begin):
            # Other threads' ranges, as those of loaders in the background, are not what the step waits for.
            first, last = (
                line.thread[np.maximum(np.searchsorted(line.begin, at, side="right") - 1, 0)] for at in (start, end)
            )
            on_line = (thread == first) | (thread == last)
            start, end = start[on_line], end[on_line]
        return union(start, end)

    def _events(self, scale: Scale, within: tuple[Numbers, Numbers] | None) -> Mask:
        if within is not None:
            if not len(within[0]):
                return np.zeros(len(self.graph.recorded.gpu.start), np.bool_)
            call = self.graph.recorded.gpu.call
            calls = self.graph.recorded.calls.start
            at = np.where(call >= 0, calls[call], LONG_AGO) if len(calls) else np.full(len(call), LONG_AGO)
            place = np.searchsorted(within[0], at, side="right") - 1
            return (place >= 0) & (at < within[1][np.maximum(place, 0)])
        known = self._known.get((scale.key, scale.pattern))
        if known is None:
            if scale.key == "class" and scale.pattern == COPY:
                condition, values = f"(e.class = '{COPY}' OR e.kind IN ('memcpy', 'memset'))", []
            elif scale.key == "class":
                condition, values = "e.class = ?", [scale.pattern]
            else:
                condition, values = "e.name GLOB ?", [scale.pattern]
            known = self._known[scale.key, scale.pattern] = self._mask(condition, values)
        return known

    def gpu_percent(self, scale: Scale) -> float:
        """Return how much of the GPU's work in the span a pattern matches, in percent of its time."""
        gpu = self.graph.recorded.gpu
        inside = (gpu.start >= self.span.begin) & (gpu.start < self.span.end)
        time = np.where(inside, gpu.end - gpu.start, 0)
        matched = time[self._events(scale, self._within(scale))].sum()
        return 100 * float(matched) / max(float(time.sum()), 1.0)

    def _kinds(self) -> tuple[Mask, Mask]:
        """Return which events are collectives, and which are copies."""
        found = self._connection.execute(
            """SELECT e.event_id, e.class = ? AS is_collective, e.kind IN ('memcpy', 'memset') AS is_copy
               FROM v1._gpu_event AS e WHERE e.capture_id = ?""",
            [COLLECTIVE, self.capture_id],
        ).fetchnumpy()
        ids = np.ma.getdata(found["event_id"])
        collective, copy = (
            np.isin(self.graph.recorded.gpu.event_id, ids[np.ma.getdata(found[name]).astype(np.bool_)])
            for name in ("is_collective", "is_copy")
        )
        return collective, copy

    def _mask(self, condition: str, values: list[str]) -> Mask:
        rows = self._connection.execute(
            f"SELECT e.event_id FROM v1._gpu_event AS e WHERE e.capture_id = ? AND {condition}",
            [self.capture_id, *values],
        )
        ids = np.ma.getdata(rows.fetchnumpy()["event_id"])
        return np.isin(self.graph.recorded.gpu.event_id, ids)

    def classes(self) -> list[str]:
        """Return the classes of GPU work, those with most time first."""
        rows = self._connection.execute(
            """SELECT CASE WHEN e.kind IN ('memcpy', 'memset') THEN 'copy' ELSE e.class END AS class
               FROM v1._gpu_event AS e WHERE e.capture_id = ? GROUP BY ALL ORDER BY sum(e.duration_ns) DESC, class""",
            [self.capture_id],
        )
        return [name for (name,) in rows.fetchall() if name]

    def ranges(self, most: int) -> list[tuple[str, int]]:
        """Return the names of ranges inside the steps that take most time, with that time in ns."""
        rows = self._connection.execute(
            """SELECT a.name, sum(a.duration_ns)::BIGINT AS total_ns FROM main.annotation AS a
               WHERE a.capture_id = ? AND a.style IN ('push_pop', 'user') AND a.duration_ns > 0
                   AND a.name NOT LIKE 'ProfilerStep#%' AND a.time_fault IS NULL AND a.start_ns BETWEEN ? AND ?
                   AND length(a.name) <= 60 AND NOT regexp_matches(a.name, '[*?\\[\\]]')
               GROUP BY a.name
               HAVING sum(a.duration_ns) < 0.9 * ?
               ORDER BY sum(a.duration_ns) DESC, a.name LIMIT ?""",
            [self.capture_id, self.span.begin, self.span.end, self.span.end - self.span.begin, most],
        )
        return rows.fetchall()

    def delays(self, effect: Effect, scenario: Scenario) -> tuple[Numbers, Numbers, Numbers]:
        """Return for each event the time from its launch, from the event before and from an awaited one, in ns.

        What an event did not start after, it could have started after as early as is usual.
        """
        gpu, causes = self.graph.recorded.gpu, self.causes
        by_launch = gpu.start - causes.launched
        usual = np.maximum(causes.call_start + causes.latency - causes.launched, 0)
        launch = np.where(causes.cause == BY_LAUNCH, by_launch, np.minimum(usual, by_launch))
        if scenario.launch_delay_ns is not None:
            launch = np.full(len(launch), scenario.launch_delay_ns)
        before = gpu.start - gpu.end[causes.before]
        stream = np.where(causes.cause == BY_STREAM, before, np.minimum(causes.gap, before))
        since = gpu.start - gpu.end[causes.awaited]
        wait = np.where(causes.cause == BY_WAIT, since, np.minimum(causes.gap, since))
        launch, stream, wait = (np.where(effect.is_gone, 0, delay) for delay in (launch, stream, wait))
        return launch, stream, wait

    def host_time(self, effect: Effect, times: Numbers) -> Numbers:
        """Return host times with the factors on its work applied, without waiting; equal until the span begins."""
        since, factor = effect.host
        begin = self.span.begin
        if not len(since) or (factor == 1).all():
            return times
        bounds = np.maximum(since, begin)
        lengths = np.diff(bounds)
        reached = begin + np.concatenate([[0], np.cumsum(np.rint(lengths * factor[:-1]).astype(np.int64))])
        place = np.maximum(np.searchsorted(bounds, times, side="right") - 1, 0)
        made = reached[place] + np.rint((times - bounds[place]) * factor[place]).astype(np.int64)
        return np.where(times <= begin, times, made)


RANGES = """
SELECT a.start_ns, a.start_ns + a.duration_ns AS end_ns, coalesce(a.thread_id, -1) AS thread_id
FROM main.annotation AS a
WHERE a.capture_id = $1 AND (a.name GLOB $2 OR (a.domain || ':' || a.name) GLOB $2)
    AND a.style NOT IN ('mark', 'gpu_projection') AND a.duration_ns IS NOT NULL AND a.time_fault IS NULL
ORDER BY a.start_ns, a.annotation_id
"""
OPS = """
SELECT o.start_ns, o.start_ns + o.duration_ns AS end_ns, coalesce(o.thread_id, -1) AS thread_id
FROM main.op AS o
WHERE o.capture_id = $1 AND o.name GLOB $2
ORDER BY o.start_ns, o.op_id
"""


def _joined(found: list[Span]) -> Span:
    """Return one span from the first to the last of several."""
    last = max(found, key=lambda span: span.end)
    host_end = max(span.host_end for span in found)
    step = found[0].step if len(found) == 1 else None
    return Span(step, min(span.begin for span in found), last.end, last.event, host_end)


def _host_factors(given: list[tuple[Numbers, Numbers, float]]) -> tuple[Numbers, npt.NDArray[np.float64]]:
    """Return the times at which the product of the factors changes, and the product from there."""
    bounds = np.unique(np.concatenate([[LONG_AGO], *(side for start, end, _ in given for side in (start, end))]))
    factor = np.ones(len(bounds))
    for start, end, by in given:
        if not len(start):
            continue
        place = np.searchsorted(start, bounds, side="right") - 1
        factor[(place >= 0) & (bounds < end[np.maximum(place, 0)])] *= by
    return bounds, factor


def is_silent(effect: Effect, at: Numbers) -> Mask:
    """Return which calls lie in a span without synchronizations."""
    found = np.zeros(len(at), np.bool_)
    for start, end in effect.silent:
        if not len(start):
            continue
        place = np.searchsorted(start, at, side="right") - 1
        found |= (place >= 0) & (at < end[np.maximum(place, 0)])
    return found
