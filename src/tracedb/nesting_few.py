"""Nesting of few ranges, and which of them enclose few calls, in plain Python.

As ``nesting`` finds them: for a small capture planning its statements would take longer than all else together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

MOST = 2_000
"""So many ranges and calls are few."""


class Range(NamedTuple):
    """A range on a thread (lane)."""

    lane: int
    start_ns: int
    end_ns: int
    number: int


class Call(NamedTuple):
    """A call, looked for on every thread, and the number of what it launched."""

    start_ns: int
    end_ns: int
    number: int


class Nested(NamedTuple):
    """A range with the nearest one around it."""

    item: Range
    parent: Range | None
    depth: int


def nest(ranges: Sequence[Range]) -> list[Nested] | None:
    """Return every range with its parent and depth, thread by thread in order; None where two of a thread cross.

    Of equal ranges that with the lower number is the outer. A range that ends when another begins does not contain it,
    and an empty one contains nothing.
    """
    found = []
    open_now: list[Range] = []
    for item in sorted(ranges, key=lambda item: (item.lane, item.start_ns, -item.end_ns, item.number)):
        while open_now and (open_now[-1].lane != item.lane or open_now[-1].end_ns <= item.start_ns):
            open_now.pop()
        if open_now and open_now[-1].end_ns < item.end_ns:
            return None
        found.append(Nested(item, open_now[-1] if open_now else None, len(open_now)))
        if item.end_ns > item.start_ns:
            open_now.append(item)
    return found


def enclose(nested: Sequence[Nested], calls: Sequence[Call]) -> list[tuple[int, Range]]:
    """Return the number of each call with the innermost range around it, on each thread that has one."""
    by_lane: dict[int, list[Range]] = defaultdict(list)
    for found in nested:
        if found.item.end_ns > found.item.start_ns:
            by_lane[found.item.lane].append(found.item)
    ordered = sorted(calls)
    return [pair for ranges in by_lane.values() for pair in _enclose_on(ranges, ordered)]


def _enclose_on(ranges: Sequence[Range], calls: Sequence[Call]) -> list[tuple[int, Range]]:
    """Go through the ranges of a thread and the calls, both in the order of their starts."""
    found = []
    open_now: list[Range] = []
    following = 0
    for call in calls:
        while following < len(ranges) and ranges[following].start_ns <= call.start_ns:
            while open_now and open_now[-1].end_ns <= ranges[following].start_ns:
                open_now.pop()
            open_now.append(ranges[following])
            following += 1
        while open_now and open_now[-1].end_ns <= call.start_ns:
            open_now.pop()
        around = next((item for item in reversed(open_now) if item.end_ns >= call.end_ns), None)
        if around is not None:
            found.append((call.number, around))
    return found
