"""``v1.unique_kernels``: the different pieces of work of a run, with calls per step and time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.unique_kernels") == []


def test_signature(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    insert("op", "op_id name input_dims", (1, "aten::mm", "[[4]]"), (2, "aten::mm", "[[8]]"),
           capture_id=0, start_ns=0, duration_ns=1)  # fmt: skip
    insert("kernel_event", "event_id kind name duration_ns grid_x shared_bytes bytes op_id device_id stream_id",
           (1, "kernel", "sgemm", 10, 4, 99, None, 1, 0, 7), (2, "kernel", "sgemm", 20, 4, 99, None, 1, 1, 8),
           (3, "kernel", "sgemm", 7, 4, 99, None, 2, 0, 7), (4, "kernel", "sgemm", 7, 5, 99, None, 1, 0, 7),
           (5, "kernel", "copy_kernel", 7, 5, 99, None, None, 0, 7),
           (6, "memcpy", "Memcpy", 3, None, None, 64, 1, 0, 7),
           (7, "memcpy", "Memcpy", 4, None, None, 32, 1, 0, 7), (8, "memset", "Memset", 1, None, None, 8, None, 0, 7),
           (9, "graph", "graph", 1, None, None, None, None, 0, 7),
           capture_id=0, start_ns=0)  # fmt: skip
    query = """SELECT name, class, tier, grid_x, bytes, op_name, input_dims, calls, calls_per_step, total_ns, mean_ns,
                      median_ns, stddev_ns
               FROM v1.unique_kernels ORDER BY tier, name, bytes, grid_x, input_dims"""
    right = [
        ("Memcpy", "copy", 1, None, 32, "aten::mm", "[[4]]", 1, None, 4, 4.0, 4.0, 0.0),
        ("Memcpy", "copy", 1, None, 64, "aten::mm", "[[4]]", 1, None, 3, 3.0, 3.0, 0.0),
        ("Memset", "copy", 1, None, 8, None, None, 1, None, 1, 1.0, 1.0, 0.0),
        ("copy_kernel", "copy", 1, 5, None, None, None, 1, None, 7, 7.0, 7.0, 0.0),
        ("sgemm", "matmul", 2, 4, None, "aten::mm", "[[4]]", 2, None, 30, 15.0, 15.0, pytest.approx(50**0.5)),
        ("sgemm", "matmul", 2, 4, None, "aten::mm", "[[8]]", 1, None, 7, 7.0, 7.0, 0.0),
        ("sgemm", "matmul", 2, 5, None, "aten::mm", "[[4]]", 1, None, 7, 7.0, 7.0, 0.0),
    ]
    assert ask(query) == right
    shuffled()
    assert ask(query) == right


def test_calls_per_step_are_of_captures_and_marked_steps(insert: Insert, ask: Ask, report: Report) -> None:
    insert("capture", "capture_id rank", (0, 0), (1, 1), (2, 2), source="torch")
    insert("annotation", "capture_id annotation_id name",
           (0, 1, "ProfilerStep#1"), (0, 2, "ProfilerStep#2"), (1, 1, "ProfilerStep#1"),
           style="user", start_ns=0, duration_ns=9)  # fmt: skip
    insert("kernel_event", "capture_id event_id name",
           (0, 1, "add"), (0, 2, "add"), (0, 3, "add"), (0, 4, "add"), (1, 1, "add"), (1, 2, "mul"), (2, 1, "mul"),
           kind="kernel", start_ns=0, duration_ns=1)  # fmt: skip
    insert("annotation_kernel", "capture_id event_id annotation_id",
           (0, 1, 1), (0, 2, 1), (0, 3, 2), (1, 1, 1), (1, 2, 1), rule="process")  # fmt: skip
    query = "SELECT name, calls, calls_per_step FROM v1.unique_kernels ORDER BY name"
    assert ask(query) == [("add", 5, 4 / 3), ("mul", 2, 1 / 3)]
    by = {"rank": "{base}.rank"}
    assert report("unique_kernels", '"rank", name, calls, calls_per_step', by=by) == [
        (0, "add", 4, 1.5),
        (1, "add", 1, 1.0),
        (1, "mul", 1, 1.0),
        (2, "mul", 1, None),
    ]
    after_warmup = """EXISTS (SELECT 1 FROM v1._step_kernel AS w WHERE w.capture_id = e.capture_id
                              AND w.event_id = e.event_id AND w.step_index > 1)"""
    assert report("unique_kernels", "name, calls_per_step", where={"e": after_warmup}) == [("add", 1.0)]
