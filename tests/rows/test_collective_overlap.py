"""v1.collective_overlap: unions of intervals, and what they have in common."""

from __future__ import annotations

import random

from .conftest import ADD, GEMM, NCCL, Trace

COLUMNS = "collective_ns, compute_ns, overlapped_ns, exposed_collective_ns, overlap_percent"


def test_partly_hidden(trace: Trace) -> None:
    trace.capture(rank=2)
    trace.event(NCCL, 0, 100)
    trace.event(GEMM, 50, 70)
    trace.event(ADD, 60, 120)
    columns = f"rank, device_id, {COLUMNS}, collective_calls"
    assert trace.rows(columns, "collective_overlap") == [(2, 0, 100, 70, 50, 50, 50.0, 1)]


def test_touching_intervals_merge_and_do_not_overlap(trace: Trace) -> None:
    trace.capture()
    trace.event(NCCL, 0, 10)
    trace.event(NCCL, 10, 20)
    trace.event(GEMM, 20, 30)
    assert trace.rows(COLUMNS, "collective_overlap") == [(20, 10, 0, 20, 0.0)]


def test_no_collective_is_null_percent(trace: Trace) -> None:
    trace.capture()
    trace.event(GEMM, 0, 10)
    assert trace.rows(COLUMNS, "collective_overlap") == [(0, 10, 0, 0, None)]


def test_copies_are_no_compute_and_graphs_are(trace: Trace) -> None:
    trace.capture()
    trace.event(NCCL, 0, 100)
    trace.event("Memcpy DtoH", 0, 50, kind="memcpy")
    trace.event("graph 1", 90, 110, kind="graph")
    assert trace.rows(COLUMNS, "collective_overlap") == [(100, 20, 10, 90, 10.0)]


def test_two_devices_with_the_same_stream(trace: Trace) -> None:
    trace.capture()
    trace.event(NCCL, 0, 10, device_id=0)
    trace.event(GEMM, 0, 10, device_id=1)
    assert trace.rows(f"device_id, {COLUMNS}", "collective_overlap") == [
        (0, 10, 0, 0, 10, 0.0),
        (1, 0, 10, 0, 0, None),
    ]


def test_zero_length_adds_nothing(trace: Trace) -> None:
    trace.capture()
    trace.event(NCCL, 5, 5)
    trace.event(GEMM, 0, 10)
    assert trace.rows(COLUMNS, "collective_overlap") == [(0, 10, 0, 0, None)]


def test_empty(trace: Trace) -> None:
    assert trace.rows(COLUMNS, "collective_overlap") == []


def test_random_intervals_against_sets_of_nanoseconds(trace: Trace) -> None:
    chance = random.Random(7)
    trace.capture()
    covered: dict[str, set[int]] = {NCCL: set(), GEMM: set()}
    for _ in range(60):
        name, start = chance.choice((NCCL, GEMM)), chance.randrange(-50, 300)
        end = start + chance.randrange(0, 30)
        trace.event(name, start, end)
        covered[name].update(range(start, end))
    both = covered[NCCL] & covered[GEMM]
    (row,) = trace.rows("collective_ns, compute_ns, overlapped_ns, exposed_collective_ns", "collective_overlap")
    assert row == (len(covered[NCCL]), len(covered[GEMM]), len(both), len(covered[NCCL] - both))
