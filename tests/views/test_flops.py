"""``v1.op_flops``, ``v1.roofline`` and ``v1.mfu``: what operators compute and move, by their shapes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]
Together = Callable[[Callable[[Insert], None], str], list[tuple[Any, ...]]]

F, H, B = "float", "c10::Half", "c10::BFloat16"


@pytest.fixture
def call(insert: Insert) -> Callable[..., None]:
    """``call(op_id, name, dims, types, scalars)``: an operator with one kernel of 1 µs."""
    return calls_of(insert)


def calls_of(insert: Insert) -> Callable[..., None]:
    def put(
        op_id: int, name: str, dims: Any, types: Any, scalars: Any = None, kernel: str = "k", ns: int = 1000
    ) -> None:
        texts = [None if value is None else json.dumps(value) for value in (dims, types, scalars)]
        insert("op", "op_id name input_dims input_types concrete_inputs", (op_id, name, *texts),
               capture_id=1, start_ns=op_id * 10_000, duration_ns=5)  # fmt: skip
        insert("kernel_event", "event_id op_id name", (op_id, op_id, kernel),
               capture_id=1, device_id=0, kind="kernel", start_ns=op_id * 10_000, duration_ns=ns)  # fmt: skip

    insert("capture", "capture_id source rank", (1, "torch", 0))
    insert("device", "capture_id device_id name vendor", (1, 0, "NVIDIA H100 80GB HBM3", "nvidia"))
    return put


CALLS: dict[str, tuple[str, Any, Any, Any, tuple[Any, ...]]] = {
    # name, dims, types, scalars, (batch, m, n, k, dtype, flops, model_flops, bytes)
    "mm": ("aten::mm", [[4, 8], [8, 16]], [B, B], ["", ""], (1, 4, 16, 8, "bf16", 1024, 1024, 2 * (32 + 128 + 64))),
    "addmm is counted without its bias, whose bytes are": (
        "aten::addmm", [[16], [4, 8], [8, 16], [], []], [F, F, F, "Scalar", "Scalar"], None,
        (1, 4, 16, 8, "fp32", 1024, 1024, 4 * (16 + 32 + 128 + 64))),
    "bmm": ("aten::bmm", [[3, 4, 8], [3, 8, 16]], [H, H], None, (3, 4, 16, 8, "fp16", 3072, 3072, 2 * 3 * 224)),
    "matrix and vector": ("aten::mv", [[4, 8], [8]], [F, F], None, (1, 4, 1, 8, "fp32", 64, 64, 4 * 44)),
    "dot": ("aten::dot", [[8], [8]], [F, F], None, (1, 1, 1, 8, "fp32", 16, 16, 4 * 17)),
    "linear takes its weight transposed": (
        "aten::linear", [[2, 3, 8], [16, 8], [16]], [F, F, F], None,
        (1, 6, 16, 8, "fp32", 1536, 1536, 4 * (48 + 128 + 16 + 96))),
    "fp8 into bf16": (
        "aten::_scaled_mm", [[4, 8], [8, 16], [], [], [], [], [], []],
        ["c10::Float8_e4m3fn", "c10::Float8_e4m3fn", F, F, "", "", "Scalar", "Scalar"],
        ["", "", "", "", "", "", "15", "False"],
        (1, 4, 16, 8, "fp8", 1024, 1024, 32 + 128 + 2 * 64)),
    "grouped rows": (
        "aten::_grouped_mm", [[10, 8], [3, 8, 16], [3]], [B, B, "int"], None,
        (1, 10, 16, 8, "bf16", 2560, 2560, 2 * (80 + 384 + 160))),
    "grouped sums have a result for each group": (
        "aten::_grouped_mm", [[4, 10], [10, 16], [3]], [B, B, "int"], None,
        (1, 4, 16, 10, "bf16", 1280, 1280, 2 * (40 + 160 + 3 * 64))),
    "convolution": (
        "aten::cudnn_convolution", [[2, 6, 9, 9], [4, 3, 3, 3], [], [], [], []], [F, F, "", "", "", ""],
        ["", "", "[1, 1]", "[2, 2]", "[1, 1]", "2"],
        (1, 50, 4, 27, "fp32", 2 * 2 * 25 * 108, 2 * 2 * 25 * 108, 4 * (972 + 108 + 200))),
    "of its backward, each gradient": (
        "aten::convolution_backward", [[2, 4, 5, 5], [2, 6, 9, 9], [4, 3, 3, 3], [], [], [], [], [], [], [], []],
        [F, F, F, *[""] * 8],
        ["", "", "", "[0]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2", "[True, True, False]"],
        (1, 50, 4, 27, "fp32", 2 * 10800, 2 * 10800, 4 * (200 + 2 * (972 + 108)))),
    "the first layer needs one of them": (
        "aten::convolution_backward", [[2, 4, 5, 5], [2, 6, 9, 9], [4, 3, 3, 3], [], [], [], [], [], [], [], []],
        [F, F, F, *[""] * 8],
        ["", "", "", "[0]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2", "[False, True, False]"],
        (1, 50, 4, 27, "fp32", 10800, 10800, 4 * (200 + 972 + 108))),
    "a convolution without its padding is unknown": (
        "aten::cudnn_convolution", [[2, 6, 9, 9], [4, 3, 3, 3], [], []], [F, F, "", ""], None,
        (1, None, 4, 27, "fp32", None, None, None)),
    "attention": (
        "aten::_flash_attention_forward", [*[[2, 128, 4, 64]] * 3, *[[]] * 7], [B, B, B, *[""] * 7],
        ["", "", "", "", "", "128", "128", "0.", "False", "False"],
        (8, 128, 128, 64, "bf16", 4 * 8 * 128 * 128 * 64, 4 * 8 * 128 * 128 * 64, 2 * 4 * 65536)),
    "half where causal": (
        "aten::_flash_attention_forward", [*[[2, 128, 4, 64]] * 3, *[[]] * 7], [B, B, B, *[""] * 7],
        ["", "", "", "", "", "128", "128", "0.", "True", "False"],
        (8, 128, 128, 64, "bf16", 2 * 8 * 128 * 128 * 64, 2 * 8 * 128 * 128 * 64, 2 * 4 * 65536)),
    "backward makes the scores again": (
        "aten::_flash_attention_backward", [[2, 128, 4, 64]] * 5 + [[2, 4, 128], *[[]] * 6], [B] * 5 + [F, *[""] * 6],
        ["", "", "", "", "", "", "", "", "128", "128", "0.", "False"],
        (8, 128, 128, 64, "bf16", 10 * 8 * 128 * 128 * 64, 8 * 8 * 128 * 128 * 64, 2 * 8 * 65536)),
    "a query per head against a cache": (
        "aten::_cudnn_attention_forward", [[8, 16, 1, 128], [8, 16, 512, 128], [8, 16, 512, 128], *[[]] * 9],
        [B, B, B, *[""] * 9], ["", "", "", "", "", "", "1", "512", "False", "0.", "False", "False"],
        (128, 1, 512, 128, "bf16", 4 * 128 * 512 * 128, 4 * 128 * 512 * 128, 2 * (2 * 16384 + 2 * 8388608))),
    "a ragged batch is unknown": (
        "aten::_efficient_attention_forward", [[1, 300, 4, 64]] * 3 + [[], [9], [9], *[[]] * 4], [B] * 3 + [""] * 7,
        ["", "", "", "", "", "", "64", "64", "0.", "0"],
        (None, None, None, None, "bf16", None, None, None)),
    "flash-attn": (
        "flash_attn::_flash_attn_forward", [*[[2, 128, 4, 64]] * 3, *[[]] * 8], [B, B, B, *[""] * 8],
        ["", "", "", "0.", "0.125", "True", "-1", "-1", "0.", "", "False"],
        (8, 128, 128, 64, "bf16", 2 * 8 * 128 * 128 * 64, 2 * 8 * 128 * 128 * 64, 2 * 4 * 65536)),
    "its backward": (
        "flash_attn::_flash_attn_backward", [[2, 128, 4, 64]] * 5 + [[2, 4, 128], *[[2, 128, 4, 64]] * 3, *[[]] * 9],
        [B] * 5 + [F, B, B, B, *[""] * 9],
        ["", "", "", "", "", "", "", "", "", "0.", "0.125", "False", "-1", "-1", "0.", "", "False", ""],
        (8, 128, 128, 64, "bf16", 10 * 8 * 128 * 128 * 64, 8 * 8 * 128 * 128 * 64, 2 * 8 * 65536)),
    "a sliding window is unknown": (
        "flash_attn::_flash_attn_forward", [*[[2, 128, 4, 64]] * 3, *[[]] * 8], [B, B, B, *[""] * 8],
        ["", "", "", "0.", "0.125", "True", "64", "0", "0.", "", "False"],
        (None, None, None, None, "bf16", None, None, None)),
    "an output that is given counts once": ("aten::mul", [[4, 8], [], [4, 8]], [F, "double", F], None,
                                            (None, None, None, None, "fp32", None, None, 4 * 64 + 8)),
    "also after a scalar": ("aten::add", [[4, 8], [4, 8], [], [4, 8]], [F, F, "Scalar", F], None,
                            (None, None, None, None, "fp32", None, None, 4 * 96)),
    "three operands": ("aten::addcmul", [[4, 8], [4, 8], [4, 8], []], [F, F, F, "Scalar"], None,
                       (None, None, None, None, "fp32", None, None, 4 * 128)),
    "a sum is broadcast": ("aten::add", [[4, 1, 8], [16, 1], []], [F, F, "Scalar"], None,
                           (None, None, None, None, "fp32", None, None, 4 * (32 + 16 + 4 * 16 * 8))),
    "in place": ("aten::mul_", [[4, 8], [4, 8]], [F, F], None, (None, None, None, None, "fp32", None, None, 4 * 96)),
    "a cast": ("aten::copy_", [[4, 8], [4, 8], []], [B, F, "Scalar"], None,
               (None, None, None, None, "bf16", None, None, 32 * 6)),
    "inner sizes that do not match": ("aten::mm", [[4, 8], [9, 16]], [F, F], None,
                                      (None, None, None, None, "fp32", None, None, None)),
    "sizes that no device has": (
        "aten::mm", [[2**62, 2**62], [2**62, 2**62]], [F, F], None,
        (1, 2**62, 2**62, 2**62, "fp32", None, None, None)),
    "no shapes": ("aten::mm", None, None, None, (None, None, None, None, None, None, None, None)),
    "lists of tensors": ("aten::add_", [[[4, 8]], [[4]], []], ["TensorList", "TensorList", "Scalar"], None,
                         (None, None, None, None, "tensorlist", None, None, None)),
    "an operator without a formula": ("my::op", [[4, 8]], [F], None, (None, None, None, None, None, None, None, None)),
    "a text that is no list": ("aten::mm", "x", [F, F], None, (None, None, None, None, "fp32", None, None, None)),
}  # fmt: skip


@pytest.fixture(scope="module")
def formulas(together: Together) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each case."""

    def write(insert: Insert) -> None:
        call = calls_of(insert)
        for op_id, (name, dims, types, scalars, _) in enumerate(CALLS.values()):
            call(op_id, name, dims, types, scalars)

    found = together(write, "SELECT op_id, batch, m, n, k, dtype, flops, model_flops, bytes FROM v1.op_flops")
    return {case: [row[1:] for row in found if row[0] == op_id] for op_id, case in enumerate(CALLS)}


