"""``v1.unique_kernels``: the distinct kernels of a run, with calls per step and time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.unique_kernels") == []


def test_signature(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    insert("op", "op_id name input_dims", (1, "aten::mm", "[[4]]"), (2, "aten::mm", "[[8]]"),
           capture_id=0, start_ns=0, duration_ns=1)  # fmt: skip
    insert("kernel_event", "event_id kind name duration_ns grid_x shared_bytes bytes op_id device_id stream_id",
           (1, "kernel", "sgemm", 10, 4, 99, None, 1, 0, 7), (2, "kernel", "sgemm", 20, 4, 99, None, 1, 1, 8),
           (3, "kernel", "sgemm", 7, 4, 99, None, 2, 0, 7), (4, "kernel", "sgemm", 7, 5, 99, None, 1, 0, 7),
           (5, "kernel", "copy_kernel", 7, 5, 99, None, None, 0, 7),
           (6, "memcpy", "Memcpy", 3, None, None, 64, 1, 0, 7),
           (7, "memcpy", "Memcpy", 4, None, None, 32, 1, 0, 7), (8, "memset", "Memset", 1, None, None, 8, None, 0, 7),
           (9, "graph", "graph", 1, None, None, None, None, 0, 7),
           capture_id=0, start_ns=0)  # fmt: skip
    query = """SELECT name, class, tier, grid_x, bytes, op_name, input_dims, calls, calls_per_step, total_ns, mean_ns,
                      median_ns, stddev_ns
               FROM v1.unique_kernels ORDER BY tier, name, bytes, grid_x, input_dims"""
    right = [
        ("Memcpy", "copy", 1, None, 32, "aten::mm", "[[4]]", 1, None, 4, 4.0, 4.0, 0.0),
        ("Memcpy", "copy", 1, None, 64, "aten::mm", "[[4]]", 1, None, 3, 3.0, 3.0, 0.0),
        ("Memset", "copy", 1, None, 8, None, None, 1, None, 1, 1.0, 1.0, 0.0),
        ("sgemm", "matmul", 2, 4, None, "aten::mm", "[[4]]", 2, None, 30, 15.0, 15.0, pytest.approx(50**0.5)),
        ("sgemm", "matmul", 2, 4, None, "aten::mm", "[[8]]", 1, None, 7, 7.0, 7.0, 0.0),
        ("sgemm", "matmul", 2, 5, None, "aten::mm", "[[4]]", 1, None, 7, 7.0, 7.0, 0.0),
        ("copy_kernel", "copy", 3, 5, None, None, None, 1, None, 7, 7.0, 7.0, 0.0),
    ]
    assert ask(query) == right
    shuffled()
    assert ask(query) == right


def test_calls_per_step_are_of_captures_and_marked_steps(insert: Insert, ask: Ask, report: Report) -> None:
    insert("capture", "capture_id rank", (0, 0), (1, 1), (2, 2), source="torch")
    insert("annotation", "capture_id annotation_id name",
           (0, 1, "ProfilerStep#1"), (0, 2, "ProfilerStep#2"), (1, 1, "ProfilerStep#1"),
           style="user", start_ns=0, duration_ns=9)  # fmt: skip
    insert("kernel_event", "capture_id event_id name",
           (0, 1, "add"), (0, 2, "add"), (0, 3, "add"), (0, 4, "add"), (1, 1, "add"), (1, 2, "mul"), (2, 1, "mul"),
           kind="kernel", start_ns=0, duration_ns=1)  # fmt: skip
    insert("annotation_kernel", "capture_id event_id annotation_id",
           (0, 1, 1), (0, 2, 1), (0, 3, 2), (1, 1, 1), (1, 2, 1), rule="process")  # fmt: skip
    query = "SELECT name, calls, calls_per_step FROM v1.unique_kernels ORDER BY name"
    assert ask(query) == [("add", 5, 4 / 3), ("mul", 2, 1 / 3)]
    by = {"rank": "{base}.rank"}
    assert report("unique_kernels", '"rank", name, calls, calls_per_step', by=by) == [
        (0, "add", 4, 1.5),
        (1, "add", 1, 1.0),
        (1, "mul", 1, 1.0),
        (2, "mul", 1, None),
    ]
    after_warmup = """EXISTS (SELECT 1 FROM v1._step_kernel AS w WHERE w.capture_id = e.capture_id
                              AND w.event_id = e.event_id AND w.step_index > 1)"""
    assert report("unique_kernels", "name, calls_per_step", where={"e": after_warmup}) == [("add", 1.0)]


def _generation(insert: Insert, passes: int) -> None:
    """Insert a generation without marked steps: a prefill of other GEMMs, then decode passes, two layers each."""
    rows: list[tuple[int, str, int, int]] = []
    for number in range(passes):
        gemm, grid = ("prefill_gemm", 5) if number == 0 else ("decode_gemm", 1)
        layer = [("layer_norm", grid), (gemm, 8), ("attention", grid), ("layer_norm", grid), (gemm, 16)]
        for name, size in [("embedding", grid), *layer, *layer, ("argmax", 1)]:
            rows.append((len(rows) + 1, name, size, 10 * len(rows)))
    insert("kernel_event", "event_id name grid_x start_ns", *rows,
           capture_id=0, kind="kernel", duration_ns=7, device_id=0)  # fmt: skip


def test_counts_of_25_passes_against_one_pass_are_25_times_too_high(insert: Insert, ask: Ask) -> None:
    """The mistake of piep_kernel_execution_graph: it compared kernels counted over a whole generation with one pass.

    Its sum of single times multiplied by counts predicted 81 ms for a prefill of 12 ms, since the counts were of 25
    passes (one prefill, 24 decode). calls is such a count; calls_per_step is what one pass has.
    """
    _generation(insert, 25)
    one_pass_ns = 12 * 7
    ((by_calls, by_calls_per_step),) = ask(
        "SELECT sum(mean_ns * calls), sum(mean_ns * calls_per_step) FROM v1.unique_kernels"
    )
    assert by_calls == 25 * one_pass_ns
    assert by_calls_per_step == pytest.approx(one_pass_ns)  # a sum of doubles, in any order
    query = """SELECT name, grid_x, calls, calls_per_step, steps, steps_from FROM v1.unique_kernels
               WHERE name IN ('layer_norm', 'prefill_gemm') ORDER BY ALL"""
    assert ask(query) == [
        ("layer_norm", 1, 96, 3.84, 25, "detected"),
        ("layer_norm", 5, 4, 0.16, 25, "detected"),
        ("prefill_gemm", 8, 2, 0.08, 25, "detected"),
        ("prefill_gemm", 16, 2, 0.08, 25, "detected"),
    ]
    assert ask("SELECT capture_id, passes, kernels_per_pass FROM v1._detected_pass") == [(0, 25, 12)]


@pytest.mark.parametrize("passes", [2, 3, 7])
def test_few_passes_are_detected(insert: Insert, ask: Ask, passes: int) -> None:
    _generation(insert, passes)
    assert ask("SELECT passes FROM v1._detected_pass") == [(passes,)]


def test_no_pass_is_detected_where_nothing_repeats(insert: Insert, ask: Ask) -> None:
    names = ["a", "b", "a", "c", "d", "a", "a", "b", "e", "f", "a", "g"]
    insert("kernel_event", "event_id name start_ns", *((n, name, n) for n, name in enumerate(names)),
           capture_id=0, kind="kernel", duration_ns=1, device_id=0)  # fmt: skip
    assert ask("SELECT * FROM v1._detected_pass") == []
    assert ask("SELECT DISTINCT calls_per_step, steps, steps_from FROM v1.unique_kernels") == [(None, 0, None)]


@pytest.mark.parametrize(
    ("op", "dims", "size"),
    [
        ("aten::mm", "[[5, 64], [64, 7]]", (1, 5, 7, 64)),
        ("aten::addmm", "[[7], [5, 64], [64, 7], [], []]", (1, 5, 7, 64)),
        ("aten::linear", "[[2, 5, 64], [7, 64], [7]]", (1, 10, 7, 64)),
        ("aten::bmm", "[[3, 5, 64], [3, 64, 7]]", (3, 5, 7, 64)),
        ("aten::baddbmm", "[[3, 5, 7], [3, 5, 64], [3, 64, 7], [], []]", (3, 5, 7, 64)),
        ("aten::matmul", "[[2, 3, 5, 64], [2, 3, 64, 7]]", (6, 5, 7, 64)),
        ("aten::matmul", "[[2, 3, 5, 64], [64, 7]]", (1, 30, 7, 64)),
        ("aten::mv", "[[5, 64], [64]]", (1, 5, 1, 64)),
        ("aten::mm", "[[5, 64], [63, 7]]", None),
        ("aten::mm", "no shapes", None),
        ("aten::mm", None, None),
        ("aten::cat", "[[[5, 64], [64, 7]], []]", None),
    ],
)
def test_size_of_a_product(insert: Insert, ask: Ask, op: str, dims: str | None, size: tuple[int, ...] | None) -> None:
    insert("op", "op_id name input_dims", (1, op, dims), capture_id=0, start_ns=0, duration_ns=1)
    insert("kernel_event", "event_id name", (1, "sgemm"), (2, "add"),
           capture_id=0, kind="kernel", start_ns=0, duration_ns=1, op_id=1)  # fmt: skip
    query = "SELECT name, batch, m, n, k FROM v1.unique_kernels ORDER BY name"
    assert ask(query) == [("add", None, None, None, None), ("sgemm", *(size or [None] * 4))]


def test_tiers_are_those_of_the_predecessor(insert: Insert, ask: Ask, report: Report) -> None:
    names = {
        "Memcpy HtoD (Pinned -> Device)": ("memcpy", 1),
        "Memset (Device)": ("memset", 1),
        "__amd_rocclr_copyBuffer": ("kernel", 1),
        "void gemv2T_kernel_val<int, float>()": ("kernel", 2),
        "void splitKreduce_kernel<32, 16>()": ("kernel", 2),
        "sm80_xmma_gemm_f32f32_tn": ("kernel", 2),
        "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT": ("kernel", 2),
        "void at::native::elementwise_kernel<128, 2, direct_copy_kernel_cuda>()": ("kernel", 3),
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL()": ("kernel", 3),
    }
    rows = [(n, name, kind, n % 2) for n, (name, (kind, _)) in enumerate(names.items())]
    insert("kernel_event", "event_id name kind device_id", *rows, capture_id=0, start_ns=0, duration_ns=10)
    assert dict(ask("SELECT name, tier FROM v1.unique_kernels")) == {name: tier for name, (_, tier) in names.items()}
    columns = "tier, meaning, signatures, calls, calls_percent, total_ns, share_percent"
    assert ask(f"SELECT {columns} FROM v1.kernel_tiers ORDER BY tier") == [
        (tier, meaning, calls, calls, pytest.approx(100 * calls / 9), 10 * calls, pytest.approx(100 * calls / 9))
        for tier, meaning, calls in [(1, "memory", 3), (2, "GEMM", 4), (3, "other", 2)]
    ]
    by = {"device": "{base}.device_id"}
    assert report("kernel_tiers", '"device", tier, calls', by=by) == [
        (0, 1, 2), (0, 2, 2), (0, 3, 1), (1, 1, 1), (1, 2, 2), (1, 3, 1)
    ]  # fmt: skip


def test_single_calls_are_found_by_signature(insert: Insert, ask: Ask) -> None:
    insert("op", "op_id name input_dims", (1, "aten::mm", "[[4]]"), capture_id=0, start_ns=0, duration_ns=1)
    insert("kernel_event", "event_id name start_ns duration_ns grid_x op_id",
           (5, "sgemm", 0, 10, 4, 1), (6, "sgemm", 20, 12, 4, 1), (7, "sgemm", 40, 50, 8, 1),
           (8, "add", 60, 1, 4, None),
           capture_id=0, kind="kernel", device_id=0)  # fmt: skip
    query = """SELECT u.name, u.grid_x, u.min_ns, u.max_ns, u.first_event_id, list(c.duration_ns ORDER BY c.start_ns)
               FROM v1.unique_kernels AS u INNER JOIN v1.unique_kernel_calls AS c USING (signature_key)
               GROUP BY ALL ORDER BY ALL"""
    assert ask(query) == [
        ("add", 4, 1, 1, 8, [1]),
        ("sgemm", 4, 10, 12, 5, [10, 12]),
        ("sgemm", 8, 50, 50, 7, [50]),
    ]
    assert ask("SELECT p05_ns, p25_ns, median_ns, p75_ns, p95_ns FROM v1.unique_kernels WHERE calls = 2") == [
        (10.1, 10.5, 11.0, 11.5, pytest.approx(11.9))
    ]


def test_streams_compute_or_communicate(insert: Insert, ask: Ask, report: Report) -> None:
    insert("capture", "capture_id rank", (0, 3), source="torch")
    insert("kernel_event", "event_id stream_id name start_ns duration_ns",
           (1, 7, "sgemm", 0, 60), (2, 7, "ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 60, 40),
           (3, 20, "ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 5, 50), (4, 20, "sgemm", 55, 50),
           capture_id=0, kind="kernel", device_id=1)  # fmt: skip
    columns = "rank, device_id, category, kernel_name, count, total_ns"
    nccl = "ncclDevKernel_AllReduce_Sum_f32_RING_LL()"
    right = [
        (3, 1, "communication", nccl, 1, 50), (3, 1, "communication", "sgemm", 1, 50),
        (3, 1, "compute", nccl, 1, 40), (3, 1, "compute", "sgemm", 1, 60),
    ]  # fmt: skip
    assert ask(f"SELECT {columns} FROM v1.kernel_counts ORDER BY ALL") == right
    assert report("kernel_counts", '"rank", category, count', by={"rank": "{base}.rank"}) == [
        (row[0], row[2], row[4]) for row in right
    ]
    assert ask("SELECT event_id, category, since_first_ns FROM v1.launch_params ORDER BY event_id") == [
        (1, "compute", 0), (2, "compute", 60), (3, "communication", 5), (4, "communication", 55)
    ]  # fmt: skip


def test_passes_of_very_many_names_are_detected_without_comparing_each_name_with_each(insert: Insert, ask: Ask) -> None:
    """20,000 names that recur twice are 400 million pairs of names, but one period."""
    insert("capture", "capture_id source", (1, "torch"))
    ask(
        """INSERT INTO main.kernel_event BY NAME
        SELECT 1 AS capture_id, i AS event_id, 'kernel' AS kind, 'kernel' || i % 20000 AS name, 10 * i AS start_ns,
            5 AS duration_ns, 0 AS device_id
        FROM range(40000) AS t(i)"""
    )
    started = time.process_time()
    assert ask("SELECT passes, kernels_per_pass FROM v1._detected_pass") == [(2, 20_000)]
    assert time.process_time() - started < 3  # comparing all pairs took 10
