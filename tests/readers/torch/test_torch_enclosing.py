"""Parents of operators and operators around calls: the library gives what SQL gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.examples import MORE
from tracedb.intervals import native_nesting
from tracedb_torch.link import enclosing

pytestmark = pytest.mark.skipif(native_nesting.library() is None, reason="the compiled library was not built")


class Range(NamedTuple):
    """An operator or a call."""

    lane: int | None
    start: int
    duration: int


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": 1}) as opened:
        yield opened


def stage(connection: duckdb.DuckDBPyConnection, ops: list[Range], calls: list[Range]) -> None:
    """Make the tables that ``enclosing`` reads; every second operator has an external id, in falling order."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE part_op (op_id BIGINT, tid BIGINT, start_ns BIGINT, "
        "duration_ns BIGINT, external_id BIGINT)"
    )
    fill(connection, "part_op", [(place, *op, 1000 - place if place % 2 else None) for place, op in enumerate(ops)])
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE link_gpu (event_id BIGINT, launch_id BIGINT, tid BIGINT, start_ns BIGINT, "
        "duration_ns BIGINT)"
    )
    fill(connection, "link_gpu", [(500 + place, 100 + place // 2 * 2, *call) for place, call in enumerate(calls)])
    connection.execute("CREATE OR REPLACE TEMP TABLE link_op (event_id BIGINT, op_id BIGINT)")
    connection.execute("INSERT INTO link_op SELECT event_id, 0 FROM link_gpu WHERE event_id % 5 = 0")


def fill(connection: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[int | None, ...]]) -> None:
    """Insert all rows in one statement; one for each row would take half the time of these tests."""
    if rows:
        listed = (f"({', '.join('NULL' if value is None else str(value) for value in row)})" for row in rows)
        connection.execute(f"INSERT INTO {table} VALUES {', '.join(listed)}")


def found(connection: duckdb.DuckDBPyConnection) -> tuple[list[Any], list[Any]]:
    parents = connection.execute("SELECT op_id, parent_id FROM link_parent ORDER BY ALL").fetchall()
    return parents, connection.execute("SELECT event_id, op_id FROM link_op ORDER BY ALL").fetchall()


def nested(draw: st.DrawFn, lane: int | None) -> list[Range]:
    """Operators of one thread that nest, some of them empty or as long as the one around them."""
    made: list[Range] = []
    within = [(0, 60)]
    for _ in range(draw(st.integers(0, 10))):
        low, high = draw(st.sampled_from(within))
        start = draw(st.integers(low, high))
        end = draw(st.integers(start, high))
        if all(end <= r.start or r.start + r.duration <= start or _contains(r, start, end) for r in made):
            made.append(Range(lane, start, end - start))
            within.append((start, end))
    return made


def _contains(one: Range, start: int, end: int) -> bool:
    inside = one.start <= start and end <= one.start + one.duration
    return inside or (start <= one.start and one.start + one.duration <= end)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Range], list[Range]]:
    lanes: list[int | None] = [1, 2, None]
    ops = [op for lane in lanes for op in nested(draw, lane)]
    if draw(st.integers(0, 3)) == 0:  # anything at all
        ops += [Range(draw(st.sampled_from(lanes)), draw(st.integers(0, 60)), draw(st.integers(0, 30)))]
    any_lane = st.sampled_from([*lanes, 3])
    calls = draw(st.lists(st.builds(Range, any_lane, st.integers(-2, 62), st.integers(0, 8)), max_size=8))
    # Rows of one launch are of one call.
    return draw(st.permutations(ops)), [calls[place // 2 * 2] for place in range(len(calls))]


@settings(max_examples=25 * MORE, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases(), st.sampled_from((0, 2)))
@example(([Range(1, 0, 10), Range(1, 0, 10), Range(1, 5, 5), Range(1, 10, 0)], [Range(1, 10, 1), Range(1, 5, 6)]), 2)
@example(([], [Range(1, 0, 1)]), 0)
def test_both_ways_agree(
    connection: duckdb.DuckDBPyConnection, case: tuple[list[Range], list[Range]], slack: int
) -> None:
    stage(connection, *case)
    enclosing._by_sql(connection, slack)
    expected = found(connection)
    stage(connection, *case)
    if enclosing._by_library(connection, slack):
        assert found(connection) == expected


def test_ranges_that_nest_are_taken_by_the_library(connection: duckdb.DuckDBPyConnection) -> None:
    stage(connection, [Range(1, 0, 10), Range(1, 2, 3), Range(1, 5, 5), Range(2, 0, 4)], [Range(1, 3, 1)] * 3)
    assert enclosing._by_library(connection, 0)
    assert found(connection) == ([(0, None), (1, 0), (2, 0), (3, None)], [(500, 0), (501, 1), (502, 1)])


def test_ranges_that_cross_are_left_to_sql(connection: duckdb.DuckDBPyConnection) -> None:
    stage(connection, [Range(1, 0, 10), Range(1, 5, 10)], [])
    assert not enclosing._by_library(connection, 0)
    enclosing.enclose(connection, 0)
    assert found(connection)[0] == [(0, None), (1, None)]


def test_many_operators_are_left_to_sql(connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enclosing, "MOST", 1)
    stage(connection, [Range(1, 0, 10), Range(1, 2, 3)], [Range(1, 3, 1)])
    assert not enclosing._by_library(connection, 0)
