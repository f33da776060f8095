"""v1.matmul_fraction: the share of each class."""

from __future__ import annotations

from .conftest import ADD, GEMM, NCCL, Trace


def test_shares_of_summed_kernel_time(trace: Trace) -> None:
    trace.capture()
    trace.event(GEMM, 0, 60)
    trace.event(GEMM, 0, 15)
    trace.event(ADD, 0, 20)
    trace.event(NCCL, 0, 5)
    trace.event("Memcpy HtoD", 0, 1000, kind="memcpy")
    assert trace.rows("class, calls, total_ns, share_percent", "matmul_fraction") == [
        ("collective", 1, 5, 5.0),
        ("elementwise", 1, 20, 20.0),
        ("matmul", 2, 75, 75.0),
    ]


def test_no_matmul_is_an_answer_where_there_are_kernels(trace: Trace) -> None:
    trace.capture()
    trace.event(ADD, 0, 20)
    assert trace.rows("class, calls, share_percent", "matmul_fraction") == [("elementwise", 1, 100.0), ("matmul", 0, 0.0)]


def test_nothing_captured_gives_no_row(trace: Trace) -> None:
    trace.capture()
    trace.event("Memcpy HtoD", 0, 1000, kind="memcpy")
    assert trace.rows("class", "matmul_fraction") == []


def test_every_group_has_its_matmul_row(trace: Trace) -> None:
    trace.capture(1, rank=0)
    trace.capture(2, rank=1)
    trace.event(GEMM, 0, 10, capture_id=1)
    trace.event(ADD, 0, 10, capture_id=2)
    assert trace.rows_by('"rank", class, calls', "matmul_fraction", "rank") == [
        (0, "matmul", 1),
        (1, "elementwise", 1),
        (1, "matmul", 0),
    ]


def test_kernels_of_no_length_have_no_share(trace: Trace) -> None:
    trace.capture()
    trace.event(GEMM, 5, 5)
    assert trace.rows("class, calls, total_ns, share_percent", "matmul_fraction") == [("matmul", 1, 0, None)]
