"""Whole training steps predicted by models, and compared with a recorded one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import recordings
from support.command import run
from support.small_step import GPU, SMALL, step
from tracedb.regress import store
from tracedb.regress.model import Target, fit
from tracedb.regress.work_model import work
from tracedb.training_step import composition, configuration, recorded_effects

OPERATORS = (
    *("embedding", "layernorm", "linear1", "linear2", "linear3", "linear4", "linear_final"),
    *("flash_atten", "gelu", "res_add", "RoPE", "softmax"),
)
BYTES_A_NS, FLOPS_A_NS = 2_500.0, 600_000.0
IN_A_STEP, ON_NAN = 1.23, 1.12
"""Recorded effects of an H100 on a sweep without a regime."""


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
        faster = IN_A_STEP
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

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"layer": ["layernorm", "linaer3"]}, "the models have no linaer3 (fwd) that fits the step"),
            ({"layer": ["layernorm", "linaer3"]}, "did you mean linear3?"),
            ({"norm": "layrnorm"}, "did you mean layernorm?"),
            ({"layer": ["layernorm", "xyzzy"]}, "sample it, or leave it out of layer"),
        ],
    )
    def test_operators_of_unknown_work_are_refused(
        self, models: Path, tmp_path: Path, change: Mapping[str, Any], said: str
    ) -> None:
        path = tmp_path / "step.json"
        path.write_text(json.dumps({**SMALL, **change}))
        done = run("predict", "--models", models, "--step", path)
        assert (done.exit_code, done.stdout) == (1, "")
        assert said in done.stderr and len(done.stderr.splitlines()) == 1

    def test_matrix_products_on_nan_are_faster(self, models: Path, tmp_path: Path) -> None:
        (finite,), (nan,) = rows(models, tmp_path), rows(models, tmp_path, operands="nan")
        assert finite["parts"]["linear3_bwd"] / nan["parts"]["linear3_bwd"] == pytest.approx(ON_NAN)
        assert finite["parts"]["gelu_bwd"] == nan["parts"]["gelu_bwd"]
        assert recorded_effects.speedup(step(gpu="NVIDIA A100-SXM4-80GB", operands="nan"), "linear1") == 1
        assert all(len(effect.source) > 50 for effect in recorded_effects.effects())

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

    def test_keys_and_element_types_that_are_not_used_are_said(self, models: Path, tmp_path: Path) -> None:
        path = tmp_path / "step.json"
        path.write_text(json.dumps([{**SMALL, "head": 4}]))
        done = run("predict", "--models", models, "--step", path, "--format", "json")
        assert done.exit_code == 0, done.stderr
        said = json.loads(done.stdout)["warnings"]
        assert "step 7: key 'head' (did you mean 'heads'?) is not used" in said
        assert all(text in done.stderr for text in said)
        done = run("predict", "--models", models, "--step", path, "--by", "part")
        assert "µs" in done.stdout or "ms" in done.stdout, done.stdout
        assert not re.search(r"\d\.\d{4}", done.stdout), done.stdout
        path.write_text(json.dumps([{**SMALL, "dtype": "float16"}]))
        done = run("predict", "--models", models, "--step", path)
        assert done.exit_code == 1 and "dtype is 'float16'; the models are of " in done.stderr

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

    def test_a_step_without_a_gpu_is_of_the_models(self, models: Path, tmp_path: Path) -> None:
        (named,), (unnamed,) = rows(models, tmp_path), rows(models, tmp_path, gpu="")
        assert unnamed["predicted_ns"] == named["predicted_ns"]

    def test_options_replace_what_the_step_says(self, models: Path, tmp_path: Path) -> None:
        (row,) = rows(models, tmp_path, "--gpu", GPU, gpu="NVIDIA L4", step_us_median=20_000.0)
        assert row["predicted_ns"] == rows(models, tmp_path)[0]["predicted_ns"]
        assert row.get("error_percent") is None  # the measured time is that of the other GPU
        path = tmp_path / "steps.json"
        for options, code, said in (
            (("--dtype", "fp8"), 1, "fp8"),
            (("--gpu", "NVIDIA L4"), 1, "L4"),
            (("--pass", "fwd"), 2, "--pass goes with --operator"),
        ):
            done = run("predict", "--models", models, "--step", path, *options)
            assert (done.exit_code, said in done.stderr) == (code, True), done.stderr

    def test_questions_do_not_mix(self, models: Path, tmp_path: Path) -> None:
        done = run("predict", "--models", models, "--step", "a.json", "--trace", "b.json")
        assert (done.exit_code, "give only one" in done.stderr) == (2, True)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one recorded step."""
    trace = recordings.DATA / "steps" / "step_0.json.gz"
    if not trace.exists():
        pytest.skip(f"{trace} is not there")
    database = tmp_path_factory.mktemp("step") / "step.duckdb"
    assert run("-q", "ingest", trace, "--db", database).exit_code == 0
    return database


@pytest.mark.shared
class TestRealStep:
    """A recorded step: its parts, and its operators one by one."""

    def test_parts_of_the_recorded_step(self, database: Path) -> None:
        from tracedb.storage.connection import connect
        from tracedb.training_step import trace_parts

        first = configuration.read(recordings.DATA / "steps" / "steps.json")[0]
        with connect(database) as connection:
            parts = trace_parts.parts(connection, first)
            ((total,),) = connection.execute("SELECT sum(duration_ns) / 2 FROM main.kernel_event").fetchall()
        assert sum(parts.values()) == pytest.approx(total)
        assert trace_parts.OTHER not in parts
        predicted = {part.name for stage in composition.stages(first) for part in (*stage.forward, *stage.backward)}
        assert set(parts) == {*predicted, "optimizer"}
        assert parts["linear3_fwd"] == pytest.approx(8 * 323_421, rel=0.01)

    def test_parts_beside_what_was_recorded(self, models: Path, database: Path, tmp_path: Path) -> None:
        """The recorded step is of fp16 and the models of bf16: that changes what is predicted, not what is compared."""
        recorded = json.loads((recordings.DATA / "steps" / "steps.json").read_text())[0]
        path = tmp_path / "steps.json"
        path.write_text(json.dumps([{**recorded, "dtype": "bf16"}]))
        done = run(
            "-q", "predict", "--models", models, "--step", path, "--by", "part", "--db", database, "--format", "json"
        )
        assert done.exit_code == 0, done.stderr
        found = json.loads(done.stdout)["rows"]
        assert sum(row["measured_ns"] for row in found) == pytest.approx(1000 * recorded["step_us_median"])
        assert all(row["measured_ns"] and row["predicted_ns"] for row in found)

    def test_operators_of_the_trace(self, models: Path, database: Path, tmp_path: Path) -> None:
        """The trace is of fp16: models of bf16 do not price it, and the same models said to be of fp16 do."""
        done = run("predict", "--models", models, "--trace", database)
        assert (done.exit_code, done.stdout) == (3, "")
        assert "of fp16 left out: the models are of bf16" in done.stderr
        said = (models / "models.json").read_text()
        (tmp_path / "models.json").write_text(said.replace('"dtype": "bf16"', '"dtype": "fp16"'))
        (tmp_path / "models.npz").write_bytes((models / "models.npz").read_bytes())
        done = run("predict", "--models", tmp_path, "--trace", database, "--format", "json")
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
        said = (
            "matrix products were sampled without a regime: in a step an H100's are 1.23 times as fast, and 1.12 times"
        )
        assert any(text.startswith(said) for text in json.loads(done.stdout)["warnings"])
