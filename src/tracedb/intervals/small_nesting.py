"""Nesting of few ranges in plain Python.

As ``nesting`` finds it: for a small capture planning its statements would take longer than all else together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MOST = 5_000
"""So many ranges are few: of more the statements take less time."""


class Range(NamedTuple):
    """A range on a thread (lane)."""

    lane: int
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
