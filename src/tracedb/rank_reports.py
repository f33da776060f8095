"""Reports about many ranks and configurations: overlap with a control."""

from __future__ import annotations

from tracedb.output import Show
from tracedb.report_entry import PLACE, Report

_GEMM = Show(("name",), "GEMM", "name", floor=12)
_DIMS = Show(("input_dims",), "input shapes", "dims", floor=17)

_EFFECT_SUMMARY = """
WITH gist AS (
    SELECT
        {by}
        {group} AS said,
        count(*) AS gemms,
        count(*) FILTER (overlapped_calls > 0 AND alone_calls > 0) AS both_ways,
        sum(overlapped_mean_ns * overlapped_calls) FILTER (overlapped_calls > 0 AND alone_calls > 0)
            / nullif(sum(alone_mean_ns * overlapped_calls) FILTER (overlapped_calls > 0 AND alone_calls > 0), 0)
            AS slowdown,
        count(*) FILTER (p_value < 0.01 AND slower_pairs_percent > 50) AS slower,
        count(*) FILTER (p_value < 0.01 AND slower_pairs_percent < 50) AS faster,
        count(p_value) AS tested
    FROM temp.answer
    GROUP BY ALL
)
SELECT said || CASE
    WHEN both_ways = 0 THEN format('none of {:d} GEMMs has both calls beside a collective and calls alone', gemms)
    ELSE format(
        'beside a collective {:.2f} times as long as alone, over {:d} of {:d} GEMMs that have both kinds of calls; '
        || 'of {:d} tested, {:d} slower and {:d} faster (p < 0.01)',
        slowdown, both_ways, gemms, tested, slower, faster)
END
FROM gist
ORDER BY {order} said
"""

REPORTS = (
    Report(
        view="overlap_effect",
        title="Does a collective beside it slow a GEMM? Calls beside one against calls alone.",
        needs="overlap",
        order=("total_ns DESC",),
        names=("name", "input_dims"),
        shows=(
            PLACE,
            _GEMM,
            _DIMS,
            Show(("overlapped_calls",), "beside"),
            Show(("alone_calls",), "alone"),
            Show(("overlapped_mean_ns",), "mean beside"),
            Show(("alone_mean_ns",), "mean alone"),
            Show(("overlapped_median_ns",), "median beside", drop=2),
            Show(("alone_median_ns",), "median alone", drop=2),
            Show(("slowdown",), "slow- down", "ratio"),
            Show(("p_value",), "p", "number"),
        ),
        answers="sum(overlapped_calls) > 0",
        summary=_EFFECT_SUMMARY,
    ),
    Report(
        view="gemm_collective_overlap",
        title="Every GEMM with every collective that ran beside it.",
        needs="overlap",
        order=("capture_id", "gemm_start_ns", "gemm_event_id", "collective_start_ns", "collective_event_id"),
        names=("gemm_name", "collective_name"),
        shows=(
            PLACE,
            Show(("device_id",), "dev", "raw", drop=4),
            Show(("gemm_name",), "GEMM", "name", floor=12),
            Show(("input_dims",), "input shapes", "dims", drop=1, floor=17),
            Show(("gemm_start_ns",), "GEMM start ns", "raw", drop=2),
            Show(("gemm_duration_ns",), "GEMM"),
            Show(("collective_name",), "collective", "name", floor=12),
            Show(("collective_start_ns",), "collective start ns", "raw", drop=3),
            Show(("collective_duration_ns",), "collective"),
            Show(("overlap_ns",), "overlap"),
            Show(("gemm_overlap_percent",), "of GEMM"),
        ),
        is_by_row=True,
    ),
)
