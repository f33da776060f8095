"""Bindings of the compiled nesting, a small C library that nests ranges and finds the innermost range around each call.

It gives the same result as the SQL of ``nesting`` in a tenth of the time or less, if the ranges fit in memory and no
two of a thread cross. Without the library, or with TRACEDB_READER=python in the environment, SQL does everything.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tracedb.ingester import native_library

LIBRARY = Path(__file__).with_name("native") / "libtracedb_nest.so"
INTERFACE = 1
FOUND, CROSSING, OUT_OF_MEMORY = range(3)
NOTHING = np.iinfo(np.int64).min
_int64, _pointer = ctypes.c_int64, ctypes.c_void_p
FUNCTIONS: tuple[native_library.Function, ...] = (
    ("tracedb_nest", ctypes.c_int, (_int64, *[_pointer] * 4, _int64, *[_pointer] * 2, _int64, *[_pointer] * 4)),
)
Column = npt.NDArray[np.int64]
Depths = npt.NDArray[np.int32]
Places = npt.NDArray[np.intp]


def library() -> ctypes.CDLL | None:
    """Return the library; None if it is missing or does not fit, or if the environment asks for Python."""
    return native_library.library(LIBRARY, ("tracedb_nest_interface", INTERFACE), FUNCTIONS)


class Spans(NamedTuple):
    """Ranges or calls, sorted by lane (thread) and start; times in ns."""

    lane: Column
    start: Column
    end: Column


class Around(NamedTuple):
    """The innermost range around every range and around every call; ``NOTHING`` if there is none."""

    parent: Column
    around: Column


def nest(ranges: Spans, items: Column, calls: Spans, slack_ns: int = 0, depth: Depths | None = None) -> Around | None:
    """Find them with the library; None if it is missing, or if two ranges of a lane cross.

    Ranges are sorted by lane, start, end (latest first); among equal ones the earlier contains the later. ``items`` are
    the numbers of the ranges in the answer. Lanes, starts, ends and items are contiguous. A call or a child may end
    ``slack_ns`` after its range. Parents overwrite the lanes of the ranges; ``depth`` is filled if given.
    Raises MemoryError.
    """
    found_library = library()
    if found_library is None:
        return None
    found = Around(ranges.lane, np.empty_like(calls.start))
    code = found_library.tracedb_nest(
        *(len(items), *(column.ctypes.data for column in (*ranges, items)), slack_ns),
        *(found.parent.ctypes.data, None if depth is None else depth.ctypes.data),
        *(len(calls.start), *(column.ctypes.data for column in (*calls, found.around))),
    )
    if code == OUT_OF_MEMORY:
        raise MemoryError
    return None if code == CROSSING else found


class Ranges(NamedTuple):
    """Ranges on lanes, in any order; times in ns."""

    lane: Column
    start: Column
    end: Column
    item: Column


class Nested(NamedTuple):
    """Ranges ordered by lane and start, with the nearest range around each, ``NOTHING`` if there is none."""

    ranges: Ranges
    parent: Column
    depth: Depths

    def around(self, start: Column, end: Column) -> Iterator[tuple[int, Places, Column]]:
        """Yield for each lane the indices of the calls that a range encloses there, and those ranges' items.

        A call may be enclosed on several lanes. A range that ends when a call begins does not enclose it, and an empty
        range encloses nothing.
        """
        order = np.argsort(start, kind="stable")
        starts, ends = start[order], end[order]
        lanes, firsts = np.unique(self.ranges.lane, return_index=True)
        bounds = np.append(firsts, len(self.ranges.lane)).tolist()
        for place, lane in enumerate(lanes.tolist()):
            own = slice(bounds[place], bounds[place + 1])
            spans = Spans(self.ranges.lane[own].copy(), self.ranges.start[own], self.ranges.end[own])
            called = slice(*np.searchsorted(starts, (spans.start[0], spans.end.max())).tolist())
            calls = Spans(np.full(called.stop - called.start, lane), starts[called], ends[called])
            found = nest(spans, self.ranges.item[own], calls)
            assert found is not None  # these ranges have been nested before
            is_found = found.around != NOTHING
            yield lane, order[called][is_found], found.around[is_found]


def nested(ranges: Ranges) -> Nested | None:
    """Find parent and depth of every range; None without the library, or if two ranges of a lane cross.

    Of equal ranges, the one with the lower item is the outer one. A range that ends when another begins does not
    contain it, and an empty range contains nothing.
    """
    if library() is None:
        return None
    order = np.lexsort((ranges.item, -ranges.end, ranges.start, ranges.lane))
    by_start = Ranges(*(np.ascontiguousarray(column[order]) for column in ranges))
    nobody = np.empty(0, np.int64)
    depth = np.empty(len(order), np.int32)
    spans = Spans(by_start.lane.copy(), by_start.start, by_start.end)
    found = nest(spans, by_start.item, Spans(nobody, nobody, nobody), depth=depth)
    return None if found is None else Nested(by_start, found.parent, depth)
