"""``predict --gpu-spec``: a GPU that was not sampled, from the models of others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from support.command import run
from tracedb.errors import TracedbError, UsageError
from tracedb.regress import card_spec, load, store
from tracedb.regress.card_spec import Spec, known
from tracedb.regress.model import Target, fit
from tracedb.regress.other_card import OtherCard
from tracedb.regress.work_model import problem

A100, H100, NEW = "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA H200"
SHAPES = [
    {"mp": 1, "b": b, "l": length, "dim": dim} for b in (1, 2, 4) for length in (512, 2048) for dim in (1024, 4096)
]
SPEC = {"name": NEW, "memory_gbps": 4800, "tensor_tflops": {"bf16": 989.4}, "sm_count": 132, "sm_clock_mhz": 1980}


def law(operator: str, shape: Mapping[str, int], card: Spec) -> float:
    """Time in ns at 70 % of a card's rates, the slower bound deciding."""
    work = problem(operator, "fwd", [shape])
    by_bytes = float(work.elements[0]) * 2 / card.memory_gbps
    by_flops = float(work.flops[0]) / card.tensor_tflops["bf16"] / 1e3 if operator == "linear1" else 0.0
    return 2_500 + max(by_bytes, by_flops) / 0.7


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of a product, a pointwise operator and a collective on two cards."""
    folder = tmp_path_factory.mktemp("cards") / "models"
    fitted = []
    for gpu in (A100, H100):
        card = known(gpu)
        assert card is not None
        for operator in ("linear1", "gelu"):
            times = np.array([law(operator, shape, card) for shape in SHAPES])
            fitted.append(fit(Target(gpu, operator, "fwd", "bf16"), SHAPES, times, card.sm_count or 1, "gaussian"))
        sizes = [{"elements": 2**power} for power in range(10, 20)]
        times = np.array([10_000.0 + size["elements"] for size in sizes])
        fitted.append(fit(Target(gpu, "allreduce", "comm", "bf16"), sizes, times, 1, "gaussian"))
    for model in fitted:
        shapes = SHAPES if model.target.operator != "allreduce" else sizes
        model.facts["ranges"] = {
            name: [min(s[name] for s in shapes), max(s[name] for s in shapes)] for name in shapes[0]
        }
    store.save(folder, fitted, {})
    return folder


def spec(tmp_path: Path, **change: object) -> Path:
    path = tmp_path / "card.json"
    path.write_text(json.dumps({name: value for name, value in {**SPEC, **change}.items() if value is not None}))
    return path


@pytest.mark.parametrize("operator", ["linear1", "gelu"])
def test_the_rates_of_a_card_scale_the_times(operator: str, models: Path, tmp_path: Path) -> None:
    """A product follows the rate of products, a pointwise operator that of memory; nothing was sampled on the card."""
    other = OtherCard(load(models), card_spec.read(spec(tmp_path)))
    right = Spec(NEW, 4800, {"bf16": 989.4})
    for shape in ({"mp": 1, "b": 3, "l": 1024, "dim": 2048}, {"mp": 1, "b": 4, "l": 2048, "dim": 4096}):
        predicted, low, high = other.predict(None, operator, "fwd", "bf16", shape)
        assert predicted == pytest.approx(law(operator, shape, right), rel=0.15)
        assert low < law(operator, shape, right) < high
    slower = OtherCard(load(models), card_spec.read(spec(tmp_path, tensor_tflops=494.7, memory_gbps=2400)))
    assert slower.predict(None, operator, "fwd", "bf16", shape)[0] == pytest.approx(2 * predicted, rel=0.05)


def test_one_sampled_card_alone_leaves_a_wide_interval(models: Path, tmp_path: Path) -> None:
    both = load(models)
    one = [both.exact(H100, operator, "fwd", "bf16") for operator in ("linear1", "gelu")]
    store.save(tmp_path / "one", [model for model in one if model], {})
    (found,) = OtherCard(load(tmp_path / "one"), card_spec.read(spec(tmp_path))).predict_many(
        None, "gelu", "fwd", None, SHAPES[:1]
    )
    assert found.high_ns / found.predicted_ns == pytest.approx(2)
    (two,) = OtherCard(both, card_spec.read(spec(tmp_path))).predict_many(None, "gelu", "fwd", None, SHAPES[:1])
    assert 1.49 < two.high_ns / two.predicted_ns < 2


def test_the_command(models: Path, tmp_path: Path) -> None:
    path = spec(tmp_path)
    asked = ("predict", "--models", models, "--gpu-spec", path)
    done = run(*asked, "--operator", "gelu", "--shape", "mp=1,b=4,l=2048,dim=4096", "--format", "json")
    assert done.exit_code == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["gpu"], row["pass"], row["outside"]) == (NEW, "fwd", [])
    done = run(*asked, "--operator", "allreduce", "--shape", "elements=4096")
    assert done.exit_code == 2
    assert f"no model of allreduce fwd of another card can be scaled to {NEW}; there are: gelu fwd" in done.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"memory_gbps": None}, "memory_gbps is None, expected a number above 0"),
        ({"memory_gbps": -1}, "memory_gbps is -1, expected a number above 0"),
        ({"tensor_tflops": {"fp99": 1}}, "tensor_tflops is {'fp99': 1}, expected TFLOP/s"),
        ({"tensor_tflops": "many"}, "tensor_tflops is 'many'"),
        ({"bandwidth": 3}, "has a key 'bandwidth'; expected name, memory_gbps"),
    ],
)
def test_faulty_specifications(change: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(TracedbError) as error:
        card_spec.read(spec(tmp_path, **change))
    assert said in str(error.value)


def test_files_that_are_no_specification(tmp_path: Path) -> None:
    with pytest.raises(TracedbError, match="cannot be read"):
        card_spec.read(tmp_path / "missing.json")
    (tmp_path / "a.json").write_text("[")
    with pytest.raises(TracedbError, match="is not valid JSON"):
        card_spec.read(tmp_path / "a.json")


def test_sampled_cards_need_a_data_sheet(tmp_path: Path) -> None:
    times = np.array([law("gelu", shape, Spec("x", 1000, {"bf16": 100})) for shape in SHAPES])
    store.save(tmp_path / "m", [fit(Target("Unheard of", "gelu", "fwd", "bf16"), SHAPES, times, 10, "gaussian")], {})
    with pytest.raises(UsageError, match="no data sheet is known of Unheard of"):
        OtherCard(load(tmp_path / "m"), card_spec.read(spec(tmp_path)))


def test_shipped_data_sheets() -> None:
    found = known(H100)
    assert found is not None
    assert (found.memory_gbps, found.tflops("bf16"), found.sm_count, found.sm_clock_mhz) == (3350, 989.4, 132, 1980)
    assert known("NVIDIAGH200120GB") is not None
