"""``predict --trace`` compares an operator only with models of its own element type and says what it left out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from support.command import run
from support.tiny import Tiny
from tracedb.regress import store
from tracedb.regress.model import Target, fit

GPU = "NVIDIA X100"
F, H = "float", "c10::Half"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of gelu in fp16: 1 ns for 2,000 elements."""
    folder = tmp_path_factory.mktemp("types") / "models"
    shapes = [{"mp": 1, "b": b, "l": length, "dim": 512} for b in (1, 2, 4) for length in (256, 512, 768, 1024)]
    times = np.array([shape["b"] * shape["l"] * 2048 / 2000 for shape in shapes])
    store.save(folder, [fit(Target(GPU, "gelu", "fwd", "fp16"), shapes, times, 100)], {})
    return folder


def trace(path: Path, *types: str | None, gpu: str = GPU) -> Path:
    """A database of calls of gelu of one size, one for each element type."""
    tiny = Tiny(path)
    number = tiny.capture()
    tiny.connection.execute("UPDATE main.device SET name = ?, is_used = true", [gpu])
    for op_id, name in enumerate(types):
        given = {} if name is None else {"input_types": json.dumps([name, ""])}
        tiny.add("op", capture_id=number, op_id=op_id, name="aten::gelu", start_ns=op_id * 10_000, duration_ns=5,
                 input_dims="[[2, 512, 2048], []]", **given)  # fmt: skip
        tiny.kernel("gelu_kernel", op_id * 10_000, 1_000, op_id=op_id)
    return tiny.save()


def test_operators_of_another_type_are_named(models: Path, tmp_path: Path) -> None:
    done = run("predict", "--models", models, "--trace", trace(tmp_path / "a.duckdb", F, H), "--format", "json")
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    rows = {row["dtype"]: row for row in answer["rows"]}
    assert (rows["fp32"]["predicted_ns"], rows["fp32"]["model"]) == (None, None)
    assert rows["fp16"]["predicted_ns"] == pytest.approx(2 * 512 * 2048 / 2000, rel=0.02)
    assert rows["fp16"]["model"] == "gelu fwd"
    assert answer["warnings"] == ["1 operator (0.001 ms) of fp32 left out: the models are of fp16"]
    assert answer["warnings"][0] in done.stderr


def test_passes_are_those_of_operator_calls(models: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    tiny = Tiny(path)
    number = tiny.capture()
    tiny.connection.execute("UPDATE main.device SET name = ?, is_used = true", [GPU])
    tiny.range(1, "Optimizer.step#AdamW.step", 90_000, 190_000)
    for op_id, name in enumerate(("aten::gelu", "aten::_fused_adamw_")):
        tiny.add("op", capture_id=number, op_id=op_id, name=name, start_ns=op_id * 100_000, duration_ns=5,
                 process_id=1, thread_id=1, input_dims="[[2, 512, 2048], []]",
                 input_types=json.dumps([H, ""]))  # fmt: skip
        tiny.kernel("kernel", op_id * 100_000, 1_000, op_id=op_id)
    done = run("predict", "--models", models, "--trace", tiny.save(), "--format", "json")
    assert done.exit_code == 0, done.stderr
    found = {row["operator"]: row["pass"] for row in json.loads(done.stdout)["rows"]}
    assert found == {"aten::gelu": "fwd", "aten::_fused_adamw_": "step"}
    done = run("report", "operator-calls", "--db", path, "--format", "json")
    assert {row["name"]: row["pass"] for row in json.loads(done.stdout)["rows"]} == found


@pytest.mark.parametrize("options", [[], ["--dtype", "fp16"]])
def test_a_trace_of_another_type_alone_is_refused(options: list[str], models: Path, tmp_path: Path) -> None:
    done = run("predict", "--models", models, "--trace", trace(tmp_path / "a.duckdb", F), *options)
    assert (done.exit_code, done.stdout) == (3, "")
    assert "no operator can be compared: 1 operator (0.001 ms) of fp32 left out: the models are of fp16" in done.stderr


def test_a_type_that_was_not_recorded_must_be_given(models: Path, tmp_path: Path) -> None:
    path = trace(tmp_path / "a.duckdb", None)
    done = run("predict", "--models", models, "--trace", path)
    assert done.exit_code == 3
    assert "1 operator (0.001 ms) without a recorded element type left out; --dtype says which it was" in done.stderr
    done = run("predict", "--models", models, "--trace", path, "--dtype", "fp16", "--format", "json")
    assert [row["model"] for row in json.loads(done.stdout)["rows"]] == ["gelu fwd"]


def test_a_trace_of_another_card_is_said(models: Path, tmp_path: Path) -> None:
    path = trace(tmp_path / "a.duckdb", H, gpu="NVIDIA Y200")
    said = f"recorded on NVIDIA Y200, but the models are of {GPU}"
    assert said in run("predict", "--models", models, "--trace", path).stderr
    assert said not in run("predict", "--models", models, "--trace", path, "--gpu", GPU).stderr
