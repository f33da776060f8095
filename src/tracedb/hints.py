"""What a reader may want to ask next, with the command to type."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.reports import Report
from tracedb.selection import Scope, named

if TYPE_CHECKING:
    import duckdb


OVER_KERNELS = ("kernels", "gpu", "ranges", "launches")
"""What reports need whose numbers depend on which events are kernels."""


def copies_as_kernels(connection: duckdb.DuckDBPyConnection, report: Report, scope: Scope) -> list[str]:
    """Return that some of the captures have copies among their kernels and others of AMD do not, where that is so.

    Up to ROCm 7.1 copies and fills on the device were recorded as kernels. They are of class copy in both.
    """
    if report.needs not in OVER_KERNELS or scope.filters.classes:
        return []
    ((amd,),) = connection.execute(
        """SELECT count(DISTINCT s.capture_id) FROM temp.selected_capture AS s
           INNER JOIN main.device AS d ON d.capture_id = s.capture_id WHERE d.vendor = 'AMD'"""
    ).fetchall()
    if amd < 2:
        return []
    ((kernels, others),) = connection.execute(
        """WITH copies AS (
               SELECT e.capture_id, bool_or(e.kind = 'kernel') AS as_kernels
               FROM main.kernel_event AS e
               SEMI JOIN temp.selected_capture AS s ON s.capture_id = e.capture_id
               SEMI JOIN main.device AS d ON d.capture_id = e.capture_id AND d.vendor = 'AMD'
               WHERE e.kind IN ('memcpy', 'memset') OR starts_with(e.name, '__amd_rocclr_')
                    OR starts_with(e.name, 'MEMORY_COPY_')
               GROUP BY e.capture_id
           )
           SELECT count(*) FILTER (as_kernels), count(*) FILTER (NOT as_kernels) FROM copies"""
    ).fetchall()
    if not kernels or not others:
        return []
    return [
        f"copies and fills are recorded as kernels in {kernels} of the captures (ROCm up to 7.1) and as copies in "
        f"{others}: numbers and sums of kernels differ by that; --class '!copy' leaves them out"
    ]


def other_rule(
    connection: duckdb.DuckDBPyConnection, report: Report, scope: Scope, path: Path, most: int = 3
) -> list[str]:
    """Return which ranges hold most of their kernels under rule process only, with the command that shows them.

    Autograd launches backward's kernels on a thread of its own, which the range of the main thread does not reach.
    """
    if scope.rule != "thread" or report.needs == "attention":
        return []
    name = named("r.name", "r.domain", scope.filters.range) if scope.filters.range is not None else "true"
    rows = connection.execute(
        f"""WITH counts AS (
                SELECT m.capture_id, m.annotation_id, count(*) FILTER (m.rule = 'thread') AS own,
                    count(*) FILTER (m.rule = 'process') AS all_threads
                FROM main.annotation_kernel AS m SEMI JOIN temp.selected_capture AS s ON s.capture_id = m.capture_id
                GROUP BY m.capture_id, m.annotation_id
            ), sums AS (
                SELECT r.name, sum(c.own) AS own, sum(c.all_threads) AS all_threads
                FROM counts AS c
                INNER JOIN {scope.version}._annotation_ancestor AS a
                    ON a.capture_id = c.capture_id AND a.annotation_id = c.annotation_id
                INNER JOIN {scope.version}._range AS r
                    ON r.capture_id = a.capture_id AND r.annotation_id = a.ancestor_id
                WHERE r.style <> 'python_function' AND {name}
                GROUP BY r.name
            )
            SELECT name, own::BIGINT, all_threads::BIGINT FROM sums WHERE own * 2 < all_threads
            ORDER BY all_threads - own DESC, name LIMIT {most}"""
    ).fetchall()
    if not rows:
        return []
    said = ", ".join(f"{range_name} ({own:,} of {every:,})" for range_name, own, every in rows)
    command = (
        f"tracedb report {report.name} --rule process --range {shlex.quote(rows[0][0])} --db {shlex.quote(str(path))}"
    )
    return [f"GPU work launched meanwhile on other threads is not in ranges by rule thread: {said}; try: {command}"]
