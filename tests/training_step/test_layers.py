"""Layers and spreads by configuration: grouped-query attention, SwiGLU, experts, sharded weights, all together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb
import pytest

from support.small_step import step
from support.tiny import Tiny
from tracedb.errors import TracedbError
from tracedb.regress.dataset import tabulated
from tracedb.regress.model import Target
from tracedb.sampling.layer_kinds import LLAMA_LAYER, MOE_LAYER
from tracedb.training_step import composition, configuration, prediction, trace_parts
from tracedb.training_step.composition import Part
from tracedb.training_step.configuration import Step
from tracedb.training_step.predicted_step import Prediction
from tracedb.training_step.price import Price

LLAMA: dict[str, Any] = {
    "layers": 4, "dim": 2048, "heads": 16, "kv_heads": 4, "ffn": 5632, "seq": 1024, "batch": 4, "dtype": "bf16",
    "layer": "llama",
}  # fmt: skip
WIDTH, DIM, FFN = 128, 2048, 5632
ENDS = 2 * 50_304 * DIM
LAYER = (16 + 2 * 4) * WIDTH * DIM + DIM * DIM + 3 * DIM * FFN + 2 * DIM


class Prices:
    """1,500 ns for each run of a part, one for each thousand elements sent, a thousandth for one moved."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []

    def part(self, part: Part) -> Price:
        return Price(1500, 1500, 1500, "model")

    def optimizer(self, weights: int, layer_weights: int, layers: int) -> Price:
        return Price(weights, weights, weights, "model")

    def collective(self, what: str, elements: int) -> Price:
        self.sent.append((what, elements))
        return Price(elements / 1000, 0, 0, "model")

    def moved(self, elements: float) -> Price:
        return Price(elements / 1e6, 0, 0, "bytes")


def priced(given: Step, prices: Prices | None = None) -> Prediction:
    """Return a step by these prices, without gaps."""
    found = prediction.assemble(given, prices or Prices(), gap_ns=0)
    assert sum(found.parts.values()) == pytest.approx(found.ns)
    return found


def test_a_llama_like_layer() -> None:
    read = configuration.from_mapping(LLAMA)
    assert (read.layer, read.norm) == (LLAMA_LAYER, "RMSlayernorm")
    (stage,) = composition.stages(read)
    forward, backward = stage.forward, stage.backward
    assert [forward[Part(name, "fwd")] for name in ("linear3", "swiglu", "RoPE", "RMSlayernorm")] == [8, 4, 8, 9]
    # Two residual connections, and the gradients of gate and up added to each other.
    assert (forward[Part("res_add", "fwd")], backward[Part("res_add", "bwd")]) == (8, 12)
    assert (stage.layer_weights, stage.weights) == (4 * LAYER, 4 * LAYER + ENDS + DIM)


def test_a_plain_gpt_is_as_before() -> None:
    (stage,) = composition.stages(configuration.from_mapping({**LLAMA, "layer": "gpt", "kv_heads": 16, "ffn": 4 * DIM}))
    assert stage.layer_weights == 4 * (12 * DIM * DIM + 4 * DIM)
    assert stage.weights == stage.layer_weights + ENDS + 2 * DIM
    assert stage.backward[Part("res_add", "bwd")] == 8


