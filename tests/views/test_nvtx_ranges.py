"""``v1.nvtx_ranges``: times of ranges and of the GPU work inside, like nvtx_sum with nvtx_gpu_proj_sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

RANGE = "annotation_id name domain style start_ns duration_ns parent_id"
SUMS = """rule, name, instances, range_total_ns, projected_instances, projected_total_ns, projected_min_ns,
          projected_max_ns, gpu_ops"""


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.nvtx_ranges") == []


@pytest.fixture
def nested(insert: Insert) -> None:
    """Two outer ranges, one of them with an inner one; four GPU events, the last on a thread without ranges."""
    insert("capture", "capture_id rank", (0, 4), source="nsys")
    insert("annotation", RANGE,
           (1, "step", None, "push_pop", 0, 100, None), (2, "mm", "D", "push_pop", 10, 20, 1),
           (3, "step", None, "push_pop", 200, 50, None), (4, "here", None, "mark", 60, None, 1),
           (5, "open", None, "start_end", 70, None, 1), (6, "step", None, "gpu_projection", 0, 9, None),
           capture_id=0, process_id=1, thread_id=1)  # fmt: skip
    insert("launch", "launch_id", (1,), capture_id=0, name="launch", start_ns=0, duration_ns=1)
    insert("kernel_event", "event_id kind name start_ns duration_ns device_id",
           (1, "kernel", "sgemm", 1000, 10, 0), (2, "memcpy", "Memcpy", 1010, 30, 0), (3, "kernel", "add", 900, 5, 1),
           (4, "kernel", "add", 2000, 1, 0), capture_id=0)  # fmt: skip
    insert("annotation_kernel", "annotation_id event_id rule",
           (2, 1, "thread"), (2, 2, "thread"), (1, 3, "thread"),
           (2, 1, "process"), (2, 2, "process"), (1, 3, "process"), (3, 4, "process"), capture_id=0)  # fmt: skip


def test_projection_holds_what_inner_ranges_launch(nested: None, ask: Ask, shuffled: Callable[[], None]) -> None:
    query = f"SELECT {SUMS} FROM v1.nvtx_ranges WHERE range_total_ns IS NOT NULL ORDER BY rule, name"
    right = [
        ("process", "mm", 1, 20, 1, 40, 40, 40, 2),
        ("process", "step", 2, 150, 2, 141, 1, 140, 4),
        ("thread", "mm", 1, 20, 1, 40, 40, 40, 2),
        ("thread", "step", 2, 150, 1, 140, 140, 140, 3),
    ]
    assert ask(query) == right
    shuffled()
    assert ask(query) == right
    columns = "domain, style, projected_avg_ns, projected_median_ns, projected_stddev_ns"
    assert ask(f"SELECT {columns} FROM v1.nvtx_ranges WHERE name IN ('mm', 'step') ORDER BY rule, name") == [
        ("D", "push_pop", 40.0, 40.0, 0.0),
        (None, "push_pop", 70.5, 70.5, pytest.approx(139 / 2**0.5)),
        ("D", "push_pop", 40.0, 40.0, 0.0),
        (None, "push_pop", 140.0, 140.0, 0.0),
    ]


def test_marks_and_open_ranges_have_no_time(nested: None, ask: Ask) -> None:
    found = ask(f"SELECT {SUMS} FROM v1.nvtx_ranges WHERE range_total_ns IS NULL AND rule = 'thread' ORDER BY name")
    assert found == [
        ("thread", "here", 1, None, 0, None, None, None, 0),
        ("thread", "open", 1, None, 0, None, None, None, 0),
    ]


def test_an_event_of_crossing_ranges_counts_once_in_their_common_range(nested: None, insert: Insert, ask: Ask) -> None:
    insert("annotation", RANGE, (9, "cross", None, "start_end", 15, 30, 1), capture_id=0, process_id=1, thread_id=1)
    insert("annotation_kernel", "annotation_id event_id rule", (9, 1, "thread"), capture_id=0)
    query = "SELECT name, gpu_ops FROM v1.nvtx_ranges WHERE rule = 'thread' AND gpu_ops > 0 ORDER BY name"
    assert ask(query) == [("cross", 1), ("mm", 2), ("step", 3)]


def test_rules_of_captures_without_launches_and_without_gpu(insert: Insert, ask: Ask) -> None:
    insert("capture", "capture_id", (0,), (1,), source="rocprofv3")
    insert("annotation", "capture_id annotation_id", (0, 1), (1, 1), name="a", style="user", start_ns=0, duration_ns=9)
    insert("kernel_event", "event_id", (1,), capture_id=0, kind="kernel", name="add", start_ns=0, duration_ns=5)
    insert("annotation_kernel", "event_id", (1,), capture_id=0, annotation_id=1, rule="time")
    assert ask(f"SELECT {SUMS} FROM v1.nvtx_ranges ORDER BY rule") == [
        ("process", "a", 1, 9, 0, None, None, None, None),
        ("thread", "a", 1, 9, 0, None, None, None, None),
        ("time", "a", 1, 9, 1, 5, 5, 5, 1),
    ]


def test_hooks(nested: None, report: Report) -> None:
    step = ("thread", "step", 2, 150, 1, 140, 140, 140, 3)
    where = {"r": "r.name GLOB 's*'"}
    found = report("nvtx_ranges", f'"rank", {SUMS}', by={"rank": "{base}.rank"}, where=where)
    assert found[1] == (4, *step)
    found = report("nvtx_ranges", SUMS, where=where | {"e": "e.device_id = 0"})
    assert found[1] == ("thread", "step", 2, 150, 1, 40, 40, 40, 2)
    assert report("nvtx_ranges", "*", where={"r": "r.rank = 9"}) == []
