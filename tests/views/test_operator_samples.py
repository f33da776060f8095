"""``v1.operator_samples``: iterations of ranges ``PASS|OPERATOR|key=value``, and times without events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

KEYS = "operator, pass, dtype, shape, n, iterations, busy_median_ns, span_median_ns, kernel_sum_median_ns"
ALL = f"SELECT {KEYS} FROM v1.operator_samples ORDER BY pass DESC, operator"
RANGE = "annotation_id name start_ns parent_id thread_id"
EVENT = "event_id kind start_ns duration_ns launch_id op_id name"
FWD, BWD = "fwd|mm|b=2|dim=64", "bwd|mm|b=2|dim=64"


def test_of_a_collective_the_transfer_counts_once(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    """Two ranks of a run in which one or the other waits; a rank of no run, whose calls cannot be matched."""
    name = "comm|allreduce|elements=1000"
    for rank, run, calls in ((0, "x", (50, 50, 60)), (1, "x", (40, 55, 60)), (2, None, (70, 70, 80))):
        labels = {"dtype": "fp16", **({"run": run} if run else {})}
        insert("capture", "capture_id rank labels", (rank, rank, labels), source="torch")
        for place, busy in enumerate(calls):
            insert("annotation", RANGE, (place, name, 1000 * place, None, 1), capture_id=rank, style="user",
                   duration_ns=900)  # fmt: skip
            insert("kernel_event", EVENT, (place, "kernel", 1000 * place + 5, busy, None, None, "nccl"),
                   capture_id=rank, device_id=rank)  # fmt: skip
            insert("annotation_kernel", "annotation_id event_id rule", (place, place, "process"), capture_id=rank)
    query = "SELECT capture_id, target_ns, statistic, busy_median_ns, repeats FROM v1.operator_samples ORDER BY ALL"
    right = [
        (0, 50.0, "transfer_median", 50.0, 2),
        (1, None, "transfer_median", 55.0, 2),
        (2, 70.0, "busy_median", 70.0, 2),
    ]
    assert ask(query) == right
    shuffled()
    assert ask(query) == right


def test_empty(insert: Insert, ask: Ask) -> None:
    assert ask("SELECT * FROM v1.operator_samples") == []
    insert("capture", "capture_id", (0,), source="torch")
    insert("annotation", RANGE, (1, "forward", 0, None, 1), (2, "fwd|mm", 0, None, 1), (3, "fwd|mm|b", 0, None, 1),
           (4, "fwd|mm|b=1|b=2", 0, None, 1), (5, "all|mm|b=1", 0, None, 1),
           capture_id=0, style="user", duration_ns=9)  # fmt: skip
    insert("annotation", RANGE, (6, FWD, 0, None, 1), capture_id=0, style="gpu_projection", duration_ns=9)
    assert ask("SELECT * FROM v1.operator_samples") == []


@pytest.fixture
def sampled(insert: Insert) -> None:
    """Three forwards with a copy that overlaps its kernel; the backward's kernels lie in a range within."""
    insert("capture", "capture_id rank", (0, 3), source="torch")
    insert("device", "device_id name sm_count", (0, "GPU X", 132), capture_id=0)
    insert("annotation", RANGE, (1, FWD, 0, None, 1), (2, FWD, 100, None, 1), (3, FWD, 200, None, 1),
           (4, BWD, 50, None, 1), (5, "inner", 51, 4, 1),
           capture_id=0, style="user", process_id=9, duration_ns=40)  # fmt: skip
    insert("op", "op_id input_types", (1, '["long int", "c10::Half", "float"]'), (2, '["TensorList"]'),
           capture_id=0, name="aten::mm", start_ns=0, duration_ns=1)  # fmt: skip
    insert("kernel_event", EVENT,
           (1, "kernel", 10, 10, 1, 1, "k"), (2, "memcpy", 15, 10, 1, 1, "Memcpy"), (3, "memset", 17, 2, 1, 1, "set"),
           (4, "kernel", 110, 12, 1, 1, "k"), (5, "kernel", 210, 40, 1, 1, "k"), (6, "kernel", 255, 5, 1, 1, "k"),
           (7, "kernel", 60, 3, 1, 2, "foreach<c10::BFloat16, float>"),
           capture_id=0, device_id=0)  # fmt: skip
    insert("annotation_kernel", "annotation_id event_id rule",
           (1, 1, "process"), (1, 2, "process"), (1, 3, "process"), (1, 1, "thread"), (2, 4, "process"),
           (3, 5, "process"), (3, 6, "process"), (5, 7, "process"), capture_id=0)  # fmt: skip


def test_busy_is_the_union_of_an_iteration(sampled: None, ask: Ask, shuffled: Callable[[], None]) -> None:
    right = [
        ("mm", "fwd", "fp16", {"b": 2, "dim": 64}, 3, 3, 15.0, 15.0, 22.0),
        ("mm", "bwd", "bf16", {"b": 2, "dim": 64}, 1, 1, 3.0, 3.0, 3.0),
    ]
    assert ask(ALL) == right
    shuffled()
    assert ask(ALL) == right