@pytest.mark.parametrize(
    ("operator", "parameters", "shape"),
    [
        ("linear1", ("mp", "b", "h", "kv", "l"), {"mp": 1, "b": 4, "h": 16, "kv": 4, "l": 1024}),
        ("linear1", ("mp", "b", "l", "dim"), None),
        ("flash_atten", ("mp", "b", "h", "l"), None),
        ("linear3", ("mp", "b", "l", "dim", "ffn"), {"mp": 1, "b": 4, "l": 1024, "dim": DIM, "ffn": FFN}),
        ("linear3", ("mp", "b", "l", "dim"), None),
        # Element by element, only the width counts, which samples without ffn have from dim.
        ("swiglu", ("mp", "b", "l", "dim"), {"mp": 1, "b": 4, "l": 1024, "dim": FFN // 4}),
        ("linear2", ("mp", "b", "l", "dim"), {"mp": 1, "b": 4, "l": 1024, "dim": DIM}),
        ("linear2", ("mp", "unknown"), None),
    ],
)
def test_samples_that_do_not_tell_the_sizes_are_no_basis(
    operator: str, parameters: tuple[str, ...], shape: dict[str, int] | None
) -> None:
    assert composition.shape_for(operator, configuration.from_mapping(LLAMA), parameters) == shape


def test_sweeps_with_and_without_grouped_heads_are_fitted_together() -> None:
    target = Target("H200", "linear1", "fwd", "bf16")
    grouped = {"mp": 2, "b": 1, "h": 8, "kv": 2, "l": 512}
    table = tabulated(target, [({"mp": 1, "b": 1, "l": 512, "dim": 1280}, 5.0, 132), (grouped, 6.0, 132)])
    assert table.left_out == 0
    assert [dict(sorted(shape.items())) for shape in table.shapes] == [
        {"b": 1, "dim": 1280, "h": 10, "kv": 10, "l": 512, "mp": 1},
        {"b": 1, "dim": 1024, "h": 8, "kv": 2, "l": 512, "mp": 2},
    ]
    other = tabulated(target, [*[({"tokens": 5}, 5.0, 132)] * 2, (grouped, 6.0, 132)])
    assert (other.left_out, other.shapes) == (1, [{"tokens": 5}] * 2)


def test_experts_are_shared_out() -> None:
    given = configuration.from_mapping({**LLAMA, "layer": "moe", "experts": 8, "top_k": 2, "dp": 2, "ep": 2})
    assert given.layer == MOE_LAYER
    prices = Prices()
    found = priced(given, prices)
    experts = 4 * (4 * 2 * DIM * FFN)
    (stage,) = composition.stages(given)
    assert stage.expert_weights == experts
    # To the experts and back, in both passes; the gradients of experts are those of no other replica.
    assert found.parts["ep_alltoall"] == 2 * 2 * 4 * 1500
    assert prices.sent == [("dp_allreduce", stage.weights - experts)]
    assert composition.shape(given)["moe_num_experts"] == 4
    alone = priced(replace(given, dp=1, ep=1))
    assert "ep_alltoall" not in alone.parts and "expert_copies" not in alone.parts
    assert "expert_copies" in found.parts
    one_each = priced(replace(given, experts=2))
    assert "ep_alltoall" in one_each.parts and "expert_copies" not in one_each.parts  # what comes is in order


def test_sharded_weights_are_gathered_beside_the_layer_before() -> None:
    """Layers of 14 and 16 runs: gathering one takes longer than its forward, not than its backward."""
    given = replace(configuration.from_mapping({**LLAMA, "fsdp": True, "dp": 2}), vocabulary=1000)
    (stage,) = composition.stages(given)
    ends = stage.weights - stage.layer_weights
    gather, gather_ends = LAYER / 2 / 1000, ends / 2 / 1000
    forward, backward = (1500 * sum(counts.values()) / 4 for counts in (stage.forward, stage.backward))
    assert forward < gather < backward < gather + LAYER / 1000
    found = priced(given)
    late = 3 * (gather - forward)
    assert found.parts["fsdp_allgather"] == pytest.approx(gather_ends + gather + late)
    over = 3 * (gather + LAYER / 1000 - backward)
    assert found.parts["fsdp_reducescatter"] == pytest.approx((ends + LAYER) / 1000 + over)
    assert found.parts["fsdp_copies"] == pytest.approx((6 * 4 * LAYER + 4 * ends) / 1e6)
    assert found.parts["fsdp_copy_in"] == pytest.approx((4 * 4 * LAYER + 2 * ends) / 2 / 1e6)
    hidden = 7 * gather + 3 * LAYER / 1000 - late - over
    assert found.parts["overlap_slowdown"] == pytest.approx(hidden * (1 - 1 / 1.68))
    assert found.parts["optimizer"] == pytest.approx(stage.weights / 2)


def test_tensor_data_and_pipeline_parallelism_together() -> None:
    """Each alone, then all three with recomputation: what each adds is still there, for a stage's share of weights."""
    prices = Prices()
    given = configuration.from_mapping(
        {**LLAMA, "layers": 7, "pp": 2, "mp": 2, "dp": 2, "micro_batches": 4, "recompute": True, "zero1": True}
    )
    found = priced(given, prices)
    first, last = composition.stages(given)
    assert (first.layers, last.layers) == (4, 3)
    assert first.layer_weights == 4 * (((16 + 2 * 4) * WIDTH * DIM + DIM * DIM + 3 * DIM * FFN) // 2 + 2 * DIM)
    # Backward twice a layer, and once in what is run again, which ends before the last product.
    assert first.backward[Part("mp_allreduce", "comm")] == 4 * 3
    assert [first.backward[Part(name, "fwd")] for name in ("linear3", "linear4", "res_add")] == [8, 0, 4]
    whole = composition.stages(replace(given, schedule="lockstep"))[0].backward
    assert [whole[Part(name, "fwd")] for name in ("linear3", "linear4", "res_add")] == [8, 4, 8]
    assert first.forward[Part("mp_allreduce", "comm")] == 4 * 2 + 1  # of the embedding
    assert set(prices.sent) == {
        ("pp_p2p", 4 * 1024 * DIM // 2),
        *(("dp_allreduce", stage.weights) for stage in (first, last)),
        *(("dp_allgather", stage.weights // 2) for stage in (first, last)),
    }
    assert {"mp_allreduce", "pipeline_wait", "dp_allreduce", "dp_allgather", "gradient_copies"} <= set(found.parts)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layer": "mamba"}, "layer is 'mamba', expected gpt, llama, moe, rope, parallel or a list of operators"),
        ({"kv_heads": 3}, "they do not divide 16 heads"),
        ({"kv_heads": 1, "mp": 2}, "mp 2 does not divide 1 kv_heads"),
        ({"ffn": 5631, "mp": 2}, "mp 2 does not divide ffn 5631"),
        ({"layer": "moe", "experts": 8, "ep": 2}, "ep 2 does not divide 8 experts, or dp 1"),
        ({"layer": "moe", "experts": 8, "ep": 8, "dp": 8, "top_k": 2}, "top_k 2 is more than the experts of a rank"),
        ({"fsdp": True, "dp": 2, "pp": 2}, "fsdp is not predicted together with pp, zero1 or overlap"),
    ],
)
def test_what_cannot_be(change: dict[str, Any], words: str) -> None:
    with pytest.raises(TracedbError, match=words):
        configuration.from_mapping({**LLAMA, **change})


def test_parts_of_a_recorded_layer(tmp_path: Any) -> None:
    given = replace(configuration.from_mapping({**LLAMA, "fsdp": True, "dp": 2}), trace="t.json")
    tiny = Tiny(tmp_path / "t.duckdb")
    capture = tiny.capture(path="t.json")
    tiny.add("annotation", capture_id=capture, annotation_id=1, name="ProfilerStep#1", style="user", start_ns=0,
             duration_ns=1000, thread_id=1, process_id=1)  # fmt: skip
    inner = f"[[4, 1024, {FFN}], [4, 1024, {FFN}]]"
    calls = [
        ("aten::silu", inner, 1), ("aten::mul", inner, 2), ("aten::_chunk_cat", "[]", 4),
        ("aten::mm", f"[[4096, {DIM}], [{DIM}, 3072]]", 8), ("aten::mm", f"[[4096, {DIM}], [{DIM}, {FFN}]]", 16),
        ("aten::neg", f"[[4, 4, 1024, {WIDTH // 2}]]", 32), ("aten::mul", f"[[4, 1024, {DIM}], [{DIM}]]", 64),
    ]  # fmt: skip
    for number, (name, dims, duration) in enumerate(calls):
        tiny.add("op", capture_id=capture, op_id=number, name=name, start_ns=number, duration_ns=1, input_dims=dims)
        tiny.add("kernel_event", capture_id=capture, event_id=number, kind="kernel", device_id=0, name="k",
                 start_ns=100 * number, duration_ns=duration, op_id=number)  # fmt: skip
    for number, (name, duration) in enumerate([("allgather", 3), ("reduce_scatter", 5)], start=20):
        tiny.add("kernel_event", capture_id=capture, event_id=number, kind="kernel", device_id=0, start_ns=100 * number,
                 name=f"ncclDevKernel_{name}", duration_ns=duration, collective=name)  # fmt: skip
    with duckdb.connect(str(tiny.save())) as opened:
        assert trace_parts.parts(opened, given) == {
            "swiglu_fwd": 3, "fsdp_copies": 4, "linear1_fwd": 8, "linear3_fwd": 16, "RoPE_fwd": 32, "other": 64,
            "fsdp_allgather": 3, "fsdp_reducescatter": 5, "collective_wait": 0,
        }  # fmt: skip


def test_a_step_without_these_keys_has_their_defaults() -> None:
    plain = step()
    assert (plain.shared_heads, plain.inner, plain.fsdp, plain.ep) == (16, 4 * 2048, False, 1)
