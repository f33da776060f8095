"""``v1.operator_calls``: times of operators by shape, from ordinary traces."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

B, F = "c10::BFloat16", "float"
DIMS, TYPES = json.dumps([[4, 8], [8, 16]]), json.dumps([B, B])
NODE = "autograd::engine::evaluate_function: AddmmBackward0"
KEY = "gpu, name, input_dims, dtype, pass"


@pytest.fixture
def op(insert: Insert) -> Callable[..., None]:
    """``op(op_id, name, kernels)``: an operator with kernels (start, duration), by default a bf16 product."""
    insert("capture", "capture_id source rank", (1, "torch", 0), (2, "torch", 1))
    insert("device", "capture_id device_id name sm_count", (1, 0, "H100", 132), (2, 0, "H100", 132))

    def put(
        op_id: int,
        name: str,
        *kernels: tuple[int, int],
        kernel: str = "nvjet_gemm",
        dims: str | None = DIMS,
        types: str | None = TYPES,
        parent: int | None = None,
        capture: int = 1,
        thread: int = 1,
    ) -> None:
        start = min((start for start, _ in kernels), default=0)
        insert("op", "op_id name input_dims input_types parent_op_id thread_id start_ns",
               (op_id, name, dims, types, parent, thread, start),
               capture_id=capture, process_id=1, duration_ns=5)  # fmt: skip
        insert("kernel_event", "event_id op_id name start_ns duration_ns",
               *((op_id * 100 + number, op_id, kernel, at, ns) for number, (at, ns) in enumerate(kernels)),
               capture_id=capture, device_id=0, stream_id=7, kind="kernel")  # fmt: skip

    return put


def test_no_rows(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.operator_calls") == []


def test_statistics_of_pooled_calls(op: Callable[..., None], ask: Ask) -> None:
    """Calls of several captures are pooled; the kernels of a call that overlap count once as busy."""
    op(1, "aten::mm", (0, 10), (5, 10))
    op(2, "aten::mm", (100, 21))
    op(3, "aten::mm", (200, 30), capture=2)
    op(4, "aten::mm", (300, 5), dims=None)  # shapes not recorded
    (row,) = ask(
        f"SELECT {KEY}, n, busy_median_ns, kernel_sum_median_ns, busy_min_ns, busy_max_ns, busy_stddev_ns, "
        "spread_percent, alone_spread_percent, alone_calls, alone_median_ns, "
        "flops, bytes, batch, product_m, product_n, product_k, "
        "gpu_events, devices, sm_count FROM v1.operator_calls"
    )
    assert row[:5] == ("H100", "aten::mm", DIMS, "bf16", "fwd")
    assert row[5:10] == (3, 21, 21, 15, 30)
    assert row[10] == pytest.approx(7.549834, rel=1e-6)
    assert row[11] == row[12] == pytest.approx(100 * 7.5 / 21)
    assert row[13:] == (3, 21, 1024, 2 * (32 + 128 + 64), 1, 4, 16, 8, 1, 2, 132)


def test_passes(op: Callable[..., None], insert: Insert, ask: Ask) -> None:
    """Autograd, the optimizer and collectives are told from the rest; checkpointed forward work is forward."""
    op(1, "aten::mm", (0, 10))
    op(2, NODE, dims=None, types=None, thread=2)
    op(3, "aten::mm", (20, 11), parent=2, thread=2)
    op(4, NODE, dims=None, types=None, thread=2)
    insert("op", "op_id name sequence_number forward_thread_id parent_op_id", (5, "aten::linear", 9, 0, 4),
           capture_id=1, process_id=1, thread_id=2, start_ns=30, duration_ns=9)  # fmt: skip
    op(6, "aten::mm", (31, 12), parent=5, thread=2)
    insert("annotation", "annotation_id name start_ns duration_ns", (1, "Optimizer.step#AdamW.step", 50, 20),
           capture_id=1, style="user", process_id=1, thread_id=1)  # fmt: skip
    op(7, "aten::mul_", (60, 13))
    op(
        8,
        "c10d::allreduce_",
        (90, 14),
        kernel="ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    )
    op(9, "aten::mul_", (110, 15))
    rows = ask("SELECT name, pass, n, busy_median_ns FROM v1.operator_calls ORDER BY ALL")
    assert rows == [
        ("aten::mm", "bwd", 1, 11),
        ("aten::mm", "fwd", 2, 11),
        ("aten::mul_", "fwd", 1, 15),
        ("aten::mul_", "step", 1, 13),
        ("c10d::allreduce_", "comm", 1, 14),
    ]


def test_calls_beside_collectives(op: Callable[..., None], ask: Ask) -> None:
    """The median alone leaves out calls that a collective overlaps; touching it is not overlapping."""
    op(
        1,
        "c10d::allreduce_",
        (100, 50),
        kernel="ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    )
    op(2, "aten::mm", (80, 20))
    op(3, "aten::mm", (140, 40))
    op(4, "aten::mm", (200, 22))
    op(5, "aten::mm", (120, 99), capture=2)
    query = "SELECT n, busy_median_ns, alone_calls, alone_median_ns FROM v1.operator_calls WHERE name = 'aten::mm'"
    assert ask(query) == [(4, 31, 3, 22)]
    op(6, "aten::bmm", (110, 20), dims="[[2, 4, 8], [2, 8, 16]]")
    query = "SELECT n, alone_calls, alone_median_ns FROM v1.operator_calls WHERE name = 'aten::bmm'"
    assert ask(query) == [(1, 0, None)]


def test_calls_beside_kernels_of_other_streams_are_not_alone(op: Callable[..., None], insert: Insert, ask: Ask) -> None:
    """Kernels of the same stream that overlap are one call's own affair, and a touching kernel does not count."""
    op(1, "aten::mm", (0, 10), (5, 10))
    op(2, "aten::mm", (20, 10))
    op(3, "aten::mm", (40, 10))
    insert("kernel_event", "event_id start_ns duration_ns", (901, 29, 5), (902, 50, 5),
           capture_id=1, device_id=0, stream_id=9, kind="kernel", name="k")  # fmt: skip
    assert ask("SELECT n, alone_calls, alone_median_ns FROM v1.operator_calls") == [(3, 2, 12.5)]


