"""``v1.kernel_histogram`` and ``v1.kernel_pace``: the durations of a kernel, and the time between calls."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Rows = Callable[..., list[tuple[Any, ...]]]


def kernels(insert: Insert, name: str, *calls: tuple[int, int], capture: int = 1, first: int = 1) -> None:
    """Put in calls of (start, duration)."""
    insert(
        "kernel_event",
        "event_id start_ns duration_ns",
        *((first + at, *call) for at, call in enumerate(calls)),
        capture_id=capture,
        kind="kernel",
        name=name,
        device_id=0,
        stream_id=7,
    )


def capture(insert: Insert, number: int = 1, rank: int | None = None) -> None:
    insert("capture", "capture_id rank", (number, rank), path=f"{number}", source="torch", status="complete", labels={})


def test_bins_are_equally_wide_on_a_logarithmic_scale(insert: Insert, ask: Ask) -> None:
    """Eight calls make four bins from 10 to 160: borders 10, 20, 40, 80, 160, the last one within."""
    capture(insert)
    kernels(insert, "a", *((at * 1_000, length) for at, length in enumerate((10, 19, 20, 39, 40, 80, 159, 160))))
    assert ask(
        """SELECT bin, bins, from_ns, to_ns, calls, calls_percent, total_ns, all_calls
           FROM v1.kernel_histogram ORDER BY bin"""
    ) == [
        (1, 4, 10, 20, 2, 25.0, 29, 8),
        (2, 4, 20, 40, 2, 25.0, 59, 8),
        (3, 4, 40, 80, 1, 12.5, 40, 8),
        (4, 4, 80, 160, 3, 37.5, 399, 8),
    ]


def test_every_call_lies_within_the_borders_of_its_bin(insert: Insert, ask: Ask, report: Rows) -> None:
    draw = random.Random(3)
    capture(insert, 1, 0)
    capture(insert, 2, 1)
    lengths = [
        draw.choice((draw.randrange(1, 40), draw.randrange(1, 10**6), 1 << draw.randrange(20))) for _ in range(400)
    ]
    kernels(insert, "a", *((at * 10, length) for at, length in enumerate(lengths)))
    kernels(insert, "b", (0, 7), (5, 7), capture=2)
    rows = ask("SELECT from_ns, to_ns, calls, bin = bins FROM v1.kernel_histogram WHERE name = 'a' ORDER BY bin")
    for start, end, calls, is_last in rows:
        assert calls == sum(start <= length < end or (is_last and length == end) for length in lengths)
    assert sum(row[2] for row in rows) == 400
    assert ask("SELECT bin, bins, from_ns, to_ns, calls FROM v1.kernel_histogram WHERE name = 'b'") == [(1, 1, 7, 7, 2)]
    by_rank = report("kernel_histogram", "bin, from_ns, rank, name", by={"rank": "{base}.rank"})
    assert [row[:2] for row in by_rank if row[3] == "a"] == ask(
        "SELECT bin, from_ns FROM v1.kernel_histogram WHERE name = 'a' ORDER BY bin"
    )


def test_pace_counts_calls_on_their_device(insert: Insert, ask: Ask) -> None:
    capture(insert, 1, 0)
    capture(insert, 2, 1)
    kernels(insert, "a", (100, 5), (130, 6), (300, 7))
    kernels(insert, "b", (110, 1), first=9)
    kernels(insert, "a", (50, 5), capture=2)
    assert ask(
        """SELECT rank, name, call_index, start_ns, since_first_ns, interval_ns, duration_ns FROM v1.kernel_pace
           ORDER BY rank, name, call_index"""
    ) == [
        (0, "a", 1, 100, 0, None, 5),
        (0, "a", 2, 130, 30, 30, 6),
        (0, "a", 3, 300, 200, 170, 7),
        (0, "b", 1, 110, 0, None, 1),
        (1, "a", 1, 50, 0, None, 5),
    ]
