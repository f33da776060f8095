"""The host's part: which thread the step depends on at each time, and where that thread waits for the GPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tracedb.dependencies.causes import LONG_AGO, Causes, last_ended
from tracedb.dependencies.recorded_arrays import COPY, NONE, SYNCHRONIZE, Calls, Gpu, Numbers, Recorded, places_of_calls

RETURNED_NS = 2_000
"""GPU clocks are aligned to the host's to about this: an event may seem to end after the call that waited for it."""

LONG_COPY_NS = 20_000
"""A call that runs through most of a copy of this length waits for it, rather than happening to take as long."""


class Blocked(NamedTuple):
    """Calls that wait for GPU work, by end."""

    call: Numbers
    start: Numbers
    end: Numbers
    event: Numbers
    """The GPU event that was waited for."""
    released: Numbers
    """When it ended."""


class Host(NamedTuple):
    """The thread that the step depends on, by time, and its waiting."""

    begin: Numbers
    """Begin of each stretch, ascending; a stretch ends where the next begins."""
    thread: Numbers
    blocked: Blocked
    """Calls that waited."""
    synchronized: Blocked
    """These, and calls that found their work done."""


def find(recorded: Recorded, causes: Causes) -> Host:
    """Return the host's part in a capture."""
    begin, thread = _main_line(recorded)
    calls = _synchronizing(recorded, causes, begin, thread)
    waited = calls.released > calls.start
    return Host(begin, thread, Blocked(*(column[waited] for column in calls)), calls)


def _main_line(recorded: Recorded) -> tuple[Numbers, Numbers]:
    """Return which thread the step depends on: the one that launches, and while it does nothing, the one that does.

    Only threads that launch GPU work count. Going back in time, a thread is left where another was busy later than it.
    """
    calls = recorded.calls
    used = recorded.gpu.call[recorded.gpu.call >= 0]
    threads = np.unique(calls.thread[used])
    if not len(threads):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    busy = {int(thread): _busy(recorded, int(thread)) for thread in threads}
    if len(threads) == 1:
        return np.array([LONG_AGO]), threads
    at = max(busy, key=lambda thread: int(busy[thread][1][-1]))
    contested = {thread: _contested(busy, thread) for thread in busy}
    begins, order, time = [], [], np.iinfo(np.int64).max
    while True:
        starts, ends = busy[at]
        gaps, others = contested[at]
        # The last idle time of this thread before now in which another was busy.
        place = int(np.searchsorted(gaps, time, side="left")) - 1
        if place < 0:
            begins.append(LONG_AGO)
            order.append(at)
            break
        other = int(others[place])
        starts, ends = busy[other]
        following = int(gaps[place])
        last = int(np.searchsorted(starts, following, side="left")) - 1
        switch = min(int(ends[last]), following)
        begins.append(switch)
        order.append(at)
        at, time = other, switch
    return np.array(begins[::-1]), np.array(order[::-1])


def _busy(recorded: Recorded, thread: int) -> tuple[Numbers, Numbers]:
    """Return the merged spans in which a thread ran operators or calls."""
    parts = [
        (item.start[item.thread == thread], item.end[item.thread == thread]) for item in (recorded.ops, recorded.calls)
    ]
    start, end = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    return union(start, end)


def union(start: Numbers, end: Numbers) -> tuple[Numbers, Numbers]:
    """Return starts and ends of the union of spans, by start; spans that touch become one."""
    order = np.argsort(start, kind="stable")
    start, latest = start[order], np.maximum.accumulate(end[order])
    is_new = np.ones(len(start), np.bool_)
    is_new[1:] = start[1:] > latest[:-1]
    first = np.flatnonzero(is_new)
    return start[first], latest[np.append(first, len(start))[1:] - 1]


def _contested(busy: dict[int, tuple[Numbers, Numbers]], thread: int) -> tuple[Numbers, Numbers]:
    """Return the ends of idle times of a thread in which another was busy, and which was so last."""
    starts, ends = busy[thread]
    since = np.concatenate([[LONG_AGO], ends])
    until = np.concatenate([starts, [np.iinfo(np.int64).max]])
    latest, who = np.full(len(since), LONG_AGO), np.full(len(since), NONE)
    for other, (begins, stops) in busy.items():
        if other == thread:
            continue
        place = np.searchsorted(begins, until, side="left") - 1
        end = np.where(place >= 0, np.minimum(stops[place], until), LONG_AGO)
        better = (end > since) & (end > latest)
        latest[better], who[better] = end[better], other
    found = np.flatnonzero(who != NONE)
    return until[found], who[found]


