"""Sampling as in a training step: the load between passes, what is in the caches, and the state of the device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from support import fake_nvml
from support.command import run
from support.loading import ask
from support.tiny import Tiny
from tracedb.conditions.reading import Reading
from tracedb.conditions.sampler import Recent
from tracedb.sampling import conditions_table
from tracedb.sampling import device as devices
from tracedb.sampling.configuration import Configuration
from tracedb.sampling.operator import Operator, Prepared
from tracedb.sampling.recording import Recorder
from tracedb.sampling.steady_load import SteadyLoad

CPU = torch.device("cpu")
OWN = """
import torch
from tracedb.sampling.operator import Prepared
def negate(shape, dtype, device):
    x = torch.ones(shape["b"], requires_grad=True)
    return Prepared(lambda: -x, [x])
"""


class Log(SteadyLoad):
    """A load that notes when it is run."""

    def __init__(self, events: list[str]) -> None:
        self.events = events

    def run(self, rounds: int = 1) -> None:
        self.events.append("load")

    def warm_up(self, seconds: float) -> None:
        self.events.append("warm")

    def rounds_for(self, seconds: float) -> int:
        return 1


def test_a_pass_follows_the_load_and_finds_what_was_just_written(tmp_path: Path) -> None:
    events: list[str] = []

    class Traced(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, arguments: Any = (), kw: Any = None) -> Any:
            if getattr(function, "__name__", "") == "mul_":
                events.append("freshen")
            return super().__torch_function__(function, types, arguments, kw or {})

    class Square(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
            events.append("forward")
            return x * 2

        @staticmethod
        def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
            events.append("backward")
            return gradient * 2

    def build(shape: dict[str, int], dtype: Any, device: Any) -> Prepared:
        x = torch.ones(4, requires_grad=True)
        return Prepared(lambda: Square.apply(x), [x], recent=[torch.ones(4).as_subclass(Traced)])

    configuration = Configuration(Path("x.yml"), "square", (), (), None, wait=0, warmup=0, active=2)
    recorder = Recorder(Operator("square", build), configuration, torch.float32, CPU, Log(events))
    assert [item.status for item in recorder.profile([{"b": 1}], tmp_path / "t.json")] == ["sampled"]
    assert events[:2] == ["warm", "warm"]
    iteration = ["load", "freshen", "forward", "load", "backward"]
    assert events[-10:] == iteration * 2


def test_the_load_is_at_least_twice_the_pass() -> None:
    load = SteadyLoad(torch.float32, CPU)
    load._round_seconds = 0.003
    assert [load.rounds_for(seconds) for seconds in (0.0, 0.001, 0.004, 1.0)] == [1, 1, 3, 20]
    load.run(2)


def test_regimes_are_sampled_apart(tmp_path: Path) -> None:
    """On the CPU, the regime is rested unless given."""
    (tmp_path / "own.py").write_text(OWN)
    config = tmp_path / "negate.yml"
    config.write_text(json.dumps({
        "kernel_name": "negate", "module_name": "own.py", "columns_name": ["b"], "shapes": [3], "run": "get_one",
        "wait": 0, "warmup": 0, "active": 1,
    }))  # fmt: skip
    db = tmp_path / "s.duckdb"
    for options, counts in (((), (1, 0)), (("--regime", "rested"), (0, 1)), (("--regime", "steady"), (1, 0))):
        done = run("-q", "sample", config, "--db", db, "--device", "cpu", "--format", "json", *options)
        assert done.exit_code == 0, done.stderr
        (row,) = json.loads(done.stdout)["rows"]
        assert (row["sampled"], row["known"]) == counts
    assert ask(db, "SELECT regime, count(*) FROM operator_samples GROUP BY ALL ORDER BY ALL") == [
        ("rested", 2),
        ("steady", 2),
    ]
    assert ask(db, "SELECT regime, status FROM sample_status ORDER BY ALL") == [
        ("rested", "sampled"),
        ("steady", "sampled"),
    ]


def test_clocks_that_cannot_be_read_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator runs on the processor as a GPU that NVML does not list; the processor itself has no clocks."""
    monkeypatch.syspath_prepend(str(fake_nvml.put(tmp_path / "modules")))
    config = tmp_path / "res_add.yml"
    config.write_text(json.dumps({
        "kernel_name": "res_add", "columns_name": ["b", "l", "dim"], "shapes": [1, 2, 8], "run": "get_one",
        "wait": 0, "warmup": 0, "active": 1,
    }))  # fmt: skip
    words = "warning: clocks and power were not read: the library that reads GPUs does not list this one"
    for uuid, is_said in ((None, False), ("cccc-3", True)):
        monkeypatch.setattr(devices, "uuid", lambda device, uuid=uuid: uuid)
        done = run("sample", config, config, "--db", tmp_path / f"{uuid}.duckdb", "--device", "cpu", "--precision",
                   "fp32", "--regime", "rested")  # fmt: skip
        assert (done.exit_code, done.stderr.count(words)) == (0, int(is_said)), done.stderr


def test_readings_are_stored_on_the_capture_s_clock(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(clock_zero_unix_ns=1_000)
    tiny.kernel("k", 0, 10, device_id=1)
    tiny.capture()  # Its clock has no place in the world.
    tiny.kernel("k", 0, 10)
    tiny.save()
    for capture in (1, 2):
        conditions_table.write(tiny.path, capture, [Reading(0, 1_500, 1400.0, None, 690.5, None, "none")])
    assert ask(tiny.path, "SELECT * FROM device_condition") == [(1, 1, 500, 1400.0, None, 690.5, None, "none")]


def test_the_gpu_that_samples_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(fake_nvml.put(tmp_path)))
    with Recent("bbbb-2") as recent:
        while not (found := recent.between(0, 2**62)):
            pass
    assert {(reading.device_id, reading.sm_clock_mhz) for reading in found} == {(1, 1456.0)}
    assert recent.between(0, 1) == []
    assert Recent("cccc-3").missing == "the library that reads GPUs does not list this one"
