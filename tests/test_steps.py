"""Whole training steps: their configuration, what they are made of, their schedule, and their price."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import run
from tracedb.errors import TracedbError
from tracedb.regress import store
from tracedb.regress.model import Target, fit
from tracedb.regress.problems import work
from tracedb.steps import composition, configuration, context, prediction, schedule
from tracedb.steps.composition import Part
from tracedb.steps.configuration import Step
from tracedb.steps.prices import Price
from tracedb.steps.schedule import Work

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
THEIRS = SHARED / "regressor" / "estimate-train-time"
GPU = "NVIDIA H100 80GB HBM3"
SMALL: dict[str, Any] = {
    "config": 7, "layers": 4, "dim": 2048, "heads": 16, "seq": 1024, "batch": 4, "vocab": 50_304,
    "dtype": "bf16", "gpu": GPU,
}  # fmt: skip


def step(**change: Any) -> Step:
    """Return a small step."""
    given = {
        "name": "s",
        "gpu": GPU,
        "dtype": "bf16",
        "layers": 4,
        "dim": 2048,
        "heads": 16,
        "length": 1024,
        "batch": 4,
    }
    return Step(**{**given, **change})


class TestConfiguration:
    """Both kinds of file, and words for what is wrong in them."""

    def test_a_list_of_sizes(self, tmp_path: Path) -> None:
        path = tmp_path / "steps.json"
        path.write_text(json.dumps([{**SMALL, "dtype": "fp16", "step_us_median": 12.5, "trace": "a.json.gz"}, SMALL]))
        first, second = configuration.read(path)
        assert (first.layers, first.length, first.batch, first.key, first.measured_ns) == (4, 1024, 4, 7, 12_500.0)
        assert (first.operands, second.operands, second.measured_ns, second.schedule) == ("nan", "finite", None, "1f1b")

    def test_a_file_of_estimate_train_time(self, tmp_path: Path) -> None:
        path = tmp_path / "llm.yml"
        path.write_text(
            """{"gpu_name": "NVIDIAA100-SXM4-80GB", "operator_data_folder": "./x", "encoders": 32,
            # pp, mp, dp, b, h, l, dim, steps_per_update, gpus_per_node
            "training_config": [4, 2, 2, 4, 32, 4096, 4096, 8, 4], "comm_bucket": 1260000000,
            "encoder_function_list":['RMSlayernorm', 'linear1'], "layernorm_name":'RMSlayernorm',
            "fwd_syncs":2, "bwd_syncs":2, }"""
        )
        (found,) = configuration.read(path)
        assert (found.pp, found.mp, found.dp, found.batch, found.heads, found.length, found.dim) == (
            4,
            2,
            2,
            4,
            32,
            4096,
            4096,
        )
        assert (found.micro_batches, found.gpus_per_node, found.layer) == (8, 4, ("RMSlayernorm", "linear1"))
        assert (found.recompute, found.zero1, found.schedule, found.key) == (True, True, "lockstep", "llm")

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"layers": None}, "layers is None, expected a whole number"),
            ({"dim": 0}, "dim is 0, expected a whole number of at least 1"),
            ({"heads": 3}, "do not divide dim 2048"),
            ({"mp": 3}, "mp 3 does not divide 16 heads"),
            ({"schedule": "zigzag"}, "schedule is 'zigzag', expected one of afab, 1f1b, lockstep"),
            ({"recompute": 1}, "recompute is 1, expected true or false"),
            ({"operands": "zero"}, "operands is 'zero', expected finite or nan"),
            ({"layer": []}, "layer is [], expected a list of operators"),
            ({"pp": 8}, "4 layers do not fill 8 pipeline stages"),
            ({"step_us_median": "12"}, "step_us_median is '12', expected a number above 0"),
            ({"product_speedup": 0}, "product_speedup is 0, expected a number above 0"),
            ({"gpu": 1}, "gpu is 1, expected a text"),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path: Path, change: dict[str, object], words: str) -> None:
        path = tmp_path / "steps.json"
        path.write_text(json.dumps([{**SMALL, **change}]))
        with pytest.raises(TracedbError) as caught:
            configuration.read(path)
        assert words in str(caught.value)

    @pytest.mark.parametrize(
        ("name", "text", "words"),
        [
            ("a.json", "[1", "is no JSON"),
            ("a.json", "[1]", "step 0 is int, expected an object"),
            ("a.yml", "training_config: [1, 2]", "expected nine sizes: pp, mp, dp"),
            ("a.yml", "layers: 4", "dim is None"),
        ],
    )
    def test_no_configuration(self, tmp_path: Path, name: str, text: str, words: str) -> None:
        (tmp_path / name).write_text(text)
        with pytest.raises(TracedbError, match=words):
            configuration.read(tmp_path / name)
        with pytest.raises(TracedbError, match="cannot be read"):
            configuration.read(tmp_path / f"no-{name}")

    def test_layers_of_the_stages(self) -> None:
        assert step(layers=32, pp=4).stage_layers() == [8, 9, 9, 6]
        assert step(layers=32, pp=2).stage_layers() == [17, 15]
        assert step(layers=32).stage_layers() == [32]
        assert sum(step(layers=45, pp=7).stage_layers()) == 45


class TestComposition:
    """What stages run."""

    def test_one_stage_has_it_all(self) -> None:
        (stage,) = composition.stages(step())
        assert stage.forward == {
            Part("embedding", "fwd"): 1, Part("layernorm", "fwd"): 9, Part("linear1", "fwd"): 4,
            Part("flash_atten", "fwd"): 4, Part("linear2", "fwd"): 4, Part("res_add", "fwd"): 8,
            Part("linear3", "fwd"): 4, Part("gelu", "fwd"): 4, Part("linear4", "fwd"): 4,
            Part("linear_final", "fwd"): 1, Part("parallel_cross_entropy_128", "fwd"): 1,
        }  # fmt: skip
        assert stage.backward[Part("qkv_gradients", "bwd")] == 4
        assert stage.weights == 4 * (12 * 2048**2 + 4 * 2048) + 2 * 50_304 * 2048 + 2 * 2048

    def test_stages_of_a_pipeline_with_model_parallel_ranks(self) -> None:
        first, middle, last = composition.stages(step(layers=10, pp=3, mp=2, recompute=True))
        assert [first.layers, middle.layers, last.layers] == [3, 5, 2]
        assert first.forward[Part("mp_allreduce", "comm")] == 2 * 3 + 1
        assert middle.backward[Part("mp_allreduce", "comm")] == 2 * 2 * 5
        assert middle.backward[Part("linear1", "fwd")] == 5
        assert Part("embedding", "fwd") not in middle.forward and Part("linear_final", "fwd") in last.forward


class TestSchedule:
    """The end of the last backward."""

    @pytest.mark.parametrize("name", ["afab", "1f1b", "lockstep"])
    def test_like_stages_take_a_slot_for_each_micro_batch_and_neighbour(self, name: str) -> None:
        assert schedule.makespan(name, [Work(2, 4)] * 4, 8, 0.0) == (8 + 4 - 1) * 6

    def test_one_stage_has_no_bubble(self) -> None:
        for name in configuration.SCHEDULES:
            assert schedule.makespan(name, [Work(2, 3)], 5, 0.0) == 25

    def test_two_stages_by_hand(self) -> None:
        """Stage 1 is the slow one: it starts when the first forward arrives, and its last backward goes back."""
        stages = [Work(1, 2), Work(3, 4)]
        assert schedule.makespan("1f1b", stages, 2, 0.5) == 1 + 0.5 + 3 + 4 + 3 + 4 + 0.5 + 2
        assert schedule.makespan("afab", stages, 2, 0.5) == 1 + 0.5 + 3 + 3 + 4 + 4 + 0.5 + 2
        assert schedule.makespan("lockstep", stages, 2, 0.5) == 3 * (3 + 4.5)

    def test_fewer_micro_batches_than_stages(self) -> None:
        assert schedule.makespan("1f1b", [Work(1, 1)] * 4, 1, 0.0) == 8


@pytest.mark.shared
class TestTheirs:
    """estimate-train-time's own prediction of its example, from its operators' times."""

    class Prices:
        """The times that it wrote out, in µs; its list has none of a layout of gradients."""

        def __init__(self, times: Mapping[str, list[float]]) -> None:
            self.times = times
            self.stage = 0

        def one(self, name: str, place: int = 0) -> Price:
            value = self.times[name][place]
            return Price(value, value, value, "model")

        def part(self, part: Part) -> Price:
            return Price(0, 0, 0, "model") if part.operator == "qkv_gradients" else self.one(part.name)

        def optimizer(self, weights: int, layer_weights: int, layers: int) -> Price:
            place = {8: 0, 9: 1, 6: 2}[layers]
            return self.one("optimizer", place).times(2)  # it does not share the optimizer out over the two replicas

        def collective(self, what: str, elements: int) -> Price:
            if what.startswith("pp"):
                return self.one("pp_p2p")
            given = [908_869_632, 906_283_008, 707_481_600]
            factor = 2 if what == "dp_allgather" else 1
            return self.one(what, min(range(3), key=lambda place: abs(given[place] - factor * elements)))

        def moved(self, elements: float) -> Price:
            raise AssertionError("lockstep moves no gradients")

    def test_nine_and_a_half_seconds(self) -> None:
        path = THEIRS / "llemma_7b_4_2_2_P.csv"
        if not path.exists():
            pytest.skip(f"{path} is not there")
        times = {row[0]: json.loads(row[2]) for row in csv.reader(path.open(newline="")) if row[0] != "module"}
        listed = {name: value if isinstance(value, list) else [value] for name, value in times.items()}
        (found,) = configuration.read(THEIRS / "examples" / "llemma_7b_4_2_2_P.yml")
        predicted = prediction.assemble(found, self.Prices(listed), gap_ns=0)
        assert predicted.ns == pytest.approx(9_465_235.013, abs=0.01)
        assert sum(predicted.parts.values()) == pytest.approx(predicted.ns)
        assert [stage.forward for stage in predicted.stages][::3] == pytest.approx([179_054.905, 149_611.298], abs=0.01)
        assert predicted.stages[1].backward == pytest.approx(609_930.428, abs=0.01)


OPERATORS = (
    *("embedding", "layernorm", "linear1", "linear2", "linear3", "linear4", "linear_final"),
    *("flash_atten", "gelu", "res_add", "RoPE", "softmax"),
)
BYTES_A_NS, FLOPS_A_NS = 2_500.0, 600_000.0


def law(operator: str, pass_: str, shape: Mapping[str, int]) -> float:
    """Return the time by which the test's samples are made: FLOPs and bytes at fixed rates."""
    flops, moved = work(operator, pass_, "bf16", shape)
    return 1000 + moved / BYTES_A_NS + (flops / FLOPS_A_NS if operator.startswith(("linear", "flash")) else 0)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models fitted to samples that follow the law exactly."""
    folder = tmp_path_factory.mktemp("models")
    rows = np.random.default_rng(3)
    fitted = []
    for operator in (*OPERATORS, "middleStage_optimizer"):
        names = {"layernorm": "b l dim", "res_add": "b l dim", "middleStage_optimizer": "mp dim encoders"}.get(operator)
        names = names or ("mp b h l" if operator in ("flash_atten", "RoPE", "softmax") else "mp b l dim")
        choices = {"mp": [1, 2], "b": [2, 4, 8], "h": [16, 32], "l": [1024, 2048, 3072], "dim": [1024, 2048, 4096]}
        choices["encoders"] = [4, 6, 8, 12]
        shapes = [{name: int(rows.choice(choices[name])) for name in names.split()} for _ in range(40)]
        for pass_ in ("step",) if operator.endswith("optimizer") else ("fwd", "bwd"):
            times = np.array([law(operator, pass_, shape) for shape in shapes])
            fitted.append(fit(Target(GPU, operator, pass_, "bf16"), shapes, times, 132))
    store.save(folder, fitted, {})
    return folder


def rows(models: Path, tmp_path: Path, *options: str, **change: Any) -> list[dict[str, Any]]:
    """Return what ``tracedb predict --step`` says of a small step."""
    path = tmp_path / "steps.json"
    path.write_text(json.dumps([{**SMALL, **change}]))
    done = run("-q", "predict", "--models", models, "--step", path, "--format", "json", *options)
    assert done.exit_code == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return found


class TestPrediction:
    """Steps priced by models of samples that follow a law."""

    def test_parts_are_their_operators_and_sum_up(self, models: Path, tmp_path: Path) -> None:
        (row,) = rows(models, tmp_path)
        parts = row["parts"]
        assert (row["config"], list(row)[:5]) == (7, ["config", "predicted_ns", "low_ns", "high_ns", "parts"])
        assert sum(parts.values()) == pytest.approx(row["predicted_ns"])
        assert row["low_ns"] < row["predicted_ns"] < row["high_ns"]
        shape = {"mp": 1, "b": 4, "h": 16, "l": 1024, "dim": 2048}
        faster = context.IN_A_STEP
        for operator, count, divisor in (
            ("linear1", 4, faster),
            ("layernorm", 9, 1),
            ("gelu", 4, 1),
            ("embedding", 1, 1),
        ):
            for pass_ in ("fwd", "bwd"):
                expected = count * law(operator, pass_, shape) / divisor
                assert parts[f"{operator}_{pass_}"] == pytest.approx(expected, rel=0.05), operator
        # Autograd sums the gradients of a residual's two branches up; it does not copy them.
        assert parts["res_add_bwd"] == parts["res_add_fwd"]

    def test_what_has_no_samples_is_estimated_and_named(self, models: Path, tmp_path: Path) -> None:
        (row,) = rows(models, tmp_path)
        assert row["estimated"] == {
            "parallel_cross_entropy_128_fwd": "bytes, at the rate of softmax",
            "parallel_cross_entropy_128_bwd": "bytes, at the rate of softmax",
            "qkv_gradients_bwd": "elements, at the rate of RoPE's strided kernels",
        }
        logits = 4 * 1024 * 50_304 * 2
        assert row["parts"]["parallel_cross_entropy_128_fwd"] == pytest.approx(2 * logits / BYTES_A_NS, rel=0.1)
        (other,) = rows(models, tmp_path, layer=["RMSlayernorm", "linear1", "bmm"])
        assert other["estimated"]["RMSlayernorm_fwd"] == "bytes, at the rate of sampled operators"
        assert other["estimated"]["bmm_fwd"] == "FLOPs, at the rate of sampled operators"

    def test_matrix_products_on_nan_are_faster(self, models: Path, tmp_path: Path) -> None:
        (finite,), (nan,) = rows(models, tmp_path), rows(models, tmp_path, operands="nan")
        assert finite["parts"]["linear3_bwd"] / nan["parts"]["linear3_bwd"] == pytest.approx(context.ON_NAN)
        assert finite["parts"]["gelu_bwd"] == nan["parts"]["gelu_bwd"]
        assert context.speedup(step(gpu="NVIDIA A100-SXM4-80GB", operands="nan"), "linear1") == 1
        (said,) = rows(models, tmp_path, product_speedup=1.0)
        assert said["parts"]["linear3_bwd"] / finite["parts"]["linear3_bwd"] == pytest.approx(context.IN_A_STEP)

    def test_more_micro_batches_and_recomputation_cost_what_they_run(self, models: Path, tmp_path: Path) -> None:
        (one,), (four,) = rows(models, tmp_path), rows(models, tmp_path, micro_batches=4)
        (again,) = rows(models, tmp_path, recompute=True)
        assert four["parts"]["linear1_fwd"] == pytest.approx(4 * one["parts"]["linear1_fwd"])
        assert four["parts"]["optimizer"] == one["parts"]["optimizer"]
        assert again["parts"]["linear1_fwd"] == pytest.approx(2 * one["parts"]["linear1_fwd"])
        assert again["parts"]["linear_final_fwd"] == one["parts"]["linear_final_fwd"]

    def test_collectives_need_samples_or_a_link(self, models: Path, tmp_path: Path) -> None:
        path = tmp_path / "dp.json"
        path.write_text(json.dumps({**SMALL, "dp": 2}))
        done = run("predict", "--models", models, "--step", path)
        assert done.exit_code == 1
        assert "no model has allreduce (pass comm)" in done.stderr and "--link-gbps" in done.stderr
        (row,) = rows(models, tmp_path, "--link-gbps", "100", dp=2)
        weights = 4 * (12 * 2048**2 + 4 * 2048) + 2 * 50_304 * 2048 + 2 * 2048
        assert row["parts"]["dp_allreduce"] == pytest.approx(weights * 2 / 100)
        (shared,) = rows(models, tmp_path, "--link-gbps", "100", dp=2, zero1=True)
        assert shared["parts"]["optimizer"] == pytest.approx(row["parts"]["optimizer"] / 2)
        assert shared["parts"]["dp_allgather"] == pytest.approx(weights / 2 * 2 / 100, rel=1e-6)
        (hidden,) = rows(models, tmp_path, "--link-gbps", "1000", dp=2, overlap=True)
        assert hidden["parts"]["dp_allreduce"] <= weights * 2 / 1000

    def test_a_pipeline_waits(self, models: Path, tmp_path: Path) -> None:
        found = {
            name: rows(models, tmp_path, "--link-gbps", "100", pp=2, layers=8, micro_batches=4, schedule=name)[0]
            for name in ("afab", "1f1b", "lockstep")
        }
        # Summing the micro-batches' gradients up is no part of estimate-train-time's formula.
        assert "gradient_copies" not in found["lockstep"]["parts"]
        summing = 4 * found["1f1b"]["parts"]["gradient_copies"]
        assert found["1f1b"]["predicted_ns"] - summing <= found["lockstep"]["predicted_ns"]
        for row in found.values():
            assert row["parts"]["pipeline_wait"] > 0
            assert sum(row["parts"].values()) == pytest.approx(row["predicted_ns"])
        stages = rows(models, tmp_path, "--link-gbps", "100", "--by", "stage", pp=2, layers=8, micro_batches=4)
        assert [(row["stage"], row["layers"]) for row in stages] == [(0, 5), (1, 3)]
        assert all(row["forward_ns"] < row["backward_ns"] for row in stages)

    def test_measured_steps_say_how_far_off(self, models: Path, tmp_path: Path) -> None:
        (row,) = rows(models, tmp_path, step_us_median=20_000.0)
        assert row["error_percent"] == pytest.approx(100 * (row["predicted_ns"] / 2e7 - 1))

    def test_questions_do_not_mix(self, models: Path, tmp_path: Path) -> None:
        done = run("predict", "--models", models, "--step", "a.json", "--trace", "b.json")
        assert (done.exit_code, "say one of them" in done.stderr) == (2, True)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one recorded step."""
    trace = SHARED / "steps" / "step_0.json.gz"
    if not trace.exists():
        pytest.skip(f"{trace} is not there")
    database = tmp_path_factory.mktemp("step") / "step.duckdb"
    assert run("-q", "ingest", trace, "--db", database).exit_code == 0
    return database


