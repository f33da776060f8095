"""What a reader may want to ask next, with the command to type."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.reports import Report
from tracedb.selection import Scope, named

if TYPE_CHECKING:
    import duckdb


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
