"""Time the work of one or several ranks again, under the changes of a scenario.

Everything is gone through once, in the order in which it was recorded: what an event depends on was recorded before it.
Without changes every time comes out as recorded, to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tracedb.dependencies.causes import BY_LAUNCH, BY_NOTHING, BY_STREAM, BY_WAIT, LONG_AGO
from tracedb.dependencies.recorded_arrays import NONE, Mask, Numbers
from tracedb.what_if.capture_model import RETURN_NS, CaptureModel, Effect, is_silent
from tracedb.what_if.scenario import Scenario

SYNC, START, TOGETHER = range(3)
"""Actions: a call that waits returns; an event starts; the ranks of a collective are all there."""


class Meeting(NamedTuple):
    """A collective call over ranks."""

    members: list[tuple[int, int]]
    """Capture (its place among the models) and event (its place in the capture)."""


class Meetings(NamedTuple):
    """The collectives that the ranks meet in."""

    all: list[Meeting]
    shift: list[int]
    """What to add to each capture's times, in ns, to get the common clock."""


class Timed:
    """One rank's times under a scenario."""

    def __init__(self, model: CaptureModel, effect: Effect, scenario: Scenario) -> None:
        gpu, causes = model.graph.recorded.gpu, model.causes
        span = model.span
        self.model = model
        self.are_equal = scenario.ranks_are_equal
        calls = model.graph.host.synchronized
        chosen = np.flatnonzero((calls.end > span.begin) & (calls.end <= span.host_end))
        self.sync_recorded = calls.end[chosen].tolist()
        start, end = model.host_time(effect, calls.start[chosen]), model.host_time(effect, calls.end[chosen])
        waited = calls.released[chosen] > calls.start[chosen]
        own = np.where(waited, np.minimum(end - start, RETURN_NS), end - start)
        back = calls.end[chosen] - gpu.end[calls.event[chosen]]
        quiet = is_silent(effect, calls.start[chosen]) | effect.is_gone[calls.event[chosen]]
        if not scenario.waits_for_gpu:
            quiet |= True
        self.sync_start, self.sync_end, self.sync_own = start.tolist(), end.tolist(), own.tolist()
        self.sync_back = np.where(waited, back, np.minimum(back, RETURN_NS)).tolist()
        self.sync_event = np.where(quiet, NONE, calls.event[chosen]).tolist()
        self.offset = [0] * (len(chosen) + 1)
        """What waiting added to the host's time so far, after each synchronization."""
        self.waited = [False] * len(chosen)
        launch, stream, wait = model.delays(effect, scenario)
        known = causes.launched > LONG_AGO
        self.launched = np.where(known, model.host_time(effect, causes.launched), LONG_AGO).tolist()
        self.after = np.searchsorted(calls.end[chosen], causes.launched, side="right").tolist()
        self.launch, self.stream, self.wait = launch.tolist(), stream.tolist(), wait.tolist()
        self.before, self.awaited = causes.before.tolist(), causes.awaited.tolist()
        self.duration = effect.duration.tolist()
        self.gone = effect.is_gone.tolist()
        self.start, self.end = gpu.start.tolist(), gpu.end.tolist()
        self.cause = [BY_NOTHING] * len(self.start)
        self.met: dict[int, int] = {}
        """When all ranks were there, by event."""
        self.events = np.flatnonzero((gpu.start >= span.begin) & (gpu.start < span.end))
        self._inside = np.flatnonzero(self._launched_inside()).tolist()
        self._host_end = int(model.host_time(effect, np.array([span.host_end]))[0])

    def _launched_inside(self) -> Mask:
        """Return which events were launched in the span: with the last of them it ends."""
        recorded, causes, span = self.model.graph.recorded, self.model.graph.causes, self.model.span
        at = np.where(recorded.gpu.call >= 0, causes.call_start, recorded.gpu.start)
        inside: Mask = (at >= span.begin) & (at < span.host_end)
        if self.model.is_whole:
            inside = np.ones(len(at), np.bool_)
        return inside

    def host_end(self) -> int:
        """Return when the host is done."""
        return self._host_end + self.offset[len(self.sync_recorded)]

    def last_event(self) -> int:
        """Return the event that ends last of those launched in the span, or ``NONE``."""
        return max(self._inside, key=self.end.__getitem__, default=NONE)

    def finish(self) -> int:
        """Return when the span ends."""
        last = self.last_event()
        return max(self.host_end(), self.end[last]) if last >= 0 else self.host_end()

    def return_from(self, place: int) -> None:
        """Let the call with a synchronization return."""
        offset = self.offset[place]
        time = self.sync_start[place] + offset + self.sync_own[place]
        event = self.sync_event[place]
        if event >= 0:
            free = self.end[event] + self.sync_back[place]
            if free > time:
                time = free
                self.waited[place] = True
        self.offset[place + 1] = time - self.sync_end[place]

    def begin(self, event: int) -> None:
        """Let an event start and, unless it is a collective of several ranks, end."""
        if self.gone[event]:
            before = self.before[event]
            self.start[event] = self.end[event] = self.end[before] if before >= 0 else LONG_AGO
            return
        time, cause = LONG_AGO, BY_NOTHING
        if self.launched[event] > LONG_AGO:
            time = self.launched[event] + self.offset[self.after[event]] + self.launch[event]
            cause = BY_LAUNCH
        before = self.before[event]
        if before >= 0 and self.end[before] + self.stream[event] >= time:
            time, cause = self.end[before] + self.stream[event], BY_STREAM
        awaited = self.awaited[event]
        if awaited >= 0 and self.end[awaited] + self.wait[event] > time:
            time, cause = self.end[awaited] + self.wait[event], BY_WAIT
        if cause != BY_NOTHING:
            self.start[event] = time
            self.cause[event] = cause
        self.end[event] = self.start[event] + self.duration[event]


