"""Beyond the samples, and where held-out samples miss the interval: what is said, and how wide the interval is."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import tracedb
from support.command import run
from support.small_step import GPU, SMALL
from tracedb import regress
from tracedb.errors import TracedbError, UsageError
from tracedb.regress import evaluate, fitting, store
from tracedb.regress.card_spec import Spec
from tracedb.regress.dataset import Table
from tracedb.regress.model import Target, fit
from tracedb.regress.model_folder import Models
from tracedb.regress.other_card import OtherCard
from tracedb.training_step import configuration, prediction, recorded_effects

SHAPES = [
    {"mp": 1, "b": b, "l": length, "dim": dim}
    for b in (2, 4, 8)
    for length in (512, 1024, 2048)
    for dim in (1024, 2048, 4096)
]
RANGES = {name: [min(s[name] for s in SHAPES), max(s[name] for s in SHAPES)] for name in SHAPES[0]}
INSIDE = {"mp": 1, "b": 4, "l": 1536, "dim": 2048}


def models(tmp_path: Path, *gpus: str) -> Models:
    """Models of a product and of operators that move bytes, one nanosecond for each of some elements."""
    fitted = []
    for gpu in gpus:
        for operator, divisor in (("linear1", 1e8), ("gelu", 1e3), ("layernorm", 1e3)):
            power = 2 if operator == "linear1" else 1
            noise = 1 + 0.01 * np.random.default_rng(1).standard_normal(len(SHAPES))
            times = noise * [s["b"] * s["l"] * s["dim"] ** power / divisor for s in SHAPES]
            model = fit(Target(gpu, operator, "fwd", "bf16"), SHAPES, times, 132, "gaussian")
            model.facts["ranges"] = RANGES
            fitted.append(model)
    store.save(tmp_path / "models", fitted, {})
    return regress.load(tmp_path / "models")


def test_a_prediction_beyond_the_samples_says_so_and_its_interval_grows(tmp_path: Path) -> None:
    found = models(tmp_path, GPU)
    inside = tracedb.predict(found, "gelu", INSIDE)
    far, farther = (tracedb.predict(found, "gelu", {**INSIDE, "b": b}) for b in (32, 128))
    assert (inside.outside, far.outside, farther.outside) == ((), ("b",), ("b",))
    widths = [math.log(one.high_ns / one.low_ns) for one in (inside, far, farther)]
    # Two doublings beyond a range of two double the width, four triple it; the learner is less sure there, too.
    assert widths[1] >= 1.99 * widths[0] and widths[2] >= 1.49 * widths[1]


def test_an_extrapolated_time_is_that_of_a_kernel(tmp_path: Path) -> None:
    found = tracedb.predict(models(tmp_path, GPU), "gelu", {"mp": 1, "b": 1, "l": 1, "dim": 8})
    assert found.predicted_ns == pytest.approx(1_000)
    assert found.outside == ("b", "l", "dim")


def test_another_card_is_as_unsure_beyond_the_samples(tmp_path: Path) -> None:
    other = OtherCard(models(tmp_path, GPU), Spec("NVIDIA H200", 4800, {"bf16": 989.4}))
    inside, far = other.predict_many(None, "gelu", "fwd", None, [INSIDE, {**INSIDE, "b": 64}])
    assert (inside.outside, far.outside) == ((), ("b",))
    assert far.high_ns / far.predicted_ns > inside.high_ns / inside.predicted_ns == pytest.approx(2)


def test_a_step_beyond_the_samples_says_so(tmp_path: Path) -> None:
    models(tmp_path, GPU)
    small = {**SMALL, "layers": 1}
    (tmp_path / "step.json").write_text(json.dumps({**small, "batch": 64}))
    done = run("predict", "--models", tmp_path / "models", "--step", tmp_path / "step.json", "--format", "json")
    said = "step 7 is beyond the range of the samples in b: extrapolated, and its interval is a guess"
    assert said in done.stderr
    assert said in json.loads(done.stdout)["warnings"]
    found = tracedb.predict_step(tmp_path / "models", small)
    assert found.outside == [] and not any("beyond the range" in text for text in found.remarks)
    assert tracedb.predict_step(tmp_path / "models", {**small, "seq": 8192}).outside == ["l"]


@pytest.mark.parametrize(("missed", "is_widened"), [(4, False), (8, False), (15, True), (40, True)])
def test_intervals_that_hold_too_few_are_widened(missed: int, is_widened: bool) -> None:
    """Of 40 rows 36 are to be inside; 32 may be by chance."""
    widths = np.concatenate([np.full(40 - missed, 0.5), np.full(missed, 3.0)])
    assert evaluate._shortfall([widths]) == (3.0 if is_widened else 1.0)
    assert evaluate._shortfall([widths, widths]) == (3.0 if is_widened else 1.0)


def test_thousands_of_held_out_samples_are_judged() -> None:
    """The number of ways to choose among them exceeds a double."""
    widths = np.concatenate([np.full(1500, 0.5), np.full(1500, 2.0)])
    assert evaluate._shortfall([widths]) == 2.0


def test_a_fit_says_which_intervals_it_widened(monkeypatch: pytest.MonkeyPatch) -> None:
    times = [float(s["b"] * s["l"] * s["dim"]) for s in SHAPES]
    table = Table(Target(GPU, "gelu", "fwd", "bf16"), 132, SHAPES, times)
    before = fitting.judged(table, "gaussian", 1, 0)
    assert before.facts["interval_widened"] == 1 and fitting.widened([before]) is None
    monkeypatch.setattr(evaluate, "_shortfall", lambda repeats: 2.5)
    after = fitting.judged(table, "gaussian", 1, 0)
    assert after.quantile == pytest.approx(2.5 * before.quantile)
    said = fitting.widened([before, after])
    assert said is not None and said.count("gelu fwd bf16 (") == 1 and "2.5 times" in said
    assert fitting.answer([after]).columns[-1].name == "interval_widened"


def test_effects_of_a_step_go_by_the_cards_that_were_sampled(tmp_path: Path) -> None:
    """Not by the name that a specification gives to another card."""
    sheet = {"bf16": 989.4}
    step = configuration.from_mapping({**SMALL, "layers": 1, "layer": ["linear1", "gelu"], "gpu": ""})
    parts = []
    for name in ("NVIDIA H100 again", "Some card"):
        other = OtherCard(models(tmp_path, GPU), Spec(name, 3350, sheet))
        found = prediction.predict(step, other)
        parts.append(found.parts["linear1_fwd"])
        assert found.speedup == 1.23 and not found.is_as_in_sweep
    assert parts[0] == pytest.approx(parts[1])
    mixed = OtherCard(models(tmp_path, GPU, "NVIDIA A100-SXM4-80GB"), Spec("Some card", 3350, sheet))
    found = prediction.predict(step, mixed)
    assert found.speedup == 1 and found.is_as_in_sweep
    assert any("priced as in a sweep" in text and "1.23 times as fast" in text for text in found.remarks)
    assert recorded_effects.speedup(step, "gelu", [GPU]) == 1


def test_a_gpu_is_named_by_a_part_of_its_name(tmp_path: Path) -> None:
    found = models(tmp_path, GPU, "NVIDIA H200", "NVIDIA H200 NVL")
    assert found.predict("H100", "gelu", "fwd", None, INSIDE) == found.predict(GPU, "gelu", "fwd", None, INSIDE)
    assert found.find("nvidia h200", "gelu", "fwd", None).target.gpu == "NVIDIA H200"  # a whole name comes first
    with pytest.raises(UsageError, match=r"fitted for several GPUs; name one \(--gpu\): NVIDIA H200, NVIDIA H200 NVL"):
        found.find("H20", "gelu", "fwd", None)
    with pytest.raises(UsageError, match=r"for GPU 'A100'; there are: .*; --gpu-spec FILE scales these"):
        found.find("A100", "gelu", "fwd", None)
    small = {**SMALL, "layers": 1}
    assert tracedb.predict_step(found, {**small, "gpu": "H100"}) == tracedb.predict_step(found, small)
    with pytest.raises(TracedbError, match=f"step 7: the models know no GPU 'A100', only {GPU}, .*--gpu-spec FILE"):
        tracedb.predict_step(found, {**small, "gpu": "A100"})
    with pytest.raises(TracedbError, match="step 7: GPU 'H20' may be NVIDIA H200 or NVIDIA H200 NVL"):
        tracedb.predict_step(found, {**small, "gpu": "H20"})
    with pytest.raises(TracedbError, match="step 7: names no GPU, and the models are of several"):
        tracedb.predict_step(found, {**small, "gpu": ""})


def test_what_follows_from_other_parameters_may_be_left_out(tmp_path: Path) -> None:
    found = models(tmp_path, GPU)
    short = {name: value for name, value in INSIDE.items() if name != "mp"}
    assert tracedb.predict(found, "gelu", short) == tracedb.predict(found, "gelu", INSIDE)
    shown = ("predict", "--models", tmp_path / "models", "--operator", "gelu", "--shape", "b=4,l=1536,dim=2048")
    (row,) = json.loads(run(*shown, "--format", "json").stdout)["rows"]
    assert row["shape"] == INSIDE


def test_operators_known_only_at_recorded_shapes_are_told_from_unknown_ones(tmp_path: Path) -> None:
    models(tmp_path, GPU)
    fitted, facts = store.read(tmp_path / "models")
    store.save(tmp_path / "models", fitted, {**facts, "calls": [{"name": "aten::gelu"}] * 3})
    with pytest.raises(
        UsageError, match="aten::gelu was recorded at 3 shapes, too few for a model; `tracedb expected`"
    ):
        tracedb.predict(tmp_path / "models", "aten::gelu", {"bytes": 1})
