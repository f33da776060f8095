"""Reports about hardware counters."""

from __future__ import annotations

from tracedb.output import Show
from tracedb.report_entry import PLACE, Report

_NAME = Show(("name",), kind="name", floor=24)

REPORTS = (
    Report(
        view="kernel_counters",
        title="Hardware counters of each dispatch.",
        needs="counters",
        order=("capture_id", "start_ns", "event_id"),
        names=("name",),
        shows=(
            PLACE,
            Show(("device_id",), "dev", "raw", drop=2),
            Show(("start_ns",), "start ns", "raw", drop=3),
            _NAME,
            Show(("duration_ns",), "duration"),
            Show(("cu_busy_percent",), "CUs busy"),
            Show(("counters",), "counters", "labels", floor=30),
        ),
        is_by_row=True,
    ),
    Report(
        view="counter_summary",
        title="Hardware counters by kernel name, means per dispatch.",
        needs="counters",
        order=("total_ns DESC NULLS LAST",),
        names=("name", "class"),
        shows=(
            PLACE,
            _NAME,
            Show(("class",), floor=6, drop=2),
            Show(("calls",)),
            Show(("total_ns",), "total", drop=1),
            Show(("avg_ns",), "avg"),
            Show(("cu_busy_percent",), "CUs busy"),
            Show(("counter_means",), "counters, mean", "labels", floor=30),
        ),
    ),
)
