"""The reports: which view each prints, in which order, and which columns eyes see."""

from __future__ import annotations

import difflib

from tracedb import counter_reports, nsys_reports, peer_reports, range_reports, rank_reports, sample_reports
from tracedb.errors import UsageError
from tracedb.output import Answer, Column, Show, from_rows
from tracedb.report_entry import GPUS, PLACE, Report
from tracedb.views import CURRENT

__all__ = ["PLACE", "REPORTS", "Report", "find", "listing"]

_NAME = Show(("name",), kind="name", floor=24)
_CLASS = Show(("class",), floor=6)
_DIMS = Show(("input_dims",), "input shapes", "dims", floor=17)
_SPREAD = (
    Show(("avg_ns",), "avg"),
    Show(("median_ns",), "median"),
    Show(("min_ns",), "min", drop=2),
    Show(("max_ns",), "max", drop=1),
    Show(("stddev_ns",), "std dev", drop=3),
)

_GEMM_SUMMARY = """
WITH gist AS (
    SELECT
        count(*) AS gemms,
        sum(calls) AS calls,
        count(*) FILTER (overlapped_calls > 0 AND alone_calls > 0) AS both_ways,
        median(slowdown) FILTER (overlapped_calls > 0 AND alone_calls > 0) AS slowdown,
        count(*) FILTER (verdict = 'slower beside collectives') AS explained,
        count(*) FILTER (overlapped_calls > 0) AS overlapped,
        count(*) FILTER (verdict = 'too few calls') AS unclear
    FROM temp.answer
)
SELECT format('{:d} GEMMs (kernel and input shapes of one capture or group), {:d} calls', gemms, calls::BIGINT)
FROM gist
UNION ALL
SELECT CASE
    WHEN both_ways > 0 THEN format(
        '{:d} of them have calls beside a collective and calls alone: median slowdown {:.2f}', both_ways, slowdown)
    WHEN overlapped > 0 THEN 'none of them has both calls beside a collective and calls alone'
    ELSE 'no call ran beside a collective'
END FROM gist
UNION ALL
SELECT format('of these {:d}, in {:d} the collective beside it explains the spread', both_ways, explained)
FROM gist WHERE both_ways > 0
UNION ALL
SELECT format('and {:d} have too few calls on one side to tell; --by puts those of several captures together', unclear)
FROM gist WHERE unclear > 0
"""

