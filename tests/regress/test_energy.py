"""Energy of operators, learnt from bursts, and the clock at which work meets the power limit."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import duckdb
import pytest

from support.tiny import Tiny
from tracedb.regress import launching, operator_energy
from tracedb.storage.connection import open_read_only

BURSTS = Path(__file__).parents[1] / "data" / "bursts" / "bursts.csv.gz"
FLOP_J, BYTE_J, POWER = 1e-12, 2e-10, 0.7
LIMITS = {"spin_power_w": 130.0, "power_limit_w": 700.0, "sm_clock_limit_mhz": 2000.0}


def _product(width: int, clock: float) -> float:
    """J of a product of 4,096 tokens, width by 3 times width, at a clock in MHz."""
    return float(FLOP_J * 2 * 4096 * width * 3 * width * (clock / 2000) ** POWER)


def _sampled(path: Path, limits: dict[str, float | None] | None = None) -> Path:
    """Products at three widths, alone at 1,500 MHz and diluted at 2,000; GELU, which its bytes alone take energy."""
    tiny = Tiny(path)
    tiny.capture(labels={"regime": "steady"})
    tiny.add("device", capture_id=1, device_id=0, name="GPU X")
    tiny.kernel("k", 0, 10)
    for operator, widths in (("linear1", (1024, 2048, 4096)), ("gelu", (1024, 2048))):
        for width in widths:
            for clock, spin in ((1500.0, None), (2000.0, 50_000_000)):
                joules = _product(width, clock) if operator == "linear1" else BYTE_J * 4096 * 4 * width * 2 * 2
                tiny.add(
                    "operator_burst", capture_id=1, operator=operator, **{"pass": "fwd"}, dtype="bf16",
                    shape={"b": 2, "l": 2048, "dim": width}, calls=100, duration_ns=100_000_000, spin_ns=spin,
                    sm_clock_mhz=clock if operator == "linear1" else 2000.0, power_w=130.0 + 1000 * joules,
                    **(LIMITS if limits is None else limits),
                )  # fmt: skip
    tiny.add(
        "operator_burst", capture_id=1, operator="linear1", **{"pass": "bwd"}, dtype="bf16",
        shape={"b": 2, "l": 2048, "dim": 1024}, host_ns=80_000, is_synchronous=False,
    )  # fmt: skip
    tiny.add(
        "operator_burst", capture_id=1, operator="middleStage_optimizer", **{"pass": "step"}, dtype="bf16",
        shape={"mp": 1, "dim": 1024, "encoders": 4}, host_ns=4_000_000, is_synchronous=True,
    )  # fmt: skip
    return tiny.save()


def test_energy_is_learnt_by_flops_and_bytes_and_by_the_clock(tmp_path: Path) -> None:
    with open_read_only(_sampled(tmp_path / "s.duckdb")) as connection:
        (found,) = operator_energy.measured([connection])
    assert (found["gpu"], found["power_limit_w"], found["spin_power_w"], found["sm_clock_limit_mhz"]) == (
        "GPU X", 700.0, 130.0, 2000.0,
    )  # fmt: skip
    assert found["clock_power"] == pytest.approx(POWER)
    card = operator_energy.card({"energy": [found]}, "gpu-x")
    assert card is not None
    for width in (1024, 3000, 8192):
        shape = {"b": 2, "l": 2048, "dim": width}
        assert card.joules("linear1", "fwd", "bf16", shape) == pytest.approx(_product(width, 2000))
        assert card.joules("gelu", "fwd", "bf16", shape) == pytest.approx(BYTE_J * 4096 * 4 * width * 4)
    assert card.joules("layernorm", "fwd", "bf16", shape) > 0  # by the rates of all
    assert operator_energy.card({"energy": [found]}, "GPU Y") is None


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bursts of an H200."""
    tiny = Tiny(tmp_path_factory.mktemp("bursts") / "h200.duckdb")
    tiny.capture(labels={"regime": "steady"})
    tiny.add("device", capture_id=1, device_id=0, name="NVIDIA H200")
    with gzip.open(BURSTS, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            known: dict[str, object] = {name: value or None for name, value in row.items()}
            tiny.add("operator_burst", capture_id=1, **{**known, "shape": json.loads(row["shape"])})
    return tiny.save()


def test_products_of_an_h200_take_two_thirds_of_the_effect_of_the_clock(recorded: Path) -> None:
    """From 1,500 to 1,965 MHz, 1.3 times as high, they become 1.15 to 1.18 times as fast."""
    with open_read_only(recorded) as connection:
        shares = operator_energy.product_shares([connection])
        (found,) = operator_energy.measured([connection])
    assert shares == {"NVIDIA H200": pytest.approx(0.62, abs=0.05)}
    assert 0.6 < found["clock_power"] < 1.0
    card = operator_energy.card({"energy": [found]}, "NVIDIA H200")
    assert card is not None and card.power_limit_w == 700.0 and 110 < card.spin_power_w < 140
    # 309 GFLOP at the highest clock, about a pJ each.
    assert card.joules("linear3", "fwd", "bf16", {"b": 2, "l": 2048, "dim": 3072, "ffn": 12288}) == pytest.approx(
        0.3, rel=0.15
    )


def test_a_file_of_a_tracedb_without_bursts_has_none(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "old.duckdb")) as connection:
        connection.execute("CREATE SCHEMA v1")
        assert operator_energy.measured([connection]) == launching.measured([connection]) == []
        assert operator_energy.product_shares([connection]) == {}


def test_work_runs_at_the_clock_at_which_it_draws_the_limit() -> None:
    card = operator_energy.Card(700.0, 100.0, 2000.0, 1.0, {}, (0.0, 0.0))

    def time_ns(clock: float) -> float:
        return 1e8 * 2000 / clock  # it all computes: 0.1 s at the highest clock

    assert card.clock(time_ns, 59.9) == 2000.0  # 699 W
    # J at the limit and the time both follow the clock, so the power follows its square: 600 W of 1,200.
    assert card.clock(time_ns, 120.0) == pytest.approx(2000 * 0.5**0.5)
    # Half of the time the device waits: the same energy in twice the time.
    assert card.clock(lambda clock: time_ns(clock) + 1e8, 119.9) == 2000.0


@pytest.mark.parametrize("missing", ["power_limit_w", "sm_clock_limit_mhz", "spin_power_w"])
def test_a_card_whose_limits_are_not_known_has_no_energy(tmp_path: Path, missing: str) -> None:
    with open_read_only(_sampled(tmp_path / "s.duckdb", {**LIMITS, missing: None})) as connection:
        assert operator_energy.measured([connection]) == []


def test_launching_is_learnt_by_operator_and_of_an_optimizer_by_layer(tmp_path: Path) -> None:
    with open_read_only(_sampled(tmp_path / "s.duckdb")) as connection:
        rows = launching.measured([connection])
    assert launching.of({"launching": rows}, "GPU X", "bf16") == {
        ("linear1", "bwd"): (80_000.0, False),
        ("middleStage_optimizer", "step"): (1_000_000.0, True),
    }
    assert launching.of({"launching": rows}, "GPU X", "fp16") == {}
