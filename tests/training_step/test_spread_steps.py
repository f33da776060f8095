"""Steps over several GPUs: cost of collectives compared with recorded ones, and overlap with computation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.tiny import ADD, NCCL, Tiny
from tracedb.errors import TracedbError, UsageError
from tracedb.pipeline import run as pipeline
from tracedb.regress.conditions import Conditions
from tracedb.training_step import configuration, cost_model, prediction, recorded_effects, trace_parts
from tracedb.training_step.composition import Part
from tracedb.training_step.configuration import Step
from tracedb.training_step.predicted_step import Prediction
from tracedb.training_step.price import Price
from tracedb.training_step.trace_operators import operators

RECORDED = Path(__file__).parents[1] / "data" / "steps"
STEP = Step(name="dp", gpu="H200", dtype="bf16", layers=4, dim=4096, heads=32, length=1536, batch=4, dp=2)
WEIGHTS = 4 * (12 * 4096**2 + 4 * 4096) + 2 * 50_304 * 4096 + 2 * 4096


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One step of two ranks, gradients summed up after the backward, and beside it."""
    path = tmp_path_factory.mktemp("steps") / "steps.duckdb"
    pipeline.ingest(RECORDED, db=path)
    return path


@pytest.fixture
def connection(database: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(database), read_only=True) as opened:
        yield opened


def parts(connection: duckdb.DuckDBPyConnection, name: str, rank: int) -> dict[str, float]:
    """Return the measured parts of a recorded step, in µs."""
    trace = f"config={name}_4x4096_4x1536/rank{rank}.json.gz"
    return {part: ns / 1000 for part, ns in trace_parts.parts(connection, replace(STEP, trace=trace)).items()}


def test_after_the_backward_nothing_hides_an_all_reduce(connection: duckdb.DuckDBPyConnection) -> None:
    both = [parts(connection, "dp", rank) for rank in (0, 1)]
    whole = connection.execute(
        "SELECT sum(c.latency_ns) / 1000 FROM v1.collectives AS c "
        "WHERE c.collective = 'allreduce' AND c.labels['config'] LIKE 'dp%'"
    ).fetchone()
    assert whole is not None
    # The transfer is the same on both ranks; what a rank has above it, it waited for the other.
    assert [found["dp_allreduce"] for found in both] == pytest.approx([whole[0], whole[0]])
    assert both[0]["dp_allreduce"] == pytest.approx(8_940, abs=30)
    assert min(found["collective_wait"] for found in both) < 50
    assert all("gradient_copies" not in found and found["other"] < 25 for found in both)


def test_beside_the_backward_the_last_bucket_is_left(connection: duckdb.DuckDBPyConnection) -> None:
    after, beside = parts(connection, "dp", 0), parts(connection, "ddp", 0)
    # The embedding's gradient comes last; all the others' all-reduces hide, and slow the products that hide them.
    assert 1_000 < beside["dp_allreduce"] < 2_500
    assert beside["linear3_bwd"] > 1.03 * after["linear3_bwd"]
    assert beside["gradient_copies"] == pytest.approx(WEIGHTS * 2 * 2 / 4.3e6, rel=0.1)


