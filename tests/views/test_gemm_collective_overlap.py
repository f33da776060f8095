"""``v1.gemm_collective_overlap``: every GEMM with every collective that overlaps it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

EVENT = "event_id name start_ns duration_ns"
PAIRS = "SELECT gemm_event_id, collective_event_id, overlap_ns FROM v1.gemm_collective_overlap ORDER BY ALL"


def test_empty(insert: Insert, ask: Ask) -> None:
    assert ask(PAIRS) == []
    insert("kernel_event", EVENT, (1, "sgemm", 0, 5), capture_id=0, kind="kernel")
    assert ask(PAIRS) == []
    insert("kernel_event", EVENT, (2, "ncclKernel", 5, 5), (3, "add", 0, 9), capture_id=0, kind="kernel")
    assert ask(PAIRS) == []


def test_columns_of_a_pair(insert: Insert, ask: Ask) -> None:
    insert("capture", "capture_id rank labels", (3, 1, {"t": "8"}), source="torch")
    insert("op", "capture_id op_id input_dims", (3, 7, "[[4, 4]]"), name="aten::mm", start_ns=0, duration_ns=1)
    insert("kernel_event", "event_id name start_ns duration_ns stream_id op_id collective",
           (1, "sgemm", 10, 8, 7, 7, None), (2, "ncclKernel", 12, 100, 9, None, "allreduce"),
           capture_id=3, device_id=0, kind="kernel")  # fmt: skip
    assert ask("SELECT * EXCLUDE (labels), labels['t'] FROM v1.gemm_collective_overlap") == [
        (3, 1, 0, 1, 2, "sgemm", "[[4, 4]]", "ncclKernel", "allreduce", 7, 9, 10, 8, 12, 100, 6, 75.0, "8")
    ]


def naive(events: list[tuple[int, int, int, str, int, int]]) -> list[tuple[int, int, int]]:
    gemms = [event for event in events if event[3] == "sgemm"]
    others = [event for event in events if event[3] != "sgemm"]
    return sorted(
        (g[2], c[2], min(g[4] + g[5], c[4] + c[5]) - max(g[4], c[4]))
        for g in gemms
        for c in others
        if g[:2] == c[:2] and c[4] < g[4] + g[5] and c[4] + c[5] > g[4]
    )


def test_against_all_pairs(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    """Ties, nesting, events of no length, unknown devices, two captures: the same pairs as by comparing all."""
    dice = random.Random(5)
    events = [
        (dice.randrange(2), dice.choice([0, 1, -1]), number, dice.choice(["sgemm", "ncclKernel"]),
         dice.randrange(-20, 20), dice.choice([0, 1, 2, 5, 30]))
        for number in range(160)
    ]  # fmt: skip
    insert("kernel_event", "capture_id device_id event_id name start_ns duration_ns",
           *[(event[0], None if event[1] < 0 else event[1], *event[2:]) for event in events],
           kind="kernel")  # fmt: skip
    right = naive(events)
    assert len(right) > 150 and any(overlap == 0 for *_, overlap in right)
    assert ask(PAIRS) == right
    shuffled()
    assert ask(PAIRS) == right
    variance = ask("SELECT sum(overlapped_calls), sum(alone_calls) FROM v1.gemm_variance")
    overlapped = len({gemm for gemm, *_ in right})
    assert variance == [(overlapped, sum(event[3] == "sgemm" for event in events) - overlapped)]
    assert ask("SELECT overlapped_calls FROM v1.overlap_effect") == [(overlapped,)]


def test_filters_are_about_the_gemms(insert: Insert, report: Report) -> None:
    insert("kernel_event", "capture_id event_id name start_ns duration_ns",
           (0, 1, "sgemm", 0, 10), (0, 2, "sgemm", 20, 10), (0, 3, "ncclKernel", 5, 20),
           kind="kernel", device_id=0)  # fmt: skip
    found = report("gemm_collective_overlap", "gemm_event_id, overlap_ns", where={"e": "e.event_id = 2"})
    assert found == [(2, 5)]
    found = report("gemm_collective_overlap", '"n", gemm_event_id', by={"n": "{base}.name"})
    assert found == [("sgemm", 1), ("sgemm", 2)]
