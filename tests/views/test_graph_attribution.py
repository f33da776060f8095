"""``v1.graph_attribution``: the operator of each kernel that a graph replays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from tracedb.derive import graph_links

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

MATCHED = """SELECT capture_id, event_id, match_rule, matched_to, op_capture_id, op_name, input_dims
             FROM v1.graph_attribution ORDER BY capture_id, event_id"""
EVENT = "event_id name start_ns duration_ns launch_id op_id"


def capture(insert: Insert, number: int, pid: int = 7, **values: Any) -> None:
    insert("capture", "capture_id pid", (number, pid), source="torch", labels={}, **values)


def replay(insert: Insert, names: str, number: int = 2, launch: int = 900, first: int = 0, **values: Any) -> None:
    """A graph launch, and one kernel for each letter."""
    insert("launch", "launch_id name", (launch, "hipGraphLaunch"), capture_id=number, start_ns=first, duration_ns=1)
    rows = [(first + i, name, first + 10 * i, 5) for i, name in enumerate(names)]
    insert("kernel_event", "event_id name start_ns duration_ns", *rows,
           capture_id=number, kind="kernel", launch_id=launch, stream_id=0, device_id=0, **values)  # fmt: skip


def captured(insert: Insert, names: str, number: int = 1, first: int = 0) -> None:
    """Launches between the begin and the end of a stream capture, each inside an operator of its own."""
    end = first + 100 * (len(names) + 1)
    insert("launch", "launch_id name start_ns", (first + 90, "hipStreamBeginCapture", first),
           (first + 91, "hipStreamEndCapture", end),
           capture_id=number, duration_ns=1, process_id=7, thread_id=7)  # fmt: skip
    for i, name in enumerate(names):
        at = first + 100 * (i + 1)
        outer = first + 2 * i
        insert("op", "op_id name start_ns duration_ns input_dims parent_op_id",
               (outer, "outer", at, 50, "[]", None), (outer + 1, f"op_{name}{i}", at + 5, 20, f"[{i}]", outer),
               capture_id=number, process_id=7, thread_id=7)  # fmt: skip
        insert("launch", "launch_id name start_ns kernel_name", (first + i, "hipModuleLaunchKernel", at + 10, name),
               capture_id=number, duration_ns=1, process_id=7, thread_id=7)  # fmt: skip


def eager(insert: Insert, names: str, number: int = 1, first: int = 500, **values: Any) -> None:
    """Kernels with operators and launches of their own."""
    for i, name in enumerate(names):
        at = first + i
        insert("op", "op_id name start_ns", (at, f"eager_{name}{i}", at), capture_id=number, duration_ns=1)
        insert("launch", "launch_id name start_ns", (at, "cudaLaunchKernel", at), capture_id=number, duration_ns=1)
        insert("kernel_event", EVENT, (at, name, 10_000 - at, 1, at, at), capture_id=number, kind="kernel", **values)


def test_replays_get_the_operators_of_the_captured_launches(
    db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask, report: Report
) -> None:
    capture(insert, 1)
    capture(insert, 2)
    captured(insert, "abab")
    replay(insert, "abab")
    replay(insert, "abab", launch=901, first=1000)
    graph_links.link(db)
    names = [(f"op_{name}{i}", f"[{i}]") for i, name in enumerate("abab")]
    assert ask(MATCHED) == [
        (2, first + i, "aligned", "captured launch", 1, *names[i]) for first in (0, 1000) for i in range(4)
    ]
    assert report("graph_attribution", "count(*)", where={"e": "e.event_id < 2"}) == [(2,)]


def test_launches_before_and_after_the_stream_capture_are_no_part_of_it(
    db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask
) -> None:
    capture(insert, 1)
    insert("launch", "launch_id name start_ns kernel_name",
           (95, "hipLaunchKernel", 5, "a"), (96, "hipLaunchKernel", 9000, "b"),
           capture_id=1, duration_ns=1, process_id=7, thread_id=7)  # fmt: skip
    captured(insert, "ab", first=10)
    replay(insert, "ab", number=1, first=2000)
    graph_links.link(db)
    assert ask("SELECT event_id, origin_launch_id FROM main.graph_link ORDER BY ALL") == [(2000, 10), (2001, 11)]


def test_without_names_of_captured_launches_a_run_without_the_graph_tells(
    db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask
) -> None:
    """Two passes in the order of their launches; the spelling of a name may differ."""
    capture(insert, 1)
    capture(insert, 2)
    insert("op", "op_id name start_ns duration_ns", (1, "captured", 0, 9), capture_id=2)
    insert("launch", "launch_id name start_ns duration_ns", (1, "cudaLaunchKernel", 5, 1), capture_id=2)
    eager(insert, ["void f(int, int)", "g", "h", "void f(int, int)", "g", "h"])  # type: ignore[arg-type]
    replay(insert, ["f(int,int)", "g", "h.kd"])  # type: ignore[arg-type]
    graph_links.link(db)
    assert ask("SELECT event_id, match_rule, matched_to, op_id FROM v1.graph_attribution ORDER BY ALL") == [
        (i, "aligned", "eager kernel", 500 + i) for i in range(3)
    ]


def test_what_is_not_found_has_no_operator(db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask) -> None:
    capture(insert, 1)
    capture(insert, 2)
    captured(insert, "abcd")
    replay(insert, "abxd")
    replay(insert, "axyz", launch=901, first=100)  # a quarter of it is no evidence
    graph_links.link(db)
    rules = {event: (rule, op) for _, event, rule, _, _, op, _ in ask(MATCHED)}
    assert rules == {0: ("aligned", "op_a0"), 1: ("aligned", "op_b1"), 2: ("none", None), 3: ("aligned", "op_d3")} | {
        100 + i: ("none", None) for i in range(4)
    }


def test_each_stream_is_aligned_by_itself(db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask) -> None:
    """Recorded alternately on two streams; replayed with one stream after the other."""
    capture(insert, 1)
    captured(insert, "aabcbc")
    insert("launch", "launch_id name", (900, "hipGraphLaunch"), capture_id=1, start_ns=5000, duration_ns=1)
    rows = [
        (0, "a", 1, 6000),
        (1, "b", 1, 6010),
        (2, "c", 1, 6020),
        (3, "a", 2, 7000),
        (4, "b", 2, 7010),
        (5, "c", 2, 7020),
    ]
    insert(
        "kernel_event",
        "event_id name stream_id start_ns",
        *rows,
        capture_id=1,
        kind="kernel",
        launch_id=900,
        duration_ns=5,
    )
    graph_links.link(db)
    assert ask("SELECT count(*), count(DISTINCT op_id) FROM v1.graph_attribution WHERE match_rule = 'aligned'") == [
        (6, 6)
    ]
    assert ask("SELECT count(*) FROM v1.graph_attribution WHERE op_name[4] <> name") == [(0,)]


def test_the_nearest_of_equal_captures(db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask) -> None:
    """Of the same process rather than of another one; never of another rank."""
    for number, pid, rank in ((1, 8, 0), (2, 7, 0), (3, 7, 1), (4, 7, 0)):
        capture(insert, number, pid, rank=rank)
    for number in (1, 3, 4):
        captured(insert, "ab", number)
    replay(insert, "ab")
    graph_links.link(db)
    assert {row[4] for row in ask(MATCHED)} == {4}
    db.execute("DELETE FROM main.launch WHERE capture_id IN (1, 4)")
    graph_links.link(db)
    assert {row[2] for row in ask(MATCHED)} == {"none"}


def test_the_same_graph_node_comes_before_names(db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask) -> None:
    capture(insert, 1)
    captured(insert, "ab")
    db.execute("UPDATE main.launch SET graph_node_id = 50 + launch_id WHERE kernel_name IS NOT NULL")
    replay(insert, "ab", number=1, first=3000)
    db.execute("UPDATE main.kernel_event SET graph_node_id = 51 WHERE event_id = 3000")
    graph_links.link(db)
    assert [(row[1], row[2], row[5]) for row in ask(MATCHED)] == [
        (3000, "node_id", "op_b1"),
        (3001, "aligned", "op_b1"),
    ]


def test_replays_recorded_as_a_whole_and_other_kernels_are_no_rows(
    db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask
) -> None:
    capture(insert, 1)
    eager(insert, "ab")
    insert("launch", "launch_id name", (900, "cudaGraphLaunch"), capture_id=1, start_ns=0, duration_ns=1)
    insert(
        "kernel_event",
        "event_id name start_ns duration_ns launch_id",
        (1, "graph", 0, 5, 900),
        capture_id=1,
        kind="graph",
    )
    graph_links.link(db)
    assert ask(MATCHED) == []


def unnamed(insert: Insert, calls: tuple[str, ...], number: int = 1, first: int = 0) -> None:
    """Launches of a stream capture on CUDA, which name no kernels, each inside an operator."""
    lane = {"capture_id": number, "process_id": 7, "thread_id": 7}
    end = first + 100 * (len(calls) + 1)
    insert("launch", "launch_id name start_ns", (first + 90, "cudaStreamBeginCapture", first),
           (first + 91, "cudaStreamEndCapture", end), duration_ns=1, **lane)  # fmt: skip
    for i, name in enumerate(calls):
        at = first + 100 * (i + 1)
        insert("op", "op_id name start_ns duration_ns", (first + i, f"op{i}", at, 50), **lane)
        insert("launch", "launch_id name start_ns duration_ns", (first + i, name, at + 10, 20), **lane)


CALLS = ("cudaLaunchKernel", "cuLaunchKernelEx", "cudaMemcpyAsync")
IN_ORDER = [("aligned", "captured launch in order", f"op{i}") for i in range(3)]
ORDERED = "SELECT match_rule, matched_to, op_name FROM v1.graph_attribution ORDER BY capture_id, event_id"


def test_launches_that_name_no_kernels_are_aligned_by_their_order(
    db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask
) -> None:
    """Calls outside of the stream capture, that launch nothing, and driver calls inside others are no part of it."""
    capture(insert, 1)
    capture(insert, 2)
    unnamed(insert, CALLS)
    lane = {"capture_id": 1, "process_id": 7, "thread_id": 7}
    insert("launch", "launch_id name start_ns duration_ns", (70, "cudaLaunchKernel", -50, 5),
           (71, "cuLaunchKernel", 115, 5), (72, "cudaEventRecord", 140, 5),
           (73, "cudaLaunchKernel", 900, 5), **lane)  # fmt: skip
    insert("kernel_event", EVENT, (1, "ran", -40, 5, 70, None), **{"capture_id": 1, "kind": "kernel"})
    replay(insert, "abc")
    graph_links.link(db)
    assert ask(ORDERED) == IN_ORDER


def test_a_run_without_the_graph_comes_before_the_order_of_launches(
    db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask
) -> None:
    capture(insert, 1)
    capture(insert, 2)
    unnamed(insert, CALLS)
    replay(insert, "abc")
    eager(insert, "abc", number=2, first=700)
    graph_links.link(db)
    assert ask(ORDERED) == [("aligned", "eager kernel", f"eager_{name}{i}") for i, name in enumerate("abc")]


@pytest.mark.parametrize(
    ("calls", "names", "windows", "pid"),
    [
        (CALLS, "abcd", 1, 7),  # another number of kernels
        (CALLS, "abc", 2, 7),  # two stream captures fit, and may differ in shapes
        (CALLS, "abc", 1, 8),  # another process
        (("cudaLaunchKernel", "cudaMemcpyAsync"), "ab", 0, 7),  # no stream capture
    ],
)
def test_an_order_that_says_nothing(
    db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask, calls: tuple[str, ...], names: str, windows: int, pid: int
) -> None:
    capture(insert, 1)
    capture(insert, 2, pid=pid)
    for window in range(windows):
        unnamed(insert, calls, first=10_000 * window)
    insert("op", "op_id name start_ns duration_ns", (5_000, "op", 0, 1), capture_id=1)
    replay(insert, names)
    graph_links.link(db)
    assert ask(ORDERED) == [("none", None, None)] * len(names)


def test_the_order_on_several_streams_is_unknown(db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask) -> None:
    capture(insert, 1)
    capture(insert, 2)
    unnamed(insert, CALLS)
    replay(insert, "ab")
    insert("kernel_event", "event_id name start_ns duration_ns", (9, "c", 900, 5), capture_id=2, kind="kernel",
           launch_id=900, stream_id=1, device_id=0)  # fmt: skip
    graph_links.link(db)
    assert ask(ORDERED) == [("none", None, None)] * 3


def test_kinds_of_work_must_agree(db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask) -> None:
    capture(insert, 1)
    capture(insert, 2)
    unnamed(insert, CALLS)
    replay(insert, "ab")
    insert("kernel_event", "event_id name start_ns duration_ns kind", (9, "Memset", 900, 5, "memset"), capture_id=2,
           launch_id=900, stream_id=0, device_id=0)  # fmt: skip
    graph_links.link(db)
    assert ask(ORDERED) == [("none", None, None)] * 3
