"""``tracedb sample --peaks``: what a device can do, measured, on the processor here."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import run
from support.loading import ask

pytest.importorskip("torch")
from tracedb.sampling import peaks


def test_rates_go_beside_the_data_sheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks, "WARM_SECONDS", 0.02)
    db = tmp_path / "run.duckdb"
    for _ in range(2):  # a second measurement takes the place of the first
        done = run("sample", "--peaks", "--device", "cpu", "--db", db)
        assert done.exit_code == 0, done.stderr
    assert "cpu: fp64" in done.stderr
    query = """SELECT device_name, memory_gbps > 0, fp64_tflops > 0, fp32_tflops > 0, tf32_tflops, bf16_tflops > 0
               FROM device_peak WHERE source = 'measured'"""
    assert ask(db, query) == [("^cpu$", True, True, True, None, True)]
    assert ask(db, "SELECT count(*) > 20 FROM device_peak WHERE source = 'data sheet'") == [(True,)]


def test_a_product_counts_two_operations_for_each_of_n_cubed(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(peaks, "_seconds", lambda device, work: 0.5)
    assert peaks._product(torch.device("cpu"), "fp32", 100) == pytest.approx(2 * 100**3 / 0.5 / 1e12)
    assert peaks._copy(torch.device("cpu"), 1000) == pytest.approx(2 * 1000 / 0.5 / 1e9)


def test_nothing_to_do_is_an_error(tmp_path: Path) -> None:
    done = run("sample", "--db", tmp_path / "run.duckdb")
    assert (done.exit_code, "name a CONFIG" in done.stderr) == (2, True)
