"""How much longer a matrix product takes while a collective runs: samples of ``tracedb sample --beside``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tracedb.regress.dataset import VIEW
from tracedb.regress.model_folder import plain
from tracedb.regress.work_model import PRODUCTS

if TYPE_CHECKING:
    import duckdb

FEWEST = 5
"""Shapes and passes that must have been sampled both ways."""
RATIOS = f"""
WITH alone AS (
    SELECT s.gpu, s.operator, s.pass, s.dtype, list_sort(map_entries(s.shape)) AS key, median(s.target_ns) AS ns
    FROM {VIEW} AS s
    WHERE s.regime = 'steady' AND s.target_ns > 0 AND list_contains(?, s.operator)
    GROUP BY ALL
),
beside AS (
    SELECT
        s.labels['beside'] AS collective, s.gpu, s.operator, s.pass, s.dtype, list_sort(map_entries(s.shape)) AS key,
        median(s.target_ns) AS ns
    FROM {VIEW} AS s
    WHERE s.labels['beside'] IS NOT NULL AND s.target_ns > 0
    GROUP BY ALL
)
SELECT a.gpu, b.collective, median(b.ns / a.ns) AS slowdown, count(*) AS samples
FROM beside AS b
INNER JOIN alone AS a
    ON a.gpu = b.gpu AND a.operator = b.operator AND a.pass = b.pass AND a.dtype IS NOT DISTINCT FROM b.dtype
    AND a.key = b.key
GROUP BY ALL
HAVING count(*) >= ?
ORDER BY ALL
"""


def measured(connections: Iterable[duckdb.DuckDBPyConnection]) -> list[dict[str, Any]]:
    """Return a row for each GPU and collective: slowdown, and the number of shapes and passes it is the median of.

    A database tells of its own samples only; the one with most of them counts.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for connection in connections:
        for gpu, collective, slowdown, count in connection.execute(RATIOS, [list(PRODUCTS), FEWEST]).fetchall():
            row = {"gpu": gpu, "collective": collective, "slowdown": float(slowdown), "samples": int(count)}
            if count > found.get((gpu, collective), {"samples": 0})["samples"]:
                found[gpu, collective] = row
    return list(found.values())


def slowdown(facts: Any, gpu: str, collective: str) -> float | None:
    """Return the slowdown in the facts of a folder of models; None if it was not measured on this GPU."""
    rows = facts.get("beside", ())
    return next(
        (row["slowdown"] for row in rows if plain(row["gpu"]) == plain(gpu) and row["collective"] == collective), None
    )
