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
)