ELEMENT_TYPES: list[tuple[str, list[Any], list[str] | None, str | None]] = [
    ("aten::embedding", [[50, 8], [4], [], [], []], [F, "long int", "Scalar", "", ""], "fp32"),
    ("aten::index_select", [[4], [4]], ["long int", "c10::Half"], "fp16"),  # no formula: the first float
    ("aten::arange", [[9]], ["long int"], "int64"),
    ("aten::_foreach_add_", [[[4, 8]], []], ["TensorList", "Scalar"], None),
    ("aten::mm", [[4, 8], [8, 16]], None, None),
]


def test_busy_time_of_calls_with_three_or_more_kernels(op: Callable[..., None], report: Report, ask: Ask) -> None:
    """Their union counts: neither the sum of the durations nor the time from the first start to the last end."""
    op(1, "aten::mm", (0, 10), (5, 10), (30, 5), (31, 2))
    op(2, "aten::addmm", (100, 1), (200, 2), (300, 3))
    op(3, "aten::bmm", (400, 20), (405, 2), (410, 30))
    query = "SELECT name, busy_max_ns, kernel_sum_median_ns, gpu_events FROM v1.operator_calls ORDER BY name"
    expected = [("aten::addmm", 6, 6, 3), ("aten::bmm", 40, 52, 3), ("aten::mm", 20, 27, 4)]
    assert ask(query) == expected
    columns = "name, busy_max_ns, kernel_sum_median_ns, gpu_events"
    assert report("operator_calls", columns, by={"rank": "{base}.rank"}) == expected


def test_kernels_of_two_streams_beside_the_one_with_most_kernels(
    op: Callable[..., None], insert: Insert, ask: Ask
) -> None:
    """Whether a call is alone does not depend on the stream with the most kernels."""
    for number in range(1, 6):
        op(number, "aten::mm", (number * 100, 10))
    insert("op", "op_id name", (6, "aten::bmm"), (7, "aten::dot"), (8, "aten::mv"),
           capture_id=1, process_id=1, thread_id=1, start_ns=0, duration_ns=5,
           input_dims=DIMS, input_types=TYPES)  # fmt: skip
    insert("kernel_event", "event_id op_id stream_id start_ns duration_ns",
           (900, 6, 8, 150, 10), (901, 7, 9, 155, 10), (902, 8, 8, 170, 10),
           (903, 8, 9, 180, 10), (904, None, 9, 205, 1),
           capture_id=1, device_id=0, kind="kernel", name="nvjet_gemm")  # fmt: skip
    assert ask("SELECT name, n, alone_calls FROM v1.operator_calls ORDER BY name") == [
        ("aten::bmm", 1, 0), ("aten::dot", 1, 0), ("aten::mm", 5, 4), ("aten::mv", 1, 1)]  # fmt: skip


