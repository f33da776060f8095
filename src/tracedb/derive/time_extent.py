"""From when to when rows lie, and how long the longest lasts: what tells that none of their times is impossible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Extent(NamedTuple):
    """How many rows, their first and last start, and the longest duration, in ns; None where there are no rows."""

    rows: int
    first: int | None
    last: int | None
    longest: int | None


def extent(times: Sequence[tuple[int, int]]) -> Extent:
    """Return the extent of starts and durations."""
    if not times:
        return Extent(0, None, None, None)
    starts, durations = zip(*times, strict=True)
    return Extent(len(times), min(starts), max(starts), max(durations))
