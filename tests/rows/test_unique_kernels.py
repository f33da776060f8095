"""v1.unique_kernels: signatures, without device and stream."""

from __future__ import annotations

from .conftest import ADD, GEMM, Trace


def test_device_and_stream_are_not_part_of_the_signature(trace: Trace) -> None:
    trace.capture()
    trace.event(ADD, 0, 10, stream_id=1, grid_x=4, block_x=128)
    trace.event(ADD, 0, 20, stream_id=2, device_id=1, grid_x=4, block_x=128)
    trace.event(ADD, 0, 30, grid_x=8, block_x=128)
    assert trace.rows("name, grid_x, calls, total_ns, mean_ns, median_ns", "unique_kernels") == [
        (ADD, 4, 2, 30, 15.0, 15.0),
        (ADD, 8, 1, 30, 30.0, 30.0),
    ]


def test_tiers(trace: Trace) -> None:
    trace.capture()
    trace.event(GEMM, 0, 1)
    trace.event(ADD, 0, 1)
    trace.event("Memcpy HtoD", 0, 1, kind="memcpy", bytes=64)
    trace.event("Memset", 0, 1, kind="memset", bytes=8)
    trace.event("graph", 0, 1, kind="graph")
    assert trace.rows("tier, class, bytes", "unique_kernels") == [
        (1, "copy", 8),
        (1, "copy", 64),
        (2, "matmul", None),
        (3, "elementwise", None),
    ]


def test_calls_per_step_over_marked_steps(trace: Trace) -> None:
    trace.capture()
    trace.launch()
    events = [trace.event(ADD, at, at + 1) for at in range(5)]
    trace.range(1, "ProfilerStep#1", 0, 10)
    trace.range(2, "ProfilerStep#2", 10, 20)
    trace.inside(1, *events[:3], rule="process")
    trace.inside(2, *events[3:4], rule="process")
    assert trace.rows("calls, calls_per_step", "unique_kernels") == [(5, 2.0)]


def test_without_steps_it_is_not_known(trace: Trace) -> None:
    trace.capture()
    trace.event(ADD, 0, 1)
    assert trace.rows("calls, calls_per_step", "unique_kernels") == [(1, None)]


def test_operator_and_shapes_are_part_of_the_signature(trace: Trace) -> None:
    trace.capture()
    for number, dims in ((1, "[[2]]"), (2, "[[3]]")):
        trace.add("op", capture_id=1, op_id=number, name="aten::add", start_ns=0, duration_ns=1, input_dims=dims)
        trace.event(ADD, 0, 1, op_id=number)
    assert trace.rows("op_name, input_dims, calls", "unique_kernels") == [
        ("aten::add", "[[2]]", 1),
        ("aten::add", "[[3]]", 1),
    ]


def test_empty(trace: Trace) -> None:
    assert trace.rows("name", "unique_kernels") == []
