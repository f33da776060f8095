"""``v1.gpu_timeline``: computation, exposed collectives, exposed copies, idle; they add up exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

EVENT = "event_id kind name start_ns duration_ns"
TIMES = "computation_ns, exposed_collective_ns, exposed_copy_ns, busy_ns, idle_ns, total_ns"
PERCENTS = "computation_percent, exposed_collective_percent, exposed_copy_percent, busy_percent, idle_percent"


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.gpu_timeline") == []


def test_layers(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    insert("kernel_event", EVENT,
           (1, "kernel", "add", 0, 10), (2, "kernel", "mul", 5, 5), (3, "graph", "graph", 10, 10),  # 0 to 20
           (4, "kernel", "ncclKernel", -20, 50), (5, "kernel", "ncclKernel", 30, 0),                # adds 20 and 10
           (6, "memcpy", "Memcpy", -30, 20), (7, "memset", "Memset", 25, 15), (8, "memcpy", "Memcpy", 30, 10),
           (9, "kernel", "copy_kernel", 60, 40),                                                   # computes
           capture_id=0)  # fmt: skip
    right = [(60, 30, 20, 110, 20, 130)]
    assert ask(f"SELECT {TIMES} FROM v1.gpu_timeline") == right
    assert ask(f"SELECT {PERCENTS} FROM v1.gpu_timeline") == [tuple(100 * ns / 130 for ns in right[0][:5])]
    shuffled()
    assert ask(f"SELECT {TIMES} FROM v1.gpu_timeline") == right


def test_events_of_no_length_take_no_time(insert: Insert, ask: Ask) -> None:
    insert("kernel_event", EVENT, (1, "kernel", "add", 5, 0), (2, "memcpy", "Memcpy", 5, 0), capture_id=0)
    assert ask(f"SELECT {TIMES}, {PERCENTS} FROM v1.gpu_timeline") == [(0,) * 6 + (None,) * 5]


def test_devices_and_captures_are_apart(insert: Insert, ask: Ask, report: Report) -> None:
    insert("capture", "capture_id rank labels", (0, 0, {"t": "8"}), (1, 1, {"t": "8"}), source="torch")
    insert("kernel_event", "capture_id device_id event_id kind name start_ns duration_ns",
           (0, 0, 1, "kernel", "add", 0, 10), (0, 1, 2, "memcpy", "Memcpy", 5, 10),
           (1, 0, 1, "kernel", "ncclKernel", 50, 5), (1, 0, 2, "kernel", "add", 60, 5),
           (1, None, 3, "memset", "Memset", 0, 3))  # fmt: skip
    query = f"SELECT capture_id, rank, labels['t'], device_id, {TIMES} FROM v1.gpu_timeline ORDER BY ALL"
    assert ask(query) == [
        (0, 0, "8", 0, 10, 0, 0, 10, 0, 10),
        (0, 0, "8", 1, 0, 0, 10, 10, 0, 10),
        (1, 1, "8", 0, 5, 5, 0, 10, 5, 15),
        (1, 1, "8", None, 0, 0, 3, 3, 0, 3),
    ]
    by = {"t": "{base}.labels['t']"}
    assert report("gpu_timeline", f'"t", {TIMES}, idle_percent', by=by) == [("8", 15, 5, 13, 33, 5, 38, 500 / 38)]
    found = report("gpu_timeline", f"capture_id, {TIMES}", where={"e": "e.rank = 1 AND e.device_id = 0"})
    assert found == [(1, 5, 5, 0, 10, 5, 15)]
