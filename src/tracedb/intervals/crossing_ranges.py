"""Find parents of ranges that cross others on their thread, with arrays, in O(n log n).

A parent found by depth may not contain its child: then the parent is the last range opened earlier that does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tracedb.errors import ReadError

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NOWHERE = -1


class Opened(NamedTuple):
    """Ranges as columns, lane by lane, in opening order.

    ``parent``: the index of the parent found by depth, ``NOWHERE`` for none; ``is_odd``: it must be searched.
    """

    lane: Numbers
    start_ns: Numbers
    end_ns: Numbers
    parent: Numbers
    is_odd: Mask


class Linked(NamedTuple):
    """Parents by index, and the facts derived from them.

    A range crosses if it, or one around it, begins inside an earlier range, before that one ends, and ends after it.
    ``crossing`` and ``nested``: the index of the nearest enclosing range that crosses, and that does not.
    """

    parent: Numbers
    depth: Numbers
    is_crossing: Mask
    crossing: Numbers
    nested: Numbers


def link(opened: Opened, slack_ns: int) -> Linked:
    """Return the parent of every range, and which ranges cross; a child may end ``slack_ns`` after its parent."""
    lane, start, end, parent, is_odd = opened
    odd = np.flatnonzero(is_odd)
    full = np.flatnonzero(end > start)  # empty ranges contain nothing
    # Latest end of a parent that does not contain the child, without overflow for times near the least number.
    too_soon = np.maximum(end[odd], np.iinfo(np.int64).min + slack_ns) - slack_ns
    before = np.searchsorted(full, odd)

    found = last(end[full], before, np.maximum(too_soon, start[odd] + 1))
    above = _taken(full, found)
    above[(above != NOWHERE) & (lane[above] != lane[odd])] = NOWHERE
    parent = parent.copy()
    parent[odd] = above

    # Among all ranges opened earlier that end sooner, is the one that ends last still open?
    by_end = full[np.lexsort((end[full], lane[full]))]
    crossed = _taken(by_end, last(-by_end, _sooner(lane[by_end], end[by_end], lane[odd], too_soon), 1 - odd))
    is_crossed = (crossed != NOWHERE) & (lane[crossed] == lane[odd]) & (end[crossed] > start[odd])
    crossed_until = np.full(len(end), np.iinfo(np.int64).min)
    crossed_until[odd[is_crossed]] = end[crossed[is_crossed]]

    depth, until = _along(parent, crossed_until)
    is_crossing = until > start
    return Linked(parent, depth, is_crossing, _nearest(parent, is_crossing), _nearest(parent, ~is_crossing))


def last(values: Numbers, before: Numbers, least: Numbers) -> Numbers:
    """Return for each query the last index before ``before`` whose value is at least ``least``, else ``NOWHERE``."""
    levels = [values]  # each level holds the maximum of pairs of the level below
    while len(levels[-1]) > 1:
        below = levels[-1]
        pairs = len(below) // 2
        odd_one = below[2 * pairs :]
        levels.append(np.concatenate([np.maximum(below[: 2 * pairs : 2], below[1 : 2 * pairs : 2]), odd_one]))

    node = np.full(len(before), NOWHERE, np.int64)
    found_at: list[Numbers] = []
    waiting = np.flatnonzero(before > 0)
    bound = before[waiting]
    for level in levels:  # go up until a whole node before the bound holds such a value
        is_hit = (bound & 1).astype(bool)
        is_hit[is_hit] = level[bound[is_hit] - 1] >= least[waiting[is_hit]]
        found_at.append(waiting[is_hit])
        node[waiting[is_hit]] = bound[is_hit] - 1
        bound >>= 1
        is_left = ~is_hit & (bound > 0)
        waiting, bound = waiting[is_left], bound[is_left]

    going = np.empty(0, np.int64)
    for level, hit in zip(reversed(levels), reversed(found_at), strict=True):  # go down, right child first
        if len(going):
            right = np.minimum(2 * node[going] + 1, len(level) - 1)
            node[going] = np.where(level[right] >= least[going], right, 2 * node[going])
        going = np.concatenate([going, hit])
    return node


def _sooner(lane: Numbers, end: Numbers, of_lane: Numbers, than: Numbers) -> Numbers:
    """Return for each query how many ranges are on an earlier lane, or on its own and end earlier."""
    order = np.lexsort((np.repeat([1, 0], [len(lane), len(of_lane)]), np.r_[end, than], np.r_[lane, of_lane]))
    is_range = order < len(lane)
    counts = np.empty(len(of_lane), np.int64)
    counts[order[~is_range] - len(lane)] = np.cumsum(is_range)[~is_range]
    return counts


def _taken(values: Numbers, places: Numbers) -> Numbers:
    found = np.full(len(places), NOWHERE, np.int64)
    found[places != NOWHERE] = values[places[places != NOWHERE]]
    return found


def _along(parent: Numbers, until: Numbers) -> tuple[Numbers, Numbers]:
    """Return the number of ranges around each, and the greatest ``until`` of the range and those around it.

    Raises ``ReadError`` if ranges are parents of each other, which duplicate numbers can cause.
    """
    depth, until, above = (parent != NOWHERE).astype(np.int64), until.copy(), parent.copy()
    rounds = len(parent).bit_length()  # each round doubles the distance
    while len(going := np.flatnonzero(above != NOWHERE)):
        if rounds < 0:
            raise ReadError("ranges with the same number cannot be nested; the numbers of ranges must be unique")
        rounds -= 1
        to = above[going]
        depth[going], until[going], above[going] = (
            depth[going] + depth[to],
            np.maximum(until[going], until[to]),
            above[to],
        )
    return depth, until


def _nearest(parent: Numbers, is_wanted: Mask) -> Numbers:
    """Return the index of the nearest wanted range around each."""
    above = parent.copy()
    while True:
        going = np.flatnonzero(above != NOWHERE)
        going = going[~is_wanted[above[going]]]
        if not len(going):
            return above
        above[going] = above[above[going]]
