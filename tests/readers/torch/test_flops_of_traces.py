"""FLOPs and GPU time of products in recorded traces, recomputed in plain Python from the JSON."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from math import prod
from pathlib import Path

import pytest

from support import recordings
from support.loading import ask, ingest

TORCH = recordings.DATA / "torch"
PLACES = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1}
"""Where the first factor is among the inputs."""

pytestmark = pytest.mark.shared


def by_name(path: Path) -> dict[str, tuple[int, int, float]]:
    """Calls that launched work, their FLOPs, and the µs of that work, by operator."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    worked: dict[int, float] = defaultdict(float)
    for event in events:
        if event.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy"):
            worked[event["args"].get("External id")] += event["dur"]
    found: dict[str, tuple[int, int, float]] = {}
    for event in events:
        arguments = event.get("args", {})
        if event.get("cat") == "cpu_op" and event["name"] in PLACES and arguments["External id"] in worked:
            place = PLACES[event["name"]]
            first, second = arguments["Input Dims"][place : place + 2]
            calls, flops, spent = found.get(event["name"], (0, 0, 0.0))
            more = 2 * prod(first) * second[-1]
            found[event["name"]] = calls + 1, flops + more, spent + worked[arguments["External id"]]
    return found


RIGHT = {
    "h100_bf16.json.gz": {"aten::mm": 695_784_701_952, "aten::bmm": 77_309_411_328, "aten::addmm": 154_618_822_656},
    "public/tracelens_h100_bert_small.json.gz": {"aten::addmm": 8_029_194_240},
}


@pytest.mark.parametrize("name", RIGHT)
def test_products(name: str, tmp_path: Path) -> None:
    path = TORCH / name
    if not path.exists():
        pytest.skip(f"{name} is public and is not shipped")
    other = by_name(path)
    assert {op: flops for op, (_, flops, _) in other.items()} == RIGHT[name]
    db = tmp_path / "trace.duckdb"
    assert ingest(path, db=db).exit_code == 0
    rows = ask(
        db,
        "SELECT name, count(*), sum(flops), sum(gpu_ns) / 1e3 FROM v1.op_flops "
        "WHERE name IN ('aten::mm', 'aten::bmm', 'aten::addmm') GROUP BY name",
    )
    assert {op: (calls, flops) for op, calls, flops, _ in rows} == {op: found[:2] for op, found in other.items()}
    for op, _, _, spent in rows:
        assert spent == pytest.approx(other[op][2], abs=0.01)
