"""Graph launches whose kernels should have been recorded but were not, or only in part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.ingester.name_patterns import GRAPH_LAUNCH
from tracedb.storage import resources

if TYPE_CHECKING:
    import duckdb

CODE = "graph_kernels_missing"
FEW_AT_THE_END = 10
"""Graph launches without kernels allowed at each end of a recording, which may start or end within them."""


def without_kernels(connection: duckdb.DuckDBPyConnection, capture_id: int) -> list[tuple[str, str, int, str]]:
    """Return the issue about such launches: code, severity, count and detail. Empty if there is none.

    Also writes the capture's rows of ``unrecorded_span``. Call after impossible times and clocks were judged.
    """
    connection.execute(_text("graph_launches", capture_id))
    ((launches, missing, inside, partial),) = connection.execute(_text("graph_issue", capture_id)).fetchall()
    issues = []
    if inside or partial or (missing > FEW_AT_THE_END and 4 * missing > launches):
        connection.execute(_text("unrecorded_span", capture_id))
        issues.append((CODE, "warning", int(missing + partial), _detail(launches, missing, partial)))
    connection.execute("DROP TABLE temp.graph_call")
    return issues


def _text(name: str, capture_id: int) -> str:
    text = resources.text("sql", "derive", f"{name}.sql")
    return text.replace("{capture}", str(int(capture_id))).replace("{graph_launch}", GRAPH_LAUNCH)


def _detail(launches: int, missing: int, partial: int) -> str:
    found = f"{missing} of {launches} graph launches have no recorded kernels" if missing else ""
    if partial:
        found += (" and " if found else "") + f"{partial} of {launches} graph launches have only a part of them"
    return (
        f"{found}: idle, busy and sums over kernels are unreliable, and the gaps in which they may have run are left "
        "out of idle and total time; record again with graph nodes traced (nsys profile --cuda-graph-trace=node)"
    )
