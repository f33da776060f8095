"""Reports of HTA and TraceLens under their names, with their columns and definitions."""

from __future__ import annotations

from tracedb.output import Show
from tracedb.report_entry import PLACE, Report

_BUSY_OR_IDLE = "\"type\" IN ('busy_time', 'idle_time')"
_TYPE_ORDER = ("\"type\" LIKE 'total%'", _BUSY_OR_IDLE, "\"type\" <> 'total_time'", '"type"')
"""The rows as in TraceLens's sheet: the parts, busy and idle, the total, then what hidden time adds to the parts."""

REPORTS = (
    Report(
        view="hta_temporal_breakdown",
        title="Idle, compute and other busy time by rank, with the columns of HTA.",
        needs="gpu",
        order=("{place}",),
        names=(),
        shows=(
            PLACE,
            *(
                Show((name,), name.replace("_time", "_ time"), "number")
                for name in ("idle_time(us)", "compute_time(us)", "non_compute_time(us)", "kernel_time(us)")
            ),
            *(
                Show((name,), name.replace("_time", "_ time"), "raw")
                for name in ("idle_time_pctg", "compute_time_pctg", "non_compute_time_pctg")
            ),
        ),
    ),
    Report(
        view="tracelens_gpu_timeline",
        title="Parts of the GPU time by rank, with the rows and columns of TraceLens.",
        needs="gpu",
        order=("{place}", *_TYPE_ORDER),
        names=(),
        shows=(
            PLACE,
            Show(("type",), "type", floor=19),
            Show(("time ms",), "time ms", "number"),
            Show(("percent",), "percent"),
        ),
    ),
)
