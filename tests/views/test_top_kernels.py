"""``v1.top_kernels``: time by kernel name, like nsys stats cuda_gpu_kern_sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.top_kernels") == []


@pytest.fixture
def rows(insert: Insert) -> None:
    insert("capture", "capture_id rank labels", (0, 0, {"t": "1"}), (1, 1, {"t": "2"}), source="torch")
    insert("kernel_event", "capture_id event_id kind name duration_ns collective",
           (0, 1, "kernel", "sgemm", 10, None), (0, 2, "kernel", "sgemm", 20, None), (0, 3, "kernel", "add", 30, None),
           (1, 1, "kernel", "sgemm", 40, None), (1, 2, "kernel", "sgemm", 100, "allreduce"),
           (1, 3, "memcpy", "sgemm", 5, None), (1, 4, "graph", "g", 5, None), (1, 5, "kernel", "mul", 0, None),
           start_ns=0)  # fmt: skip


def test_statistics(rows: None, ask: Ask, shuffled: Callable[[], None]) -> None:
    right = [
        ("add", "elementwise", 1, 30, 15.0, 30.0, 30.0, 30, 30, 0.0),
        ("mul", "elementwise", 1, 0, 0.0, 0.0, 0.0, 0, 0, 0.0),
        ("sgemm", "collective", 1, 100, 50.0, 100.0, 100.0, 100, 100, 0.0),
        ("sgemm", "matmul", 3, 70, 35.0, 70 / 3, 20.0, 10, 40, pytest.approx(15.275252316519467)),
    ]
    assert ask("SELECT * EXCLUDE (short_name) FROM v1.top_kernels ORDER BY name, class") == right
    shuffled()
    assert ask("SELECT * EXCLUDE (short_name) FROM v1.top_kernels ORDER BY name, class") == right


def test_shares_are_of_the_group(rows: None, report: Report) -> None:
    found = report("top_kernels", '"rank", name, class, share_percent', by={"rank": "{base}.rank"})
    assert found == [
        (0, "add", "elementwise", 50.0),
        (0, "sgemm", "matmul", 50.0),
        (1, "mul", "elementwise", 0.0),
        (1, "sgemm", "collective", pytest.approx(100 / 1.4)),
        (1, "sgemm", "matmul", pytest.approx(40 / 1.4)),
    ]
    assert report("top_kernels", "name, total_ns", where={"e": "e.labels['t'] = '1'"}) == [("add", 30), ("sgemm", 30)]


def test_calls_with_and_without_arguments_are_one_row_where_the_class_is_one(insert: Insert, ask: Ask) -> None:
    """Of a name that is a collective's anyway, and of one that the user's rule has given a class."""
    insert("kernel_rule", "priority pattern class", (1, "^halo", "exchange"))
    insert("kernel_event", "event_id name duration_ns collective",
           (1, "ncclDevKernel", 10, None), (2, "ncclDevKernel", 20, "allreduce"), (3, "ncclDevKernel", 60, "allreduce"),
           (4, "halo", 1, None), (5, "halo", 3, "allreduce"),
           capture_id=0, kind="kernel", start_ns=0)  # fmt: skip
    assert ask("SELECT name, class, calls, total_ns, median_ns FROM v1.top_kernels ORDER BY name") == [
        ("halo", "exchange", 2, 4, 2.0),
        ("ncclDevKernel", "collective", 3, 90, 20.0),
    ]


def test_all_of_no_length_have_no_share(insert: Insert, ask: Ask) -> None:
    insert("kernel_event", "event_id", (1,), (2,), capture_id=0, kind="kernel", name="add", start_ns=3, duration_ns=0)
    assert ask("SELECT calls, total_ns, share_percent, stddev_ns FROM v1.top_kernels") == [(2, 0, None, 0.0)]


def test_deviation_of_long_kernels_is_exact(insert: Insert, ask: Ask) -> None:
    """Squares of hours in ns exceed a double's digits; sums in whole numbers do not care."""
    hours = 10**13
    insert("kernel_event", "event_id duration_ns", (1, hours), (2, hours + 1), (3, hours + 2),
           capture_id=0, kind="kernel", name="add", start_ns=0)  # fmt: skip
    assert ask("SELECT total_ns, avg_ns, median_ns, stddev_ns FROM v1.top_kernels") == [
        (3 * hours + 3, hours + 1.0, hours + 1.0, 1.0)
    ]
