"""Hardware counters of CUPTI's range profiler in torch traces (``cuda_profiler_range``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.both_readers import assert_same
from support.command import run
from support.loading import ask, ingest
from support.traces import Event, Raw, document, launched, op, write


def counted(at: int, name: str, metrics: dict[str, object], device: int = 0) -> Event:
    return {
        **{"ph": "X", "cat": "cuda_profiler_range", "name": name, "pid": device, "tid": 0, "ts": at, "dur": 50},
        "args": metrics,
    }


METRICS: dict[str, object] = {"smsp__cycles_active.avg": 9211.5, "dram__bytes_read.sum": 4096}
EVENTS = [
    op(0, 50, "aten::mm", 1),
    counted(100, "gemm", {**METRICS, "gpu__time_duration.sum": 4512.0}),
    counted(150, "add", {"smsp__cycles_active.avg": "12", "dram__bytes_read.sum": Raw('"n/a"')}, device=1),
]


def test_they_are_counted_dispatches(tmp_path: Path) -> None:
    db = tmp_path / "x.duckdb"
    assert ingest(write(tmp_path / "x.json", EVENTS), db=db).exit_code == 0
    columns = "event_id, name, device_id, start_ns, duration_ns, is_counted"
    assert ask(db, f"SELECT {columns} FROM kernel_event ORDER BY 1") == [
        (1, "gemm", 0, 0, 4512, True),
        (2, "add", 1, 0, 0, True),
    ]
    assert ask(db, "SELECT event_id, name, value FROM counter ORDER BY ALL") == [
        (1, "dram__bytes_read.sum", 4096.0),
        (1, "gpu__time_duration.sum", 4512.0),
        (1, "smsp__cycles_active.avg", 9211.5),
        (2, "smsp__cycles_active.avg", 12.0),
    ]
    assert ask(db, "SELECT code, count, detail FROM ingest_issue") == [
        ("field_unreadable", 1, "impossible values; the rows are kept without them: 1 dram__bytes_read.sum")
    ]
    assert ask(db, "SELECT device_id, is_used FROM device ORDER BY 1") == [(0, True), (1, True)]
    assert ask(db, "SELECT name, duration_ns, counters['dram__bytes_read.sum'] FROM v1.kernel_counters ORDER BY 1") == [
        ("add", None, None),
        ("gemm", 4512, 4096.0),
    ]
    assert run("report", "counter-summary", "--db", db).exit_code == 0
    assert run("report", "top-kernels", "--db", db).exit_code == 3


@pytest.mark.parametrize("layout", ["native", "indented"])
def test_both_readers_agree(layout: str) -> None:
    assert_same(document([*launched(2), *EVENTS, *launched(2, first=50)], layout), 700)


def test_kernels_beside_them_are_linked(tmp_path: Path) -> None:
    db = tmp_path / "x.duckdb"
    assert ingest(write(tmp_path / "x.json", [*launched(2), counted(9000, "gemm", METRICS)]), db=db).exit_code == 0
    assert ask(
        db,
        "SELECT coalesce(is_counted, false) AS c, count(*), count(launch_id) FROM kernel_event GROUP BY 1 ORDER BY 1",
    ) == [
        (False, 2, 2),
        (True, 1, 0),
    ]
    ((status, read, skipped, written),) = ask(
        db, "SELECT status, events_read, events_skipped, rows_written FROM capture"
    )
    assert (status, read - skipped, written) == ("complete", read, read + 2)
