"""How much longer an operator takes while a collective runs: samples of ``tracedb sample --beside``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tracedb.regress.dataset import VIEW
from tracedb.regress.model_folder import plain
from tracedb.regress.work_model import PRODUCTS

if TYPE_CHECKING:
    import duckdb

FEWEST, FEWEST_OF_ONE = 5, 3
"""Shapes that must have been sampled both ways: of all products, and of one operator and pass."""
PAIRS = f"""
WITH alone AS (
    SELECT s.gpu, s.operator, s.pass, s.dtype, list_sort(map_entries(s.shape)) AS key, median(s.target_ns) AS ns
    FROM {VIEW} AS s
    WHERE s.regime = 'steady' AND s.pass <> 'comm' AND s.target_ns > 0
    GROUP BY ALL
),
beside AS (
    SELECT
        s.labels['beside'] AS collective, s.gpu, s.operator, s.pass, s.dtype,
        list_sort(map_entries(s.shape)) AS key, median(s.target_ns) AS ns
    FROM {VIEW} AS s
    WHERE s.labels['beside'] IS NOT NULL AND s.target_ns > 0
    GROUP BY ALL
),
-- How long a collective runs beside each pass: a long one outlasts it.
shared AS (
    SELECT
        r.operator, r.pass, list_sort(map_entries(r.shape)) AS key, r.capture_id, r.annotation_id,
        sum(
            least(e.start_ns + e.duration_ns, n.start_ns + n.duration_ns) - greatest(e.start_ns, n.start_ns)
        ) AS shared_ns
    FROM main.capture AS c
    INNER JOIN v1._sample_range AS r ON r.capture_id = c.capture_id
    INNER JOIN main.annotation_kernel AS x
        ON x.capture_id = r.capture_id AND x.annotation_id = r.annotation_id AND x.rule = 'process'
    INNER JOIN main.kernel_event AS e ON e.capture_id = x.capture_id AND e.event_id = x.event_id
    INNER JOIN main.kernel_event AS n
        ON n.capture_id = e.capture_id AND n.collective IS NOT NULL AND e.collective IS NULL
        AND n.start_ns < e.start_ns + e.duration_ns AND n.start_ns + n.duration_ns > e.start_ns
    WHERE c.labels['beside'] IS NOT NULL
    GROUP BY ALL
),
sharing AS (
    SELECT s.operator, s.pass, s.key, median(s.shared_ns) AS shared_ns
    FROM shared AS s
    GROUP BY s.operator, s.pass, s.key
),
pairs AS (
    SELECT
        a.gpu, b.collective, b.operator, b.pass,
        coalesce(o.shared_ns, b.ns) AS shared_ns,
        coalesce(o.shared_ns, b.ns) / (
            coalesce(o.shared_ns, b.ns) - least(b.ns - a.ns, 0.9 * coalesce(o.shared_ns, b.ns))
        ) AS slowdown
    FROM beside AS b
    INNER JOIN alone AS a
        ON a.gpu = b.gpu AND a.operator = b.operator AND a.pass = b.pass AND a.dtype IS NOT DISTINCT FROM b.dtype
        AND a.key = b.key
    LEFT JOIN sharing AS o ON o.operator = b.operator AND o.pass = b.pass AND o.key = b.key
)
"""
RATIOS = f"""{PAIRS}
SELECT p.gpu, p.collective, median(p.slowdown) AS slowdown, count(*) AS samples
FROM pairs AS p
WHERE p.shared_ns > 0 AND p.pass = 'bwd' AND list_contains(?, p.operator)
GROUP BY ALL
HAVING count(*) >= ?
ORDER BY ALL
"""
BY_OPERATOR = f"""{PAIRS}
SELECT p.gpu, p.collective, p.operator, p.pass, median(p.slowdown) AS slowdown, count(*) AS samples
FROM pairs AS p
WHERE p.shared_ns > 0
GROUP BY ALL
HAVING count(*) >= ?
ORDER BY ALL
"""
TRANSFERS = """
SELECT c.labels['beside'] AS collective, d.name, median(m.message_elements)::BIGINT, median(m.latency_ns)
FROM v1._collective_member AS m
INNER JOIN main.capture AS c ON c.capture_id = m.capture_id
INNER JOIN main.device AS d ON d.capture_id = c.capture_id
WHERE c.labels['beside'] = m.collective AND m.ranks > 1
GROUP BY ALL
ORDER BY ALL
"""


def measured(connections: Iterable[duckdb.DuckDBPyConnection]) -> list[dict[str, Any]]:
    """Return a row for each GPU and collective: slowdown of a product while it runs, and of how many it is the median.

    Only backward passes count, beside which gradients are summed up. ``operators`` has the slowdown of each operator
    and pass that was sampled often enough. ``elements`` and ``transfer_ns`` are those of the
    collective, which is slower itself beside computation. A database tells of its own samples only; the one with most
    of them counts.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for connection in connections:
        for gpu, collective, slowdown, count in connection.execute(RATIOS, [list(PRODUCTS), FEWEST]).fetchall():
            row = {"gpu": gpu, "collective": collective, "slowdown": float(slowdown), "samples": int(count)}
            operators = [
                {"operator": operator, "pass": pass_, "slowdown": float(factor), "samples": int(samples)}
                for gpu_, collective_, operator, pass_, factor, samples in connection.execute(
                    BY_OPERATOR, [FEWEST_OF_ONE]
                ).fetchall()
                if (gpu_, collective_) == (gpu, collective)
            ]
            row |= {"operators": operators} if operators else {}
            for collective_, name, elements, transfer in connection.execute(TRANSFERS).fetchall():
                if (collective_, name) == (collective, gpu) and elements and transfer:
                    row |= {"elements": int(elements), "transfer_ns": float(transfer)}
            if count > found.get((gpu, collective), {"samples": 0})["samples"]:
                found[gpu, collective] = row
    return list(found.values())


def of(facts: Any, gpu: str, collective: str) -> dict[str, Any] | None:
    """Return what the facts of a folder of models say of this GPU beside a collective; None if it was not measured."""
    rows = facts.get("beside", ())
    return next((row for row in rows if plain(row["gpu"]) == plain(gpu) and row["collective"] == collective), None)
