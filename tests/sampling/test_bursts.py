"""Bursts of an operator alone: their power, and how long the host takes to launch them."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from support import fake_nvml
from support.loading import ask
from support.tiny import Tiny
from tracedb.conditions.sampler import Recent
from tracedb.sampling import burst, bursts_table
from tracedb.sampling.burst import Burst, Meter
from tracedb.sampling.operator import Prepared
from tracedb.sampling.operator_registry import find
from tracedb.sampling.sweep_status import Series

CPU = torch.device("cpu")


def _product() -> Prepared:
    x, weight = torch.randn(64, 64, requires_grad=True), torch.randn(64, 64, requires_grad=True)
    return Prepared(lambda: x @ weight, [x, weight])


def test_power_is_read_while_an_operator_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU, whose host always works itself: as if launching took no time."""
    monkeypatch.syspath_prepend(str(fake_nvml.put(tmp_path)))
    monkeypatch.setattr(burst, "SETTLE_SECONDS", 0.005)
    monkeypatch.setattr(burst, "MEASURED_SECONDS", 0.03)
    monkeypatch.setattr(burst, "QUEUED_SECONDS", 0.002)
    monkeypatch.setattr(burst, "BUSY", 1e9)
    monkeypatch.setattr(burst, "BLOCKED_SECONDS", 0.004)
    recent = Recent("aaaa-1")
    meter = Meter(CPU, recent.reader, recent.gpu)
    prepared = _product()
    found = meter.energies({"n": 64}, prepared, [torch.ones(64, 64)], both=True)
    assert [(one.pass_, one.spin_ns is None) for one in found] == [
        ("fwd", True), ("fwd", False), ("bwd", True), ("bwd", False),
    ]  # fmt: skip
    for one in found:
        assert (one.power_w, one.sm_clock_mhz, one.spin_power_w, one.power_limit_w, one.sm_clock_limit_mhz) == (
            689.5, 1455.0, 689.5, 700.0, 1980.0,
        )  # fmt: skip
        assert one.calls and one.duration_ns and one.duration_ns / one.calls > 0
        assert one.spin_ns is None or one.spin_ns > 0


def test_a_host_that_waits_for_the_device_is_told_from_one_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is played by a moment until which its work lasts, on a clock of its own."""
    monkeypatch.setattr(burst, "BLOCKED_SECONDS", 0.02)
    now, busy_until = [0.0], [0.0]

    def perf_counter() -> float:
        now[0] += 1e-6
        return now[0]

    monkeypatch.setattr(burst, "time", SimpleNamespace(**{**vars(time), "perf_counter": perf_counter}))
    monkeypatch.setattr(burst, "spin", lambda device, cycles: busy_until.__setitem__(0, now[0] + 0.02))

    def waiting() -> torch.Tensor:
        now[0] = max(*now, *busy_until)
        return x + 1

    x = torch.ones(4, requires_grad=True)
    for forward, waits in ((waiting, True), (lambda: x + 1, False)):
        one = Prepared(forward, [x])
        busy_until[0] = 0.0
        (fwd, bwd) = Meter(CPU, None, None).host({"n": 4}, [one], [[torch.ones(4)]])
        assert (fwd.pass_, fwd.is_synchronous, bwd.pass_, bwd.is_synchronous) == ("fwd", waits, "bwd", False)
        assert fwd.host_ns and bwd.host_ns and fwd.host_ns < 10e6 and fwd.power_w is None


def test_an_optimizer_updates_random_numbers() -> None:
    """Equal ones toggle no bits: the sample would draw too little power, and run at too high a clock."""
    operator = find("middleStage_optimizer", None, None, Path())
    weight = operator.build({"mp": 1, "dim": 8, "encoders": 1}, torch.float32, CPU).forward()
    assert weight.grad is not None and len(weight.unique()) > 4 and len(weight.grad.unique()) > 4


def test_shapes_of_bursts_are_the_larger_ones() -> None:
    shapes = [{"n": size} for size in range(1, 41)]
    assert [shape["n"] for shape in burst.chosen(shapes, 4)] == [40, 30, 21, 11]
    assert burst.chosen(shapes[:2], 4) == [{"n": 2}, {"n": 1}]
    assert burst.chosen([], 4) == []


def test_a_power_that_was_not_renewed_is_left_out() -> None:
    assert burst._renewed([5.0, 5.0, 7.0, 5.0]) == [7.0, 5.0]
    assert burst._renewed([5.0, 5.0]) == [5.0, 5.0]
    assert burst._renewed([]) == []


def test_bursts_are_stored_with_their_samples(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture()
    tiny.kernel("k", 0, 10)
    tiny.save()
    bursts_table.write(
        tiny.path, 1, Series("linear1", "bf16", "GPU X", "steady"),
        [Burst({"b": 2}, "fwd", 10, 5_000_000, None, 1500.0, None, 690.0, 120.0, 700.0, 1980.0),
         Burst({"b": 2}, "bwd", host_ns=8_000, is_synchronous=False)],
    )  # fmt: skip
    assert ask(tiny.path, "SELECT pass, calls, power_w, host_ns, is_synchronous FROM operator_burst ORDER BY 1") == [
        ("bwd", None, None, 8000, False),
        ("fwd", 10, 690.0, None, None),
    ]
