"""Whole steps predicted from samples in the steady regime, recorded beside them; and what the clock does to a time."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.small_step import step
from tracedb.regress import dataset, model
from tracedb.regress.conditions import Conditions, Sample, clock_share, in_one_state
from tracedb.regress.model import Target
from tracedb.regress.model_folder import Models
from tracedb.training_step import configuration, prediction
from tracedb.training_step.composition import Part
from tracedb.training_step.cost_model import Prices

DATA = Path(__file__).parents[1] / "data"
RECORDED, LLAMA = DATA / "steady", DATA / "llama"


def samples(folder: Path = RECORDED) -> Mapping[Target, list[Sample]]:
    """Return recorded samples."""
    found: dict[Target, list[Sample]] = {}
    with gzip.open(folder / "samples.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            names = ("sm_clock_mhz", "memory_clock_mhz", "gpu_events", "gap_ns")
            state = [float(row[name]) if row[name] else None for name in names]
            shape = json.loads(row["shape"])
            target = Target(row["gpu"], row["operator"], row["pass"], row["dtype"])
            found.setdefault(target, []).append(
                Sample(shape, float(row["target_ns"]), int(row["sm_count"]), row["regime"] or None, *state)
            )
    return found


def fitted(target: Target, everything: list[Sample]) -> model.Model:
    """Return the model of a target's samples, as ``tracedb fit`` makes it, without its errors."""
    chosen, state = in_one_state(target.operator, everything)
    table = dataset.tabulated(target, [(item.shape, item.ns, item.sm_count) for item in chosen])
    found = model.fit(target, table.shapes, table.target_ns, table.sm_count, "gaussian")
    found.facts = {"conditions": state.facts()}
    return found


@pytest.fixture(scope="module")
def models() -> Models:
    """Models of all operators that were sampled."""
    return Models([fitted(target, everything) for target, everything in samples().items()], {}, "recorded")


def test_ten_steps_of_three_architectures(models: Models) -> None:
    """None of them was sampled or fitted to: widths, layers and batches are the steps' own."""
    steps = configuration.read(RECORDED / "steps.json")
    errors = []
    for item in steps:
        assert item.measured_ns is not None
        errors.append(100 * abs(prediction.predict(item, models).ns / item.measured_ns - 1))
    assert len(errors) == 10
    assert np.mean(errors) < 2.0
    assert max(errors) < 6.0


def test_steps_of_llama_like_layers() -> None:
    """Grouped-query attention, SwiGLU, recomputation, two micro-batches; sweeps with and without grouped heads."""
    models = Models([fitted(target, everything) for target, everything in samples(LLAMA).items()], {}, "recorded")
    errors = {}
    for item in configuration.read(LLAMA / "steps.json"):
        assert item.measured_ns is not None
        found = prediction.predict(item, models)
        assert set(found.estimated) <= {"gradient_copies"}
        errors[item.name] = 100 * abs(found.ns / item.measured_ns - 1)
    assert len(errors) == 5
    assert np.mean(list(errors.values())) < 2.5
    assert max(errors.values()) < 5.0, errors


def test_a_step_runs_at_the_clock_of_its_mix(models: Models) -> None:
    """Its operators were sampled at 1,550 to 1,850 MHz; at another clock products change with it, passes less."""
    item = configuration.read(RECORDED / "steps.json")[0]
    found = prediction.predict(item, models)
    assert found.sm_clock_mhz is not None and 1600 < found.sm_clock_mhz < 1700
    slow = prediction.predict(replace(item, sm_clock_mhz=found.sm_clock_mhz / 1.1), models)
    ratio = {name: slow.parts[name] / found.parts[name] for name in found.parts}
    assert ratio["linear3_bwd"] == pytest.approx(1.1)
    assert 1.0 < ratio["optimizer"] < 1.05 < ratio["flash_atten_bwd"] < 1.1
    assert not [said for said in found.remarks if "times as fast" in said]


@pytest.mark.parametrize(("host_ns", "is_said"), [(1_000, False), (1_000_000, True), (None, False)])
def test_a_host_that_launches_slower_than_the_gpu_works_is_said(
    models: Models, monkeypatch: pytest.MonkeyPatch, host_ns: int | None, is_said: bool
) -> None:
    given = replace(configuration.read(RECORDED / "steps.json")[0], pp=1)
    known = Prices.conditions
    monkeypatch.setattr(Prices, "conditions", lambda self, part: replace(known(self, part), host_ns=host_ns))
    found = prediction.predict(given, models)
    assert any("the GPU may wait for the host" in remark for remark in found.remarks) == is_said
    if host_ns is not None:
        runs = sum(found.stages[0].stage.forward.values()) + sum(found.stages[0].stage.backward.values())
        assert found.host_ns == pytest.approx(runs * host_ns, rel=0.05)  # and a few launches of the optimizer