@pytest.mark.shared
class TestRealStep:
    """A recorded step: its parts, and its operators one by one."""

    def test_parts_of_the_recorded_step(self, database: Path) -> None:
        from tracedb.database import connect
        from tracedb.steps import measured

        first = configuration.read(SHARED / "steps" / "steps.json")[0]
        with connect(database) as connection:
            parts = measured.parts(connection, first)
            ((total,),) = connection.execute("SELECT sum(duration_ns) / 2 FROM main.kernel_event").fetchall()
        assert sum(parts.values()) == pytest.approx(total)
        assert measured.OTHER not in parts
        predicted = {part.name for stage in composition.stages(first) for part in (*stage.forward, *stage.backward)}
        assert set(parts) == {*predicted, "optimizer"}
        assert parts["linear3_fwd"] == pytest.approx(8 * 323_421, rel=0.01)

    def test_parts_beside_what_was_recorded(self, models: Path, database: Path, tmp_path: Path) -> None:
        """The recorded step is of fp16 and the models of bf16: that changes what is predicted, not what is compared."""
        recorded = json.loads((SHARED / "steps" / "steps.json").read_text())[0]
        path = tmp_path / "steps.json"
        path.write_text(json.dumps([{**recorded, "dtype": "bf16"}]))
        done = run(
            "-q", "predict", "--models", models, "--step", path, "--by", "part", "--db", database, "--format", "json"
        )
        assert done.exit_code == 0, done.stderr
        found = json.loads(done.stdout)["rows"]
        assert sum(row["measured_ns"] for row in found) == pytest.approx(1000 * recorded["step_us_median"])
        assert all(row["measured_ns"] and row["predicted_ns"] for row in found)

    def test_operators_of_the_trace(self, models: Path, database: Path) -> None:
        done = run("predict", "--models", models, "--trace", database, "--format", "json")
        assert done.exit_code == 0, done.stderr
        found = json.loads(done.stdout)["rows"]
        assert sum(row["measured_ns"] for row in found) == 110_820_430
        asked = {row["model"] for row in found}
        assert {
            "linear1 fwd",
            "linear3 fwd",
            "flash_atten bwd",
            "layernorm bwd",
            "gelu fwd",
            "res_add fwd",
            None,
        } <= asked
        assert "the GPU was busy for 110.8" in done.stderr
