"""``v1.memory_timeline``, ``v1.memory_peak`` and ``v1.memory_by_op``: what the allocator of a GPU recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

BEFORE = 1000
"""Bytes in use before the first event."""


@pytest.fixture
def rows(insert: Insert) -> None:
    """On device 0 a block from before the trace is released, one is kept, an address is used twice."""
    insert("capture", "capture_id rank", (1, 3), source="torch")
    insert("op", "op_id name parent_op_id start_ns duration_ns",
           (1, "aten::linear", None, 0, 100), (2, "aten::addmm", 1, 10, 20), (3, "aten::gelu", 1, 40, 20),
           (4, "aten::mul", None, 200, 50),
           capture_id=1, process_id=1, thread_id=7)  # fmt: skip
    events = [
        # id, ns, address, bytes, total after it, thread
        (1, 15, 10, 400, 1400, 7),  # in addmm
        (2, 35, 11, 100, 1500, 7),  # after addmm, before gelu: in linear
        (3, 36, 12, -300, 1200, 7),  # from before the trace
        (4, 45, 13, 800, 2000, 7),  # in gelu; the peak
        (5, 50, 11, -100, 1900, 7),
        (6, 150, 11, 100, 2000, 7),  # in no operator; the same total again
        (7, 210, 13, -800, 1200, 7),
        (8, 220, 14, 50, 1250, 9),  # a thread without operators
        (9, 230, 14, -50, 1200, 9),
        (10, 240, 15, 10, 1210, 7),  # in mul
    ]
    insert("memory_event", "memory_event_id start_ns address bytes total_allocated_bytes thread_id", *events,
           capture_id=1, device_type=1, device_id=0, process_id=1, total_reserved_bytes=4096)  # fmt: skip
    insert("memory_event", "memory_event_id start_ns address bytes total_allocated_bytes",
           (11, 5, 10, 9999, 9999),
           capture_id=1, device_type=0, device_id=-1, process_id=1, thread_id=7, total_reserved_bytes=0)  # fmt: skip


def test_peak_is_the_first_of_the_largest_totals(rows: None, ask: Ask) -> None:
    query = """SELECT device_id, peak_bytes, peak_at_ns, reserved_peak_bytes, first_bytes, least_bytes, allocations,
                      frees, unmatched_frees, unmatched_bytes, kept_blocks, kept_bytes FROM v1.memory_peak"""
    assert ask(query) == [(0, 2000, 45, 4096, BEFORE, 1200, 6, 4, 1, 300, 3, 510)]


def test_owners_add_up_to_the_peak(rows: None, ask: Ask) -> None:
    query = """SELECT origin, op_name, live_bytes_at_peak, live_blocks_at_peak, allocations, allocated_bytes
               FROM v1.memory_by_op ORDER BY live_bytes_at_peak DESC, op_name, origin"""
    assert ask(query) == [
        ("operator", "aten::gelu", 800, 1, 1, 800),
        ("before the trace", None, 700, None, 0, None),
        ("operator", "aten::addmm", 400, 1, 1, 400),
        ("operator", "aten::linear", 100, 1, 1, 100),
        ("operator", "aten::mul", 0, 0, 1, 10),
        ("no operator", None, 0, 0, 2, 150),
    ]


def test_timeline_has_the_gpu_s_events_only(rows: None, ask: Ask, report: Report) -> None:
    assert ask("SELECT count(*), min(time_ns), max(allocated_bytes) FROM v1.memory_timeline") == [(10, 15, 2000)]
    assert report("memory_timeline", "count(*)", where={"memory": "memory.rank = 4"}) == [(0,)]
    assert report("memory_peak", "peak_bytes", where={"memory": "memory.rank = 4"}) == []
    assert report("memory_by_op", "count(*)", where={"memory": "memory.rank = 4"}) == [(0,)]


def test_an_allocator_that_says_no_totals_has_no_peak(insert: Insert, ask: Ask) -> None:
    insert("capture", "capture_id", (1,), source="torch")
    insert("memory_event", "memory_event_id start_ns address bytes", (1, 5, 10, 64),
           capture_id=1, device_type=1, device_id=0)  # fmt: skip
    assert ask("SELECT peak_bytes, peak_at_ns, allocations FROM v1.memory_peak") == [(None, None, 1)]
    assert ask("SELECT live_bytes_at_peak, peak_percent, allocations FROM v1.memory_by_op") == [(None, None, 1)]
