"""Parents of ranges, and ranges around calls, against a reference that tries every pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.examples import MORE
from support.loading import ask, ingest
from support.rows import insert
from support.traces import Event, annotation, call, kernel, launched, write
from tracedb.derive import annotation_buffer, annotation_kernel, event_buffer
from tracedb.intervals import native_nesting, nesting
from tracedb.storage import schema

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = settings(max_examples=20 * MORE, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Item(NamedTuple):
    """A range on a lane; of equal ones the lower tie is the outer."""

    lane: int
    start: int
    end: int
    tie: int


class Call(NamedTuple):
    """A call on a lane."""

    lane: int
    start: int
    end: int


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": 1}) as opened:
        yield opened


@st.composite
def crossing(draw: st.DrawFn) -> list[Item]:
    """Ranges of any kind: nested, touching, empty, equal, crossing."""
    count = draw(st.integers(0, 14))
    items = []
    for _ in range(count):
        start = draw(st.integers(-5, 20))
        items.append(Item(draw(st.integers(0, 1)), start, start + draw(st.integers(0, 12)), draw(st.integers(0, 2))))
    return items


@st.composite
def laminar(draw: st.DrawFn) -> list[Item]:
    """Ranges of which two are disjoint or nested."""
    items: list[Item] = []

    def fill(low: int, high: int, depth: int) -> None:
        place = low
        while place < high and len(items) < 16 and draw(st.booleans()):
            start = draw(st.integers(place, high))
            end = draw(st.integers(start, high))
            items.append(Item(0, start, end, draw(st.integers(0, 3))))
            if depth < 4:
                fill(start, end, depth + 1)
            place = end

    fill(0, 40, 0)
    return items


calls = st.lists(
    st.builds(
        lambda lane, start, length: Call(lane, start, start + length),
        st.integers(0, 1),
        st.integers(-6, 34),
        st.integers(0, 4),
    ),
    max_size=12,
)


def parents(items: list[Item]) -> dict[int, int | None]:
    """Return the nearest range that contains each. Empty ranges contain nothing; of equal ones the earlier is outer."""
    order = sorted(range(len(items)), key=lambda i: (items[i].start, -items[i].end, items[i].tie, i))
    place = {item: number for number, item in enumerate(order)}
    found: dict[int, int | None] = {}
    for child, inner in enumerate(items):
        around = [
            other
            for other, outer in enumerate(items)
            if place[other] < place[child]
            and outer.lane == inner.lane
            and outer.start <= inner.start < outer.end
            and inner.end <= outer.end
        ]
        found[child] = max(around, key=place.__getitem__, default=None)
    return found


def ancestors(item: int, parent: dict[int, int | None]) -> list[int]:
    """Return all ranges around one."""
    found: list[int] = []
    above = parent[item]
    while above is not None:
        found.append(above)
        above = parent[above]
    return found


def innermost(items: list[Item], call: Call, parent: dict[int, int | None]) -> set[int]:
    """Return the ranges around a call that are around no other range around it."""
    around = {
        number
        for number, item in enumerate(items)
        if item.lane == call.lane and item.start <= call.start < item.end and call.end <= item.end
    }
    return around - {above for item in around for above in ancestors(item, parent)}


def run(
    connection: duckdb.DuckDBPyConnection, items: list[Item], called: list[Call]
) -> tuple[dict[int, int | None], dict[int, int], set[tuple[int, int]]]:
    rows = [(number, item.lane, 7, item.start, item.end, item.tie) for number, item in enumerate(items)]
    crossing_found = nesting.nest(connection, values("item_id, lane_a, lane_b, start_ns, end_ns, tie", rows, 6))
    parent = dict(connection.execute("SELECT item_id, parent_id FROM nest_out").fetchall())
    depth = dict(connection.execute("SELECT item_id, depth FROM nest_out").fetchall())
    places = [(number, call.lane, 7, call.start, call.end) for number, call in enumerate(called)]
    nesting.enclose(connection, values("call_id, lane_a, lane_b, start_ns, end_ns", places, 5), 0, crossing_found)
    around = set(connection.execute("SELECT call_id, item_id FROM call_out").fetchall())
    nesting.drop(connection)
    return parent, depth, around


def values(names: str, rows: Sequence[tuple[int, ...]], width: int) -> str:
    """Return a query of the rows; of none, too."""
    columns = ", ".join(f"{name}::BIGINT AS {name}" for name in names.split(", "))
    if not rows:
        return f"SELECT {columns} FROM (SELECT {', '.join('0' for _ in range(width))}) AS v({names}) WHERE false"
    listed = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
    return f"SELECT {columns} FROM (VALUES {listed}) AS v({names})"


def check(connection: duckdb.DuckDBPyConnection, items: list[Item], called: list[Call]) -> None:
    parent, depth, around = run(connection, items, called)
    expected = parents(items)
    assert parent == expected
    assert depth == {item: len(ancestors(item, expected)) for item in range(len(items))}
    wanted = {(number, item) for number, call in enumerate(called) for item in innermost(items, call, expected)}
    assert around == wanted


@EXAMPLES
@given(items=laminar(), called=calls)
@example(items=[], called=[Call(0, 1, 2)])
@example(items=[Item(0, 0, 10, 0), Item(0, 0, 10, 0), Item(0, 0, 10, 1)], called=[Call(0, 0, 10), Call(0, 10, 10)])
@example(
    items=[Item(0, 0, 5, 0), Item(0, 5, 9, 0), Item(0, 5, 5, 0)], called=[Call(0, 5, 5), Call(0, 4, 5), Call(0, 4, 6)]
)
def test_nested(connection: duckdb.DuckDBPyConnection, items: list[Item], called: list[Call]) -> None:
    check(connection, items, called)


@EXAMPLES
@given(items=crossing(), called=calls)
@example(
    items=[Item(0, 0, 5, 0), Item(0, 3, 8, 0), Item(0, 4, 5, 0), Item(0, 6, 7, 0)],
    called=[Call(0, 4, 5), Call(0, 6, 6)],
)
def test_crossing(connection: duckdb.DuckDBPyConnection, items: list[Item], called: list[Call]) -> None:
    check(connection, items, called)


@EXAMPLES
@given(items=crossing(), called=calls)
def test_without_crossing_ranges_a_call_has_one_at_most(
    connection: duckdb.DuckDBPyConnection, items: list[Item], called: list[Call]
) -> None:
    rows = [(number, item.lane, 7, item.start, item.end, item.tie) for number, item in enumerate(items)]
    nesting.nest(connection, values("item_id, lane_a, lane_b, start_ns, end_ns, tie", rows, 6))
    places = [(number, call.lane, 7, call.start, call.end) for number, call in enumerate(called)]
    nesting.enclose(connection, values("call_id, lane_a, lane_b, start_ns, end_ns", places, 5))
    found = connection.execute("SELECT call_id, item_id FROM call_out").fetchall()
    nesting.drop(connection)
    assert len(found) == len({number for number, _ in found})
    for number, item in found:
        assert items[item].start <= called[number].start
        assert called[number].end <= items[item].end


def test_slack_lets_a_child_end_late(connection: duckdb.DuckDBPyConnection) -> None:
    rows = [(0, 0, 7, 0, 10_000, 0), (1, 0, 7, 5_000, 11_500, 0)]
    items = values("item_id, lane_a, lane_b, start_ns, end_ns, tie", rows, 6)
    for slack, parent in ((0, None), (2_000, 0)):
        nesting.nest(connection, items, slack)
        assert connection.execute("SELECT parent_id FROM nest_out WHERE item_id = 1").fetchone() == (parent,)
    nesting.drop(connection)


def nested(items: list[Item]) -> native_nesting.Nested | None:
    rows = [(item.lane, item.start, item.end, place) for place, item in enumerate(items)]
    return native_nesting.nested(native_nesting.Ranges(*np.array(rows, np.int64).reshape(-1, 4).T))


CAPTURES = (
    "launched", "without launches", "crossing", "open", "other thread", "no launch known", "no ranges", "no events"
)  # fmt: skip
Written = dict[str, list[tuple[Any, ...]]]


def events(name: str) -> list[Event]:
    """The events of a capture with ranges of a kind."""
    ranges = [annotation(0, 90, "step"), annotation(0, 40, "inner"), annotation(50, 0, "empty", tid=7)]
    work = [*launched(3), call(30, 5, 77), kernel(300, 5, correlation=77), kernel(400, 5, correlation=77)]
    if name == "without launches":
        work = [kernel(at, 5) for at in (10, 45, 90, 95)]
    elif name == "crossing":
        ranges.append(annotation(20, 50, "crossing"))
    elif name == "open":
        ranges.append({key: value for key, value in annotation(60, 1, "open").items() if key != "dur"})
    elif name == "other thread":
        ranges += [annotation(0, 36, "there", tid=7), annotation(0, 35, "exactly", tid=8)]
    elif name == "no launch known":
        work = [kernel(at, 5, correlation=at) for at in (10, 45, 90)] + [call(30, 5, 77)]
    elif name == "no ranges":
        ranges = []
    elif name == "no events":
        work = []
    return [*ranges, *work]


def written(db: Path) -> Written:
    """The ranges of a database, and what lies in them."""
    tables = ("annotation", "annotation_kernel")
    return {table: ask(db, f"SELECT * FROM main.{table} ORDER BY ALL") for table in tables}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a capture of each kind; they are loaded in the order of ``CAPTURES``."""
    folder = tmp_path_factory.mktemp("captures")
    for number, name in enumerate(CAPTURES):
        write(folder / f"{number}.json", events(name))
    return folder


