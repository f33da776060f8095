"""``v1.queue_depth``: kernels launched but not finished, counted at each launch call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

DEPTHS = "launches, mean_depth, median_depth, max_depth, empty_launches, empty_percent, kernels_without_launch"
CALL = {"capture_id": 0, "name": "cudaLaunchKernel", "duration_ns": 1}
KERNEL = {"capture_id": 0, "kind": "kernel", "name": "add"}


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.queue_depth") == []


def test_running_count(insert: Insert, ask: Ask, report: Report, shuffled: Callable[[], None]) -> None:
    # Depths 0, 1, 2, 2 (call 4 begins as kernel 1 ends: ends come first), 3, 0 (call 6, after all has ended).
    insert("launch", "launch_id start_ns", (1, 0), (2, 10), (3, 20), (4, 50), (5, 60), (6, 500), **CALL)
    insert("kernel_event", "event_id launch_id start_ns duration_ns", (1, 1, 20, 30), (2, 2, 50, 50), (3, 3, 100, 50),
           (4, 4, 150, 50), (5, 5, 200, 50), (6, 6, 510, 5), device_id=0, **KERNEL)  # fmt: skip
    right = [(6, pytest.approx(8 / 6), 1.5, 3, 2, pytest.approx(100 / 3), 0)]
    assert ask(f"SELECT {DEPTHS} FROM v1.queue_depth") == right
    shuffled()
    assert ask(f"SELECT {DEPTHS} FROM v1.queue_depth") == right
    assert report("queue_depth", DEPTHS, by={"d": "{base}.device_id"}) == right
    # A filter takes calls out of the count and leaves the queue as it was.
    assert report("queue_depth", DEPTHS, where={"e": "e.event_id IN (3, 5)"}) == [(2, 2.5, 2.5, 3, 0, 0.0, 0)]


def test_one_call_of_many_kernels_ties_and_early_ends(insert: Insert, ask: Ask) -> None:
    insert("launch", "launch_id start_ns", (1, 100), (2, 100), (3, 101), (4, 110), **CALL)
    insert("kernel_event", "event_id launch_id start_ns duration_ns",
           (1, 1, 105, 5), (2, 1, 110, 5), (3, 1, 115, 5),  # a graph of three: depth 0, once
           (4, 2, 50, 10),  # its call begins with that of the graph and comes second; it ends too early: gone at 101
           (5, 3, 120, 5),  # 3
           (6, 4, 130, 5), device_id=0, **KERNEL)  # fmt: skip
    insert("kernel_event", "event_id launch_id start_ns duration_ns", (7, 4, 0, 900), capture_id=0, kind="memcpy",
           name="Memcpy", device_id=0)  # fmt: skip
    assert ask(f"SELECT {DEPTHS} FROM v1.queue_depth") == [(4, 9 / 4, 3.0, 3, 1, 25.0, 0)]


def test_devices_are_apart_and_unrecorded_launches_are_null(insert: Insert, ask: Ask) -> None:
    insert("launch", "launch_id start_ns", (1, 0), (2, 1), **CALL)
    insert("kernel_event", "event_id device_id launch_id start_ns", (1, 0, 1, 10), (2, 1, 2, 10), (3, 1, None, 30),
           (4, 2, None, 0), (5, 2, 77, 0), (6, None, 1, 50), duration_ns=5, **KERNEL)  # fmt: skip
    assert ask(f"SELECT device_id, {DEPTHS} FROM v1.queue_depth ORDER BY ALL") == [
        (0, 1, 0.0, 0.0, 0, 1, 100.0, 0),
        (1, 1, 0.0, 0.0, 0, 1, 100.0, 1),
        (2, None, None, None, None, None, None, 2),
        (None, 1, 0.0, 0.0, 0, 1, 100.0, 0),
    ]