def _synchronizing(recorded: Recorded, causes: Causes, begin: Numbers, thread: Numbers) -> Blocked:
    """Return the calls on the main line that wait for GPU work."""
    calls, gpu = recorded.calls, recorded.gpu
    found = [_own_copies(calls, gpu), _synchronized(recorded, causes)]
    call, event = (np.concatenate([part[side] for part in found]).astype(np.int64) for side in (0, 1))
    if len(begin) and len(call):
        place = np.searchsorted(begin, calls.end[call], side="right") - 1
        is_on_line = thread[np.maximum(place, 0)] == calls.thread[call]
        call, event = call[is_on_line], event[is_on_line]
    if len(call):
        is_before = gpu.start[event] < calls.end[call]
        call, event = call[is_before], event[is_before]
    released = np.minimum(gpu.end[event], calls.end[call])
    order = np.lexsort((released, calls.end[call]))
    call, event, released = call[order], event[order], released[order]
    return Blocked(call, calls.start[call], calls.end[call], event, released)


def _own_copies(calls: Calls, gpu: Gpu) -> tuple[Numbers, Numbers]:
    """Return copies whose call returned only after they had ended, or nearly so."""
    event = np.flatnonzero(gpu.call >= 0)
    call = gpu.call[event]
    # A copy from pageable memory returns when the last part of it is staged, shortly before the copy ends.
    length = gpu.end[event] - gpu.start[event]
    is_most = (length > LONG_COPY_NS) & (10 * (calls.end[call] - gpu.start[event]) >= 9 * length)
    is_own = (calls.kind[call] == COPY) & ((gpu.end[event] <= calls.end[call] + RETURNED_NS) | is_most)
    return call[is_own], event[is_own]


def _synchronized(recorded: Recorded, causes: Causes) -> tuple[Numbers, Numbers]:
    """Return synchronizing calls and the event each waited for: the last to end of those launched before it."""
    calls, gpu, waits = recorded.calls, recorded.gpu, recorded.waits
    wanted = np.flatnonzero(calls.kind == SYNCHRONIZE)
    if not len(wanted) or not len(gpu.start):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    stream = np.full(len(calls.start), NONE)
    before = calls.start.copy()
    of_host = np.flatnonzero(~waits.is_stream_wait)
    call, record = (places_of_calls(calls, column[of_host]) for column in (waits.correlation, waits.record))
    known = call >= 0
    has_stream = np.where(waits.waited_stream[of_host] >= 0, waits.waited_stream[of_host], waits.stream[of_host])
    stream[call[known]] = has_stream[known]
    told = known & (record >= 0)
    before[call[told]] = calls.start[record[told]]
    launched = np.where(causes.call_start > LONG_AGO, causes.call_start, gpu.start)
    order = np.argsort(launched, kind="stable")
    found = np.full(len(wanted), NONE)
    for number in np.unique(stream[wanted]).tolist():
        mine = np.flatnonzero(stream[wanted] == number)
        lane = recorded.lane_streams[gpu.lane[order]]
        events = order if number < 0 else order[lane == number]
        if not len(events):
            continue
        found[mine] = _last_before(gpu, events, launched[events], before[wanted[mine]], calls.end[wanted[mine]])
    return wanted[found >= 0], found[found >= 0]


def _last_before(gpu: Gpu, events: Numbers, launched: Numbers, before: Numbers, end: Numbers) -> Numbers:
    """Return the last to end of the events launched before a time, if it had ended by the end of the call.

    Otherwise the call waited for less: for what ended last before it returned.
    """
    count = np.searchsorted(launched, before, side="right")
    holder = events[last_ended(gpu.end[events])]
    found = np.where(count > 0, holder[np.maximum(count - 1, 0)], NONE)
    too_late = (found >= 0) & (gpu.end[found] > end + RETURNED_NS)
    if too_late.any():
        by_end = events[np.argsort(gpu.end[events], kind="stable")]
        place = np.searchsorted(gpu.end[by_end], end[too_late], side="right") - 1
        found[too_late] = np.where(place >= 0, by_end[np.maximum(place, 0)], NONE)
    return found
