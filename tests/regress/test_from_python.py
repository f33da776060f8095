"""``tracedb.fit``, ``tracedb.predict`` and ``tracedb.predict_step``, and features of operators of one's own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import tracedb
from support.command import run
from support.small_step import SMALL
from support.tiny import Tiny
from tracedb import regress
from tracedb.errors import NotCaptured, UsageError
from tracedb.regress import store
from tracedb.regress.model import Target, fit

GPU = "NVIDIA X100"
SHAPES = [{"rows": rows, "width": width} for rows in (100, 300, 900, 2700) for width in (16, 64, 256)]


def law(shape: Mapping[str, int]) -> float:
    """Time of the test's own operator: it grows with the square of the width."""
    return 1_000 + shape["rows"] * shape["width"] ** 2 / 100


def work(shape: Mapping[str, int]) -> dict[str, float]:
    """What it computes."""
    return {"flops": shape["rows"] * shape["width"] ** 2, "bytes": shape["rows"] * shape["width"]}


def samples(path: Path, shapes: list[dict[str, int]], passes: tuple[str, ...] = ("fwd",)) -> Path:
    """A database with samples of the operator; the backward pass takes twice as long."""
    tiny = Tiny(path)
    capture = tiny.capture()
    for number, (shape, pass_) in enumerate((shape, pass_) for shape in shapes for pass_ in passes):
        given = {"operator": "my_op", "pass": pass_, "dtype": "fp16", "gpu": GPU, "shape": shape}
        tiny.add("operator_sample", capture_id=capture, sample_id=number, statistic="mean",
                 time_ns=round(law(shape) * (1 + (pass_ == "bwd"))), **given)  # fmt: skip
    return tiny.save()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of the operator with its features, from two files that hold half of the shapes each."""
    base = tmp_path_factory.mktemp("own")
    files = [samples(base / f"{part}.duckdb", SHAPES[part::2]) for part in (0, 1)]
    models = tracedb.fit(files, base / "models", features={"my_op": work})
    assert (models.gpus, models.dtypes) == ([GPU], ["fp16"])
    assert models.find(None, "my_op", "fwd", None).facts["samples"] == len(SHAPES)
    return base / "models"


def test_own_features_extrapolate(own: Path) -> None:
    """Far beyond the samples, in a direction that the shape parameters alone could not tell."""
    shape = {"rows": 5_000, "width": 1_024}
    found = tracedb.predict(own, "my_op", shape, features={"my_op": work})
    assert found.predicted_ns == pytest.approx(law(shape), rel=0.05)
    assert found.low_ns < found.predicted_ns < found.high_ns
    assert tracedb.predict(own, "my_op", "rows=5000,width=1024", features={"my_op": work}) == found


def test_own_features_must_be_given_again(own: Path) -> None:
    with pytest.raises(UsageError, match=r"fitted with features of its own; give the same function"):
        tracedb.predict(own, "my_op", {"rows": 1, "width": 1})
    wrong = {"my_op": lambda shape: {"flops": 0}}
    with pytest.raises(UsageError, match=r"flops is 0, expected a number above 0"):
        tracedb.predict(own, "my_op", {"rows": 1, "width": 1}, features=wrong)
    with pytest.raises(UsageError, match="a int, expected a function"):
        tracedb.predict(own, "my_op", {"rows": 1, "width": 1}, features={"my_op": 3})  # type: ignore[dict-item]


def test_own_features_from_a_file(own: Path, tmp_path: Path) -> None:
    path = tmp_path / "features.py"
    path.write_text(
        "def work(shape):\n"
        "    volume = shape['rows'] * shape['width']\n"
        "    return {'flops': volume * shape['width'], 'bytes': volume}\n"
        "FEATURES = {'my_op': work}\n"
    )
    asked = ("predict", "--models", own, "--operator", "my_op", "--shape", "rows=5000,width=1024")
    done = run(*asked, "--features", path)
    assert done.exit_code == 0, done.stderr
    assert run(*asked).exit_code == 2
    path.write_text("x = 1\n")
    done = run(*asked, "--features", path)
    assert (done.exit_code, "has no dictionary FEATURES" in done.stderr) == (1, True)


def test_fit_and_predict(tmp_path: Path) -> None:
    path = samples(tmp_path / "a.duckdb", SHAPES, ("fwd", "bwd"))
    models = tracedb.fit(path, tmp_path / "models", operators=["my_op"], jobs=1)
    forward = tracedb.predict(models, "my_op", SHAPES[5])
    assert forward.predicted_ns == pytest.approx(law(SHAPES[5]), rel=0.05)
    assert tracedb.predict(models, "my_op", SHAPES[5], pass_="bwd").predicted_ns == pytest.approx(
        2 * forward.predicted_ns, rel=0.05
    )
    done = run("-q", "predict", "--models", tmp_path / "models", "--db", path, "--format", "json")
    rows = json.loads(done.stdout)["rows"]
    assert len(rows) == 2 * len(SHAPES)
    for row in rows:
        assert row["measured_ns"] == round(law(row["shape"]) * (1 + (row["pass"] == "bwd")))
        assert row["error_percent"] == pytest.approx(100 * (row["predicted_ns"] / row["measured_ns"] - 1))
    with pytest.raises(UsageError, match="no model of my_op for element type 'fp32'; there are: fp16"):
        tracedb.predict(models, "my_op", SHAPES[5], dtype="fp32")
    with pytest.raises(UsageError, match="no model for operator 'other'"):
        tracedb.predict(models, "other", SHAPES[5])
    with pytest.raises(NotCaptured, match="no operators with shapes"):
        tracedb.fit(path, tmp_path / "none", source="traces")
    with pytest.raises(UsageError, match="expected one of samples, traces"):
        tracedb.fit(path, tmp_path / "none", source="sweep")
    with pytest.raises(UsageError, match="no such database"):
        tracedb.fit(tmp_path / "missing.duckdb", tmp_path / "none")


def test_predict_step(tmp_path: Path) -> None:
    """A step of one layer of an operator without samples of anything else: priced at sampled rates."""
    shapes = [{"b": b, "l": length, "dim": 2048} for b in (1, 2, 4, 8) for length in (512, 1024, 2048)]
    times = np.array([1000 + shape["b"] * shape["l"] * 2.0 for shape in shapes])
    linear = np.array([1000 + shape["b"] * shape["l"] * 40.0 for shape in shapes])
    targets = [Target(GPU, "layernorm", "fwd", "bf16"), Target(GPU, "linear1", "fwd", "bf16")]
    store.save(
        tmp_path / "models",
        [fit(target, shapes, found, 100) for target, found in zip(targets, (times, linear), strict=True)],
        {},
    )
    step = {**SMALL, "gpu": GPU}
    found = tracedb.predict_step(tmp_path / "models", step)
    assert sum(found.parts.values()) == pytest.approx(found.predicted_ns)
    assert found.low_ns < found.predicted_ns < found.high_ns
    assert "linear3_fwd" in found.estimated
    path = tmp_path / "step.yml"
    path.write_text("\n".join(f"{key}: {value}" for key, value in step.items()))
    (same,) = tracedb.predict_step(regress.load(tmp_path / "models"), path)
    assert same.predicted_ns == found.predicted_ns


def test_importing_tracedb_imports_no_library() -> None:
    code = (
        "import sys, tracedb; print([name for name in ('numpy', 'duckdb', 'pyarrow', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