@pytest.fixture(scope="module")
def by_sql(captures: Path) -> Written:
    """The same for captures that are nested by SQL throughout."""
    db = captures / "by_sql.duckdb"
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(native_nesting, "library", lambda: None)
        ingest(captures, db=db)
    return written(db)


@pytest.mark.skipif(native_nesting.library() is None, reason="the compiled library was not built")
class TestCompiled:
    """The library finds the same as the statements."""

    @EXAMPLES
    @given(items=laminar() | crossing(), called=calls)
    @example(items=[Item(0, 0, 5, 0), Item(0, 3, 8, 0)], called=[])
    @example(items=[Item(0, 0, 5, 0), Item(0, 5, 5, 0), Item(0, 0, 0, 0), Item(1, 0, 5, 0)], called=[Call(1, 0, 5)])
    @example(items=[Item(0, 0, 9, 0), Item(0, 0, 9, 0), Item(0, 1, 9, 0)], called=[Call(0, 0, 9), Call(0, 9, 9)])
    @example(
        items=[Item(0, 0, 9, 0), Item(0, 2, 5, 0), Item(0, 3, 5, 0)],
        called=[Call(0, 4, 7), Call(0, 3, 10), Call(0, 5, 5)],
    )
    @example(items=[Item(0, 0, 9, 0), Item(0, 3, 3, 0)], called=[Call(0, 3, 3)])
    def test_same(self, items: list[Item], called: list[Call]) -> None:
        items = [item._replace(tie=0) for item in items]
        found = nested(items)
        crosses = any(a.lane == b.lane and a.start < b.start < a.end < b.end for a in items for b in items)
        assert (found is None) == crosses
        if found is None:
            return
        expected = parents(items)
        above = [None if parent == native_nesting.NOTHING else parent for parent in found.parent.tolist()]
        assert dict(zip(found.ranges.item.tolist(), above, strict=True)) == expected
        assert dict(zip(found.ranges.item.tolist(), found.depth.tolist(), strict=True)) == {
            item: len(ancestors(item, expected)) for item in expected
        }
        starts, ends = (np.array([call[place] for call in called], np.int64) for place in (1, 2))
        assert {
            (call, lane, number)
            for lane, places, numbers in found.around(starts, ends)
            for call, number in zip(places.tolist(), numbers.tolist(), strict=True)
        } == {
            (number, lane, item)
            for number, call in enumerate(called)
            for lane in (0, 1)
            for item in innermost(items, call._replace(lane=lane), expected)
        }

    def test_slack_at_the_ends_of_time(self) -> None:
        last = 2**63 - 1
        found = nested([Item(0, -(2**63), last, 0), Item(0, last - 1, last, 0), Item(0, last, last, 0)])
        assert found is not None
        assert found.depth.tolist() == [0, 1, 0]

    @pytest.mark.parametrize("most", [-1, 10**9])
    @pytest.mark.parametrize("portion", [2, 10**9])
    def test_captures(
        self,
        most: int,
        portion: int,
        captures: Path,
        by_sql: Written,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(annotation_buffer, "MOST_HELD", most)
        monkeypatch.setattr(event_buffer, "MOST", -1 if portion < 3 else 10**9)
        for constant in ("CALLS", "BATCH", "ROWS"):
            monkeypatch.setattr(annotation_kernel, constant, portion)
        ingest(captures, db=tmp_path / "db")
        found = written(tmp_path / "db")
        assert found == by_sql
        with_kernels = {CAPTURES[number - 1] for number, *_ in found["annotation_kernel"]}
        assert with_kernels == {*CAPTURES} - {"no launch known", "no ranges", "no events"}

    @pytest.mark.parametrize("is_held", [True, False])
    def test_a_call_on_no_known_thread_is_in_no_range_of_its_thread(self, is_held: bool) -> None:
        with duckdb.connect(":memory:") as opened:
            opened.execute(schema.ddl())
            given: dict[str, Any] = {"capture_id": 1, "duration_ns": 1}
            insert(opened, "launch", "launch_id thread_id start_ns", (1, None, 5), (2, 0, 6), name="a", **given)
            insert(opened, "kernel_event", "event_id launch_id", (11, 1), (12, 2), name="k", kind="kernel",
                   start_ns=20, **given)  # fmt: skip
            ranges = native_nesting.nested(native_nesting.Ranges(*np.array([[0, 0, 9, 3]], np.int64).T))
            assert ranges is not None
            met = event_buffer.Events()
            for table in ("kernel_event", "launch"):
                written = opened.sql(f"SELECT * EXCLUDE (capture_id) FROM main.{table}").to_arrow_table()
                met.take(table, written if is_held else opened.sql(f"FROM main.{table}"), written.num_rows)
            assert (met.calls() is not None) == is_held
            annotation_kernel.by_arrays(opened, 1, ranges, met)
            found = opened.execute("FROM main.annotation_kernel ORDER BY ALL").fetchall()
        assert found == [(1, 3, 11, "process"), (1, 3, 12, "process"), (1, 3, 12, "thread")]

    def test_the_sample_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        found = []
        for name, held, most in (("held", 10**9, 10**9), ("in a table", -1, 10**9), ("too many", -1, -1)):
            monkeypatch.setattr(annotation_buffer, "MOST_HELD", held)
            monkeypatch.setattr(annotation_buffer, "MOST_RANGES", most)
            ingest(ROOT / "examples" / "run", db=tmp_path / name, jobs=1)
            found.append(
                [
                    ask(tmp_path / name, f"SELECT * FROM main.{table} ORDER BY ALL")
                    for table in ("annotation", "annotation_kernel")
                ]
            )
        assert found[0] == found[1] == found[2]
        assert all(found[0])
