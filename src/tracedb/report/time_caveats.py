"""Warnings about impossible times and graph replays without kernels, found at load, for the answers they affect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracedb.derive.time_faults import CODES
from tracedb.report import shared_work
from tracedb.report.needs import Needs

if TYPE_CHECKING:
    import duckdb

BETWEEN_CLOCKS = (
    "launch_latency",
    "queue_depth",
    "gpu_gaps",
    "idle_breakdown",
    "cuda_kern_exec_sum",
    "critical_path",
    "why",
)
"""Views that compare times of calls with times of kernels."""
_OF_LAUNCHES = ("launch_latency", "queue_depth", "cuda_kern_exec_sum")
"""Those of which kernels without a launch are no part."""
_NO_EVENTS = (Needs.CALLS, Needs.SAMPLES)
"""Requirements of reports without GPU events."""


def said(
    connection: duckdb.DuckDBPyConnection, database: str, captures: str, codes: Sequence[str] = CODES
) -> list[str]:
    """Return the findings of the load about captures, one line per code and kind of row.

    ``database`` is a prefix of tables, such as ``trace.`` or nothing; ``captures`` a table with a column capture_id.
    """
    if not codes:
        return []
    rows = shared_work.ask(
        connection,
        f"""SELECT i.code, regexp_extract(i.detail, '(GPU event|API call|range)', 1) AS noun,
                count(*), sum(i.count)::BIGINT, arg_min(i.detail, i.capture_id)
            FROM {database}main.ingest_issue AS i SEMI JOIN {captures} AS s ON s.capture_id = i.capture_id
            WHERE i.code IN ({", ".join(f"'{code}'" for code in codes)}) GROUP BY i.code, noun ORDER BY i.code, noun""",
    )
    return [
        detail if count == 1 else f"in {count} captures, {events:,} in all, the first of them: {detail}"
        for _, _, count, events, detail in rows
    ]


def warnings(connection: duckdb.DuckDBPyConnection, view: str, needs: Needs) -> list[str]:
    """Return the findings of the load that affect a report on the selected captures."""
    codes = [code for code in CODES if code != "clocks_apart" or view in BETWEEN_CLOCKS]
    if needs in _NO_EVENTS:
        codes = [code for code in codes if code.startswith("time_")]
    return said(connection, "", "temp.selected_capture", codes)


def without_launch(connection: duckdb.DuckDBPyConnection, view: str) -> list[str]:
    """Return how much GPU work has no recorded launch, for the answers about launches and what waits for them."""
    if view not in BETWEEN_CLOCKS:
        return []
    ((kernels, kernels_without, events, events_without),) = shared_work.ask(
        connection,
        """SELECT count(*) FILTER (e.is_kernel), count(*) FILTER (e.is_kernel AND e.launch_id IS NULL),
                count(*), count(*) - count(e.launch_id)
           FROM (
               SELECT k.launch_id, k.kind IN ('kernel', 'graph') AS is_kernel FROM main.kernel_event AS k
               SEMI JOIN temp.selected_capture AS s ON s.capture_id = k.capture_id
               WHERE k.time_fault IS NULL) AS e""",
    )
    if view in _OF_LAUNCHES:
        said = f"{kernels_without:,} of {kernels:,} kernels have no recorded launch and are left out"
        return [said] if kernels_without else []
    if not events_without:
        return []
    is_kernels = kernels_without == events_without
    which = (
        f"{kernels_without:,} of {kernels:,} kernels" if is_kernels else f"{events_without:,} of {events:,} GPU events"
    )
    what = (
        "what these waited for is inferred" if view == "critical_path" else "why the GPU idles before them is unknown"
    )
    return [f"{which} have no recorded launch: {what}"]


def all_impossible(connection: duckdb.DuckDBPyConnection) -> str:
    """Say that no GPU event of the selected captures has a valid time; empty if some have."""
    ((good, faulty),) = connection.execute(
        """SELECT count(*) FILTER (e.time_fault IS NULL), count(e.time_fault)
           FROM main.kernel_event AS e SEMI JOIN temp.selected_capture AS s ON s.capture_id = e.capture_id"""
    ).fetchall()
    if good or not faulty:
        return ""
    return (
        f"the times of all {faulty} GPU events cannot be true (see time_fault in main.kernel_event, and the bounds in "
        "main.time_bound)"
    )


def without_clock(connection: duckdb.DuckDBPyConnection) -> str:
    """Say that calls and kernels of all selected captures use clocks that are apart, if so."""
    ((together,),) = connection.execute(
        """SELECT count(*) FROM temp.selected_capture AS s ANTI JOIN main.clock_fault AS f USING (capture_id)
           WHERE s.status <> 'no_gpu_activity'"""
    ).fetchall()
    words = said(connection, "", "temp.selected_capture", ["clocks_apart"])
    return words[0] if words and not together else ""