def test_element_types(op: Callable[..., None], ask: Ask) -> None:
    for number, (name, dims, types, _) in enumerate(ELEMENT_TYPES, 1):
        listed = None if types is None else json.dumps(types)
        op(number, name, (100 * number, 10), dims=json.dumps(dims), types=listed, kernel="k")
    found = ask("SELECT name, dtype, math_dtype, n FROM v1.operator_calls")
    assert sorted(found) == sorted((name, dtype, dtype, 1) for name, _, _, dtype in ELEMENT_TYPES)


def test_arithmetic_in_tf32_is_a_row_of_its_own(op: Callable[..., None], ask: Ask) -> None:
    types = json.dumps([F, F])
    op(1, "aten::mm", (0, 10), types=types, kernel="ampere_sgemm_128x64_nn")
    op(2, "aten::mm", (20, 4), types=types, kernel="cutlass_80_tensorop_s1688gemm_128x128_nn")
    query = "SELECT dtype, math_dtype, busy_median_ns FROM v1.operator_calls ORDER BY math_dtype"
    assert ask(query) == [("fp32", "fp32", 10), ("fp32", "tf32", 4)]


def test_scalars_that_change_the_work(op: Callable[..., None], insert: Insert, ask: Ask) -> None:
    """Causal and full attention of the same shapes: one row, whose FLOPs are not known."""
    size = json.dumps([[2, 128, 4, 64]] * 3 + [[]] * 7)
    types = json.dumps([B, B, B, *[""] * 7])
    for op_id, causal in ((1, "True"), (2, "False")):
        insert("op", "op_id name input_dims input_types concrete_inputs",
               (op_id, "aten::_flash_attention_forward", size, types,
                json.dumps(["", "", "", "", "", "128", "128", "0.", causal, "False"])),
               capture_id=1, process_id=1, thread_id=1, start_ns=0, duration_ns=5)  # fmt: skip
        insert("kernel_event", "event_id op_id name start_ns duration_ns", (op_id, op_id, "flash_fwd", op_id * 50, 10),
               capture_id=1, device_id=0, kind="kernel")  # fmt: skip
    query = "SELECT n, flops, bytes FROM v1.operator_calls"
    assert ask(query) == [(2, None, 2 * 4 * 65536)]


def test_clock_at_the_calls(op: Callable[..., None], insert: Insert, ask: Ask) -> None:
    """The last reading before each call, if it is recent; calls before the first reading have none."""
    op(1, "aten::mm", (10, 10))
    op(2, "aten::mm", (110, 10))
    op(3, "aten::mm", (210, 10))
    assert ask("SELECT n, sm_clock_mhz FROM v1.operator_calls") == [(3, None)]
    insert("device_condition", "capture_id device_id time_ns sm_clock_mhz", (1, 0, 100, 1980), (1, 0, 200, 1480))
    assert ask("SELECT n, sm_clock_mhz FROM v1.operator_calls") == [(3, 1730)]
    op(4, "aten::bmm", (10**9, 10))
    assert ask("SELECT name, sm_clock_mhz FROM v1.operator_calls ORDER BY name") == [
        ("aten::bmm", None),
        ("aten::mm", 1730),
    ]


def test_by_rank_and_filters(op: Callable[..., None], report: Report) -> None:
    op(1, "aten::mm", (0, 10))
    op(2, "aten::mm", (0, 30), capture=2)
    found = report("operator_calls", '"rank", n, busy_median_ns', by={"rank": "{base}.rank"})
    assert found == [(0, 1, 10), (1, 1, 30)]
    found = report("operator_calls", '"capture", n', by={"capture": "{base}.capture_id"})
    assert found == [(1, 1), (2, 1)]
    found = report("operator_calls", "n, busy_median_ns", where={"e": "e.rank = 1"})
    assert found == [(1, 30)]


def test_no_answer_without_shapes(op: Callable[..., None], ask: Ask) -> None:
    op(1, "aten::mm", (0, 10), dims=None)
    assert ask("SELECT * FROM v1.operator_calls") == []