def test_launches_and_gaps_are_those_of_the_samples(models: Models) -> None:
    item = configuration.read(RECORDED / "steps.json")[0]
    prices = Prices(models, item, None)
    assert [prices.launches(Part("linear3", pass_)) for pass_ in ("fwd", "bwd")] == [2, 4]
    assert prices.launches(Part("embedding", "bwd")) == 31
    prices.part(Part("linear3", "bwd"))
    gap = prices.gap_ns()
    assert gap is not None and 1_400 < gap < 1_900


def test_the_power_of_collectives_is_not_known(models: Models) -> None:
    """Operators that draw next to nothing run at the highest clock; a step of several GPUs at that of its samples."""
    item = configuration.read(RECORDED / "steps.json")[0]
    card = {
        "gpu": item.gpu or models.gpus[0], "power_limit_w": 700.0, "spin_power_w": 100.0, "sm_clock_limit_mhz": 1980.0,
        "clock_power": 1.0, "operators": [], "any": [1e-18, 1e-18],
    }  # fmt: skip
    known = copy(models)
    known.facts = {"energy": [card]}
    assert prediction.predict(item, known).sm_clock_mhz == pytest.approx(1980)
    found = prediction.predict(replace(item, dp=2), known, link_gbps=200)
    assert found.sm_clock_mhz == prediction.predict(replace(item, dp=2), models, link_gbps=200).sm_clock_mhz


def test_the_steady_samples_are_learnt_from_at_one_clock() -> None:
    """Half of the time scales with the clock: 100 ns at 1,500 MHz are 75 at 3,000."""

    def sample(width: int, ns: float, regime: str | None, clock: float | None) -> Sample:
        return Sample({"dim": width}, ns, None, regime, clock, None, 3.0, None)

    pairs = [sample(width, 75.0, "rested", 3000.0) for width in range(5)]
    pairs += [sample(width, 100.0, "steady", 1500.0) for width in range(5)]
    assert clock_share("gelu", pairs) == pytest.approx(0.5)
    assert clock_share("gelu", pairs[1:]) is None
    assert clock_share("linear1", pairs) == 1.0
    assert clock_share("linear1", pairs, product_share=0.65) == 0.65
    assert clock_share("gelu", pairs, product_share=0.65) == pytest.approx(0.5)
    chosen, state = in_one_state("gelu", [*pairs, sample(9, 150.0, "steady", 750.0)])
    assert (state.regime, state.sm_clock_mhz, state.gpu_events) == ("steady", 1500.0, 3.0)
    assert [item.ns for item in chosen] == pytest.approx([100.0] * 6)


def test_a_sweep_without_conditions_stays_as_it_is() -> None:
    bare = [Sample({"dim": width}, 10.0 * width, 132, None, None, None, None, None) for width in range(1, 9)]
    for operator in ("gelu", "linear1"):
        chosen, state = in_one_state(operator, bare)
        assert (chosen, state) == (bare, Conditions())
    assert Conditions.of_facts(Conditions(regime="steady").facts()) == Conditions(regime="steady")


def test_a_memory_clock_moves_the_rest() -> None:
    state = Conditions(sm_clock_mhz=1500.0, memory_clock_mhz=3000.0, clock_share=0.25)
    assert state.slowdown(1500.0, 1500.0) == pytest.approx(0.25 + 0.75 * 2)
    assert state.slowdown(None, None) == 1.0
    assert Conditions(sm_clock_mhz=1500.0).slowdown(750.0) == 1.0


def test_without_steady_samples_no_clock_is_stated() -> None:
    rested = Conditions(regime="rested", sm_clock_mhz=1980.0)

    class OfRested:
        parameters = ("b",)
        conditions = rested

        def outside(self, shape: Mapping[str, int]) -> list[str]:
            return []

    class Rested:
        def find(self, *target: object) -> OfRested:
            return OfRested()

        def predict(self, *target: object) -> tuple[float, float, float]:
            return 1.0, 1.0, 1.0

    found = prediction.predict(step(), Rested())
    assert found.sm_clock_mhz is None and found.speedup == 1.0