def timed(
    models: Sequence[CaptureModel], effects: Sequence[Effect], scenario: Scenario, meetings: Meetings
) -> list[Timed]:
    """Return the times of all ranks."""
    ranks = [Timed(model, effect, scenario) for model, effect in zip(models, effects, strict=True)]
    meets = {member for meeting in meetings.all for member in meeting.members}
    for action, rank, place in _actions(ranks, meetings):
        if action == START:
            ranks[rank].begin(place)
            if (rank, place) in meets:
                ranks[rank].met[place] = ranks[rank].start[place]
        elif action == SYNC:
            ranks[rank].return_from(place)
        else:
            _meet(ranks, meetings, meetings.all[place], scenario)
    return ranks


def _meet(ranks: list[Timed], meetings: Meetings, meeting: Meeting, scenario: Scenario) -> None:
    """End a collective on all ranks: its transfer begins when the last is there."""
    shift = meetings.shift
    there = max(ranks[rank].start[event] + shift[rank] for rank, event in meeting.members)
    began = max(int(ranks[rank].model.graph.recorded.gpu.start[event]) + shift[rank] for rank, event in meeting.members)
    for rank, event in meeting.members:
        mine = ranks[rank]
        gpu = mine.model.graph.recorded.gpu
        recorded = int(gpu.end[event]) + shift[rank] - began
        length = int(gpu.end[event] - gpu.start[event])
        by = mine.duration[event] / length if length else 1.0
        transfer = recorded if by == 1 and scenario.bandwidth == 1 else round(recorded * by / scenario.bandwidth)
        start = mine.start[event] if scenario.ranks_are_equal else max(there - shift[rank], mine.start[event])
        if recorded < 0:  # clocks disagree by more than the transfer took
            start, transfer = mine.start[event], mine.duration[event]
        mine.met[event] = start
        mine.end[event] = start + transfer


def _actions(ranks: list[Timed], meetings: Meetings) -> list[tuple[int, int, int]]:
    """Return what happens, in the order of the recorded times on the common clock."""
    parts: list[tuple[Numbers, Any, int, Numbers]] = []
    for number, rank in enumerate(ranks):
        shift = meetings.shift[number]
        gpu = rank.model.graph.recorded.gpu
        parts.append((gpu.start[rank.events] + shift, START, number, rank.events))
        parts.append((np.array(rank.sync_recorded, np.int64) + shift, SYNC, number, np.arange(len(rank.sync_recorded))))
    if meetings.all:
        began = [
            max(
                int(ranks[rank].model.graph.recorded.gpu.start[event]) + meetings.shift[rank]
                for rank, event in meeting.members
            )
            for meeting in meetings.all
        ]
        parts.append((np.array(began, np.int64), TOGETHER, 0, np.arange(len(began))))
    time = np.concatenate([part[0] for part in parts])
    action = np.concatenate([np.full(len(part[0]), part[1]) for part in parts])
    rank_of = np.concatenate([np.full(len(part[0]), part[2]) for part in parts])
    place = np.concatenate([part[3] for part in parts])
    order = np.lexsort((place, action, time))
    return list(zip(action[order].tolist(), rank_of[order].tolist(), place[order].tolist(), strict=True))
