"""Reports about many ranks and configurations: overlap with a control, collectives over ranks, stragglers."""

from __future__ import annotations

from tracedb.output import Show
from tracedb.report_entry import CONFIGURATION, CYCLE, PLACE, Report

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

_STRAGGLER_SUMMARY = """
WITH ranks AS (
    SELECT
        labels,
        source,
        cycle,
        rank,
        sum(calls)::BIGINT AS calls,
        sum(times_last)::BIGINT AS times_last,
        sum(wait_caused_ns) / 1e6 AS wait_caused_ms,
        bool_or(is_straggler) AS is_straggler
    FROM temp.answer
    GROUP BY labels, source, cycle, rank
),
configurations AS (
    SELECT labels, source, cycle, bool_or(is_straggler) AS has_straggler
    FROM ranks
    GROUP BY labels, source, cycle
)
SELECT said
FROM (
    SELECT
        1 AS place,
        labels,
        cycle,
        rank,
        format('rank {:d} stands out{}{}: last in {:d} of {:d} collectives, the others waited {:.1f} ms for it',
            rank, CASE WHEN cardinality(labels) > 0 THEN ' in ' || labels::VARCHAR ELSE '' END,
            coalesce(' in cycle ' || cycle, ''), times_last, calls, wait_caused_ms) AS said
    FROM ranks
    WHERE is_straggler
    UNION ALL
    SELECT
        2 AS place,
        NULL AS labels,
        NULL AS cycle,
        NULL AS rank,
        format('no rank stands out in {:d} of {:d} {}',
            count(*) FILTER (NOT has_straggler), count(*),
            CASE WHEN count(cycle) > 0 THEN 'recordings' ELSE 'configurations' END) AS said
    FROM configurations
    HAVING count(*) FILTER (NOT has_straggler) > 0
)
ORDER BY place, labels, cycle, rank
"""

REPORTS = (
    Report(
        view="gpu_timeline_average",
        title="The GPU timeline averaged over the ranks of each configuration.",
        needs="gpu",
        order=("{place}", "cycle NULLS FIRST", "place"),
        names=("part",),
        shows=(
            CONFIGURATION,
            CYCLE,
            Show(("part",)),
            Show(("ranks",), kind="raw"),
            Show(("mean_ns",), "mean"),
            Show(("mean_percent",), "mean"),
            Show(("geometric_mean_ns",), "geo. mean"),
            Show(("zero_ranks",), "ranks at 0", "count", drop=1),
            Show(("min_ns",), "min"),
            Show(("max_ns",), "max"),
        ),
    ),
    Report(
        view="idle_breakdown",
        title="Why the GPU idles: nothing launched, or launched and not begun; and exposed collectives.",
        needs="gpu",
        order=("{place}", "device_id"),
        names=(),
        shows=(
            PLACE,
            Show(("device_id",), "dev", "raw"),
            Show(("gaps",)),
            Show(("idle_ns",), "idle"),
            Show(("host_bound_ns",), "host- bound"),
            Show(("host_bound_percent",), "host- bound"),
            Show(("device_bound_ns",), "device- bound"),
            Show(("device_bound_percent",), "device- bound"),
            Show(("unknown_percent",), "unknown", drop=1),
            Show(("collective_wait_ns",), "exposed collective"),
        ),
    ),
    Report(
        view="queue_depth",
        title="How far the host runs ahead: kernels launched and not ended at each launch.",
        needs="launches",
        order=("{place}", "device_id"),
        names=(),
        shows=(
            PLACE,
            Show(("device_id",), "dev", "raw"),
            Show(("launches",), kind="count"),
            Show(("mean_depth",), "mean depth", "number"),
            Show(("median_depth",), "median depth", "number"),
            Show(("max_depth",), "max depth", "count"),
            Show(("empty_launches",), "into empty", "count", drop=2),
            Show(("empty_percent",), "into empty"),
            Show(("kernels_without_launch",), "no launch known", "count", drop=1),
        ),
        answers="sum(launches) > 0",
    ),
    Report(
        view="stragglers",
        title="Which rank is late to collectives, and how long the others wait for it.",
        needs="matches",
        order=("{place}", "cycle NULLS FIRST", "step NULLS LAST"),
        names=(),
        shows=(
            PLACE,
            CYCLE,
            Show(("step",), kind="raw"),
            Show(("calls",)),
            Show(("times_last",), "times last", "count"),
            Show(("late_ns",), "late"),
            Show(("margin_ns",), "margin", drop=2),
            Show(("wait_caused_ns",), "wait caused"),
            Show(("wait_caused_percent",), "wait caused"),
            Show(("collective_ns",), "in collectives"),
            Show(("wait_ns",), "waiting"),
            Show(("wait_percent",), "waiting", drop=1),
            Show(("is_straggler",), "straggler"),
        ),
        summary=_STRAGGLER_SUMMARY,
        summary_needs=("labels", "source", "cycle", "rank"),
        spans_ranks=True,
    ),
    Report(
        view="collectives",
        title="Every collective call over its ranks: waiting and transfer apart, skew, bandwidth.",
        needs="collectives",
        order=("{place}", "start_ns NULLS LAST", "collective_id"),
        names=("collective",),
        shows=(
            CONFIGURATION,
            CYCLE,
            Show(("step",), kind="raw", drop=2),
            Show(("collective",)),
            Show(("message_bytes",), "bytes", "count"),
            Show(("dtype",), drop=4, floor=8),
            Show(("group_name",), "group", drop=4, floor=6),
            Show(("ranks",), kind="raw"),
            Show(("latency_ns",), "latency"),
            Show(("total_wait_ns",), "waiting"),
            Show(("skew_start_ns",), "start skew"),
            Show(("skew_end_ns",), "end skew", drop=1),
            Show(("last_rank",), "last rank", "raw"),
            Show(("algorithm_gbps",), "alg. GB/s", "ratio", drop=3),
            Show(("bus_gbps",), "bus GB/s", "ratio"),
            Show(("match_rule",), "matched by", drop=1, floor=6),
        ),
        spans_ranks=True,
    ),
    Report(
        view="collective_summary",
        title="Latency, waiting, skew and bandwidth by collective and size.",
        needs="collectives",
        order=("{place}", "cycle NULLS FIRST", "latency_total_ns DESC NULLS LAST"),
        names=("collective", "message_bytes"),
        shows=(
            CONFIGURATION,
            CYCLE,
            Show(("collective",)),
            Show(("message_bytes",), "bytes", "count"),
            Show(("dtype",), drop=4, floor=8),
            Show(("group_size",), "ranks", "raw"),
            Show(("calls",)),
            Show(("unmatched_calls",), "un- matched", drop=3),
            Show(("latency_mean_ns",), "mean", drop=1),
            Show(("latency_median_ns",), "median"),
            Show(("latency_min_ns",), "min", drop=2),
            Show(("latency_max_ns",), "max", drop=2),
            Show(("latency_total_ns",), "total"),
            Show(("wait_percent",), "waiting"),
            Show(("skew_start_median_ns",), "start skew"),
            Show(("algorithm_gbps",), "alg. GB/s", "ratio", drop=3),
            Show(("bus_gbps",), "bus GB/s", "ratio"),
        ),
        spans_ranks=True,
    ),
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