REPORTS = (
    Report(
        view="kernels",
        title="Every kernel, with its class, operator and step.",
        needs="kernels",
        order=("capture_id", "start_ns", "event_id"),
        names=("name",),
        shows=(
            PLACE,
            Show(("device_id",), "dev", "raw", drop=2),
            Show(("stream_id",), "stream", "raw", drop=3),
            Show(("step",), "step", "raw", drop=1),
            Show(("start_ns",), "start ns", "raw"),
            Show(("duration_ns",), "duration"),
            _CLASS,
            _NAME,
            Show(("op_name",), "operator", drop=4, floor=12),
        ),
        is_by_row=True,
        text="SELECT /* by k */ k.*\nFROM {version}.kernels AS k /* join k */\nWHERE true /* filter k */",
    ),
    Report(
        view="top_kernels",
        title="Time by kernel name, as nsys stats cuda_gpu_kern_sum.",
        needs="kernels",
        order=("total_ns DESC",),
        names=("name", "class"),
        shows=(
            PLACE,
            _NAME,
            _CLASS,
            Show(("calls",)),
            Show(("total_ns",), "total"),
            Show(("share_percent",), "share"),
            *_SPREAD,
        ),
    ),
    Report(
        view="matmul_fraction",
        title="Share of kernel time by class: how much is matrix multiplication?",
        needs="kernels",
        order=("class <> 'matmul'", "total_ns DESC"),
        names=("class",),
        shows=(
            PLACE,
            _CLASS,
            Show(("calls",)),
            Show(("total_ns",), "total"),
            Show(("share_percent",), "share"),
        ),
    ),
    Report(
        view="nvtx_ranges",
        title="Time by range: on the host, and of the GPU work launched inside.",
        needs="ranges",
        order=("projected_total_ns DESC NULLS LAST", "range_total_ns DESC NULLS LAST"),
        names=("name", "domain", "style"),
        shows=(
            PLACE,
            Show(("rule",), drop=4, floor=7),
            Show(("name",), "range", "name"),
            Show(("domain",), drop=5, floor=8),
            Show(("instances",)),
            Show(("range_total_ns",), "host total"),
            Show(("projected_total_ns",), "GPU total"),
            Show(("projected_avg_ns",), "GPU avg"),
            Show(("projected_median_ns",), "GPU median", drop=1),
            Show(("projected_min_ns",), "GPU min", drop=3),
            Show(("projected_max_ns",), "GPU max", drop=3),
            Show(("gpu_ops",), "GPU ops"),
        ),
        has_rule=True,
        is_by_thread=True,
    ),
    Report(
        view="nvtx_kernels",
        title="Kernels by enclosing range, as nsys stats nvtx_kern_sum.",
        needs="ranges",
        order=("total_ns DESC",),
        names=("range", "kernel", "domain", "style"),
        range_column="range",
        shows=(
            PLACE,
            Show(("range",), kind="name"),
            Show(("thread_id",), "thread", "raw", drop=1),
            Show(("range_instances",), "inst."),
            Show(("kernel",), kind="name", floor=24),
            Show(("calls",)),
            Show(("total_ns",), "total"),
            Show(("avg_ns",), "avg"),
            Show(("median_ns",), "median", drop=1),
            Show(("min_ns",), "min", drop=2),
            Show(("max_ns",), "max", drop=2),
        ),
        has_rule=True,
        is_by_thread=True,
    ),
    Report(
        view="gemm_variance",
        title="How much one GEMM's time varies, and whether collectives beside it explain it.",
        needs="gemms",
        order=("spread_ns DESC",),
        names=("name", "input_dims"),
        shows=(
            PLACE,
            Show(("name",), "GEMM", "name", floor=12),
            Show(("input_dims",), "input shapes", "dims", floor=21),
            Show(("calls",)),
            Show(("mean_ns",), "mean"),
            Show(("cv_percent",), "cv"),
            Show(("p50_ns",), "p50", drop=4),
            Show(("p99_ns",), "p99", drop=3),
            Show(("min_ns", "max_ns"), "min-max", "span", drop=2),
            Show(("overlapped_calls", "alone_calls"), "beside/ alone", "pair", drop=1),
            Show(("slowdown",), "slow- down", "ratio"),
            Show(
                ("verdict",),
                "cause of spread",
                floor=11,
                words={
                    "slower beside collectives": "collectives",
                    "faster beside collectives": "collectives",
                    "spread has other causes": "other",
                    "too few calls": "few calls",
                    "always overlapped": "all beside",
                    "never overlapped": "all alone",
                    "no collectives": "none ran",
                },
            ),
        ),
        summary=_GEMM_SUMMARY,
    ),
    Report(
        view="collective_overlap",
        title="How much of the collectives' time is hidden under compute.",
        needs="collectives",
        order=("{place}", "device_id"),
        names=(),
        shows=(
            PLACE,
            Show(("device_id",), "dev", "raw"),
            Show(("collective_ns",), "collective"),
            Show(("compute_ns",), "compute"),
            Show(("overlapped_ns",), "overlapped"),
            Show(("exposed_collective_ns",), "exposed collective"),
            Show(("overlap_percent",), "overlap"),
            Show(("collective_calls",), "collective calls", drop=1),
        ),
        answers="count(*) FILTER (collective_ns > 0) > 0",
    ),
    Report(
        view="gpu_timeline",
        title="Where the GPU's time went: computing, exposed collectives and copies, idle.",
        needs="gpu",
        order=("{place}", "device_id"),
        names=(),
        shows=(
            PLACE,
            Show(("device_id",), "dev", "raw"),
            GPUS,
            Show(("total_ns",), "total"),
            Show(("busy_ns",), "busy", drop=1),
            Show(("busy_percent",), "busy"),
            Show(("computation_ns",), "computation", drop=1),
            Show(("computation_percent",), "computation"),
            Show(("exposed_collective_ns",), "exposed collective", drop=2),
            Show(("exposed_collective_percent",), "exposed collective"),
            Show(("exposed_copy_ns",), "exposed copy", drop=3),
            Show(("exposed_copy_percent",), "exposed copy"),
            Show(("idle_ns",), "idle", drop=1),
            Show(("idle_percent",), "idle"),
        ),
    ),
    Report(
        view="unique_kernels",
        title="Distinct kernels by launch signature, with calls and times.",
        needs="gpu",
        order=("total_ns DESC",),
        names=("tier", "class", "name"),
        shows=(
            PLACE,
            Show(("tier",), kind="raw"),
            _NAME,
            _CLASS,
            Show(("grid_x", "grid_y", "grid_z"), "grid", "size", drop=2),
            Show(("block_x", "block_y", "block_z"), "block", "size", drop=2),
            Show(("input_dims",), "input shapes", "dims", drop=1, floor=17),
            Show(("calls",)),
            Show(("calls_per_step",), "per step", drop=3),
            Show(("total_ns",), "total"),
            Show(("mean_ns",), "mean"),
            Show(("stddev_ns",), "std dev", drop=2),
        ),
    ),
    *counter_reports.REPORTS,
    *rank_reports.REPORTS,
    *range_reports.REPORTS,
    *nsys_reports.REPORTS,
    *peer_reports.REPORTS,
    *sample_reports.REPORTS,
)


def find(name: str) -> Report:
    """Return the report of that name, written with dashes or underscores. Raises ``UsageError``."""
    wanted = name.replace("_", "-")
    names = [report.name for report in REPORTS]
    if wanted in names:
        return REPORTS[names.index(wanted)]
    close = difflib.get_close_matches(wanted, names, 1)
    meant = f"did you mean {close[0]}? " if close else ""
    raise UsageError(f"there is no report {name!r}; {meant}there are: {', '.join(names)}")


def listing() -> Answer:
    """Return the reports with one line each."""
    columns = [
        Column("report", "VARCHAR", None, "Name of the report."),
        Column("view", "VARCHAR", None, "View that it prints."),
        Column("title", "VARCHAR", None, "What it answers."),
    ]
    answer = from_rows(columns, [(report.name, f"{CURRENT}.{report.view}", report.title) for report in REPORTS])
    answer.report = "report --list"
    answer.shows = [Show(("report",)), Show(("title",))]
    return answer