def test_collectives_are_told_apart_by_what_they_send(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    capture = tiny.capture(path="t.json")
    tiny.add("annotation", capture_id=capture, annotation_id=1, name="ProfilerStep#1", style="user", start_ns=0,
             duration_ns=1000, thread_id=1, process_id=1)  # fmt: skip
    tiny.add("op", capture_id=capture, op_id=1, name="aten::gelu", start_ns=0, duration_ns=1, input_dims="[]")
    tokens = STEP.batch * STEP.length * STEP.dim
    for event, (name, elements, start, duration) in enumerate([
        ("allreduce", tokens, 100, 10), ("allreduce", 64, 200, 20), ("sendrecv", 64, 300, 30), ("barrier", 1, 400, 40),
        ("allgather", 64, 495, 50), (None, None, 500, 5), (None, None, 540, 50),
    ]):  # fmt: skip
        tiny.add("kernel_event", capture_id=capture, event_id=event, kind="kernel", device_id=0, start_ns=start,
                 duration_ns=duration, collective=name, message_in_elements=elements, op_id=None if name else 1,
                 name=f"ncclDevKernel_{name}" if name else "gelu")  # fmt: skip
    with duckdb.connect(str(tiny.save())) as opened:
        found = trace_parts.parts(opened, replace(STEP, mp=2, trace="t.json"))
        assert found == {
            "gelu_fwd": 55, "mp_allreduce": 10, "dp_allreduce": 20, "pipeline_wait": 30,
            "dp_allgather": 40, "collective_wait": 0,
        }  # fmt: skip
        assert sum(item.kernels for item in operators(opened, capture)) == 7
        assert sum(item.kernels for item in operators(opened, capture, collectives=False)) == 2


class Prices:
    """A nanosecond for each run of a part, and for each thousand elements sent; a thousandth for one moved."""

    def part(self, part: Part) -> Price:
        return Price(1, 1, 1, "model")

    def optimizer(self, weights: int, layer_weights: int, layers: int) -> Price:
        return Price(1, 1, 1, "model")

    def collective(self, what: str, elements: int) -> Price:
        return Price(elements / 1000, 0, 0, "model")

    def moved(self, elements: float) -> Price:
        return Price(elements / 1e6, 0, 0, "bytes")


def priced(**change: Any) -> Prediction:
    return prediction.assemble(replace(STEP, **change), Prices(), gap_ns=1e6)


def test_an_all_reduce_beside_the_backward_leaves_its_last_bucket_and_slows_products() -> None:
    after, beside = priced(), priced(overlap=True, bucket=1_000_000)
    assert after.parts["dp_allreduce"] == pytest.approx(WEIGHTS / 1000)
    last = 50_304 * 4096  # weights are not divided, so the embedding's gradient is a bucket of its own
    assert beside.parts["dp_allreduce"] == pytest.approx(last / 1000)
    slower, elsewhere, *_ = recorded_effects.beside_allreduce("NVIDIA H200", {})
    assert (slower, elsewhere) == (1.68, None)
    assert recorded_effects.beside_allreduce("NVIDIA B200", {})[:2] == (1.68, "H200")
    own = {"beside": [{"gpu": "NVIDIA B200", "collective": "allreduce", "slowdown": 1.4, "samples": 8}]}
    assert recorded_effects.beside_allreduce("NVIDIA B200", own)[:4] == (1.4, None, None, 0.0)
    own["beside"][0]["operators"] = [{"operator": "gelu", "pass": "bwd", "slowdown": 1.1}]
    each = recorded_effects.beside_allreduce("NVIDIA B200", own)
    # By its time alone: GELU as measured, the product as all products.
    assert each.slowdown_of({Part("gelu", "bwd"): 100.0, Part("linear1", "bwd"): 300.0}) == pytest.approx(1.325)
    assert beside.parts["overlap_slowdown"] == pytest.approx((WEIGHTS - last) / 1000 * (1 - 1 / slower))
    assert beside.parts["gradient_copies"] == pytest.approx(2 * WEIGHTS / 1e6)
    assert sum(beside.parts.values()) == pytest.approx(beside.ns)
    assert "gradient_copies" not in after.parts and "overlap_slowdown" not in after.parts


def test_a_collective_is_slower_beside_computation_too() -> None:
    own = {"gpu": "H200", "collective": "allreduce", "slowdown": 1.5, "samples": 8}

    def slowed(**facts: float) -> float:
        given = replace(STEP, overlap=True, bucket=1_000_000)
        found = prediction.assemble(given, Prices(), gap_ns=1e6, facts={"beside": [{**own, **facts}]})
        return found.parts["overlap_slowdown"]

    # A million elements take 1,000 ns alone by these prices.
    assert slowed(elements=1_000_000, transfer_ns=1_200.0) == pytest.approx(1.2 * slowed())
    assert slowed(elements=1_000_000, transfer_ns=800.0) == pytest.approx(slowed())


def test_gradients_of_further_micro_batches_are_added() -> None:
    assert "gradient_copies" not in priced(dp=1).parts
    found = priced(dp=1, micro_batches=4)
    assert found.parts["gradient_copies"] == pytest.approx(3 * 3 * WEIGHTS / 1e6)
    assert found.estimated["gradient_copies"] == "bytes"
    assert sum(found.parts.values()) == pytest.approx(found.ns)
    assert "gradient_copies" not in priced(dp=1, micro_batches=4, schedule="lockstep").parts


class Sampled:
    """Models that know four operators by their times in ns."""

    parameters = ("b", "h", "l")
    conditions = Conditions()

    def outside(self, shape: Mapping[str, int]) -> list[str]:
        return []

    def __init__(self, backward: float) -> None:
        self.times = {("flash_atten", "fwd"): 700, ("flash_atten", "bwd"): backward, ("RoPE", "fwd"): 1000}

    def find(self, gpu: str | None, operator: str, pass_: str, dtype: str | None) -> Sampled:
        if (operator, pass_) not in self.times:
            raise UsageError("no model")
        return self

    def predict(
        self, gpu: str | None, operator: str, pass_: str, dtype: str | None, shape: Mapping[str, int]
    ) -> tuple[float, float, float]:
        return (self.times[operator, pass_],) * 3


def test_a_backward_of_attention_is_priced_without_its_samples_copies() -> None:
    """Two copies of 22.7 % of a rotation each; a backward shorter than the forward was sampled without them."""
    part = Part("flash_atten", "bwd")
    assert cost_model.Prices(Sampled(2000), STEP, None).part(part).ns == pytest.approx(2000 - 2 * 227)
    assert cost_model.Prices(Sampled(80), STEP, None).part(part).ns == 80
    # Three gradients are joined (32.4 %) and copied over.
    layout = cost_model.Prices(Sampled(2000), STEP, None).part(Part("qkv_gradients", "bwd"))
    assert layout.ns == pytest.approx(3 * (324 + 227))


def test_a_step_says_its_bucket(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"layers": 1, "dim": 8, "heads": 1, "seq": 1, "batch": 1, "bucket": 0}))
    with pytest.raises(TracedbError, match="bucket is 0, expected a whole number of at least 1"):
        configuration.read(path)
    path.write_text(path.read_text().replace('"bucket": 0', '"bucket": 7'))
    assert configuration.read(path)[0].bucket == 7


