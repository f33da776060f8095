"""Graph launches whose kernels should have been recorded but were not."""

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
    """Return the issue about such launches: code, severity, count and detail. Empty if there is none."""
    text = resources.text("sql", "derive", "graph_launches.sql")
    text = text.replace("{capture}", str(int(capture_id))).replace("{graph_launch}", GRAPH_LAUNCH)
    ((launches, missing, inside),) = connection.execute(text).fetchall()
    if not inside and (missing <= FEW_AT_THE_END or 4 * missing <= launches):
        return []
    detail = (
        f"{missing} of {launches} graph launches have no recorded kernels: idle, busy and sums over kernels are "
        "unreliable; record again with graph nodes traced (nsys profile --cuda-graph-trace=node)"
    )
    return [(CODE, "warning", int(missing), detail)]