@pytest.mark.parametrize("case", CALLS)
def test_formulas(case: str, formulas: dict[str, list[tuple[Any, ...]]]) -> None:
    assert formulas[case] == [CALLS[case][-1]]


def test_pytorch_counts_the_same(call: Callable[..., None], ask: Ask) -> None:
    """Another route: the formulas of ``torch.utils.flop_counter``."""
    counter = pytest.importorskip("torch.utils.flop_counter")
    call(1, "aten::addmm", [[5], [7, 3], [3, 5], [], []], [F, F, F, "Scalar", "Scalar"])
    call(2, "aten::baddbmm", [[2, 7, 5], [2, 7, 3], [2, 3, 5], [], []], [F, F, F, "Scalar", "Scalar"])
    call(3, "aten::miopen_convolution", [[2, 8, 30, 20], [16, 8, 3, 5], [], [], [], [], []], [F, F, *[""] * 5],
         ["", "", "", "[1, 2]", "[2, 1]", "[1, 2]", "1"])  # fmt: skip
    call(4, "aten::_scaled_dot_product_efficient_attention_backward",
         [[2, 4, 33, 16], [2, 4, 33, 16], [2, 4, 65, 16], [2, 4, 65, 16], *[[]] * 8], [F] * 4 + [""] * 8,
         ["", "", "", "", "", "", "", "", "", "0.", "", "False"])  # fmt: skip
    right = [
        (1, counter.addmm_flop((5,), (7, 3), (3, 5))),
        (2, counter.baddbmm_flop((2, 7, 5), (2, 7, 3), (2, 3, 5))),
        (3, counter.conv_flop_count([2, 8, 30, 20], [16, 8, 3, 5], [2, 16, 15, 16])),
        (4, counter.sdpa_backward_flop_count((2, 4, 33, 16), (2, 4, 33, 16), (2, 4, 65, 16), (2, 4, 65, 16))),
    ]
    assert ask("SELECT op_id, flops FROM v1.op_flops ORDER BY op_id") == right


