"""The host's time in whole steps: learnt from models of several numbers of layers."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from support.tiny import Tiny
from tracedb.regress import host_steps, launching
from tracedb.storage.connection import open_read_only


def _sampled(
    path: Path, rounds: dict[int, list[int]], recompute: int = 0, names: tuple[str, ...] = host_steps.PASSES
) -> Path:
    """A model that was timed at these numbers of layers, with a trace of a warm-up and a step; ``rounds`` in us."""
    tiny = Tiny(path)
    tiny.capture(labels={"sampled": "host_gpt"})
    tiny.connection.execute("UPDATE main.device SET name = 'GPU X'")
    for layers, times in rounds.items():
        for name in names:
            for time in times:
                tiny.add(
                    "operator_burst", capture_id=1, operator="host_gpt", dtype="bf16", host_ns=time * 1000,
                    shape={"layers": layers, "b": 1, "recompute": recompute}, is_synchronous=False, **{"pass": name},
                )  # fmt: skip
    tiny.range(1, "host|host_gpt|layers=2", 700, 1500)
    for number, (name, start) in enumerate(
        (("Optimizer.step#AdamW.step", 200), ("Optimizer.zero_grad#AdamW.zero_grad", 700),
         ("Optimizer.step#AdamW.step", 1000))
    ):  # fmt: skip
        tiny.range(number + 2, name, start, start + (400 if number == 2 else 100))
    for number, start in enumerate((210, 950, 1100, 1300)):
        tiny.add("launch", capture_id=1, launch_id=number, name="cudaLaunchKernel", process_id=1, thread_id=1,
                 start_ns=start, duration_ns=5)  # fmt: skip
        tiny.kernel("k", start + 10, 20, launch_id=number)
    return tiny.save()


def test_a_layer_is_the_difference_between_models_and_a_step_the_rest(tmp_path: Path) -> None:
    with open_read_only(_sampled(tmp_path / "s.duckdb", {2: [30, 40], 6: [70, 80]})) as connection:
        rows = host_steps.measured([connection])
        assert launching.measured([connection]) == []  # these are no operators
    found = host_steps.of({"host_steps": rows}, "GPU X", "bf16")[("host_gpt", False)]
    assert found.per_layer == dict.fromkeys(host_steps.PASSES, 10_000.0)
    assert found.per_step == dict.fromkeys(host_steps.PASSES, 15_000.0)
    assert found.total("forward", 10) == 115_000.0
    # All rounds together: 30/35, 70/75, 80/75 and 40/35 of the mean of their model.
    low, high = (float(np.quantile([30 / 35, 70 / 75, 80 / 75, 40 / 35], end)) for end in (0.05, 0.95))
    assert [found.low, found.high] == pytest.approx([low, high])
    assert found.lead == 0.25  # 100 of 400 ns before the first launch; in the warm-up 10 of 100
    assert host_steps.of({"host_steps": rows}, "GPU X", "fp16") == {}
    assert host_steps.of({"host_steps": rows}, "GPU Y", "bf16") == {}


def test_rounds_of_several_files_count_together(tmp_path: Path) -> None:
    files = [
        _sampled(tmp_path / "a.duckdb", {2: [30], 6: [70]}),
        _sampled(tmp_path / "b.duckdb", {2: [50], 6: [90]}),
        _sampled(tmp_path / "c.duckdb", {2: [60], 6: [160]}, recompute=1),
    ]
    opened = [duckdb.connect(str(path), read_only=True) for path in files]
    first, again = host_steps.measured(opened)
    assert (first["is_recomputed"], first["rounds"], first["per_step_ns"]["forward"]) == (False, 2, 20_000.0)
    assert (again["is_recomputed"], again["rounds"], again["per_layer_ns"]["forward"]) == (True, 1, 25_000.0)


def test_one_number_of_layers_or_a_missing_pass_tells_nothing(tmp_path: Path) -> None:
    for number, (rounds, names) in enumerate(
        (({4: [30]}, host_steps.PASSES), ({2: [30], 6: [70]}, ("forward", "backward")))
    ):
        with open_read_only(_sampled(tmp_path / f"{number}.duckdb", rounds, names=names)) as connection:
            assert host_steps.measured([connection]) == []


def test_one_outlier_does_not_move_the_interval_past_the_prediction(tmp_path: Path) -> None:
    rounds = {2: [10] * 39 + [400], 6: [20] * 39 + [800]}
    with open_read_only(_sampled(tmp_path / "s.duckdb", rounds)) as connection:
        (row,) = host_steps.measured([connection])
    # All rounds but the outlier take about half of the mean.
    assert row["low"] == pytest.approx(10 / 19.75) and row["high"] == 1.0


def test_a_host_never_takes_less_than_nothing(tmp_path: Path) -> None:
    with open_read_only(_sampled(tmp_path / "s.duckdb", {2: [50], 6: [40]})) as connection:
        (row,) = host_steps.measured([connection])
    assert row["per_layer_ns"]["forward"] == 0.0 and row["per_step_ns"]["forward"] == 50_000.0
