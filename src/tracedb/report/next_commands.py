"""Suggest the first command, and hints for comparing the rows of an answer."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.errors import TracedbError
from tracedb.report import shared_work
from tracedb.report.needs import Needs
from tracedb.storage.lake_store import is_lake, shown

if TYPE_CHECKING:
    import duckdb

    from tracedb.pipeline.task import Loaded
    from tracedb.report.definition import Report
    from tracedb.report.filters import Scope


OVER_KERNELS = (Needs.KERNELS, Needs.GPU, Needs.RANGES, Needs.LAUNCHES)
"""Requirements of reports whose numbers depend on which events are kernels."""


_FIRST = """
SELECT CASE
    WHEN EXISTS (SELECT 1 FROM main.operator_sample) THEN 'operator-samples'
    WHEN EXISTS (SELECT 1 FROM main.kernel_event AS e WHERE e.kind = 'kernel' AND e.is_counted IS NOT TRUE)
        THEN 'top-kernels'
    WHEN EXISTS (SELECT 1 FROM main.counter) THEN 'counter-summary'
    WHEN EXISTS (SELECT 1 FROM main.kernel_event AS e WHERE e.kind = 'graph') THEN 'gpu-timeline'
    WHEN EXISTS (SELECT 1 FROM main.kernel_event AS e WHERE e.kind <> 'kernel') THEN 'cuda-gpu-mem-time-sum'
    WHEN EXISTS (SELECT 1 FROM main.annotation AS a WHERE a.style NOT IN ('mark', 'gpu_projection', 'python_function'))
        THEN 'range-time'
    WHEN EXISTS (SELECT 1 FROM main.launch) THEN 'cuda-api-sum'
END
"""


_MEASURED = "SELECT EXISTS (FROM main.measure) AND EXISTS (FROM main.kernel_event)"
"""Whether times measured outside of traces stand beside traces."""


def first(path: Path, loaded: Sequence[Loaded] = ()) -> str | None:
    """Return the command for the first question about a database; None if that cannot be determined now.

    ``loaded``: captures that were just written; if they suffice, the database is not opened again.
    """
    if any(item.kernels and not item.has_counters and not item.samples for item in loaded):
        return f"tracedb report top-kernels {_named(path)}"
    import duckdb

    from tracedb.storage import connection as database

    try:
        with database.open_read_only(path) as connection:
            ((report,),) = connection.execute(_FIRST).fetchall()
            is_measured = loaded and all(item.samples and not item.kernels for item in loaded)
            if is_measured and connection.execute(_MEASURED).fetchall() == [(True,)]:
                return f"tracedb report range-time --measured {_named(path)}"
            ((ops,),) = connection.execute("SELECT EXISTS (SELECT 1 FROM main.op)").fetchall()
    except (TracedbError, duckdb.Error):  # another process may be using it
        return None
    if report is not None:
        return f"tracedb report {report} {_named(path)}"
    query = "SELECT name, count(*) AS calls, sum(duration_ns) AS total_ns FROM op GROUP BY name ORDER BY total_ns DESC"
    return f'tracedb sql "{query}" {_named(path)}' if ops else None


def _named(path: Path) -> str:
    """Return the option that names a database or a lake."""
    return f"--lake {shlex.quote(shown(path))}" if is_lake(path) else f"--db {shlex.quote(str(path))}"


def copies_as_kernels(connection: duckdb.DuckDBPyConnection, report: Report, scope: Scope) -> list[str]:
    """Return a hint if some AMD captures record copies as kernels and others do not.

    Up to ROCm 7.1 device copies and fills were recorded as kernels. Their class is copy in both cases.
    """
    if report.needs not in OVER_KERNELS or scope.filters.classes:
        return []
    ((amd,),) = shared_work.ask(
        connection,
        """SELECT count(DISTINCT s.capture_id) FROM temp.selected_capture AS s
           INNER JOIN main.device AS d ON d.capture_id = s.capture_id WHERE d.vendor = 'AMD'""",
    )
    if amd < 2:
        return []
    ((kernels, others),) = shared_work.ask(
        connection,
        f"""WITH copies AS (
               SELECT e.capture_id, bool_or(e.kind = 'kernel') AS as_kernels
               FROM main.kernel_event AS e
               SEMI JOIN temp.selected_capture AS s ON s.capture_id = e.capture_id
               SEMI JOIN main.device AS d ON d.capture_id = e.capture_id AND d.vendor = 'AMD'
               WHERE e.kind IN ('memcpy', 'memset') OR {scope.version}._is_runtime_copy(e.name)
               GROUP BY e.capture_id
           )
           SELECT count(*) FILTER (as_kernels), count(*) FILTER (NOT as_kernels) FROM copies""",
    )
    if not kernels or not others:
        return []
    return [
        f"copies and fills are recorded as kernels in {kernels} of the captures (ROCm up to 7.1) and as copies in "
        f"{others}: numbers and sums of kernels differ by that; --class '!copy' leaves them out"
    ]