def test_time_is_that_of_all_gpu_work_an_operator_launched(call: Callable[..., None], insert: Insert, ask: Ask) -> None:
    """A product in parts also clears its result; and what nests inside it is its own."""
    call(1, "aten::mm", [[4, 8], [8, 16]], [F, F], kernel="cutlass_80_tensorop_s1688gemm_64x64", ns=1024)
    insert("kernel_event", "event_id kind name", (7, "memset", "Memset"),
           capture_id=1, device_id=0, op_id=1, start_ns=1, duration_ns=24)  # fmt: skip
    query = "SELECT dtype, math_dtype, gpu_events, gpu_ns, tflops FROM v1.op_flops"
    assert ask(query) == [("fp32", "tf32", 2, 1048, pytest.approx(1024 / 1048e3))]


def test_roofline(call: Callable[..., None], insert: Insert, ask: Ask, report: Report) -> None:
    """On an H100: 989.4 TFLOP/s of bf16, 3,350 GB/s."""
    call(1, "aten::mm", [[8192, 8192], [8192, 8192]], [B, B], ns=2_000_000)
    call(2, "aten::mm", [[8192, 8192], [8192, 8192]], [B, B], ns=1_000_000)
    call(3, "aten::mm", [[1, 8192], [8192, 8192]], [B, B], ns=100_000)
    call(4, "aten::gelu", [[1024, 1024], []], [B, ""], ns=2000)
    call(5, "my::op", [[1]], [B], ns=7)
    flops, moved, vector = 2 * 8192**3, 3 * 8192**2 * 2, (8192**2 + 2 * 8192) * 2
    query = (
        "SELECT name, calls, flops, bytes, gpu_ns, bound, peak_percent, lost_ns, tflops, intensity, "
        "measured_peak_percent FROM v1.roofline ORDER BY gpu_ns DESC"
    )
    roof = flops / 989.4e3
    memory = vector / 3350
    pointwise = 2 * 1024**2 * 2 / 3350
    right = [
        ("aten::mm", 2, 2 * flops, 2 * moved, 3_000_000, "compute", 100 * 2 * roof / 3e6, round(3e6 - 2 * roof),
         2 * flops / 3e9, flops / moved, None),
        ("aten::mm", 1, 2 * 8192**2, vector, 100_000, "memory", 100 * memory / 1e5, round(1e5 - memory),
         2 * 8192**2 / 1e8, 2 * 8192**2 / vector, None),
        ("aten::gelu", 1, None, 4 * 1024**2, 2000, "memory", 100 * pointwise / 2000, round(2000 - pointwise),
         None, None, None),
        ("my::op", 1, None, None, 7, None, None, None, None, None, None),
    ]  # fmt: skip
    assert ask(query) == [tuple(pytest.approx(v) if isinstance(v, float) else v for v in row) for row in right]
    insert("device_peak", "priority device_name source memory_gbps bf16_tflops",
           (1, "^NVIDIA H100 80GB HBM3$", "measured", 3000.0, 700.0), (0, "(", "measured", 1.0, 1.0))  # fmt: skip
    assert ask("SELECT measured_peak_percent FROM v1.roofline WHERE name = 'aten::gelu'") == [
        (pytest.approx(100 * 4 * 1024**2 / 3000 / 2000),)
    ]
    found = report("roofline", '"rank", calls, gpu_ns', by={"rank": "{base}.rank"}, where={"e": "e.event_id < 3"})
    assert found == [(0, 2, 3_000_000)]


