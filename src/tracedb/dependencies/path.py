"""The critical path through a span of time: what its end waited for, back to its beginning."""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np

from tracedb.dependencies import causes as starts
from tracedb.dependencies import host as hosts
from tracedb.dependencies.causes import BY_LAUNCH, BY_NOTHING, BY_STREAM, Causes
from tracedb.dependencies.host import Host
from tracedb.dependencies.recorded_arrays import NONE, Gpu, Mask, Numbers, Recorded

GPU, HOST, SYNC, LAUNCH, GAP, WAIT, UNKNOWN = range(7)
"""Kinds of segments: GPU work, work of the host, the host's return from a synchronization, a launch on an empty stream,
the change from one event of a stream to the next, the same after an awaited event, and time without a known cause."""
KINDS = ("gpu", "host", "sync", "launch", "gap", "wait", "unknown")


class Span(NamedTuple):
    """A span of time. It ends with its work on the host, or with GPU work that was launched in it."""

    step: int | None
    begin: int
    end: int
    event: int
    """The GPU event that ends last, if it ends after the work of the host; else ``NONE``."""
    host_end: int


class Segments(NamedTuple):
    """Segments of a path, ascending in time and without holes."""

    kind: Numbers
    item: Numbers
    """Place of the GPU event (of a gap: the next one), or of the call that waited; the thread of work of the host."""
    start: Numbers
    end: Numbers
    slack: Numbers
    """How much earlier the next dependency of this segment was fulfilled, in ns, or ``NONE``."""


