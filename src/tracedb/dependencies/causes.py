"""What each GPU event started after: its launch, the event before it on its stream, or one that its stream awaited."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tracedb.dependencies.recorded_arrays import NONE, STREAM_WAIT, Calls, Gpu, Mask, Numbers, Recorded, places_of_calls

BY_NOTHING, BY_LAUNCH, BY_STREAM, BY_WAIT = range(4)
"""Cause of a start: unknown, the launch, the event before on the stream, an awaited event of another stream."""
LONG_AGO = np.iinfo(np.int64).min // 4
LONG_GAP_NS = 10_000
"""Without its launch, an event that starts later than this after the one before it waited for something unknown."""
EXPLAINED_NS = 1_000
"""An inferred wait must explain at least this much of the time before a start."""
SOON_NS = 10_000
"""What starts this soon after work of another stream, and later than everything else explains, has waited for it, even
if no call says that its stream waits."""


class Causes(NamedTuple):
    """For each GPU event what its start depends on, and which of these came last."""

    before: Numbers
    """Event before it on its stream: the one that ended last, or ``NONE``."""
    before_end: Numbers
    """When that ended, or let this one start; ``LONG_AGO`` if there is none."""
    awaited: Numbers
    """Event of another stream that its stream awaited, or ``NONE``."""
    call_start: Numbers
    """Start of its launch, ``LONG_AGO`` if not recorded."""
    launched: Numbers
    """When its launch ended, but not after its own start; ``LONG_AGO`` if not recorded."""
    latency: int
    """Usual time from the start of a launch to the start of its work on an empty stream, in ns."""
    gap: int
    """Usual time between two events of a stream that is never empty, in ns."""
    cause: Numbers
    since: Numbers
    """When the cause was there: the event's own work or waiting begins."""
    slack: Numbers
    """How much earlier the next dependency was fulfilled, in ns; ``NONE`` if there is no other."""
    is_unknown: Mask
    """Whether the launch is not recorded and nothing else explains when the event started."""
    running: Numbers
    """Of the earlier events of the device the one that ends last, if ``is_unknown``; ``NONE`` if there is none."""


def find(recorded: Recorded) -> Causes:
    """Return the causes of all GPU events of a capture."""
    gpu, calls = recorded.gpu, recorded.calls
    call_start, call_end = _launches(gpu, calls)
    before, before_end = _before(gpu)
    launched = np.where(call_start > LONG_AGO, np.minimum(call_end, gpu.start), LONG_AGO)
    latency, gap = _usual(gpu, before_end, call_start, call_end)
    by_launch = np.where(call_start > LONG_AGO, np.minimum(call_start + latency, gpu.start), LONG_AGO)
    by_stream = np.where(before >= 0, np.minimum(before_end + gap, gpu.start), LONG_AGO)
    awaited, unexplained = _awaited(recorded, call_start)
    awaited = _inferred(gpu, awaited, unexplained, np.maximum(by_launch, by_stream))
    by_wait = np.where(awaited >= 0, np.minimum(gpu.end[awaited] + gap, gpu.start), LONG_AGO)
    ready = np.stack([np.full(len(gpu.start), LONG_AGO), by_launch, by_stream, by_wait])
    # On equal terms the work on a stream, then a wait, comes before the launch: the stream was not empty.
    cause = np.argmax(ready[[0, 2, 3, 1]], axis=0)
    cause = np.array([BY_NOTHING, BY_STREAM, BY_WAIT, BY_LAUNCH])[cause]
    since = np.choose(cause, [gpu.start, launched, before_end, np.minimum(gpu.end[awaited], gpu.start)])
    ordered = np.sort(ready, axis=0)
    slack = np.where(ordered[-2] > LONG_AGO, ordered[-1] - ordered[-2], NONE)
    is_unknown = (call_start == LONG_AGO) & ((cause == BY_NOTHING) | (gpu.start - since > LONG_GAP_NS))
    running = np.where(is_unknown, _running(gpu), NONE) if is_unknown.any() else np.full(len(gpu.start), NONE)
    return Causes(
        before, before_end, awaited, call_start, launched, latency, gap, cause, since, slack, is_unknown, running
    )


def _running(gpu: Gpu) -> Numbers:
    """Return for each event the one that ends last of those that started before it on its device, or ``NONE``."""
    running = np.full(len(gpu.start), NONE)
    for device in np.unique(gpu.device):
        mine = np.flatnonzero(gpu.device == device)
        running[mine[1:]] = mine[last_ended(gpu.end[mine])[:-1]]
    return running


def _launches(gpu: Gpu, calls: Calls) -> tuple[Numbers, Numbers]:
    """Return start and end of each event's launch; an event before its own launch has none."""
    if not len(calls.start):
        nothing = np.full(len(gpu.start), LONG_AGO)
        return nothing, nothing
    start, end = calls.start[gpu.call], calls.end[gpu.call]
    there = (gpu.call >= 0) & (start <= gpu.start)
    return np.where(there, start, LONG_AGO), np.where(there, end, LONG_AGO)


def lanes(gpu: Gpu) -> list[Numbers]:
    """Return the places of each stream's events, by start."""
    if not len(gpu.lane):
        return []
    order = np.argsort(gpu.lane.astype(np.int32), kind="stable")
    return np.split(order, np.flatnonzero(np.diff(gpu.lane[order])) + 1)


