"""``v1.matmul_fraction``: share of the summed kernel time by class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.matmul_fraction") == []


def test_copies_and_replays_recorded_as_a_whole_are_no_kernels(insert: Insert, ask: Ask) -> None:
    insert("kernel_event", "event_id kind name", (1, "memcpy", "Memcpy"), (2, "memset", "Memset"), (3, "graph", "g"),
           capture_id=0, start_ns=0, duration_ns=10)  # fmt: skip
    assert ask("SELECT * FROM v1.matmul_fraction") == []


def test_shares(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    insert("kernel_event", "capture_id event_id name duration_ns",
           (0, 1, "sgemm", 10), (0, 2, "nvjet_tst", 20), (1, 1, "add", 50), (1, 2, "ncclKernel", 20),
           kind="kernel", start_ns=0)  # fmt: skip
    right = [("collective", 1, 20, 20.0), ("elementwise", 1, 50, 50.0), ("matmul", 2, 30, 30.0)]
    assert ask("FROM v1.matmul_fraction ORDER BY class") == right
    shuffled()
    assert ask("FROM v1.matmul_fraction ORDER BY class") == right


def test_collective_arguments_decide_a_call_and_the_users_rules_before_them(insert: Insert, ask: Ask) -> None:
    insert("kernel_rule", "priority pattern class", (1, "^halo", "exchange"))
    insert("kernel_event", "event_id name duration_ns collective",
           (1, "sgemm", 10, None), (2, "sgemm", 20, "allreduce"), (3, "sgemm", 40, None), (4, "ncclKernel", 5, None),
           (5, "ncclKernel", 25, "allreduce"), (6, "halo", 30, "allreduce"), (7, "halo", 70, None),
           capture_id=0, kind="kernel", start_ns=0)  # fmt: skip
    assert ask("FROM v1.matmul_fraction ORDER BY class") == [
        ("collective", 3, 50, 25.0),
        ("exchange", 2, 100, 50.0),
        ("matmul", 2, 50, 25.0),
    ]


def test_matmul_has_a_row_in_every_group_with_kernels(insert: Insert, report: Report) -> None:
    insert("capture", "capture_id rank", (0, 0), (1, None), source="torch")
    insert("kernel_event", "capture_id name", (0, "sgemm"), (1, "add"),
           event_id=1, kind="kernel", start_ns=0, duration_ns=10)  # fmt: skip
    found = report("matmul_fraction", "*", by={"rank": "{base}.rank"})
    assert found == [(0, "matmul", 1, 10, 100.0), (None, "elementwise", 1, 10, 100.0), (None, "matmul", 0, 0, 0.0)]
    assert report("matmul_fraction", "*", where={"e": "e.rank = 9"}) == []


def test_all_of_no_length_have_no_share(insert: Insert, ask: Ask) -> None:
    insert("kernel_event", "event_id", (1,), capture_id=0, kind="kernel", name="sgemm", start_ns=0, duration_ns=0)
    assert ask("SELECT * FROM v1.matmul_fraction") == [("matmul", 1, 0, None)]
