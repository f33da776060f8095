"""``tracedb report roofline``: what its summary says where all operators are bound by the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import run
from support.tiny import Tiny


@pytest.mark.parametrize(
    ("name", "dims", "bound"),
    [
        ("aten::mm", [[4096, 4096], [4096, 4096]], "bound by compute: 0.2 ms at 69 % of the roof"),
        ("aten::mul", [[8192, 8192], [8192, 8192]], "bound by memory: 0.2 ms at 60 % of the roof"),
    ],
)
def test_only_the_bounds_that_occur_are_named(tmp_path: Path, name: str, dims: list[list[int]], bound: str) -> None:
    tiny = Tiny(tmp_path / "x.duckdb")
    capture = tiny.capture(0)
    tiny.connection.execute("UPDATE main.device SET name = 'NVIDIA H100 80GB HBM3'")
    tiny.add("op", capture_id=capture, op_id=1, name=name, start_ns=10, duration_ns=5, input_dims=json.dumps(dims),
             input_types='["c10::BFloat16", "c10::BFloat16"]')  # fmt: skip
    tiny.kernel("k", 20, 200_000, op_id=1, device_id=0)
    told = run("report", "roofline", "--db", tiny.save()).stderr.splitlines()
    assert f"tracedb: {bound}" in told