def last_ended(ends: Numbers) -> Numbers:
    """Return for each place the place up to it, inclusive, with the latest end."""
    latest = np.maximum.accumulate(ends)
    is_new = np.ones(len(ends), np.bool_)
    is_new[1:] = ends[1:] >= latest[:-1]
    return np.maximum.accumulate(np.where(is_new, np.arange(len(ends)), 0))


def _before(gpu: Gpu) -> tuple[Numbers, Numbers]:
    before = np.full(len(gpu.start), NONE)
    for mine in lanes(gpu):
        before[mine[1:]] = mine[last_ended(gpu.end[mine])[:-1]]
    return before, np.where(before >= 0, np.minimum(gpu.end[before], gpu.start), LONG_AGO)


def _usual(gpu: Gpu, before_end: Numbers, call_start: Numbers, call_end: Numbers) -> tuple[int, int]:
    """Return the usual latency of a launch on an empty stream, and gap on one with work waiting, in ns."""
    is_first = np.ones(len(gpu.start), np.bool_)
    is_first[1:] = gpu.call[1:] != gpu.call[:-1]  # of the events that one call launched
    known = (call_start > LONG_AGO) & is_first
    on_empty = known & (before_end < call_start)
    queued = known & (before_end > call_end + 5_000)
    latencies, gaps = (gpu.start - call_start)[on_empty], (gpu.start - before_end)[queued]
    latency = int(np.percentile(latencies, 25)) if len(latencies) else 0
    return latency, int(np.percentile(gaps, 25)) if len(gaps) else 0


def _awaited(recorded: Recorded, call_start: Numbers) -> tuple[Numbers, Mask]:
    """Return the event that each one's stream awaited before it, and where a wait's target is not recorded."""
    gpu, calls, waits = recorded.gpu, recorded.calls, recorded.waits
    awaited = np.full(len(gpu.start), NONE)
    chosen = np.flatnonzero(waits.is_stream_wait)
    call = places_of_calls(calls, waits.correlation[chosen])
    record = places_of_calls(calls, waits.record[chosen])
    at = np.where(call >= 0, calls.start[call], waits.start[chosen]) if len(calls.start) else waits.start[chosen]
    recorded_at = np.where(record >= 0, calls.start[record], at) if len(calls.start) else at
    by_lane = _by_launch(gpu, call_start)
    told = np.zeros(len(calls.start), np.bool_)
    for place, (stream, target) in enumerate(
        zip(waits.stream[chosen].tolist(), waits.waited_stream[chosen].tolist(), strict=True)
    ):
        if target < 0 or stream < 0:
            continue
        if call[place] >= 0:
            told[call[place]] = True
        ends = [
            mine[holder[count - 1]]
            for number, (mine, launched, holder) in by_lane.items()
            if recorded.lane_streams[number] == target and (count := np.searchsorted(launched, recorded_at[place]))
        ]
        source = max(ends, key=lambda event: int(gpu.end[event]), default=NONE)
        if source < 0:
            continue
        for number, (mine, launched, _) in by_lane.items():
            first = int(np.searchsorted(launched, at[place]))
            if recorded.lane_streams[number] == stream and first < len(mine):
                event = mine[first]
                is_later = awaited[event] < 0 or gpu.end[source] > gpu.end[awaited[event]]
                if is_later and gpu.end[source] <= gpu.start[event]:
                    awaited[event] = source
    unknown = np.sort(calls.start[(calls.kind == STREAM_WAIT) & ~told])
    open_ends = np.zeros(len(gpu.start), np.bool_)
    for mine, launched, _ in by_lane.values():
        seen = np.searchsorted(unknown, launched)
        open_ends[mine[1:]] = np.diff(seen) > 0
        open_ends[mine[:1]] = seen[:1] > 0
    # Branches of a graph await each other without any call.
    shared = np.bincount(gpu.call[gpu.call >= 0], minlength=1)
    open_ends |= (gpu.call >= 0) & (shared[gpu.call] > 1)
    return awaited, open_ends


def _by_launch(gpu: Gpu, call_start: Numbers) -> dict[int, tuple[Numbers, Numbers, Numbers]]:
    """Return of each stream its events in the order of launches, the times of these, and who ended last so far."""
    found = {}
    for mine in lanes(gpu):
        launched = np.where(call_start[mine] > LONG_AGO, call_start[mine], gpu.start[mine])
        order = np.argsort(launched, kind="stable")
        mine = mine[order]
        found[int(gpu.lane[mine[0]])] = (mine, launched[order], last_ended(gpu.end[mine]))
    return found


def _inferred(gpu: Gpu, awaited: Numbers, unexplained: Mask, ready: Numbers) -> Numbers:
    """Return awaited events with those inferred: what ended last, where no other dependency explains a start.

    Profilers record that a stream waited, but most not for what; and some recordings lack such calls.
    """
    late = gpu.start - ready
    doubtful = np.flatnonzero((awaited < 0) & (late > np.where(unexplained, EXPLAINED_NS, SOON_NS)))
    if not len(doubtful):
        return awaited
    order = np.argsort(gpu.end, kind="stable")
    place = np.searchsorted(gpu.end, gpu.start[doubtful], side="right", sorter=order) - 1
    source = order[np.maximum(place, 0)]
    fits = (place >= 0) & (gpu.end[source] > ready[doubtful]) & (source < doubtful)
    fits &= unexplained[doubtful] | (gpu.start[doubtful] - gpu.end[source] <= SOON_NS)
    awaited = awaited.copy()
    awaited[doubtful[fits]] = source[fits]
    return awaited