def test_every_iteration_is_kept_with_where_it_comes_from(sampled: None, ask: Ask) -> None:
    query = """SELECT gpu, sm_count, device_id, rank, source, status, rule, target_ns, statistic, busy_iterations_ns,
               span_iterations_ns, kernel_sum_iterations_ns, busy_mean_ns, busy_min_ns, busy_max_ns, flags
               FROM v1.operator_samples WHERE pass = 'fwd'"""
    assert ask(query) == [
        ("GPU X", 132, 0, 3, "torch", "measured", "process", 15.0, "busy_median", [15, 12, 45], [15, 12, 50],
         [22, 12, 45], 24.0, 12, 45, ["outlying_iteration"])
    ]  # fmt: skip
    spread = ask("SELECT busy_stddev_ns FROM v1.operator_samples ORDER BY pass")
    assert spread == [(0.0,), (pytest.approx(333**0.5),)]
    flags = ask("SELECT flags FROM v1.operator_samples WHERE pass = 'bwd'")
    assert flags == [(["few_iterations"],)]  # shorter than the forward, which is of another element type


def test_an_iteration_without_gpu_work_has_no_time(insert: Insert, ask: Ask) -> None:
    insert("capture", "capture_id", (0,), source="torch")
    insert("annotation", RANGE, (1, "step|adam|dtype=fp32|n=4|note=x", 0, None, 1),
           capture_id=0, style="user", duration_ns=9)  # fmt: skip
    assert ask(ALL) == [("adam", "step", "fp32", {"n": 4}, 0, 1, None, None, None)]
    assert ask("SELECT status, target_ns, flags FROM v1.operator_samples") == [
        ("no_gpu_activity", None, ["no_gpu_activity"])
    ]


def test_the_ledger_of_a_sweep_says_the_element_type(sampled: None, insert: Insert, ask: Ask) -> None:
    insert("sample_status", "shape", ({"b": 2, "dim": 64},), capture_id=0, operator="mm", dtype="fp32", device="GPU X",
           status="sampled", sampled_at="2026-01-01")  # fmt: skip
    assert ask("SELECT DISTINCT dtype FROM v1.operator_samples") == [("fp32",)]


def test_launches_not_recorded(insert: Insert, ask: Ask) -> None:
    insert("capture", "capture_id", (0,), source="rocprofv3")
    insert("annotation", RANGE, (1, FWD, 0, None, 1), capture_id=0, style="push_pop", duration_ns=9)
    insert("kernel_event", EVENT, (1, "kernel", 1, 7, None, None, "k"), capture_id=0)
    insert("annotation_kernel", "annotation_id event_id rule", (1, 1, "time"), capture_id=0)
    assert ask("SELECT rule, target_ns, dtype, gpu FROM v1.operator_samples") == [("time", 7.0, None, None)]


def test_trimmed_mean_of_ten(insert: Insert, ask: Ask) -> None:
    insert("capture", "capture_id", (0,), source="torch")
    for at, duration in enumerate([90, 10, 20, 30, 40, 50, 60, 70, 80, 1000]):
        insert("annotation", RANGE, (at, FWD, at, None, 1), capture_id=0, style="user", duration_ns=1)
        insert("kernel_event", EVENT, (at, "kernel", 2000 * at, duration, at, None, "k"), capture_id=0)
        insert("annotation_kernel", "annotation_id event_id rule", (at, at, "process"), capture_id=0)
    query = "SELECT n, busy_trimmed_mean_ns, span_trimmed_mean_ns, busy_median_ns FROM v1.operator_samples"
    assert ask(query) == [(10, 50.0, 50.0, 55.0)]


SAMPLE = "sample_id pass operator shape time_ns"


def test_times_without_events(insert: Insert, ask: Ask) -> None:
    insert("capture", "capture_id", (0,), source="samples")
    insert("operator_sample", SAMPLE,
           (1, "fwd", "mm", {"b": 1, "l": 2}, 100.0),
           (2, "bwd", "mm", {"b": 1, "l": 2}, 90.0),
           (3, "fwd", "mm", {"l": 2, "b": 1}, 110.0),
           (5, "fwd", "add", {"b": 4}, 7),
           (6, "bwd", "add", {"b": 4}, 7),
           capture_id=0, gpu="GPU Y", dtype="fp16", statistic="span_trimmed_mean")  # fmt: skip
    query = """SELECT operator, pass, shape, status, target_ns, span_trimmed_mean_ns, busy_median_ns, n, repeats,
               round(repeat_spread_percent, 2), flags
               FROM v1.operator_samples ORDER BY operator, pass, shape, target_ns"""
    assert ask(query) == [
        ("add", "bwd", {"b": 4}, "measured", 7.0, 7.0, None, None, 1, None, ["backward_equals_forward"]),
        ("add", "fwd", {"b": 4}, "measured", 7.0, 7.0, None, None, 1, None, []),
        ("mm", "bwd", {"b": 1, "l": 2}, "measured", 90.0, 90.0, None, None, 1, None, ["backward_shorter_than_forward"]),
        ("mm", "fwd", {"b": 1, "l": 2}, "measured", 100.0, 100.0, None, None, 2, 9.52, ["repeats_differ"]),
        ("mm", "fwd", {"l": 2, "b": 1}, "measured", 110.0, 110.0, None, None, 2, 9.52, ["repeats_differ"]),
    ]


