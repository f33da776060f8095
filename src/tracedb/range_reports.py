"""Reports about ranges, launches and the gaps between kernels."""

from __future__ import annotations

from tracedb.output import Show
from tracedb.report_entry import PLACE, Report

_RULE = Show(("rule",), drop=5, floor=7)
_DOMAIN = Show(("domain",), drop=6, floor=8)
_DEVICE = Show(("device_id",), "dev", "raw", drop=3)
_CLASS = Show(("class",), floor=6)

REPORTS = (
    Report(
        view="range_time",
        title="Time of a pass per instance: on the CPU, on the GPU, in kernels; warm-up apart.",
        needs="ranges",
        order=("kernel_avg_ns * instances DESC NULLS LAST", "range_avg_ns DESC NULLS LAST"),
        names=("name", "domain", "style"),
        shows=(
            PLACE,
            _RULE,
            Show(("name",), "range", "name"),
            _DOMAIN,
            Show(("instances",)),
            Show(("range_avg_ns",), "host avg"),
            Show(("range_median_ns",), "host median", drop=3),
            Show(("projected_avg_ns",), "GPU avg"),
            Show(("projected_median_ns",), "GPU median", drop=2),
            Show(("kernel_avg_ns",), "kernels avg"),
            Show(("kernels_per_instance",), "kernels each"),
            Show(("warmup_instances",), "warm-up inst.", drop=1),
            Show(("warmup_range_avg_ns",), "warm-up host avg", drop=4),
            Show(("warmup_projected_avg_ns",), "warm-up GPU avg", drop=1),
        ),
        has_rule=True,
    ),
    Report(
        view="range_kernels",
        title="Kernels of each range with calls and time per instance, without the warm-up.",
        needs="ranges",
        order=("total_ns DESC",),
        names=("range", "kernel", "class", "domain", "style"),
        shows=(
            PLACE,
            _RULE,
            Show(("range",), kind="name"),
            Show(("kernel",), kind="name", floor=24),
            _CLASS,
            Show(("instances",), "inst.", drop=3),
            Show(("calls_per_instance",), "calls each"),
            Show(("instance_avg_ns",), "time each"),
            Show(("share_percent",), "share"),
            Show(("avg_ns",), "avg"),
            Show(("median_ns",), "median", drop=1),
            Show(("min_ns",), "min", drop=2),
            Show(("max_ns",), "max", drop=2),
        ),
        has_rule=True,
        range_column="range",
    ),
    Report(
        view="attention_split",
        title="Scores, softmax and values of attention: time beside arithmetic, per instance.",
        needs="attention",
        order=("{place}", "part = 'scores' DESC", "part = 'softmax' DESC"),
        names=("part",),
        shows=(
            PLACE,
            _RULE,
            Show(("part",), floor=7),
            Show(("instances",)),
            Show(("projected_avg_ns",), "GPU avg", drop=2),
            Show(("kernel_avg_ns",), "kernels avg"),
            Show(("matmul_avg_ns",), "of it matmul", drop=1),
            Show(("flops",), "FLOPs", "count"),
            Show(("tflops",), "TFLOP/s", "ratio"),
            Show(("time_ratio",), "time to scores", "number"),
            Show(("flops_ratio",), "FLOPs to scores", "number"),
            Show(("shapes_from",), "shapes from", drop=3),
        ),
        has_rule=True,
    ),
    Report(
        view="launch_latency",
        title="From the API call to the kernel: time in the call, in the queue and in the kernel.",
        needs="launches",
        order=("capture_id", "launch_start_ns", "event_id"),
        names=("name",),
        shows=(
            PLACE,
            _DEVICE,
            Show(("thread_id",), "thread", "raw", drop=2),
            Show(("launch_name",), "call", "name", drop=1),
            Show(("launch_start_ns",), "call starts ns", "raw"),
            Show(("launch_ns",), "call"),
            Show(("queue_ns",), "queue"),
            Show(("kernel_ns",), "kernel"),
            Show(("latency_ns",), "to start"),
            Show(("name",), kind="name", floor=24),
        ),
        is_by_row=True,
    ),
    Report(
        view="gpu_gaps",
        title="When the GPU idles: between what, and whether work was pending.",
        needs="gaps",
        order=("idle_ns DESC",),
        names=("capture_id", "start_ns"),
        shows=(
            PLACE,
            _DEVICE,
            Show(("start_ns",), "from ns", "raw"),
            Show(("idle_ns",), "idle"),
            Show(("was_pending",), "work pending", floor=3),
            Show(("unlaunched_ns",), "not launched", drop=1),
            Show(("before_name",), "after", "name", floor=20),
            Show(("after_name",), "before", "name", floor=20),
        ),
        is_by_row=True,
    ),
)
