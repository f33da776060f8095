"""Reports of ``nsys stats`` under their names, with NVIDIA's columns: a script ports by changing one word."""

from __future__ import annotations

from tracedb.output import Show
from tracedb.report_entry import PLACE, Report

_SPREAD = ("Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)")
_TOTAL = ("Time (%)", "Total Time (ns)")
_BY_TOTAL = ('"Total Time (ns)" DESC',)
_NAMES = ("Name", "Range", "NVTX Range", "Operation", "Kernel Name", "API Name")
_MINOR = {"Avg": 0, "Med": 1, "Min": 2, "Max": 2, "StdDev": 3}
"""Which columns a narrow table leaves out first."""


def _shows(*columns: str) -> tuple[Show, ...]:
    return (PLACE, *map(_show, columns))


def _show(column: str) -> Show:
    kind = "name" if column in _NAMES else "text" if column in ("Style", "Category", "GridXYZ", "BlockXYZ") else "raw"
    drop = next((drop for word, drop in _MINOR.items() if word in column), 0)
    return Show((column,), column, kind, drop=drop, floor=24 if kind == "name" else 12)


_EXEC = tuple(f"{part}{what} (ns)" for part in "TAQK" for what in ("Avg", "Med", "Min", "Max", "StdDev"))

REPORTS = (
    Report(
        view="cuda_gpu_kern_sum",
        title="Time by kernel name, with the columns of nsys stats.",
        needs="kernels",
        order=_BY_TOTAL,
        names=("Name",),
        shows=_shows(*_TOTAL, "Instances", *_SPREAD, "Name"),
    ),
    Report(
        view="cuda_gpu_kern_gb_sum",
        title="Time by kernel name, grid and block, with the columns of nsys stats.",
        needs="kernels",
        order=_BY_TOTAL,
        names=("Name", "GridXYZ", "BlockXYZ"),
        shows=_shows(*_TOTAL, "Instances", *_SPREAD, "GridXYZ", "BlockXYZ", "Name"),
    ),
    Report(
        view="cuda_gpu_mem_time_sum",
        title="Time of copies and memsets, with the columns of nsys stats.",
        needs="copies",
        order=_BY_TOTAL,
        names=("Operation",),
        shows=_shows(*_TOTAL, "Count", *_SPREAD, "Operation"),
    ),
    Report(
        view="cuda_gpu_mem_size_sum",
        title="Sizes of copies and memsets, with the columns of nsys stats.",
        needs="copies",
        order=('"Total (MB)" DESC',),
        names=("Operation",),
        shows=_shows("Total (MB)", "Count", "Avg (MB)", "Med (MB)", "Min (MB)", "Max (MB)", "StdDev (MB)", "Operation"),
    ),
    Report(
        view="cuda_gpu_sum",
        title="Time of kernels, copies and memsets, with the columns of nsys stats.",
        needs="gpu",
        order=_BY_TOTAL,
        names=("Operation", "Category"),
        shows=_shows(*_TOTAL, "Instances", *_SPREAD, "Category", "Operation"),
    ),
    Report(
        view="cuda_api_sum",
        title="Time of API calls, with the columns of nsys stats.",
        needs="calls",
        order=_BY_TOTAL,
        names=("Name",),
        shows=_shows(*_TOTAL, "Num Calls", *_SPREAD, "Name"),
    ),
    Report(
        view="cuda_kern_exec_sum",
        title="Call, queue and kernel times by API call and kernel, with the columns of nsys stats.",
        needs="launches",
        order=('"TAvg (ns)" DESC',),
        names=("Kernel Name", "API Name", "PID", "TID", "DevId"),
        shows=_shows("PID", "TID", "DevId", "Count", "QCount", *_EXEC, "API Name", "Kernel Name"),
    ),
    Report(
        view="nvtx_sum",
        title="Time of ranges on the CPU, with the columns of nsys stats.",
        needs="ranges",
        order=_BY_TOTAL,
        names=("Range", "Style"),
        shows=_shows(*_TOTAL, "Instances", *_SPREAD, "Style", "Range"),
    ),
    Report(
        view="nvtx_pushpop_sum",
        title="Time of push/pop ranges on the CPU, with the columns of nsys stats.",
        needs="ranges",
        order=_BY_TOTAL,
        names=("Range",),
        shows=_shows(*_TOTAL, "Instances", *_SPREAD, "Range"),
    ),
    Report(
        view="nvtx_kern_sum",
        title="Kernels by enclosing range, with the columns of nsys stats.",
        needs="ranges",
        order=('"NVTX Range" NULLS FIRST', '"PID"', '"TID"', '"Total Time (ns)" DESC'),
        names=("Kernel Name", "Style"),
        shows=_shows(
            "NVTX Range", "Style", "PID", "TID", "NVTX Inst", "Kern Inst", "Total Time (ns)", *_SPREAD, "Kernel Name"
        ),
        range_column="NVTX Range",
        has_domain=True,
        is_by_thread=True,
    ),
    Report(
        view="nvtx_gpu_proj_sum",
        title="Time of the GPU work launched in ranges, with the columns of nsys stats.",
        needs="ranges",
        order=('"Total Proj Time (ns)" DESC',),
        names=("Range", "Style"),
        shows=_shows(
            "Range",
            "Style",
            "Total Proj Time (ns)",
            "Total Range Time (ns)",
            "Range Instances",
            *(f"Proj {column}" for column in _SPREAD),
            "Total GPU Ops",
            "Avg GPU Ops",
            "Avg Range Lvl",
            "Avg Num Child",
        ),
        is_by_thread=True,
    ),
)
