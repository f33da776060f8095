"""The picture of operators below the roof of their device."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from support.command import run
from support.tiny import Tiny

pytest.importorskip("altair")
pytest.importorskip("vl_convert")


def database(path: Path, device: str = "NVIDIA H100 80GB HBM3") -> Path:
    """A product and an operator without a formula."""
    tiny = Tiny(path / "trace.duckdb")
    capture = tiny.capture(0)
    tiny.add("device", capture_id=capture, device_id=0, name=device, vendor="NVIDIA")
    for op_id, name, dims in ((1, "aten::mm", [[4096, 4096], [4096, 4096]]), (2, "my::<op>", [[1]])):
        tiny.add("op", capture_id=capture, op_id=op_id, name=name, start_ns=op_id * 10, duration_ns=5,
                 input_dims=json.dumps(dims), input_types='["c10::BFloat16", "c10::BFloat16"]')  # fmt: skip
    tiny.kernel("gemm", 20, 300_000, op_id=1, device_id=0)
    tiny.kernel("other", 400_000, 100_000, op_id=2, device_id=0)
    return tiny.save()


def texts(svg: Path) -> set[str]:
    return {"".join(item.itertext()) for item in ET.parse(svg).iter("{http://www.w3.org/2000/svg}text")}


def test_points_and_roofs(tmp_path: Path) -> None:
    svg = tmp_path / "a.svg"
    done = run("plot", "roofline", "--db", database(tmp_path), "-o", svg)
    assert done.exit_code == 0, done.stderr
    said = texts(svg)
    assert {"Roofline of operators", "aten::mm", "bf16 989.4 TFLOP/s, 3,350 GB/s"} <= said
    assert any("75 % of the operators' GPU time is drawn" in text for text in said)
    assert "the largest is my::<op> with 25 % of the time" in done.stderr


def test_what_memory_alone_bounds_is_said_to_be_missing(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "trace.duckdb")
    capture = tiny.capture(0)
    tiny.add("device", capture_id=capture, device_id=0, name="NVIDIA H100 80GB HBM3", vendor="NVIDIA")
    types = '["c10::BFloat16", "c10::BFloat16"]'
    for op_id, name in ((1, "aten::mm"), (2, "aten::copy_")):
        tiny.add("op", capture_id=capture, op_id=op_id, name=name, start_ns=op_id * 10, duration_ns=5,
                 input_dims="[[4096, 4096], [4096, 4096]]", input_types=types)  # fmt: skip
    tiny.kernel("gemm", 20, 300_000, op_id=1, device_id=0)
    tiny.kernel("copy", 400_000, 100_000, op_id=2, device_id=0)
    done = run("plot", "roofline", "--db", tiny.save(), "-o", tmp_path / "a.svg")
    assert "0.1 ms bound by memory is not drawn" in done.stderr


def test_a_device_of_unknown_peaks_has_no_roof(tmp_path: Path) -> None:
    svg = tmp_path / "a.svg"
    assert run("plot", "roofline", "--db", database(tmp_path, "Some GPU"), "-o", svg).exit_code == 0
    assert any("No roof: the device is not in device_peak." in text for text in texts(svg))


def test_without_shapes_there_is_no_picture(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "trace.duckdb")
    tiny.capture(0)
    tiny.kernel("gemm", 20, 300)
    done = run("plot", "roofline", "--db", tiny.save(), "-o", tmp_path / "a.svg")
    assert (done.exit_code, (tmp_path / "a.svg").exists()) == (3, False)
