"""``v1.range_time``, ``v1.range_kernels``: ranges per instance, excluding warm-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

TIME = """SELECT name, instances, range_avg_ns, range_median_ns, projected_avg_ns, projected_median_ns, kernel_avg_ns,
    kernels_per_instance, warmup_instances, warmup_range_avg_ns, warmup_projected_avg_ns
    FROM v1.range_time WHERE rule = 'thread' ORDER BY name"""
KERNELS = """SELECT range, kernel, class, instances, calls, calls_per_instance, total_ns, instance_avg_ns, share_percent
    FROM v1.range_kernels WHERE rule = 'thread' ORDER BY range, kernel"""


@pytest.mark.parametrize("view", ["range_time", "range_kernels"])
def test_empty(ask: Ask, view: str) -> None:
    assert ask(f"FROM v1.{view}") == []


@pytest.fixture
def passes(insert: Insert) -> None:
    """``forward`` four times: once within ``warm-up``, once without GPU work; the others with kernels."""
    insert("capture", "capture_id rank", (0, 0), source="nsys")
    insert("annotation", "annotation_id name start_ns duration_ns parent_id",
           (1, "warm-up", 0, 1000, None), (2, "forward", 0, 900, 1), (3, "forward", 2000, 100, None),
           (4, "forward", 3000, 200, None), (5, "forward", 4000, 60, None),
           capture_id=0, style="push_pop", process_id=1, thread_id=1)  # fmt: skip
    insert("launch", "launch_id", (1,), capture_id=0, process_id=1, thread_id=1, name="x", start_ns=0, duration_ns=1)
    insert("kernel_event", "event_id kind name start_ns duration_ns",
           (1, "kernel", "sgemm", 100, 500), (2, "kernel", "sgemm", 2010, 20), (3, "kernel", "sgemm", 2030, 20),
           (4, "memcpy", "copy", 2090, 40), (5, "kernel", "sgemm", 3010, 30), (6, "kernel", "add", 3050, 10),
           capture_id=0, launch_id=1)  # fmt: skip
    insert("annotation_kernel", "annotation_id event_id",
           (2, 1), (3, 2), (3, 3), (3, 4), (4, 5), (4, 6), capture_id=0, rule="thread")  # fmt: skip


def test_warm_up_is_apart(passes: None, ask: Ask, shuffled: Callable[[], None]) -> None:
    right = [
        ("forward", 3, 120.0, 100.0, 85.0, 85.0, 40.0, 2.0, 1, 900.0, 500.0),
        ("warm-up", 0, None, None, None, None, None, None, 1, 1000.0, 500.0),
    ]
    assert ask(TIME) == right
    shuffled()
    assert ask(TIME) == right


def test_kernels_per_instance(passes: None, ask: Ask, shuffled: Callable[[], None]) -> None:
    """The instance without GPU work is an instance as well."""
    right = [
        ("forward", "add", "elementwise", 3, 1, pytest.approx(1 / 3), 10, pytest.approx(10 / 3), 12.5),
        ("forward", "sgemm", "matmul", 3, 3, 1.0, 70, pytest.approx(70 / 3), 87.5),
    ]
    assert ask(KERNELS) == right
    shuffled()
    assert ask(KERNELS) == right


@pytest.mark.parametrize(
    ("renamed", "warm"),
    [("other", [("forward", 1), ("other", 0)]), ("ProfilerStep#1", [("ProfilerStep#1", 0), ("forward", 0)])],
)
def test_where_nothing_is_named_so(passes: None, ask: Ask, renamed: str, warm: list[tuple[str, int]]) -> None:
    """The first of several instances is warm-up, unless a profiler's own steps are marked."""
    ask(f"UPDATE main.annotation SET name = '{renamed}' WHERE name = 'warm-up'")
    assert ask("SELECT name, warmup_instances FROM v1.range_time WHERE rule = 'thread' ORDER BY name") == warm


def test_hooks(passes: None, insert: Insert, report: Report) -> None:
    insert("capture", "capture_id rank", (1, 1), source="nsys")
    insert("annotation", "annotation_id start_ns", (1, 0), (2, 50), capture_id=1, name="forward", style="push_pop",
           duration_ns=8, process_id=1, thread_id=1)  # fmt: skip
    insert("launch", "launch_id", (1,), capture_id=1, process_id=1, thread_id=1, name="x", start_ns=0, duration_ns=1)
    insert("kernel_event", "event_id", (1,), capture_id=1, kind="kernel", name="sgemm", start_ns=60, duration_ns=7)
    insert("annotation_kernel", "annotation_id event_id", (2, 1), capture_id=1, rule="thread")
    by = {"rank": "{base}.rank"}
    columns = '"rank", name, instances, kernel_avg_ns'
    found = report("range_time", columns, by=by, where={"r": "r.name = 'forward'", "e": "e.name = 'sgemm'"})
    assert [row for row in found if row[3] is not None] == [(0, "forward", 3, 35.0), (1, "forward", 1, 7.0)]
    found = report("range_kernels", '"rank", kernel, instances, calls', by=by, where={"r": "r.name = 'forward'"})
    assert found == [(0, "add", 3, 1), (0, "sgemm", 3, 3), (1, "sgemm", 1, 1)]
