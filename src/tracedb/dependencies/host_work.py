"""What a thread of the host was doing at each time: its outermost operator, and the innermost range around it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tracedb.dependencies.recorded_arrays import NONE, Activity, Numbers, Recorded


class Work(NamedTuple):
    """Changes of what a thread does, by time; valid until the next."""

    since: Numbers
    op: Numbers
    """Operator (its number in the table), or ``NONE``."""
    range: Numbers


def of_thread(recorded: Recorded, thread: int) -> Work:
    """Return what a thread was doing."""
    op_since, op = _changes(_of(recorded.ops, thread))
    range_since, inner = _changes(_of(recorded.ranges, thread))
    since = np.unique(np.concatenate([op_since, range_since]))
    return Work(since, _at(op_since, op, since), _at(range_since, inner, since))


def pieces(work: Work, start: int, end: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return the starts of the pieces of a span of host work, with the operator and the range of each."""
    first = int(np.searchsorted(work.since, start, side="right"))
    last = int(np.searchsorted(work.since, end, side="left"))
    starts = np.append(start, work.since[first:last])
    places = np.append(first - 1, np.arange(first, last))
    if not len(work.since):
        return starts, np.full(1, NONE), np.full(1, NONE)
    known = places >= 0
    return starts, np.where(known, work.op[places], NONE), np.where(known, work.range[places], NONE)


def _of(activity: Activity, thread: int) -> Activity:
    mine = activity.thread == thread
    return Activity(*(column[mine] for column in activity))


def _changes(activity: Activity) -> tuple[Numbers, Numbers]:
    """Return when the innermost of nested spans changes, and to which; several changes at one time are the last."""
    count = len(activity.number)
    time = np.concatenate([activity.start, activity.end])
    value = np.concatenate([activity.number, activity.parent])
    # Of those at one time, ends come before starts; the outermost end and the innermost start come last.
    is_start = np.repeat([1, 0], count)
    rank = np.concatenate([activity.depth, -activity.depth])
    order = np.lexsort((rank, is_start, time))
    time, value = time[order], value[order]
    is_last = np.ones(len(time), np.bool_)
    is_last[:-1] = time[1:] != time[:-1]
    return time[is_last], value[is_last]


def _at(since: Numbers, value: Numbers, times: Numbers) -> Numbers:
    if not len(since):
        return np.full(len(times), NONE)
    place = np.searchsorted(since, times, side="right") - 1
    return np.where(place >= 0, value[place], NONE)
