"""The registry of pictures."""

from __future__ import annotations

import difflib

from tracedb.errors import UsageError
from tracedb.output import Answer, Column, Show, from_rows
from tracedb.plot.definition import Picture

PICTURES = (
    Picture(
        "gemm-variance",
        "Box plots of how much GEMM times spread, by every setting that differs between runs (or by --by).",
        "gemm-spread",
        "gemm_box",
        "gemm_variance:boxes",
        by="factors",
    ),
    Picture(
        "gemm-variance-threads",
        "Box plots of how much GEMM times spread, by the label threads.",
        "gemm-spread",
        "gemm_box",
        "gemm_variance:boxes",
        factors=("threads",),
    ),
    Picture(
        "gemm-variance-channels",
        "Box plots of how much GEMM times spread, by the label channels.",
        "gemm-spread",
        "gemm_box",
        "gemm_variance:boxes",
        factors=("channels",),
    ),
    Picture(
        "gemm-variance-rank",
        "Box plots of how much GEMM times spread, by rank.",
        "gemm-spread",
        "gemm_box",
        "gemm_variance:boxes",
        factors=("rank",),
    ),
    Picture(
        "gemm-variance-violin",
        "Violins of how much GEMM times spread, by every setting that differs between runs (or by --by).",
        "gemm-spread-density",
        "gemm_violin",
        "gemm_variance:violins",
        by="factors",
    ),
    Picture(
        "gemm-variance-interaction",
        "Mean spread of GEMM times by two settings at once: threads and channels (or --by A --by B).",
        "gemm-spread-pairs",
        "gemm_interaction",
        "gemm_variance:interaction",
        by="factors",
        most_by=2,
    ),
    Picture(
        "gantt",
        "What runs when on each stream, ranks under each other on one clock (--step N, --window A:B).",
        "gpu-activity",
        "gantt",
        "gantt:bars",
        takes=("step", "window"),
    ),
    Picture(
        "top-kernels",
        "Kernel names with most time, with their share, calls and class.",
        "top-kernels",
        "top_kernels",
        "top_kernels:bars",
        by="group",
        most_by=1,
    ),
    Picture(
        "timeline",
        "Computation, exposed collectives and copies, and idle time of each configuration, stacked.",
        "gpu-timeline-average",
        "timeline",
        "timeline:stacks",
        by="group",
        keeps_files_apart=True,
    ),
    Picture(
        "utilization",
        "How busy each GPU is over time, and with what.",
        "gpu-utilization",
        "utilization",
        "utilization:areas",
    ),
    Picture(
        "utilization-map",
        "How busy many GPUs are over time, a row of a heat map each.",
        "gpu-utilization",
        "utilization_map",
        "utilization:cells",
    ),
    Picture(
        "collective-latency",
        "Latency of collectives against the size of their messages.",
        "collective-summary",
        "collectives",
        "collectives:latency",
        by="group",
        most_by=1,
    ),
    Picture(
        "collective-bandwidth",
        "Bus bandwidth of collectives against the size of their messages.",
        "collective-summary",
        "collectives",
        "collectives:bandwidth",
        by="group",
        most_by=1,
    ),
    Picture(
        "roofline",
        "Rate against intensity of operators, below the roof of their device.",
        "roofline",
        "roofline",
        "roofline:points",
        by="group",
    ),
    Picture(
        "waiting",
        "Heat map of rank and step: how long each rank waits for others in collectives.",
        "stragglers",
        "waiting",
        "waiting:cells",
        is_by_run=True,
    ),
    Picture(
        "kernel-histogram",
        "How the durations of one kernel are distributed (--kernel NAME, else the one with most time).",
        "kernel-histogram",
        "histogram",
        "one_kernel:histogram",
        by="group",
        most_by=1,
        takes=("kernel",),
    ),
    Picture(
        "kernel-pace",
        "Time from call to call of one kernel, and its durations (--kernel NAME, else the one with most time).",
        "kernel-pace",
        "pace",
        "one_kernel:pace",
        takes=("kernel",),
    ),
)


def find(name: str) -> Picture:
    """Return the picture of that name, written with dashes or underscores. Raises ``UsageError``."""
    wanted = name.replace("_", "-")
    names = [picture.name for picture in PICTURES]
    if wanted in names:
        return PICTURES[names.index(wanted)]
    close = difflib.get_close_matches(wanted, names, 1)
    meant = f"did you mean {close[0]}? " if close else ""
    raise UsageError(f"there is no picture {name!r}; {meant}there are: {', '.join(names)}")


def listing() -> Answer:
    """Return the pictures with one line each."""
    columns = [
        Column("picture", "VARCHAR", None, "Name of the picture."),
        Column("report", "VARCHAR", None, "Report whose rows it draws."),
        Column("title", "VARCHAR", None, "What it shows."),
    ]
    answer = from_rows(columns, [(picture.name, picture.report, picture.title) for picture in PICTURES])
    answer.report = "plot --list"
    answer.shows = [Show(("picture",), floor=24), Show(("title",), kind="fold", floor=24)]
    return answer