class Graph:
    """The dependencies of a capture."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        self.causes: Causes = starts.find(recorded)
        self.host: Host = hosts.find(recorded, self.causes)
        self._runs = _runs(recorded.gpu, self.causes)
        parts = (recorded.gpu, recorded.calls, recorded.ops, recorded.ranges)
        self.begin = min((int(part.start[0]) for part in parts if len(part.start)), default=0)
        """When the recording begins."""

    def path(self, span: Span) -> Segments:
        """Return the critical path of a span. The segments' durations sum to that of the span."""
        return Walk(self, span).segments()

    def runs(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return the events by stream, the place of each among them, and the first place of each one's run.

        In a run every event but the first started because the one before it ended.
        """
        return self._runs


def _runs(gpu: Gpu, causes: Causes) -> tuple[Numbers, Numbers, Numbers]:
    order = np.concatenate([np.empty(0, np.int64), *starts.lanes(gpu)])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    follows = np.zeros(len(order), np.bool_)
    follows[1:] = (causes.cause[order[1:]] == BY_STREAM) & (causes.before[order[1:]] == order[:-1])
    follows[1:] &= ~causes.is_unknown[order[1:]] | (causes.running[order[1:]] == order[:-1])
    return order, place, np.maximum.accumulate(np.where(follows, 0, np.arange(len(order))))


class Walk:
    """Goes from the end of a span back to its beginning, one run of events or stretch of the host at a time."""

    def __init__(self, graph: Graph, span: Span, stops: Mask | None = None) -> None:
        """Events of ``stops`` end the walk: it goes back to the start of the first one that it meets."""
        self._graph = graph
        self._span = span
        self._stops = stops
        self._now = span.end
        self._found: list[tuple[Numbers, ...]] = []
        """Columns of segments, the last part first; each part is ascending in time."""
        self._single = array("q")
        """Segments found since, one by one: five numbers each, the last segment first."""
        self.stopped = NONE
        """The event of ``stops`` that the walk ended at."""

    def segments(self) -> Segments:
        """Return the segments of the way. Their durations sum to that of the span, unless the walk was stopped."""
        event = self._span.event if self._span.event >= 0 else self._held()
        begin = self._span.begin
        left = 4 * (len(self._graph.recorded.gpu.start) + len(self._graph.host.blocked.call)) + 16
        while self._now > begin and left:
            left -= 1  # faulty times must not keep it going round
            event = self._on_host() if event < 0 else self._on_gpu(event)
            if self.stopped != NONE:
                break
        else:
            self._add(UNKNOWN, NONE, begin)
        self._keep_single()
        columns = [np.concatenate(parts) for parts in zip(*self._found[::-1], strict=True)]
        if not columns:
            return Segments(*(np.empty(0, np.int64) for _ in Segments._fields))
        return Segments(*columns)

    def _held(self) -> int:
        """Return the event that the host waits for at the end of the span, or ``NONE``: a window may end in a call."""
        blocked = self._graph.host.blocked
        place = int(np.searchsorted(blocked.end, self._now, side="right"))
        if place < len(blocked.end) and blocked.start[place] < self._now < blocked.released[place]:
            event = int(blocked.event[place])
            return event if self._graph.recorded.gpu.start[event] < self._now else NONE
        return NONE

    def _add(self, kind: int, item: int, start: int, slack: int = NONE) -> None:
        """Add the segment from ``start``, or the begin of the span, until now."""
        start = max(start, self._span.begin)
        if start < self._now:
            self._single.extend((kind, item, start, self._now, slack))
            self._now = start

    def _keep_single(self) -> None:
        """Put the segments that were added one by one into a part: there may be as many as GPU events."""
        if self._single:
            rows = np.frombuffer(self._single, np.int64).reshape(-1, len(Segments._fields))[::-1]
            self._found.append(tuple(rows[:, place].copy() for place in range(len(Segments._fields))))
            self._single = array("q")

    def _on_host(self) -> int:
        """Go back to the last call that waited for the GPU; returns the event it waited for."""
        line = self._graph.host
        blocked = line.blocked
        place = int(np.searchsorted(blocked.end, self._now, side="right")) - 1
        until = int(blocked.end[place]) if place >= 0 else self._span.begin
        self._stretches(max(until, self._span.begin))
        if place < 0 or self._now <= self._span.begin:
            self._now = max(self._now, self._span.begin)
            return NONE
        self._add(SYNC, int(blocked.call[place]), int(blocked.released[place]))
        return int(blocked.event[place])

    def _stretches(self, until: int) -> None:
        """Add the host's work since ``until``, by thread; nothing is known of the time before the recording."""
        line = self._graph.host
        since = max(until, self._graph.begin)
        while len(line.begin) and self._now > since:
            place = max(int(np.searchsorted(line.begin, self._now, side="left")) - 1, 0)
            self._add(HOST, int(line.thread[place]), max(int(line.begin[place]), since) if place else since)
        self._add(UNKNOWN, NONE, until)

    def _on_gpu(self, event: int) -> int:
        """Go back through the run of an event to what its first one depended on; returns that event or ``NONE``."""
        gpu, causes = self._graph.recorded.gpu, self._graph.causes
        order, places, firsts = self._graph.runs()
        last = int(places[event])
        first = int(firsts[last])
        if self._stops is not None:
            first = self._first_after_stop(self._stops, first, last)
        if first < last:
            since = int(np.searchsorted(gpu.start[order[first : last + 1]], self._span.begin, side="right")) - 1
            if since > 0:
                first, self.stopped = first + since, NONE
            self._run(order[first : last + 1])
        else:
            self._add(GPU, event, int(gpu.start[event]))
        if self.stopped != NONE:
            return NONE
        head = int(order[first])
        cause, since, slack = int(causes.cause[head]), int(causes.since[head]), int(causes.slack[head])
        if self._now > self._span.begin and causes.is_unknown[head] and causes.running[head] >= 0:
            return self._on_device(int(causes.running[head]))
        if self._now <= self._span.begin or cause == BY_NOTHING:
            if cause == BY_NOTHING:
                self._stretches(self._span.begin)
            return NONE
        if cause == BY_LAUNCH:
            self._add(LAUNCH, head, since, slack)
            return NONE
        self._add(GAP if cause == BY_STREAM else WAIT, head, since, slack)
        return int(causes.before[head] if cause == BY_STREAM else causes.awaited[head])

    def _on_device(self, event: int) -> int:
        """Go back to an event of the device that may still run; only time in which the device idles is unknown."""
        self._add(UNKNOWN, NONE, min(int(self._graph.recorded.gpu.end[event]), self._now))
        return event

    def _first_after_stop(self, stops: Mask, first: int, last: int) -> int:
        """Return the place of the last event of a run that stops the walk, else that of the first one."""
        order, _, _ = self._graph.runs()
        events = order[first : last + 1]
        found = np.flatnonzero(stops[events] & (self._graph.recorded.gpu.start[events] < self._now))
        if len(found):
            first += int(found[-1])
            self.stopped = int(order[first])
        return first

    def _run(self, events: Numbers) -> None:
        """Add the events of a run, the last of them until now, and the gaps between them."""
        gpu, causes = self._graph.recorded.gpu, self._graph.causes
        start = np.clip(gpu.start[events], self._span.begin, self._now)
        end = np.append(np.minimum(causes.before_end[events[1:]], self._now), self._now)
        since = np.append(self._span.begin, end[:-1])
        slack = causes.slack[events]
        kind = np.tile([GAP, GPU], len(events))
        kind[0::2][causes.is_unknown[events]] = UNKNOWN
        columns = [np.empty(2 * len(events), np.int64) for _ in range(4)]
        for column, (gaps, work) in zip(
            columns, ((events, events), (since, start), (start, end), (slack, np.full(len(events), NONE))), strict=True
        ):
            column[0::2], column[1::2] = gaps, work
        kept = columns[2] > columns[1]
        kept[0] = False  # what the first depended on is still to be found
        self._keep_single()
        self._found.append((kind[kept], *(column[kept] for column in columns)))
        self._now = min(int(start[0]), self._now)