def test_a_device_of_unknown_peaks_has_no_roof(call: Callable[..., None], insert: Insert, ask: Ask) -> None:
    insert("device", "capture_id device_id name", (1, 1, "Some GPU"))
    insert("op", "op_id name input_dims input_types", (1, "aten::mm", "[[4, 8], [8, 16]]", '["float", "float"]'),
           capture_id=1, start_ns=0, duration_ns=5)  # fmt: skip
    insert("kernel_event", "event_id op_id name", (1, 1, "k"),
           capture_id=1, device_id=1, kind="kernel", start_ns=0, duration_ns=5)  # fmt: skip
    assert ask("SELECT flops, bound, peak_percent, roof_ns, lost_ns FROM v1.roofline") == [
        (1024, None, None, None, None)
    ]


@pytest.fixture
def steps(call: Callable[..., None], insert: Insert) -> None:
    """Step 5 of 100 µs with a product of 40 µs and one of unknown shapes of 10 µs; step 6 without products."""
    call(1, "aten::mm", [[4096, 4096], [4096, 4096]], [B, B], ns=40_000)
    call(6, "my::gemm", [[1]], [B], kernel="sgemm", ns=10_000)
    call(7, "aten::gelu", [[1024], []], [B, ""], ns=2000)
    call(20, "aten::gelu", [[1024], []], [B, ""], ns=3000)
    insert("annotation", "annotation_id name start_ns duration_ns",
           (1, "ProfilerStep#5", 0, 100_000), (2, "ProfilerStep#6", 190_000, 20_000),
           capture_id=1, style="user", thread_id=1)  # fmt: skip
    insert("annotation_kernel", "annotation_id event_id", (1, 1), (1, 6), (1, 7), (2, 20), capture_id=1, rule="process")


