"""Captures of ranks and the collectives in them, as rows for views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Insert = Callable[..., None]

WORLD = "[0, 1, 2, 3]"
CALL = (
    "capture_id event_id start_ns duration_ns collective message_in_elements group_name group_ranks group_size sequence"
)


def captures(insert: Insert, ranks: Sequence[int | None], **labels: str) -> None:
    """Captures 0, 1, … of these ranks."""
    insert("capture", "capture_id rank labels", *[(number, rank, labels) for number, rank in enumerate(ranks)],
           source="torch")  # fmt: skip


def calls(insert: Insert, *rows: tuple[Any, ...], size: int = 4, group: str = "0", **shared: Any) -> None:
    """Collectives: capture, event, start, duration, then collective, elements, group, its ranks, size, sequence."""
    filled = [row + ("allreduce", 100, group, WORLD, size, None)[len(row) - 4 :] for row in rows]
    name = shared.pop("name", "ncclDevKernel_AllReduce")
    given = {"device_id": 0, "dtype": "Float", "kind": "kernel", "name": name, **shared}
    insert("kernel_event", CALL, *filled, **given)
