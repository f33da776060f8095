"""Fit, evaluate, save and predict operator times, on samples from a known law."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import duckdb
import numpy as np
import pytest

from support.command import run
from support.tiny import Tiny
from tracedb import regress
from tracedb.errors import TracedbError, UsageError
from tracedb.regress import gaussian, neighbours
from tracedb.regress.learners import Samples

GPU = "NVIDIA X100"
TIMES = ("measured_ns", "predicted_ns", "low_ns", "high_ns")


def law(operator: str, pass_: str, shape: dict[str, int]) -> float:
    """Time in ns: a launch, a rate of FLOPs, a rate of elements; the backward does twice as much."""
    tokens, dim = shape["b"] * shape["l"], shape["dim"]
    amount = 6 * tokens * dim * dim / 400e3 if operator == "linear1" else tokens * dim / 1e3
    return 3000 + amount * (2 if pass_ == "bwd" else 1)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tiny = Tiny(tmp_path_factory.mktemp("regress") / "samples.duckdb")
    capture = tiny.capture()
    random = np.random.default_rng(1)
    number = 0
    for operator in ("linear1", "res_add"):
        for b in (1, 2, 4):
            for length in (512, 1024, 1536, 2048):
                for dim in (512, 768, 1024, 2048):
                    shape = {"b": b, "l": length, "dim": dim}
                    for pass_ in ("fwd", "bwd"):
                        number += 1
                        time = law(operator, pass_, shape) * np.exp(random.normal(0, 0.01))
                        given = {"operator": operator, "pass": pass_, "dtype": "fp16", "gpu": GPU, "shape": shape}
                        tiny.add("operator_sample", capture_id=capture, sample_id=number, statistic="mean",
                                 time_ns=round(time), **given)  # fmt: skip
    return tiny.save()


@pytest.fixture(scope="module")
def models(db: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "m"
    done = run("fit", "--db", db, "--models", folder, "--format", "json")
    assert done.exit_code == 0, done.stderr
    for row in json.loads(done.stdout)["rows"]:
        assert row["samples"] == 48
        assert row["random_mean_percent"] < 2
        assert row["grouped_mean_percent"] < 2
        assert row["extrapolation_mean_percent"] < 4
    return folder


def test_a_shape_between_the_samples(models: Path) -> None:
    loaded = regress.load(models)
    assert [str(target) for target in loaded.targets] == [
        f"{operator} {pass_} fp16 on {GPU}" for operator in ("linear1", "res_add") for pass_ in ("bwd", "fwd")
    ]
    shape = {"b": 2, "l": 1280, "dim": 896}
    for operator in ("linear1", "res_add"):
        predicted, low, high = loaded.predict("nvidia-x100", operator, "fwd", "fp16", shape)
        assert predicted == pytest.approx(law(operator, "fwd", shape), rel=0.03)
        assert low < predicted < high
        assert high / low < 1.2
    assert loaded.predict(None, "linear1", "bwd", None, {"b": 8, "l": 8192, "dim": 4096})[0] == pytest.approx(
        law("linear1", "bwd", {"b": 8, "l": 8192, "dim": 4096}), rel=0.1
    )


def test_the_samples_of_a_database(models: Path, db: Path) -> None:
    done = run("predict", "--models", models, "--db", db, "--format", "json")
    assert done.exit_code == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert len(rows) == 2 * 48 * 2
    assert set(rows[0]) >= {*("operator", "pass", "shape", "dtype", "gpu"), *TIMES}
    assert rows[0]["shape"].keys() == {"b", "l", "dim"}
    inside = np.mean([row["low_ns"] <= row["measured_ns"] <= row["high_ns"] for row in rows])
    assert inside > 0.85
    assert "192 of the 192 samples are those that the models were fitted to" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--operator", "flash"], "given together"),
        (["--operator", "flash", "--shape", "b=1"], "no model for operator 'flash'; there are: linear1, res_add"),
        (["--operator", "linear1", "--shape", "b=1,l=8,dim=8,h=2"], "without a parameter 'h'; it has: b, l, dim"),
        (["--operator", "linear1", "--shape", "b=1,l=8"], "lacks dim"),
        (["--operator", "linear1", "--shape", "b=1,l=8,dim=0"], "dim=0 is not a size"),
        (["--operator", "linear1", "--shape", "b=1,l=8,dim=8", "--gpu", "A100"], f"there are: {GPU}"),
        (["--operator", "linear1", "--shape", "b=1,l=8,dim=8", "--dtype", "fp32"], "there are: fp16"),
        (["--operator", "linear1", "--shape", "b"], "is not KEY=NUMBER"),
    ],
)
def test_what_there_is_no_model_for_is_one_line(models: Path, options: list[str], said: str) -> None:
    done = run("predict", "--models", models, *options)
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert said in line


def test_damaged_models_are_named(models: Path, tmp_path: Path) -> None:
    with pytest.raises(TracedbError, match=r"holds no models \(models.json is missing\)"):
        regress.load(tmp_path)
    for name in ("models.json", "models.npz"):
        (tmp_path / name).write_bytes((models / name).read_bytes())
    (tmp_path / "models.npz").write_bytes(b"PK")
    with pytest.raises(TracedbError, match="not the file"):
        regress.load(tmp_path)


def test_the_same_seed_gives_the_same_models(db: Path, models: Path, tmp_path: Path) -> None:
    assert run("fit", "--db", db, "--models", tmp_path, "--operator", "res_add").exit_code == 0
    shape = {"b": 3, "l": 700, "dim": 600}
    assert regress.load(tmp_path).predict(None, "res_add", "fwd", None, shape) == regress.load(models).predict(
        None, "res_add", "fwd", None, shape
    )


def test_a_fit_of_some_operators_keeps_the_models_of_others(db: Path, models: Path, tmp_path: Path) -> None:
    for name in ("models.json", "models.npz"):
        (tmp_path / name).write_bytes((models / name).read_bytes())
    done = run("fit", "--db", db, "--models", tmp_path, "--operator", "res_add")
    assert done.exit_code == 1 and "other operator" in done.stderr and "which a fit of" in done.stderr
    assert (tmp_path / "models.json").read_bytes() == (models / "models.json").read_bytes()
    (tmp_path / "models.npz").write_bytes(b"damaged")  # none of these can be read, so none is lost
    assert run("fit", "--db", db, "--models", tmp_path, "--operator", "res_add").exit_code == 0


def test_predictions_of_all_samples_are_as_many_as_asked_for(db: Path, models: Path) -> None:
    done = run("predict", "--models", models, "--db", db, "--top", "3", "--format", "csv")
    assert done.stdout.count("\n") == 4 and "more rows; --top 0 shows all" in done.stderr


@pytest.mark.parametrize(("learner", "library"), [("torch", "torch"), ("trees", "xgboost")])
def test_other_learners(learner: str, library: str, db: Path, tmp_path: Path) -> None:
    options = ("fit", "--db", db, "--models", tmp_path, "--operator", "res_add", "--learner", learner, "--jobs", "1")
    if find_spec(library) is None:
        done = run(*options)
        assert done.exit_code == 2
        assert f"{library if library == 'torch' else 'XGBoost'}, which is not installed" in done.stderr
        return
    assert run(*options).exit_code == 0
    shape = {"b": 2, "l": 1280, "dim": 896}
    predicted, low, high = regress.load(tmp_path).predict(None, "res_add", "fwd", None, shape)
    assert predicted == pytest.approx(law("res_add", "fwd", shape), rel=0.05)
    assert low < predicted < high


def test_too_few_samples(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "few.duckdb")
    capture = tiny.capture()
    empty = run("fit", "--db", tiny.save(), "--models", tmp_path / "m")
    assert empty.exit_code == 3
    assert "no sampled operators" in empty.stderr
    tiny = Tiny(tmp_path / "one.duckdb")
    capture = tiny.capture()
    for number in range(11):
        for operator, shape in (("mm", {"b": 1 + number % 2, "l": 1 + number}), ("add", {"b": 1 + number % 5})):
            tiny.add("operator_sample", capture_id=capture, sample_id=len(operator) * 100 + number, gpu="X",
                     operator=operator, shape=shape, statistic="mean", time_ns=5, **{"pass": "fwd"})  # fmt: skip
    few = run("fit", "--db", tiny.save(), "--models", tmp_path / "m")
    assert few.exit_code == 3
    assert "mm fwd of unknown element type on X: left out, fewer than 12 distinct shapes" in few.stderr
    assert "add fwd of unknown element type on X: left out, fewer than 6 distinct shapes" in few.stderr


def test_views_of_another_tracedb_are_named(tmp_path: Path) -> None:
    path = Tiny(tmp_path / "old.duckdb").save()
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE OR REPLACE VIEW v1.operator_samples AS SELECT 'X' AS gpu, 1.0 AS target_ns")
    done = run("fit", "--db", path, "--models", tmp_path / "models")
    assert done.exit_code == 1
    assert "its views are of another tracedb" in done.stderr and len(done.stderr.splitlines()) == 1


def test_shapes_of_a_model_must_be_sizes(models: Path) -> None:
    with pytest.raises(UsageError, match="no model of linear1 for pass 'step'"):
        regress.load(models).predict(None, "linear1", "step", None, {"b": 1})


def test_outlying_samples_count_less() -> None:
    random = np.random.default_rng(4)
    values = random.uniform(0, 4, (150, 2))
    law = 0.3 * values[:, 0] + 0.1 * np.sin(2 * values[:, 1])
    residuals = law + random.normal(0, 0.01, 150)
    wrong = np.array([20, 70, 120])
    residuals[wrong] += 1
    found = gaussian.fit(Samples(values, 2, residuals, np.ones(150)), 0)
    order = np.random.default_rng(0).permutation(150)
    raised = set(order[found.noise > 1].tolist())
    assert raised >= set(wrong.tolist()) and len(raised) < 8
    # The weights are those of the process with that noise, as if it were solved anew.
    inner = neighbours.covariance(found.parameters, found.points, found.points, found.base)
    inner += np.diag(np.exp(2 * found.parameters[-1]) * found.noise + gaussian.JITTER)
    assert found.weights == pytest.approx(np.linalg.solve(inner, found.targets), rel=1e-5, abs=1e-6)
    elsewhere = random.uniform(0.5, 3.5, (50, 2))
    mean, _ = found.predict(elsewhere)
    assert np.abs(mean - 0.3 * elsewhere[:, 0] - 0.1 * np.sin(2 * elsewhere[:, 1])).max() < 0.05