def test_hooks(sampled: None, insert: Insert, report: Report) -> None:
    insert("capture", "capture_id rank", (1, 4), source="samples")
    insert("operator_sample", SAMPLE, (1, "fwd", "mm", {"b": 1}, 100.0),
           capture_id=1, statistic="span_trimmed_mean")  # fmt: skip
    assert report("operator_samples", "pass, target_ns", where={"r": "r.rank = 4"}) == [("fwd", 100.0)]
    found = report("operator_samples", "pass, shape", where={"r": "r.name GLOB 'fwd|mm|b=?'"})
    assert found == [("fwd", {"b": 1})]
    assert report("operator_samples", "pass", where={"r": "r.name GLOB 'bwd*'"}) == [("bwd",)]


def test_captures_of_a_group_are_pooled(sampled: None, insert: Insert, report: Report) -> None:
    insert("capture", "capture_id rank", (1, 3), source="torch")
    insert("annotation", RANGE, (1, FWD, 0, None, 1), capture_id=1, style="user", process_id=9, duration_ns=40)
    insert("op", "op_id input_types", (1, '["c10::Half"]'), capture_id=1, name="mm", start_ns=0, duration_ns=1)
    insert("kernel_event", EVENT, (1, "kernel", 10, 17, 1, 1, "k"), capture_id=1, device_id=0)
    insert("annotation_kernel", "annotation_id event_id rule", (1, 1, "process"), capture_id=1)
    by = {"rank": "{base}.rank"}
    found = report("operator_samples", "rank, pass, n, busy_median_ns, busy_iterations_ns, repeats", by=by)
    assert found == [(3, "bwd", 1, 3.0, [3], 1), (3, "fwd", 4, 16.0, [15, 12, 45, 17], 1)]


def test_the_state_of_the_device(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    """Two iterations follow a reading, a third comes long after it; another capture's readings lie in a watched file.

    The watched capture's clock is 1,000,000 ns behind the trace's. The GPU is found by its UUID, under another number.
    """
    far = 10**9
    insert("capture", "capture_id labels", (0, {"regime": "steady"}), source="torch", clock_zero_unix_ns=0)
    insert("capture", "capture_id labels", (1, {}), source="nsys", clock_zero_unix_ns=1_000_000, host="h")
    insert("capture", "capture_id labels", (2, {}), source="conditions", clock_zero_unix_ns=0, host="h")
    insert("device", "capture_id device_id uuid", (0, 0, None), (1, 0, "GPU-A-1"), (2, 5, "a1"), (2, 0, "GPU-B"))
    for capture, starts in ((0, (0, 1_000, far)), (1, (5_000,))):
        for place, start in enumerate(starts):
            insert("annotation", RANGE, (place, FWD, start, None, 1), capture_id=capture, style="user", duration_ns=9)
            # The device works long after the launch: readings belong to its work, not to the range.
            insert("kernel_event", EVENT, (place, "kernel", start + 500, 50, None, None, "k"),
                   (place + 10, "kernel", start + 560, 40, None, None, "k"), capture_id=capture,
                   device_id=0)  # fmt: skip
            insert("annotation_kernel", "annotation_id event_id rule", (place, place, "process"),
                   (place, place + 10, "process"), capture_id=capture)  # fmt: skip
    insert("device_condition", "capture_id device_id time_ns sm_clock_mhz power_w throttle",
           (0, 0, 400, 1400.0, 690.0, "sw_power_cap"), (0, 0, 1_400, 1500.0, None, None), (0, 0, 1_600, 9.0, 9.0, None),
           (0, 3, 450, 7.0, 7.0, None),
           (2, 5, 1_005_400, 1980.0, 300.0, "none"), (2, 5, 1_005_600, 9.0, 9.0, None),
           (2, 0, 1_005_450, 8.0, 8.0, None))  # fmt: skip
    query = "SELECT capture_id, gpu_events, sm_clock_mhz, power_w, regime, n FROM v1.operator_samples ORDER BY ALL"
    right = [(0, 2.0, 1450.0, 690.0, "steady", 3), (1, 2.0, 1980.0, 300.0, None, 1)]
    assert ask(query) == right
    shuffled()
    assert ask(query) == right
