"""``v1.nvtx_kernels``: kernels of each range, like nvtx_kern_sum; a kernel counts in every enclosing range."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import sql_lint

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

RANGE = "annotation_id name thread_id parent_id"
KEYS = "range, process_id, thread_id, kernel, range_instances, calls, total_ns"
THREAD = f"SELECT {KEYS} FROM v1.nvtx_kernels WHERE rule = 'thread' ORDER BY range NULLS LAST, thread_id, kernel"


def test_empty(insert: Insert, ask: Ask) -> None:
    assert ask("SELECT * FROM v1.nvtx_kernels") == []
    insert("capture", "capture_id", (0,), source="nsys")
    insert("kernel_event", "event_id", (1,), capture_id=0, kind="kernel", name="add", start_ns=0, duration_ns=5)
    assert ask("SELECT * FROM v1.nvtx_kernels") == []  # no ranges were captured, so none is empty


@pytest.fixture
def nested(insert: Insert) -> None:
    """Two instances of ``step`` with ``mm`` inside the first; a kernel on another thread; a copy."""
    insert("capture", "capture_id rank", (0, 0), source="nsys")
    insert("annotation", RANGE, (1, "step", 1, None), (2, "mm", 1, 1), (3, "step", 1, None), (4, "step", 2, None),
           capture_id=0, domain=None, style="push_pop", process_id=9, start_ns=0, duration_ns=9)  # fmt: skip
    insert(
        "launch", "launch_id thread_id", (1, 1), (2, 5), capture_id=0, process_id=9, name="x", start_ns=0, duration_ns=1
    )
    insert("kernel_event", "event_id kind name duration_ns launch_id",
           (1, "kernel", "sgemm", 10, 1), (2, "kernel", "sgemm", 20, 1), (3, "kernel", "add", 1, 1),
           (4, "kernel", "add", 5, 2), (5, "memcpy", "Memcpy", 7, 1), capture_id=0, start_ns=0)  # fmt: skip
    insert("annotation_kernel", "annotation_id event_id rule",
           (2, 1, "thread"), (3, 2, "thread"), (2, 3, "thread"), (2, 5, "thread"),
           (2, 1, "process"), (4, 1, "process"), (3, 2, "process"), (2, 3, "process"), (4, 4, "process"),
           capture_id=0)  # fmt: skip


def test_a_kernel_counts_in_every_range_around_it(nested: None, ask: Ask, shuffled: Callable[[], None]) -> None:
    right = [
        ("mm", 9, 1, "add", 1, 1, 1),
        ("mm", 9, 1, "sgemm", 1, 1, 10),
        ("step", 9, 1, "add", 1, 1, 1),
        ("step", 9, 1, "sgemm", 2, 2, 30),
        (None, 9, 5, "add", 0, 1, 5),
    ]
    assert ask(THREAD) == right
    shuffled()
    assert ask(THREAD) == right


def test_threads_of_the_process_are_apart(nested: None, ask: Ask) -> None:
    query = f"SELECT {KEYS} FROM v1.nvtx_kernels WHERE rule = 'process' AND range = 'step' ORDER BY thread_id, kernel"
    assert ask(query) == [
        ("step", 9, 1, "add", 1, 1, 1),
        ("step", 9, 1, "sgemm", 2, 2, 30),
        ("step", 9, 2, "add", 1, 1, 5),
        ("step", 9, 2, "sgemm", 1, 1, 10),
    ]


def test_statistics(nested: None, ask: Ask) -> None:
    query = """SELECT domain, style, avg_ns, median_ns, min_ns, max_ns, stddev_ns FROM v1.nvtx_kernels
               WHERE rule = 'thread' AND range = 'step' AND kernel = 'sgemm'"""
    assert ask(query) == [(None, "push_pop", 15.0, 15.0, 10, 20, pytest.approx(50**0.5))]


def test_a_kernel_of_crossing_ranges_counts_once_in_their_common_range(nested: None, insert: Insert, ask: Ask) -> None:
    insert("annotation", RANGE, (9, "cross", 1, 1),
           capture_id=0, domain=None, style="start_end", process_id=9, start_ns=0, duration_ns=9)  # fmt: skip
    insert("annotation_kernel", "annotation_id event_id rule", (9, 1, "thread"), capture_id=0)
    found = [row for row in ask(THREAD) if row[3] == "sgemm"]
    assert found == [
        ("cross", 9, 1, "sgemm", 1, 1, 10),
        ("mm", 9, 1, "sgemm", 1, 1, 10),
        ("step", 9, 1, "sgemm", 2, 2, 30),
    ]


def test_hooks(nested: None, insert: Insert, report: Report) -> None:
    found = report("nvtx_kernels", f'"rank", {KEYS}', by={"rank": "{base}.rank"}, where={"e": "e.name = 'add'"})
    assert found == [
        (0, "mm", 9, 1, "add", 1, 1, 1),
        (0, "mm", 9, 1, "add", 1, 1, 1),
        (0, "step", 9, 1, "add", 1, 1, 1),
        (0, "step", 9, 1, "add", 1, 1, 1),
        (0, "step", 9, 2, "add", 1, 1, 5),
        (0, None, 9, 5, "add", 0, 1, 5),
    ]
    assert report("nvtx_kernels", "*", where={"e": "e.rank = 9"}) == []


@pytest.mark.parametrize("depth", [2, 3])
def test_a_range_inside_one_of_its_own_name(insert: Insert, ask: Ask, depth: int) -> None:
    """nvtx_kernels counts a kernel in each instance around it; nvtx_kern_sum counts it once, as nsys stats does.

    ``outer`` of the default domain and of another are two ranges; so are those of two threads.
    """
    insert("capture", "capture_id", (0,), source="nsys", path="a", status="complete")
    inner = [(number, "outer", 1, number - 1 or None, None) for number in range(1, depth + 1)]
    insert("annotation", f"{RANGE} domain", *inner, (8, "outer", 1, None, "other"), (9, "outer", 2, None, None),
           capture_id=0, style="push_pop", process_id=9, start_ns=0, duration_ns=9)  # fmt: skip
    insert("launch", "launch_id thread_id", *((number, 1) for number in range(1, 7)), (7, 2),
           capture_id=0, process_id=9, name="x", start_ns=0, duration_ns=1)  # fmt: skip
    insert("kernel_event", "event_id duration_ns", *((number, 10 * number) for number in range(1, 8)),
           capture_id=0, kind="kernel", name="mm", start_ns=0)  # fmt: skip
    ask("UPDATE main.kernel_event SET launch_id = event_id")
    # Kernels 1 to 4 lie in the deepest, 5 in the outermost alone, 6 in the other domain, 7 on the other thread.
    insert("annotation_kernel", "annotation_id event_id", *((depth, number) for number in range(1, 5)), (1, 5), (8, 6),
           (9, 7), capture_id=0, rule="thread")  # fmt: skip
    deep = 10 + 20 + 30 + 40
    own = """SELECT domain, thread_id, range_instances, calls, total_ns, avg_ns, max_ns
        FROM v1.nvtx_kernels WHERE rule = 'thread' ORDER BY ALL"""
    outer = (depth, 4 * depth + 1, depth * deep + 50, (depth * deep + 50) / (4 * depth + 1), 50)
    assert ask(own) == [("other", 1, 1, 1, 60, 60.0, 60), (None, 1, *outer), (None, 2, 1, 1, 70, 70.0, 70)]
    peer = """SELECT "NVTX Range", "TID", "NVTX Inst", "Kern Inst", "Total Time (ns)", "Avg (ns)", "StdDev (ns)"
        FROM v1.nvtx_kern_sum ORDER BY ALL"""
    durations = sorted([10, 20, 30, 40] * depth + [50])
    mean = sum(durations) / len(durations)
    deviation = (sum((each - mean) ** 2 for each in durations) / (len(durations) - 1)) ** 0.5
    assert ask(peer) == [
        ("other:outer", 1, 1, 1, 60, 60.0, 0.0),
        ("outer", 1, depth, 5, sum(durations), round(mean, 1), round(deviation, 1)),
        ("outer", 2, 1, 1, 70, 70.0, 0.0),
    ]


def test_ranges_are_joined_by_the_capture_of_the_ancestor() -> None:
    """By capture_id instead, DuckDB 1.4 and 1.5 join all events of a capture with all of its ranges, for minutes."""
    conditions = [
        match
        for view in sql_lint.view_files()
        for match in re.findall(r"(\w+\.\w+) AND \w+\.annotation_id = (\w+)\.ancestor_id", view.text)
    ]
    assert len(conditions) >= 2
    assert all(capture == f"{alias}.ancestor_capture_id" for capture, alias in conditions)
