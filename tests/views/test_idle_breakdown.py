"""``v1.idle_breakdown``: host-bound and device-bound idle time, and exposed collectives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

PARTS = "gaps, idle_ns, host_bound_ns, device_bound_ns, unknown_ns, collective_wait_ns"


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.idle_breakdown") == []


def test_gaps_before_and_after_the_next_launch(
    insert: Insert, ask: Ask, report: Report, shuffled: Callable[[], None]
) -> None:
    insert("launch", "launch_id start_ns", (1, 0), (2, 60), (3, 5), (4, 405), capture_id=0, name="l", duration_ns=1)
    insert("kernel_event", "event_id launch_id name start_ns duration_ns", (1, 1, "add", 10, 40),
           (2, 2, "add", 70, 30),            # 20 idle: 10 before its launch at 60 … but 3 was launched before
           (3, 3, "ncclKernel", 200, 100),   # 100 idle, all of it after its launch at 5
           (4, 4, "add", 410, 10), (5, 4, "add", 410, 10),  # 110 idle: 105 before the launch, 5 after
           (6, None, "add", 500, 1),         # 80 idle, and no launch known
           capture_id=0, kind="kernel", device_id=0)  # fmt: skip
    right = [(4, 310, 105, 125, 80, 100)]
    assert ask(f"SELECT {PARTS} FROM v1.idle_breakdown") == right
    shuffled()
    assert ask(f"SELECT {PARTS} FROM v1.idle_breakdown") == right
    assert ask("SELECT idle_ns, exposed_collective_ns FROM v1.gpu_timeline") == [(310, 100)]
    assert report("idle_breakdown", PARTS, by={"d": "{base}.device_id"}) == right
    found = report("idle_breakdown", PARTS, where={"e": "e.event_id < 3"})
    assert found == [(1, 20, 10, 10, 0, 0)]


def test_no_cause_before_an_event_whose_launch_was_not_recorded(
    insert: Insert, ask: Ask, report: Report, shuffled: Callable[[], None]
) -> None:
    """A later launch says from when on work was pending, but not that none was before."""
    insert("launch", "launch_id start_ns", (1, 0), (4, 250), (5, 290), capture_id=0, name="l", duration_ns=1)
    insert("kernel_event", "event_id launch_id start_ns", (1, 1, 10), (2, None, 100), (3, None, 260), (4, 4, 300),
           (5, 5, 310), (6, None, 400),
           capture_id=0, kind="kernel", name="add", device_id=0, duration_ns=10)  # fmt: skip
    right = [(4, 80 + 150 + 30 + 80, 0, 10 + 30, 80 + 140 + 80, 0)]
    assert ask(f"SELECT {PARTS} FROM v1.idle_breakdown") == right
    shuffled()
    assert ask(f"SELECT {PARTS} FROM v1.idle_breakdown") == right
    assert report("idle_breakdown", PARTS, by={"d": "{base}.device_id"}) == right
    columns = "idle_ns, unknown_ns, host_bound_ns, device_bound_ns"
    assert report("idle_breakdown", columns, where={"e": "e.event_id <= 2"}) == [(80, 80, None, None)]


def test_the_longest_gap(insert: Insert, ask: Ask) -> None:
    insert("kernel_event", "event_id kind name start_ns duration_ns",
           (1, "kernel", "a", 0, 10), (2, "kernel", "a", 15, 10), (3, "kernel", "a", 60, 1), (4, "kernel", "a", 62, 1),
           capture_id=0, device_id=0)  # fmt: skip
    assert ask("SELECT idle_ns, longest_gap_ns FROM v1.idle_breakdown") == [(5 + 35 + 1, 35)]


def test_devices_are_apart(insert: Insert, ask: Ask) -> None:
    insert("kernel_event", "device_id event_id start_ns", (0, 1, 0), (1, 2, 5), (0, 3, 20), (None, 4, 90),
           capture_id=0, kind="kernel", name="add", duration_ns=10)  # fmt: skip
    assert ask("SELECT device_id, idle_ns, unknown_ns FROM v1.idle_breakdown ORDER BY ALL") == [
        (0, 10, 10),
        (1, 0, 0),
        (None, 0, 0),
    ]


def test_without_launches_the_cause_is_not_captured(insert: Insert, ask: Ask) -> None:
    insert("kernel_event", "event_id start_ns", (1, 0), (2, 40),
           capture_id=0, device_id=0, kind="kernel", name="add", duration_ns=10)  # fmt: skip
    columns = "host_bound_ns, host_bound_percent, device_bound_ns, device_bound_percent"
    assert ask(f"SELECT idle_ns, unknown_ns, {columns} FROM v1.idle_breakdown") == [(30, 30, None, None, None, None)]
