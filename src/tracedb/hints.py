"""What a reader should know to compare the rows of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.reports import Report
from tracedb.selection import Scope

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
