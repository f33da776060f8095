"""``v1.collective_overlap``: hidden and exposed collective time, as unions of intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

EVENT = "event_id name start_ns duration_ns"
TIMES = "collective_calls, collective_ns, compute_ns, overlapped_ns, exposed_collective_ns, overlap_percent"


def test_empty(insert: Insert, ask: Ask) -> None:
    assert ask("SELECT * FROM v1.collective_overlap") == []
    insert("kernel_event", EVENT, (1, "Memcpy", 0, 5), capture_id=0, kind="memcpy")
    assert ask("SELECT * FROM v1.collective_overlap") == []


def test_without_collectives_there_is_no_percentage(insert: Insert, ask: Ask) -> None:
    insert("kernel_event", EVENT, (1, "add", 0, 5), (2, "add", 3, 5), capture_id=0, kind="kernel")
    assert ask(f"SELECT {TIMES} FROM v1.collective_overlap") == [(0, 0, 8, 0, 0, None)]


def test_unions(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    insert("kernel_event", "event_id kind name start_ns duration_ns",
           (1, "kernel", "ncclKernel", -10, 20), (2, "kernel", "ncclKernel", 10, 10),  # touch: -10 to 20
           (3, "kernel", "ncclKernel", 0, 5), (4, "kernel", "ncclKernel", 15, 0),      # inside, and of no length
           (5, "kernel", "add", 0, 4), (6, "kernel", "sgemm", 2, 4),                   # 0 to 6
           (7, "graph", "graph", 18, 12), (8, "memcpy", "Memcpy", -90, 200),           # 18 to 30; a copy is neither
           capture_id=0)  # fmt: skip
    right = [(4, 30, 18, 8, 22, 100 * 8 / 30)]
    assert ask(f"SELECT {TIMES} FROM v1.collective_overlap") == right
    shuffled()
    assert ask(f"SELECT {TIMES} FROM v1.collective_overlap") == right


def test_devices_and_captures_are_apart(insert: Insert, ask: Ask, report: Report) -> None:
    insert("capture", "capture_id rank labels", (0, 0, {"t": "8"}), (1, 1, {"t": "8"}), source="torch")
    insert("kernel_event", "capture_id device_id event_id name start_ns duration_ns",
           (0, 0, 1, "ncclKernel", 0, 10), (0, 1, 2, "add", 0, 10), (1, 0, 1, "ncclKernel", 0, 8),
           (1, 0, 2, "add", 4, 8), (1, None, 3, "add", 0, 7),
           kind="kernel", stream_id=7)  # fmt: skip
    query = f"SELECT capture_id, rank, labels['t'], device_id, {TIMES} FROM v1.collective_overlap ORDER BY ALL"
    assert ask(query) == [
        (0, 0, "8", 0, 1, 10, 0, 0, 10, 0.0),
        (0, 0, "8", 1, 0, 0, 10, 0, 0, None),
        (1, 1, "8", 0, 1, 8, 8, 4, 4, 50.0),
        (1, 1, "8", None, 0, 0, 7, 0, 0, None),
    ]
    by = {"t": "{base}.labels['t']"}
    assert report("collective_overlap", "*", by=by) == [("8", 2, 18, 25, 4, 14, 100 * 4 / 18)]
    found = report("collective_overlap", f"capture_id, {TIMES}", where={"e": "e.rank = 1 AND e.device_id = 0"})
    assert found == [(1, 1, 8, 8, 4, 4, 50.0)]
