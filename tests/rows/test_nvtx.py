"""v1.nvtx_ranges and v1.nvtx_kernels: time of ranges, and the kernels in them."""

from __future__ import annotations

from .conftest import ADD, GEMM, Trace


def nested(trace: Trace) -> tuple[int, int, int]:
    """step [0, 100) holds forward [10, 40) and forward [50, 90); three kernels, the last outside forward."""
    trace.capture()
    trace.launch()
    first, second, third = trace.event(GEMM, 200, 210), trace.event(ADD, 205, 230), trace.event(ADD, 300, 310)
    trace.range(1, "step", 0, 100)
    trace.range(2, "forward", 10, 40, parent_id=1, depth=1)
    trace.range(3, "forward", 50, 90, parent_id=1, depth=1)
    trace.inside(2, first, second)
    trace.inside(1, third)
    return first, second, third


def test_ranges_and_their_projection(trace: Trace) -> None:
    nested(trace)
    columns = (
        "name, instances, range_total_ns, projected_total_ns, projected_avg_ns, projected_median_ns, "
        "projected_min_ns, projected_max_ns, projected_stddev_ns, gpu_ops"
    )
    rows = [row for row in trace.rows(f"rule, {columns}", "nvtx_ranges") if row[0] == "thread"]
    assert rows == [
        ("thread", "forward", 2, 70, 30, 30.0, 30.0, 30, 30, 0.0, 2),
        ("thread", "step", 1, 100, 110, 110.0, 110.0, 110, 110, 0.0, 3),
    ]


def test_a_kernel_counts_in_every_enclosing_range(trace: Trace) -> None:
    nested(trace)
    columns = "range, kernel, range_instances, calls, total_ns, avg_ns, median_ns, min_ns, max_ns, stddev_ns"
    rows = trace.rows(f"rule, {columns}", "nvtx_kernels")
    inside = sorted(row[1:6] for row in rows if row[0] == "thread" and row[1] is not None)
    assert inside == [
        ("forward", GEMM, 1, 1, 10),
        ("forward", ADD, 1, 1, 25),
        ("step", GEMM, 1, 1, 10),
        ("step", ADD, 1, 2, 35),
    ]


def test_two_innermost_ranges_count_a_common_outer_one_once(trace: Trace) -> None:
    """Two ranges that cross inside a step both hold the kernel; the step holds it once."""
    trace.capture()
    trace.launch()
    event = trace.event(ADD, 0, 10)
    trace.range(1, "step", 0, 100)
    trace.range(2, "a", 0, 20, parent_id=1, depth=1)
    trace.range(3, "b", 10, 40, parent_id=1, depth=1)
    trace.inside(2, event)
    trace.inside(3, event)
    rows = [row for row in trace.rows("rule, name, gpu_ops", "nvtx_ranges") if row[0] == "thread"]
    assert rows == [("thread", "a", 1), ("thread", "b", 1), ("thread", "step", 1)]
    calls = {r: c for rule, r, c in trace.rows("rule, range, calls", "nvtx_kernels") if rule == "thread"}
    assert calls == {"a": 1, "b": 1, "step": 1}


def test_rules_stand_apart(trace: Trace) -> None:
    """A launch on autograd's thread belongs to backward by process, not by thread."""
    trace.capture()
    trace.launch()
    event = trace.event(ADD, 0, 10)
    trace.range(1, "backward", 0, 100)
    trace.inside(1, event, rule="process")
    assert trace.rows("rule, gpu_ops, projected_total_ns", "nvtx_ranges") == [("process", 1, 10), ("thread", 0, None)]


def test_without_launches_membership_is_by_time(trace: Trace) -> None:
    trace.capture()
    event = trace.event(ADD, 5, 10)
    trace.range(1, "a", 0, 100)
    trace.inside(1, event, rule="time")
    assert trace.rows("rule, name, gpu_ops", "nvtx_ranges") == [("time", "a", 1)]


def test_no_gpu_activity_is_not_captured_rather_than_zero(trace: Trace) -> None:
    trace.capture()
    trace.range(1, "a", 0, 100)
    assert trace.rows("rule, instances, range_total_ns, projected_total_ns, gpu_ops", "nvtx_ranges") == [
        ("thread", 1, 100, None, None)
    ]


def test_marks_open_ranges_and_projections(trace: Trace) -> None:
    trace.capture()
    trace.launch()
    trace.event(ADD, 5, 10)
    trace.range(1, "mark", 0, None, style="mark", depth=None)
    trace.range(2, "open", 0, None, is_open=True, depth=None)
    trace.range(3, "projected", 0, 50, style="gpu_projection", depth=None)
    rows = [row for row in trace.rows("rule, name, instances, range_total_ns", "nvtx_ranges") if row[0] == "thread"]
    assert rows == [("thread", "mark", 1, None), ("thread", "open", 1, None)]


def test_threads_and_domains_are_groups(trace: Trace) -> None:
    trace.capture()
    trace.launch()
    first, second = trace.event(ADD, 0, 10), trace.event(ADD, 20, 50)
    trace.range(1, "a", 0, 10, thread_id=10)
    trace.range(2, "a", 0, 10, thread_id=11, domain="NCCL", style="push_pop")
    trace.inside(1, first)
    trace.inside(2, second)
    rows = trace.rows("rule, range, domain, style, thread_id, calls, total_ns", "nvtx_kernels")
    assert {row[1:] for row in rows if row[0] == "thread" and row[1]} == {
        ("a", "NCCL", "push_pop", 11, 1, 30),
        ("a", None, "user", 10, 1, 10),
    }


def test_a_range_nested_in_its_own_name_counts_twice(trace: Trace) -> None:
    trace.capture()
    trace.launch()
    event = trace.event(ADD, 0, 10)
    trace.range(1, "forward", 0, 100)
    trace.range(2, "forward", 10, 90, parent_id=1, depth=1)
    trace.inside(2, event)
    rows = trace.rows("rule, range, range_instances, calls, total_ns", "nvtx_kernels")
    assert [row[1:] for row in rows if row[0] == "thread"] == [("forward", 2, 2, 20)]


def test_empty(trace: Trace) -> None:
    assert trace.rows("name", "nvtx_ranges") == trace.rows("range", "nvtx_kernels") == []
