"""``v1.gpu_timeline_average``: the GPU timeline averaged over the ranks of a configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

PARTS = "part, ranks, zero_ranks, mean_ns, geometric_mean_ns, min_ns, max_ns, mean_percent"


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.gpu_timeline_average") == []


def test_two_ranks(insert: Insert, ask: Ask, report: Report, shuffled: Callable[[], None]) -> None:
    insert("capture", "capture_id rank labels", (0, 0, {"t": "8"}), (1, 1, {"t": "8"}), (2, 0, {"t": "9"}),
           source="torch")  # fmt: skip
    insert("kernel_event", "capture_id event_id name start_ns duration_ns", (0, 1, "add", 0, 10), (0, 2, "add", 30, 10),
           (1, 1, "add", 0, 40), (1, 2, "ncclKernel", 40, 40), (2, 1, "add", 0, 7),
           kind="kernel", device_id=0)  # fmt: skip
    right = [
        ("computation", 2, 0, 30.0, pytest.approx(800**0.5), 20, 40, 50.0),
        ("exposed_collective", 2, 1, 20.0, 0.0, 0, 40, 100 * 40 / 120),
        ("exposed_copy", 2, 2, 0.0, 0.0, 0, 0, 0.0),
        ("busy", 2, 0, 50.0, pytest.approx(1600**0.5), 20, 80, 100 * 100 / 120),
        ("idle", 2, 1, 10.0, 0.0, 0, 20, 100 * 20 / 120),
        ("total", 2, 0, 60.0, pytest.approx(3200**0.5), 40, 80, 100.0),
    ]
    query = f"SELECT {PARTS} FROM v1.gpu_timeline_average WHERE labels['t'] = '8' ORDER BY place"
    assert ask(query) == right
    shuffled()
    assert ask(query) == right
    by = {"t": "{base}.labels['t']"}
    found = report("gpu_timeline_average", '"t", part, mean_ns', by=by, where={"e": "e.rank = 0"})
    assert ("8", "total", 40.0) in found and ("9", "total", 7.0) in found and len(found) == 12
