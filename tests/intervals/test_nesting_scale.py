"""Ranges that cross many others on their thread: near-linear time, and the same result as trying every pair."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from intervals.test_nesting import Call, Item, check
from support.loading import ask, ingest
from support.traces import annotation, launched, write
from tracedb.errors import ReadError
from tracedb.intervals import crossing_ranges, nesting

RANGES = 100_000
ITEMS = ["item_id", "lane_a", "lane_b", "start_ns", "end_ns", "tie"]
CALLS = ["call_id", "lane_a", "lane_b", "start_ns", "end_ns"]
SECONDS = 3


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": 1}) as opened:
        yield opened


def groups(number: int) -> tuple[int, int]:
    """Ten ranges inside each other, and then the next ten."""
    begin = number // 10 * 1000
    return begin + number % 10 * 10, begin + 990 - number % 10 * 10


def stairs(number: int) -> tuple[int, int]:
    """Each crosses the five that follow."""
    return number * 1000, number * 1000 + 5500


def stairs_in_stairs(number: int) -> tuple[int, int]:
    """Each contains the next one, and every tenth crosses the one that begins ten later."""
    begin, step = divmod(number, 10)
    return begin * 1000 + step * 10, begin * 1000 + 1500 - step * 10


def long_ranges(shape: Callable[[int], tuple[int, int]], around: bool) -> list[tuple[int, int]]:
    ranges = [shape(number) for number in range(RANGES)]
    last = max(end for _, end in ranges)
    middle = ranges[RANGES // 2][0] + 5
    return [*ranges, (505, middle), (middle - 1_500, last - 505), *([(-5, last + 5)] if around else [])]


@pytest.mark.parametrize("around", [True, False])
@pytest.mark.parametrize("shape", [groups, stairs, stairs_in_stairs])
def test_a_long_range_that_crosses_many(
    connection: duckdb.DuckDBPyConnection, shape: Callable[[int], tuple[int, int]], around: bool
) -> None:
    ranges = np.array(long_ranges(shape, around), np.int64)
    zeros, numbers = np.zeros(len(ranges), np.int64), np.arange(len(ranges))
    items = pa.table([numbers, zeros, zeros, *ranges.T, numbers], ITEMS)
    called = pa.table([numbers, zeros, zeros, ranges[:, 0] + 7, ranges[:, 0] + 8], CALLS)
    connection.register("items", items)
    connection.register("called", called)
    begun = time.process_time()
    assert nesting.nest(connection, "FROM items")
    nesting.enclose(connection, "FROM called", crossing=True)
    assert time.process_time() - begun < SECONDS
    for call in random.Random(1).sample(range(RANGES), 20):
        at = ranges[call, 0] + 7
        inside = np.flatnonzero((ranges[:, 0] <= at) & (at + 1 <= ranges[:, 1]))
        found = connection.execute(
            """WITH RECURSIVE chain AS (
                SELECT item_id FROM call_out WHERE call_id = ?
                UNION ALL
                SELECT n.parent_id FROM chain AS c INNER JOIN nest_out AS n ON n.item_id = c.item_id
                WHERE n.parent_id IS NOT NULL
            ) SELECT DISTINCT item_id FROM chain ORDER BY item_id""",
            [call],
        ).fetchall()
        assert [item for (item,) in found] == inside.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_random_ranges_against_all_pairs(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    source = random.Random(seed)
    span, longest = source.choice([(100, 40), (400, 30), (2000, 500)])
    items, called = [], []
    for _ in range(150):
        start = source.randrange(span)
        items.append(Item(source.randrange(2), start, start + source.randrange(longest), source.randrange(3)))
        start = source.randrange(span)
        called.append(Call(source.randrange(2), start, start + source.randrange(6)))
    check(connection, items, called)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 100])
def test_the_last_value_that_is_great_enough(count: int) -> None:
    source = np.random.default_rng(count)
    values = source.integers(0, 9, count)
    before = source.integers(0, count + 1, 50)
    least = source.integers(-1, 11, 50)
    expected = [
        max((place for place in range(bound) if values[place] >= value), default=-1)
        for bound, value in zip(before.tolist(), least.tolist(), strict=True)
    ]
    assert crossing_ranges.last(values, before, least).tolist() == expected


def test_ranges_as_deep_as_there_are_many(tmp_path: Path) -> None:
    """As pushes without a pop: views over ranges do not build every pair of them."""
    depth = 1_500
    ranges = [annotation(number, 2 * depth - 2 * number, f"r{number % 3}") for number in range(depth)]
    ingest(write(tmp_path / "x.json", [*ranges, *launched(1)]), db=tmp_path / "db")
    assert ask(tmp_path / "db", "SELECT max(depth) FROM main.annotation") == [(depth - 1,)]
    ((pairs,),) = ask(tmp_path / "db", "SELECT count(*) FROM v1._annotation_ancestor")
    assert 0 < pairs <= depth
    held = ask(tmp_path / "db", "SELECT sum(gpu_ops) FROM v1.nvtx_ranges WHERE rule = 'thread'")
    assert held == [(pairs,)]


def test_ranges_that_are_parents_of_each_other_end_in_an_error() -> None:
    """As numbers that are not unique can make them: the search for the outermost range would not end."""
    numbers = np.array([0, 0], np.int64)
    opened = crossing_ranges.Opened(numbers, numbers, numbers + 5, np.array([1, 0], np.int64), np.array([False, False]))
    with pytest.raises(ReadError, match="must be unique"):
        crossing_ranges.link(opened, 0)


def test_a_chain_as_deep_as_there_are_ranges_is_followed_to_its_end() -> None:
    count = 1 << 10
    places = np.arange(count, dtype=np.int64)
    nothing = np.zeros(count, np.int64)
    opened = crossing_ranges.Opened(nothing, places, 10 * count - places, places - 1, nothing.astype(bool))
    assert crossing_ranges.link(opened, 0).depth.tolist() == list(range(count))
