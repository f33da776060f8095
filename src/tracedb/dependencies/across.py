"""The critical path of a step over all ranks: where one waits for another, the path continues on that one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tracedb.dependencies.meetings import Member, Met
from tracedb.dependencies.path import GPU, Graph, Segments, Span, Walk
from tracedb.dependencies.recorded_arrays import NONE, Mask

MOST_GRAPHS = 16
"""Captures whose dependencies are kept in memory at once."""


class Piece(NamedTuple):
    """A part of a path on one rank, on the clock of its capture."""

    capture_id: int
    span: Span
    segments: Segments


class Ranks:
    """The captures of a recording that share a clock and meet in collectives or messages."""

    def __init__(self, met: Met, read: Callable[[int], Graph]) -> None:
        """``read`` returns the dependencies of a capture."""
        self.shift = met.shift
        self.graph = lru_cache(MOST_GRAPHS)(read)
        self._last = _last(met.members)
        self._stops = lru_cache(MOST_GRAPHS)(self._waiting)

    def path(self, spans: Mapping[int, Span], ends: Sequence[int]) -> list[Piece]:
        """Return the path of a step in the order of time, given its span in each capture.

        It goes from the end of the step in that of the captures ``ends`` which ends last back to its first beginning
        on any rank. The durations sum to the time between.
        """
        begin = min(span.begin + self.shift[capture] for capture, span in spans.items())
        capture = max(ends, key=lambda one: (spans[one].end + self.shift[one], -one))
        span = spans[capture]._replace(begin=begin - self.shift[capture])
        pieces: list[Piece] = []
        while True:
            # Clocks that are off must not keep it going from rank to rank at one time.
            stops = self._stops(capture) if len(pieces) <= len(self._last) else None
            walk = Walk(self.graph(capture), span, stops)
            segments = walk.segments()
            if walk.stopped == NONE:
                return [*pieces, Piece(capture, span, segments)][::-1]
            waiting = int(self.graph(capture).recorded.gpu.event_id[walk.stopped])
            last = self._last[capture, waiting]
            segments, now = _until(segments, walk.stopped, last.start - self.shift[capture])
            pieces.append(Piece(capture, span, segments))
            now += self.shift[capture] - self.shift[last.capture_id]
            capture = last.capture_id
            ids = self.graph(capture).recorded.gpu.event_id
            event = int(np.flatnonzero(ids == last.event_id)[0])
            span = Span(span.step, begin - self.shift[capture], now, event, now)

    def _waiting(self, capture: int) -> Mask:
        """Return which events of a capture waited for another rank."""
        waiting = [event for of, event in self._last if of == capture]
        return np.isin(self.graph(capture).recorded.gpu.event_id, waiting)


def _last(members: Sequence[Member]) -> dict[tuple[int, int], Member]:
    """Return for each kernel (capture, event) that waited the other rank's that came last."""
    calls: dict[str, list[Member]] = {}
    for member in members:
        calls.setdefault(member.call, []).append(member)
    found: dict[tuple[int, int], Member] = {}
    for call in calls.values():
        last = max(call, key=lambda member: (member.start, -member.capture_id))
        for member in call:
            known = found.get((member.capture_id, member.event_id))
            if member.start < last.start and (known is None or known.start < last.start):
                found[member.capture_id, member.event_id] = last
    return found


def _until(segments: Segments, waiting: int, met: int) -> tuple[Segments, int]:
    """Return the segments without the waiting of the kernel that they begin with, until ``met``, and their begin."""
    first, end = int(segments.start[0]), int(segments.end[0])
    is_kernel = segments.kind[0] == GPU and segments.item[0] == waiting
    now = min(max(met, first), end) if is_kernel else first
    segments.start[0] = now
    kept = segments.end > segments.start
    return Segments(*(column[kept] for column in segments)), now
