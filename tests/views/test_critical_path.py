"""``v1.critical_path``: what each segment of ``critical_segment`` is bound by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

COLUMNS = "rank, step, ordinal, bound_by, name, event_id, start_ns, duration_ns, waits_for_rank"
SEGMENT = "ordinal kind event_id launch_id op_id annotation_id start_ns duration_ns"


def test_no_rows(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.critical_path") == []


def test_kinds_of_segments(insert: Insert, ask: Ask, report: Report) -> None:
    insert("capture", "capture_id rank source", (1, 3, "torch"))
    insert("kernel_event", "event_id kind name start_ns duration_ns", (1, "kernel", "gemm", 20, 30),
           (2, "memcpy", "Memcpy DtoH", 55, 10), capture_id=1, device_id=0)  # fmt: skip
    insert("launch", "launch_id name start_ns duration_ns", (7, "cudaStreamSynchronize", 40, 30), capture_id=1)
    insert("op", "op_id name start_ns duration_ns", (4, "aten::mm", 0, 9), capture_id=1)
    insert("annotation", "annotation_id name style start_ns duration_ns", (5, "loader", "user", 9, 3),
           (6, "ProfilerStep#2", "user", 0, 90), capture_id=1, is_open=False)  # fmt: skip
    insert("critical_segment", SEGMENT,
           (0, "host", None, None, 4, 6, 0, 9), (1, "host", None, None, None, 5, 9, 3),
           (2, "host", None, None, None, 6, 12, 3), (3, "launch", 1, None, None, None, 15, 5),
           (4, "gpu", 1, None, None, None, 20, 30), (5, "gap", 2, None, None, None, 50, 5),
           (6, "gpu", 2, None, None, None, 55, 10), (7, "sync", None, 7, None, None, 65, 5),
           (8, "unknown", None, None, None, None, 70, 1), capture_id=1, step=2)  # fmt: skip
    expected = [
        (3, 2, 0, "host", "aten::mm", None, 0, 9, None),
        (3, 2, 1, "host", "loader", None, 9, 3, None),
        (3, 2, 2, "host", "outside of operators", None, 12, 3, None),
        (3, 2, 3, "launch", "gemm", 1, 15, 5, None),
        (3, 2, 4, "kernel", "gemm", 1, 20, 30, None),
        (3, 2, 5, "launch", "Memcpy DtoH", 2, 50, 5, None),
        (3, 2, 6, "copy", "Memcpy DtoH", 2, 55, 10, None),
        (3, 2, 7, "sync", "cudaStreamSynchronize", None, 65, 5, None),
        (3, 2, 8, None, "not recorded", None, 70, 1, None),
    ]
    assert ask(f"SELECT {COLUMNS} FROM v1.critical_path ORDER BY ordinal") == expected


def test_a_collective_waits_for_its_last_rank(insert: Insert, ask: Ask) -> None:
    """Rank 1 starts 60 ns later: rank 0's segment is cut there, rank 1's is all transfer."""
    insert("capture", "capture_id rank", (1, 0), (2, 1), source="torch")
    insert("kernel_event", "capture_id start_ns duration_ns", (1, 100, 80), (2, 160, 20), event_id=1, kind="kernel",
           name="nccl", collective="allreduce", group_name="0", group_size=2, device_id=0)  # fmt: skip
    insert("critical_segment", "capture_id start_ns duration_ns", (1, 110, 70), (2, 160, 20),
           ordinal=0, kind="gpu", event_id=1)  # fmt: skip
    assert ask(f"SELECT {COLUMNS} FROM v1.critical_path ORDER BY rank, ordinal") == [
        (0, None, 0, "wait", "wait for rank 1: nccl", 1, 110, 50, 1),
        (0, None, 1, "collective", "nccl", 1, 160, 20, None),
        (1, None, 0, "collective", "nccl", 1, 160, 20, None),
    ]
