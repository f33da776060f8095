"""``v1.counter_summary``: counters by kernel; a dispatch's time counts once, however many counters it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.counter_summary") == []


@pytest.fixture
def rows(insert: Insert) -> None:
    insert("capture", "capture_id rank labels", (0, 0, {"pass": "1"}), (1, 0, {"pass": "2"}), source="rocprofv3")
    insert("device", "capture_id sm_count max_clock_mhz", (0, 100, 2_000), (1, None, None), device_id=0, vendor="AMD")
    insert("kernel_event", "capture_id event_id name start_ns duration_ns",
           (0, 1, "axpy", 10, 1_000), (0, 2, "axpy", 5_000, 3_000), (0, 3, "mul", 0, 0), (1, 1, "axpy", 20, 500),
           kind="kernel", device_id=0, is_counted=True)  # fmt: skip
    insert("counter", "capture_id event_id name value",
           (0, 1, "SQ_WAVES", 16.0), (0, 1, "SQ_BUSY_CU_CYCLES", 50_000.0), (0, 2, "SQ_WAVES", 32.0),
           (0, 2, "SQ_BUSY_CU_CYCLES", 150_000.0), (0, 3, "SQ_WAVES", 8.0),
           (1, 1, "SQ_WAVES", 12.0), (1, 1, "SQ_BUSY_CU_CYCLES", 9.0), (1, 1, "A", 3.0))  # fmt: skip


def test_sums_and_means(rows: None, ask: Ask, shuffled: Callable[[], None]) -> None:
    right = [
        (
            "axpy",
            "elementwise",
            3,
            4_500,
            1_500.0,
            25.0,
            {"A": 3.0, "SQ_BUSY_CU_CYCLES": 200_009 / 3, "SQ_WAVES": 20.0},
        ),
        ("mul", "elementwise", 1, None, None, None, {"SQ_WAVES": 8.0}),
    ]
    columns = "name, class, calls, total_ns, avg_ns, cu_busy_percent, counter_means"
    assert ask(f"SELECT {columns} FROM v1.counter_summary ORDER BY name") == right
    shuffled()
    assert ask(f"SELECT {columns} FROM v1.counter_summary ORDER BY name") == right
    assert ask("SELECT counter_sums['SQ_WAVES'] FROM v1.counter_summary ORDER BY name") == [(60.0,), (8.0,)]


def test_groups(rows: None, report: Report) -> None:
    found = report("counter_summary", '"pass", name, calls, counter_sums', by={"pass": "{base}.labels['pass']"})
    assert found == [
        ("1", "axpy", 2, {"SQ_BUSY_CU_CYCLES": 200_000.0, "SQ_WAVES": 48.0}),
        ("1", "mul", 1, {"SQ_WAVES": 8.0}),
        ("2", "axpy", 1, {"A": 3.0, "SQ_BUSY_CU_CYCLES": 9.0, "SQ_WAVES": 12.0}),
    ]
