"""v1.gpu_activity: streams, and times of several ranks on one clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]

QUERY = "SELECT rank, start_ns, clock, common_start_ns FROM v1.gpu_activity ORDER BY rank"


def ranks(insert: Insert, *zeros: int | None) -> None:
    """Put in a capture for each zero of its clock, with one kernel that starts at 1,000 on it."""
    for rank, zero in enumerate(zeros):
        insert(
            "capture",
            "capture_id rank clock_zero_unix_ns",
            (rank + 1, rank, zero),
            path=f"rank{rank}",
            source="torch",
            status="complete",
            labels={"sweep": "a"},
        )
        insert(
            "kernel_event",
            "event_id",
            (1,),
            capture_id=rank + 1,
            kind="kernel",
            name="k",
            start_ns=1_000,
            duration_ns=10,
            device_id=0,
        )


def test_aligned_clocks_lose_offset_and_drift(insert: Insert, ask: Ask) -> None:
    ranks(insert, None, None)
    insert(
        "clock_alignment",
        "capture_id offset_ns drift_ppm uses_drift",
        (1, 0, None, False),
        (2, 300, 1e6, True),
        reference_capture_id=1,
        at_ns=500,
        calls=9,
        span_ns=1,
        residual_median_ns=0,
        residual_p99_ns=0,
    )
    # 1,000 - 300 = 700 on the common clock at no drift; 200 after the moment of the offset, which is twice too much
    assert ask(QUERY) == [(0, 1_000, "aligned", 1_000), (1, 1_000, "aligned", 600)]


def test_clocks_without_alignment_are_compared_as_recorded_or_not_at_all(insert: Insert, ask: Ask) -> None:
    ranks(insert, 5_000, 6_000)
    assert ask(QUERY) == [(0, 1_000, "recorded", 6_000), (1, 1_000, "recorded", 7_000)]


def test_a_clock_without_place_in_the_world_cannot_be_compared(insert: Insert, ask: Ask) -> None:
    ranks(insert, 5_000, None)
    assert ask(QUERY) == [(0, 1_000, "incomparable", None), (1, 1_000, "incomparable", None)]


def test_lanes_are_streams_else_queues(insert: Insert, ask: Ask) -> None:
    ranks(insert, None)
    insert(
        "kernel_event",
        "event_id stream_id queue_id",
        (2, 7, 1),
        (3, None, 2),
        capture_id=1,
        kind="memcpy",
        name="c",
        start_ns=0,
        duration_ns=1,
        device_id=0,
    )
    assert ask("SELECT event_id, lane, lane_number, class, clock FROM v1.gpu_activity ORDER BY event_id") == [
        (1, None, None, "other", "aligned"),
        (2, "stream 7", 7, "copy", "aligned"),
        (3, "queue 2", 2, "copy", "aligned"),
    ]
