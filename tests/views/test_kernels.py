"""``v1.kernels``: every kernel with class, operator, launch, step and neighbours."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest

from tracedb.derive import clipped_event, overlapping_kernel

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]

EVENT = "event_id kind name start_ns duration_ns"


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.kernels") == []


def test_class_by_user_rule_then_collective_arguments_then_shipped_rule(insert: Insert, ask: Ask) -> None:
    insert("kernel_rule", "priority pattern class", (1, "^mine", "attention"))
    insert("kernel_event", "event_id kind name collective",
           (1, "kernel", "sgemm", None), (2, "kernel", "sgemm", "allreduce"), (3, "kernel", "mine", "allreduce"),
           (4, "kernel", "ncclKernel", None), (5, "kernel", "unheard_of", None), (6, "memcpy", "Memcpy HtoD", None),
           (7, "graph", "graph 3", None), capture_id=0, start_ns=0, duration_ns=1)  # fmt: skip
    classes = ["matmul", "collective", "attention", "collective", "other"]
    assert ask("SELECT event_id, class FROM v1.kernels ORDER BY event_id") == list(enumerate(classes, 1))
    assert ask("SELECT event_id, class FROM v1._gpu_event WHERE event_id > 5") == [(6, "copy"), (7, "graph")]


def test_operator_and_launch_are_those_of_the_same_capture(insert: Insert, ask: Ask) -> None:
    insert("capture", "capture_id rank labels", (0, 3, {"threads": "256"}), (1, None, {}), source="torch")
    insert("device", "capture_id vendor", (0, "NVIDIA"), (1, "AMD"), device_id=0)
    insert("op", "capture_id name input_dims", (0, "aten::mm", "[[2, 3]]"), (1, "aten::add", None),
           op_id=5, start_ns=0, duration_ns=9)  # fmt: skip
    insert("launch", "capture_id thread_id", (0, 70), (1, 71), launch_id=8, name="launch", start_ns=0, duration_ns=1)
    insert("kernel_event", "capture_id op_id launch_id", (0, 5, 8), (1, 5, 8), (2, 5, None),
           event_id=1, kind="kernel", name="sgemm", start_ns=-4, duration_ns=3, device_id=0)  # fmt: skip
    query = """SELECT capture_id, rank, labels['threads'], vendor, op_name, input_dims, launch_thread_id, end_ns
               FROM v1.kernels ORDER BY capture_id"""
    assert ask(query) == [
        (0, 3, "256", "NVIDIA", "aten::mm", "[[2, 3]]", 70, -1),
        (1, None, None, "AMD", "aten::add", None, 71, -1),
        (2, None, None, None, None, None, None, -1),
    ]


def test_step_is_that_of_the_launch_or_else_of_the_start(insert: Insert, ask: Ask) -> None:
    insert("annotation", "capture_id annotation_id name parent_id",
           (0, 1, "ProfilerStep#7", None), (0, 2, "forward", 1), (0, 3, "ProfilerStep#9", None), (0, 4, "other", None),
           (1, 1, "ProfilerStep#9", None), (1, 2, "ProfilerStep#x", None),
           style="user", start_ns=0, duration_ns=9)  # fmt: skip
    insert("kernel_event", EVENT + " capture_id", *[(i, "kernel", "add", i, 1, 0) for i in range(5)],
           (2, "kernel", "add", 2, 1, 1))  # fmt: skip
    insert("annotation_kernel", "capture_id event_id annotation_id rule",
           (0, 1, 1, "process"), (0, 2, 2, "process"), (0, 2, 4, "process"), (0, 3, 3, "process"), (0, 4, 1, "thread"),
           (1, 2, 1, "time"))  # fmt: skip
    assert ask("SELECT capture_id, event_id, step, step_index FROM v1.kernels ORDER BY ALL") == [
        (0, 0, None, None),
        (0, 1, 7, 1),
        (0, 2, 7, 1),
        (0, 3, 9, 2),
        (0, 4, None, None),
        (1, 2, 9, 1),
    ]


def test_clipped_at_the_next_start_of_the_queue_on_amd_only(
    insert: Insert, ask: Ask, db: duckdb.DuckDBPyConnection
) -> None:
    insert("device", "device_id vendor", (0, "AMD"), (1, "NVIDIA"), capture_id=0)
    insert("device", "device_id vendor", (0, "AMD"), capture_id=1)
    insert("kernel_event", "event_id start_ns duration_ns device_id queue_id stream_id",
           (1, 0, 100, 0, 4, 1), (2, 10, 5, 0, 4, 2), (3, 10, 50, 0, 4, 3), (4, 30, 0, 0, 4, 4),  # one queue
           (5, 20, 99, 0, 5, 1), (6, 0, 40, 0, None, 1), (7, 15, 9, 0, None, 1),  # another; a stream without queue
           (8, 0, 40, 1, 4, 1), (9, 10, 40, 1, 4, 1), (10, 0, 7, 0, None, None),
           capture_id=0, kind="kernel", name="add")  # fmt: skip
    insert("kernel_event", "event_id start_ns duration_ns", (1, 20, 9), (2, 10, 99), (3, 10, 0), (4, 20, 3),
           capture_id=1, kind="kernel", name="add", device_id=0, queue_id=4)  # fmt: skip
    clipped_event.clip(db, 0)
    clipped_event.clip(db, 1)
    assert ask("SELECT event_id, clipped_duration_ns FROM main.clipped_event WHERE capture_id = 1") == [(2, 10)]
    assert ask("SELECT event_id, clipped_duration_ns FROM v1.kernels WHERE capture_id = 0 ORDER BY event_id") == [
        (1, 10), (2, 5), (3, 20), (4, 0), (5, 99), (6, 15), (7, 9), (8, 40), (9, 40), (10, 7)
    ]  # fmt: skip


def test_overlap_with_an_earlier_kernel_of_the_stream(insert: Insert, ask: Ask, db: duckdb.DuckDBPyConnection) -> None:
    insert("kernel_event", "event_id start_ns duration_ns device_id stream_id",
           (1, 0, 10, 0, 7), (2, 10, 5, 0, 7), (3, 14, 3, 0, 7), (4, 14, 0, 0, 7),  # touching, overlapping, empty
           (5, 0, 99, 1, 7), (6, 5, 1, 1, 8), (7, 6, 1, 1, 7), (8, 8, 1, 1, 7), (9, 8, 1, None, 7),
           capture_id=0, kind="kernel", name="add")  # fmt: skip
    overlapping_kernel.find(db, 0, 9)
    assert ask("SELECT list(event_id ORDER BY event_id) FROM v1.kernels WHERE overlaps_prev") == [([3, 7, 8],)]


def test_counting_does_not_work_out_steps(insert: Insert, ask: Ask) -> None:
    if int(duckdb.__version__.split(".")[0]) < 2:
        pytest.skip("older optimisers keep the join")
    insert("kernel_event", EVENT, (1, "kernel", "add", 0, 1), capture_id=0)
    insert("annotation_kernel", "capture_id annotation_id event_id rule", (0, 1, 1, "process"))
    plan = str(ask("EXPLAIN SELECT name, class, rank, count(*) FROM v1.kernels GROUP BY ALL"))
    assert "kernel_event" in plan
    assert "annotation" not in plan


def _operators(plan: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """The operators of a name in a plan, with all that is below them."""
    if name in plan["name"].upper():
        yield plan
    for child in plan["children"]:
        yield from _operators(child, name)


def test_the_first_rows_come_without_sorting_or_grouping_kernels(insert: Insert, ask: Ask) -> None:
    insert("kernel_event", EVENT, (1, "kernel", "add", 0, 1), capture_id=0)
    [(_, text)] = ask("EXPLAIN (FORMAT json) FROM v1.kernels LIMIT 1")
    (root,) = json.loads(text)
    for window in _operators(root, "WINDOW"):  # that which numbers the steps of a capture
        assert "kernel_event" not in json.dumps(window)
    [(_, plan)] = ask("EXPLAIN FROM v1.kernels LIMIT 1")
    scans = re.findall(r"\b(?:main\.)?kernel_event\b", plan)  # DuckDB 1.4 prints no schema
    assert len(scans) == 2  # the rows, and the names that are to be classed
