"""Reports over sampled operators."""

from __future__ import annotations

from tracedb.output import Show
from tracedb.report_entry import PLACE, Report

REPORTS = (
    Report(
        view="operator_samples",
        title="Sampled operators: time by shape and pass, what tracedb fit learns from.",
        needs="samples",
        order=("gpu", "operator", "pass", "dtype", "shape"),
        names=(),
        shows=(
            PLACE,
            Show(("operator",)),
            Show(("pass",)),
            Show(("dtype",), drop=3),
            Show(("shape",), kind="labels", floor=24),
            Show(("n",), drop=2),
            Show(("target_ns",), "time"),
            Show(("busy_median_ns",), "busy", drop=5),
            Show(("span_median_ns",), "span", drop=4),
            Show(("busy_min_ns", "busy_max_ns"), "min-max", "span", drop=1),
            Show(("flags",), "mind", drop=6, floor=12),
        ),
    ),
    Report(
        view="collective_samples",
        title="Sampled collectives: transfer by size, apart from waiting.",
        needs="samples",
        order=("collective", "dtype", "ranks", "shape['elements']", "run_label"),
        names=(),
        shows=(
            Show(("collective",)),
            Show(("dtype",)),
            Show(("ranks",), kind="raw"),
            Show(("message_bytes",), "bytes", "count"),
            Show(("n",)),
            Show(("latency_median_ns",), "transfer"),
            Show(("latency_min_ns", "latency_max_ns"), "min-max", "span", drop=2),
            Show(("wait_median_ns",), "waiting"),
            Show(("bus_gbps",), "bus GB/s"),
            Show(("gpu",), "GPU", drop=3),
            Show(("clock",), drop=1),
        ),
    ),
)
