"""``v1.kernel_counters``: hardware counters of each dispatch, which other views exclude."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.kernel_counters") == []


@pytest.fixture
def rows(insert: Insert) -> None:
    insert("capture", "capture_id rank labels", (0, 0, {"t": "1"}), (1, 1, {"t": "2"}), source="rocprofv3")
    insert(
        "device", "capture_id device_id sm_count max_clock_mhz", (0, 0, 100, 2_000), (0, 1, None, 2_000), vendor="AMD"
    )
    insert("kernel_event", "capture_id event_id device_id name start_ns duration_ns is_counted",
           (0, 1, 0, "Cijk_Alik", 10, 1_000, True), (0, 2, 1, "axpy", 5_000, 1_000, True),
           (0, 3, 0, "axpy", 9, 7, None),
           (1, 1, 0, "axpy", 0, 0, True), kind="kernel")  # fmt: skip
    insert("counter", "capture_id event_id name value",
           (0, 1, "SQ_WAVES", 16.0), (0, 1, "SQ_BUSY_CU_CYCLES", 50_000.0), (0, 1, "A", 1.5),
           (0, 2, "SQ_BUSY_CU_CYCLES", 4.0), (1, 1, "SQ_INSTS_MFMA", 3.0))  # fmt: skip


def test_counters_stand_side_by_side(rows: None, ask: Ask) -> None:
    columns = "event_id, rank, name, class, start_ns, duration_ns, sq_waves, sq_busy_cu_cycles, sq_insts_mfma, counters"
    busy = {"SQ_BUSY_CU_CYCLES": 4.0}
    assert ask(f"SELECT {columns} FROM v1.kernel_counters ORDER BY capture_id, event_id") == [
        (1, 0, "Cijk_Alik", "matmul", 10, 1_000, 16.0, 50_000.0, None,
         {"A": 1.5, "SQ_BUSY_CU_CYCLES": 50_000.0, "SQ_WAVES": 16.0}),
        (2, 0, "axpy", "elementwise", 5_000, 1_000, None, 4.0, None, busy),
        (1, 1, "axpy", "elementwise", None, None, None, None, 3.0, {"SQ_INSTS_MFMA": 3.0}),
    ]  # fmt: skip


def test_busy_share_from_cycles_units_and_clock(rows: None, ask: Ask) -> None:
    """1,000 ns at 2 GHz are 2,000 cycles of each of 100 compute units; what is not known gives no share."""
    columns = "capture_id, event_id, sm_count, max_clock_mhz, cu_busy_percent"
    assert ask(f"SELECT {columns} FROM v1.kernel_counters ORDER BY capture_id, event_id") == [
        (0, 1, 100, 2_000, 25.0),
        (0, 2, None, 2_000, None),
        (1, 1, None, None, None),
    ]


def test_other_views_leave_counted_dispatches_out(rows: None, ask: Ask) -> None:
    assert ask("SELECT name, calls, total_ns FROM v1.top_kernels") == [("axpy", 1, 7)]
    assert ask("SELECT event_id FROM v1.kernels") == [(3,)]
    assert ask("SELECT total_ns FROM v1.gpu_timeline") == [(7,)]
    assert ask("SELECT sum(calls) FROM v1.matmul_fraction") == [(1,)]


def test_filters(rows: None, report: Report) -> None:
    assert report("kernel_counters", "event_id", where={"e": "e.labels['t'] = '2'"}) == [(1,)]
    assert report("kernel_counters", "event_id", where={"e": "e.device_id = 1"}) == [(2,)]
