"""v1.kernels and v1.top_kernels: every kernel with its class, and the sums by name."""

from __future__ import annotations

import math

import pytest

from .conftest import ADD, GEMM, NCCL, Trace


def test_only_kernels_with_class_and_operator(trace: Trace) -> None:
    trace.capture(rank=3)
    trace.add("op", capture_id=1, op_id=5, name="aten::mm", start_ns=0, duration_ns=9, input_dims="[[2, 3], [3, 4]]")
    trace.event(GEMM, 0, 10, op_id=5)
    trace.event("Memcpy HtoD", 10, 20, kind="memcpy")
    trace.event("cudaGraph", 20, 30, kind="graph")
    columns = "rank, vendor, name, class, op_name, input_dims, step, duration_ns"
    expected = [(3, "NVIDIA", GEMM, "matmul", "aten::mm", "[[2, 3], [3, 4]]", None, 10)]
    assert trace.rows(columns, "kernels") == expected


def test_recorded_collective_beats_the_name_and_the_user_beats_both(trace: Trace) -> None:
    trace.capture()
    trace.event("my_kernel", 0, 1)
    trace.event("my_kernel", 1, 2, collective="allreduce")
    assert trace.rows("start_ns, class", "kernels") == [(0, "other"), (1, "collective")]
    trace.add("kernel_rule", priority=1, pattern="^my_", **{"class": "attention"})
    assert trace.rows("start_ns, class", "kernels") == [(0, "attention"), (1, "attention")]


def test_step_comes_from_the_range_of_any_thread(trace: Trace) -> None:
    trace.capture()
    trace.launch()
    first, second, third = (trace.event(ADD, at, at + 1) for at in (0, 10, 20))
    trace.range(1, "ProfilerStep#4", 0, 9)
    trace.range(2, "forward", 1, 8, parent_id=1, depth=1)
    trace.inside(2, first, rule="process")
    trace.inside(1, second, rule="process")
    trace.inside(1, third, rule="thread")
    assert trace.rows("event_id, step", "kernels") == [(first, 4), (second, 4), (third, None)]


def test_same_numbers_in_two_captures_are_kept_apart(trace: Trace) -> None:
    for number in (1, 2):
        trace.capture(number)
        trace.add("op", capture_id=number, op_id=1, name=f"op{number}", start_ns=0, duration_ns=1)
        trace.event(ADD, 0, 1, capture_id=number, event_id=1, op_id=1)
    assert trace.rows("capture_id, op_name", "kernels") == [(1, "op1"), (2, "op2")]


def test_rocm_durations_are_clipped_at_the_next_start_on_the_queue(trace: Trace) -> None:
    trace.capture(vendor="AMD")
    trace.event("a", 0, 1_600_000, queue_id=1)
    trace.event("b", 100, 150, queue_id=1)
    trace.event("c", 120, 130, queue_id=2)
    assert trace.rows("name, duration_ns, clipped_duration_ns", "kernels") == [
        ("a", 1_600_000, 100),
        ("b", 50, 50),
        ("c", 10, 10),
    ]


def test_nvidia_durations_are_not_clipped(trace: Trace) -> None:
    trace.capture()
    trace.event("a", 0, 100)
    trace.event("b", 50, 60)
    assert trace.rows("name, clipped_duration_ns, overlaps_prev", "kernels") == [("a", 100, False), ("b", 10, True)]


def test_sums_by_name(trace: Trace) -> None:
    trace.capture()
    for start, end in ((0, 10), (20, 40), (50, 80), (100, 140)):
        trace.event(GEMM, start, end)
    trace.event(ADD, 200, 300)
    columns = "name, class, calls, total_ns, share_percent, avg_ns, median_ns, min_ns, max_ns, stddev_ns"
    gemm, add = trace.rows(columns, "top_kernels", "name")
    assert gemm[:9] == (GEMM, "matmul", 4, 100, 50.0, 25.0, 25.0, 10, 40)
    assert gemm[9] == pytest.approx(math.sqrt(500 / 3), rel=1e-12)
    assert add == (ADD, "elementwise", 1, 100, 50.0, 100.0, 100.0, 100, 100, 0.0)


def test_shares_are_of_the_group(trace: Trace) -> None:
    for rank in (0, 1):
        trace.capture(rank + 1, rank=rank)
    trace.event(GEMM, 0, 30, capture_id=1)
    trace.event(ADD, 30, 40, capture_id=1)
    trace.event(ADD, 0, 5, capture_id=2)
    assert trace.rows_by('"rank", name, share_percent', "top_kernels", "rank") == [
        (0, GEMM, 75.0),
        (0, ADD, 25.0),
        (1, ADD, 100.0),
    ]
    filtered = trace.rows_by('"rank", name, calls', "top_kernels", "rank", ["e.rank = 1"])
    assert filtered == [(1, ADD, 1)]


def test_negative_times_zero_durations_and_nothing(trace: Trace) -> None:
    assert trace.rows("name", "kernels") == trace.rows("name", "top_kernels") == []
    trace.capture()
    trace.event(ADD, -100, -50)
    trace.event(ADD, 0, 0)
    assert trace.rows("calls, total_ns, min_ns", "top_kernels") == [(2, 50, 0)]


def test_large_sums_are_exact(trace: Trace) -> None:
    trace.capture()
    big = (1 << 53) + 1
    trace.event(GEMM, 0, big)
    trace.event(GEMM, 0, big)
    assert trace.rows("total_ns, stddev_ns", "top_kernels") == [(2 * big, 0.0)]
    assert NCCL not in [name for (name,) in trace.rows("name", "top_kernels")]
