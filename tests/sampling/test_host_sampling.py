"""``tracedb sample host_gpt.yml``: the host's time in training steps of small models."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from support.command import run
from support.loading import ask
from tracedb.sampling import configuration, host, host_worker
from tracedb.sampling.host import Order
from tracedb.sampling.layer_kinds import LAYERS
from tracedb.sampling.operator_registry import find
from tracedb.sampling.runner import Request
from tracedb.sampling.worker_sweep import Task

PASSES = ["zero_grad", "forward", "backward", "optimizer"]
TINY = {"vocabulary": 32, "b": 1, "l": 8, "dim": 16, "h": 2}
CPU = torch.device("cpu")


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("recompute", [0, 1])
def test_a_model_of_each_kind_trains(kind: str, recompute: int) -> None:
    operator = find(f"host_{kind}", None, None, Path())
    extra = {"llama": {"kv": 1, "ffn": 24}, "moe": {"ffn": 24, "moe_num_experts": 2, "top_k": 1}}.get(kind, {})
    shape = {**TINY, "layers": 2, "recompute": recompute, **extra}
    assert operator.is_model and operator.invalid(shape, torch.float32, CPU) is None
    passes = operator.build(shape, torch.float32, CPU).passes
    assert passes is not None and list(passes) == PASSES
    found = [host_worker.step(passes, CPU) for _ in range(2)]
    assert all(one[name] > 0 for one in found for name in PASSES)


def test_models_that_differ_in_layers_take_turns() -> None:
    shapes = [{"layers": layers, "recompute": again} for layers in (2, 6) for again in (0, 1)]
    assert host.groups(shapes) == [
        [{"layers": 2, "recompute": 0}, {"layers": 6, "recompute": 0}],
        [{"layers": 2, "recompute": 1}, {"layers": 6, "recompute": 1}],
    ]


def test_parts_and_random_choices_keep_models_that_differ_in_layers_together(tmp_path: Path) -> None:
    config = configuration.read(Path(__file__).parents[2] / "examples" / "layers" / "host_gpt.yml")
    parts = [
        host._wanted(config, Request(tmp_path / "s.duckdb", "bf16", parts=3, part=part, random=1)) for part in (1, 2, 3)
    ]
    assert [[(shape["layers"], shape["recompute"]) for shape in shapes] for shapes in parts] == [
        [(2, 0), (8, 0)], [(2, 1), (8, 1)], [],
    ]  # fmt: skip


def test_documented_commands_beside_a_collective_name_operators_alone() -> None:
    root = Path(__file__).parents[2]
    lines = (root / "docs" / "steps.md").read_text(encoding="utf-8").splitlines()
    patterns = [line.split()[2] for line in lines if line.startswith("tracedb sample ") and "--beside" in line]
    assert patterns
    for pattern in patterns:
        names = {path.name for path in (root / "examples" / "layers").glob(pattern)}
        assert "linear1.yml" in names and not any(name.startswith("host_") for name in names)


def test_a_shape_that_cannot_be_built_is_an_error_of_its_group_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from tracedb.sampling.operator import Operator, Prepared\n"
        "def build(shape, dtype, device):\n"
        "    if shape['n'] == 3:\n"
        "        raise ValueError('three')\n"
        "    names = ('zero_grad', 'forward', 'backward', 'optimizer')\n"
        "    return Prepared(lambda: None, passes={name: lambda: sum(range(99)) for name in names})\n"
        "mine = Operator('mine', build, needs=('layers',), is_model=True)\n"
    )
    shapes = [{"layers": layers, "n": n} for layers in (1, 2) for n in (2, 3)]
    task = Task(str(tmp_path / "mine.yml"), "mine", "mine.py", None, shapes, 0, 2)
    host_worker.work(Order("fp32", "cpu", [asdict(task)], str(tmp_path), is_traced=False))
    told = json.loads((tmp_path / "0.json").read_text())
    assert [(one["status"], one["detail"]) for one in told] == [
        ("sampled", None), ("error", "ValueError: three"), ("sampled", None), ("error", "ValueError: three"),
    ]  # fmt: skip
    assert {name: len(times) for name, times in told[0]["rounds"].items()} == dict.fromkeys(PASSES, 2)


def test_the_command_stores_every_round_with_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "PROCESSES", 1)
    config = tmp_path / "host_gpt.yml"
    columns = ["layers", *TINY]
    config.write_text(json.dumps({
        "kernel_name": "host_gpt", "columns_name": columns, "starts": [1, *TINY.values()], "steps": [1] * 6,
        "ends": [2, *TINY.values()], "operators": ["add"] * 6, "wait": 0, "warmup": 0, "active": 2,
        "shapes": [1, *TINY.values()],
    }))  # fmt: skip
    db = tmp_path / "s.duckdb"
    for sampled in (2, 0):
        done = run("-q", "sample", config, "--db", db, "--device", "cpu", "--precision", "fp32", "--format", "json")
        assert done.exit_code == 0, done.output
        (row,) = json.loads(done.stdout)["rows"]
        assert (row["operator"], row["sampled"], row["known"]) == ("host_gpt", sampled, 2 - sampled)
    assert ask(
        db, "SELECT shape['layers'], pass, count(*) FROM operator_burst WHERE host_ns > 0 GROUP BY ALL ORDER BY ALL"
    ) == [(layers, name, 2) for layers in (1, 2) for name in sorted(PASSES)]
    assert ask(db, "SELECT labels['host'], labels['sampled'] FROM capture") == [("alone", "host_gpt")]
    refused = run("sample", config, "--db", db, "--device", "cpu", "--run", "run_function")
    assert refused.exit_code == 2, refused.output
    refused = run("sample", config, "--db", db, "--device", "cpu", "--beside", "allreduce")
    assert refused.exit_code == 2 and "whole model" in refused.output