def test_utilisation_of_a_step(steps: None, ask: Ask) -> None:
    flops = 2 * 4096**3
    query = (
        "SELECT step, wall_ns, flops, covered_ns, uncovered_ns, unknown_ns, peak_tflops, mfu_percent, hfu_percent "
        "FROM v1.mfu"
    )
    percent = pytest.approx(100 * flops / 989.4e3 / 100_000)
    assert ask(f"{query} ORDER BY step") == [
        (5, 100_000, flops, 40_000, 12_000, 10_000, pytest.approx(989.4), percent, percent),
        (6, 20_000, None, 0, 3000, 0, None, None, None),
    ]


def test_element_types_count_against_their_own_peaks(
    steps: None, call: Callable[..., None], insert: Insert, ask: Ask
) -> None:
    call(5, "aten::mm", [[512, 512], [512, 512]], [F, F], ns=9_000)
    insert("annotation_kernel", "annotation_id event_id", (1, 5), capture_id=1, rule="process")
    bf16, fp32 = 2 * 4096**3, 2 * 512**3
    peak_ns = bf16 / 989.4e3 + fp32 / 67e3
    assert ask("SELECT flops, peak_tflops, mfu_percent FROM v1.mfu WHERE step = 5") == [
        (bf16 + fp32, pytest.approx((bf16 + fp32) / peak_ns / 1e3), pytest.approx(100 * peak_ns / 100_000))
    ]


