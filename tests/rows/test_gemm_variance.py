"""v1.gemm_variance: the spread of one GEMM, and whether collectives beside it explain it."""

from __future__ import annotations

import pytest

from .conftest import ADD, GEMM, NCCL, Trace

DIMS = "[[8, 4], [4, 2]]"


def gemms(trace: Trace, *intervals: tuple[int, int], op: int | None = 1) -> None:
    for start, end in intervals:
        trace.event(GEMM, start, end, op_id=op)


def with_op(trace: Trace) -> None:
    trace.capture(rank=4)
    trace.add("op", capture_id=1, op_id=1, name="aten::mm", start_ns=0, duration_ns=9, input_dims=DIMS)


def test_every_figure_of_one_group(trace: Trace) -> None:
    with_op(trace)
    gemms(trace, (0, 100), (1000, 1200), (2000, 2300), (3000, 3400))
    trace.event(NCCL, 1900, 3500)
    trace.event(ADD, 0, 5)
    columns = "rank, name, input_dims, calls, mean_ns, min_ns, max_ns, spread_ns"
    assert trace.rows(columns, "gemm_variance") == [(4, GEMM, DIMS, 4, 250.0, 100, 400, 300)]
    assert trace.rows("p50_ns, p95_ns, p99_ns", "gemm_variance") == [pytest.approx((250.0, 385.0, 397.0))]
    columns = "start_of_min_ns, start_of_max_ns, overlapped_calls, alone_calls, overlapped_mean_ns, alone_mean_ns"
    assert trace.rows(columns, "gemm_variance") == [(0, 3000, 2, 2, 350.0, 150.0)]
    ((stddev, cv, slowdown, explained),) = trace.rows(
        "stddev_ns, cv_percent, slowdown, spread_explained_percent", "gemm_variance"
    )
    assert stddev == pytest.approx(129.09944487358058)
    assert cv == pytest.approx(51.63977794943223)
    assert slowdown == pytest.approx(350 / 150)
    assert explained == pytest.approx(100 * 40_000 / 50_000)


def test_touching_is_not_overlapping(trace: Trace) -> None:
    with_op(trace)
    gemms(trace, (100, 200))
    trace.event(NCCL, 0, 100)
    trace.event(NCCL, 200, 300)
    columns = "overlapped_calls, alone_calls, slowdown, verdict"
    assert trace.rows(columns, "gemm_variance") == [(0, 1, None, "never overlapped")]


def test_a_long_collective_that_began_long_ago_still_counts(trace: Trace) -> None:
    with_op(trace)
    trace.event(NCCL, 0, 10_000)
    trace.event(NCCL, 10, 20)
    gemms(trace, (5000, 5001))
    assert trace.rows("overlapped_calls, verdict", "gemm_variance") == [(1, "always overlapped")]


def test_collectives_of_another_device_or_capture_do_not_count(trace: Trace) -> None:
    with_op(trace)
    trace.capture(2)
    trace.event(NCCL, 0, 1000, device_id=1)
    trace.event(NCCL, 0, 1000, capture_id=2)
    gemms(trace, (100, 200))
    assert trace.rows("device_id, overlapped_calls, alone_calls", "gemm_variance") == [(0, 0, 1)]


def test_shapes_and_captures_and_devices_are_groups(trace: Trace) -> None:
    with_op(trace)
    gemms(trace, (0, 10))
    gemms(trace, (20, 40), op=None)
    trace.event(GEMM, 0, 7, device_id=1)
    rows = trace.rows("device_id, input_dims, calls, mean_ns, stddev_ns", "gemm_variance")
    assert rows == [(0, DIMS, 1, 10.0, 0.0), (0, None, 1, 20.0, 0.0), (1, None, 1, 7.0, 0.0)]


def test_no_collectives_at_all_is_said(trace: Trace) -> None:
    with_op(trace)
    gemms(trace, (0, 10), (20, 30))
    columns = "overlapped_calls, alone_calls, overlapped_mean_ns, slowdown, spread_explained_percent, verdict"
    assert trace.rows(columns, "gemm_variance") == [(0, 2, None, None, None, "no collectives")]


def test_by_replaces_the_capture_grain(trace: Trace) -> None:
    trace.capture(1, rank=0)
    trace.capture(2, rank=0)
    for capture in (1, 2):
        trace.event(GEMM, 0, 10 * capture, capture_id=capture)
    assert trace.rows("capture_id, calls", "gemm_variance") == [(1, 1), (2, 1)]
    assert trace.rows_by('"rank", calls, spread_ns', "gemm_variance", "rank") == [(0, 2, 10)]


def test_equal_calls_have_no_spread_to_explain(trace: Trace) -> None:
    with_op(trace)
    gemms(trace, *((at, at + 10) for at in range(0, 600, 100)))
    trace.event(NCCL, 250, 600)
    columns = "overlapped_calls, alone_calls, slowdown, spread_explained_percent, verdict"
    assert trace.rows(columns, "gemm_variance") == [(3, 3, 1.0, None, "spread has other causes")]


def test_nothing_is_nothing(trace: Trace) -> None:
    trace.capture()
    trace.event(ADD, 0, 10)
    assert trace.rows("name", "gemm_variance") == []