def test_kernels_of_several_streams_hide_a_moment_of_a_collective_once(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(0)
    tiny.kernel(NCCL, 1_000, 1_000, collective="allreduce", message_in_elements=64, message_out_elements=64)
    for start, duration in ((900, 500), (1_100, 600), (1_200, 100), (1_950, 500)):
        tiny.kernel(ADD, start, duration, stream_id=start)
    with duckdb.connect(str(tiny.save())) as opened:
        found = opened.execute(trace_parts.EXPOSED, {"capture": 1}).fetchall()
    assert found == [("allreduce", 64, True, 250, 250)]


def test_a_gradient_as_large_as_an_activation(tmp_path: Path) -> None:
    """Replicas reduce gradients of several sizes, tensor-parallel ranks activations only."""
    tokens = STEP.batch * STEP.length * STEP.dim
    tiny = Tiny(tmp_path / "t.duckdb")
    capture = tiny.capture(0, path="t.json")
    tiny.add("annotation", capture_id=capture, annotation_id=1, name="ProfilerStep#1", style="user", start_ns=0,
             duration_ns=1000, thread_id=1, process_id=1)  # fmt: skip
    tiny.add("op", capture_id=capture, op_id=1, name="aten::gelu", start_ns=0, duration_ns=1, input_dims="[]")
    tiny.add("kernel_event", capture_id=capture, event_id=9, kind="kernel", device_id=0, start_ns=900, duration_ns=5,
             op_id=1, name="gelu")  # fmt: skip
    calls = [("split", tokens, 10), ("split", tokens, 20), ("replicas", tokens, 40), ("replicas", 64, 80)]
    for event, (group, elements, duration) in enumerate(calls):
        tiny.add("kernel_event", capture_id=capture, event_id=event, kind="kernel", device_id=0, start_ns=100 * event,
                 duration_ns=duration, collective="allreduce", message_in_elements=elements, group_name=group,
                 name=NCCL)  # fmt: skip
    with duckdb.connect(str(tiny.save())) as opened:
        found = trace_parts.parts(opened, replace(STEP, mp=2, dp=2, trace="t.json"))
    assert found == {"gelu_fwd": 5, "mp_allreduce": 30, "dp_allreduce": 120, "collective_wait": 0}
