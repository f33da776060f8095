"""The time span of rows and their longest duration, which show that none of their times is impossible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Extent(NamedTuple):
    """Number of rows, first and last start, and longest duration, in ns; None if there are no rows."""

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