def test_work_done_again_is_no_model_flops(steps: None, call: Callable[..., None], insert: Insert, ask: Ask) -> None:
    """Activation checkpointing runs a product again inside a node; the node's own product is backward work."""
    node = ("autograd::engine::evaluate_function: AddmmBackward0", None, 70, 1)
    insert("op", "op_id name parent_op_id sequence_number forward_thread_id",
           (50, *node), (51, "aten::linear", 50, 90, 0),
           capture_id=1, start_ns=50_000, duration_ns=30_000)  # fmt: skip
    for op_id, parent in ((8, 51), (9, 50)):
        call(op_id, "aten::mm", [[512, 512], [512, 512]], [B, B], ns=1000)
        insert("annotation_kernel", "annotation_id event_id", (1, op_id), capture_id=1, rule="process")
        ask(f"UPDATE main.op SET parent_op_id = {parent} WHERE op_id = {op_id}")
    first, more = 2 * 4096**3, 2 * 512**3
    assert ask("SELECT flops, model_flops FROM v1.mfu WHERE step = 5") == [(first + 2 * more, first + more)]
    ask("UPDATE main.op SET input_dims = NULL WHERE op_id NOT IN (50, 51)")
    assert ask("SELECT flops, model_flops FROM v1.mfu WHERE step = 5") == [(None, None)]


COMPILED = [(30, "CompiledFunction", None), (31, "autograd::engine::evaluate_function: CompiledFunctionBackward", None),
            (32, "CompiledFunctionBackward", 31)]  # fmt: skip


@pytest.mark.parametrize(
    ("forward", "backward", "needed"),
    [
        (1, 3, 2),  # one product more than the two gradients need
        (1, 2, 2),
        (2, 3, 3),  # the first layer needs one gradient
        (0, 3, 3),  # the forward pass is not in the step
    ],
)
def test_a_compiled_backward_pass_needs_at_most_twice_the_forward_pass(
    steps: None, call: Callable[..., None], insert: Insert, ask: Ask, forward: int, backward: int, needed: int
) -> None:
    insert("op", "op_id name parent_op_id", *COMPILED, capture_id=1, start_ns=50_000, duration_ns=30_000)
    for place in range(forward + backward):
        op_id = 40 + place
        call(op_id, "aten::mm", [[512, 512], [512, 512]], [B, B], ns=1000)
        insert("annotation_kernel", "annotation_id event_id", (1, op_id), capture_id=1, rule="process")
        ask(f"UPDATE main.op SET parent_op_id = {30 if place < forward else 32} WHERE op_id = {op_id}")
    first, more = 2 * 4096**3, 2 * 512**3
    assert ask("SELECT flops, model_flops FROM v1.mfu WHERE step = 5") == [
        (first + (forward + backward) * more, first + (forward + needed) * more)
    ]


def test_shapes_of_gemm_variance(call: Callable[..., None], ask: Ask) -> None:
    call(1, "aten::bmm", [[3, 4, 8], [3, 8, 16]], [H, H], kernel="sgemm")
    call(2, "my::gemm", [[3, 4]], [H], kernel="sgemm")
    assert ask("SELECT batch, m, n, k, calls FROM v1.gemm_variance ORDER BY m") == [
        (3, 4, 16, 8, 1), (None, None, None, None, 1)
    ]  # fmt: skip
