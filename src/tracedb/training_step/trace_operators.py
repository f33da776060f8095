"""The content of a trace by framework operator: kernel time by operator, shapes, element type and direction."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracedb.errors import NotCaptured

if TYPE_CHECKING:
    import duckdb

QUERY = """
WITH RECURSIVE own AS (
    SELECT
        k.capture_id, k.op_id, count(*) AS kernels, sum(k.duration_ns) AS total_ns,
        bool_or(k.event_id IN (
            SELECT c.event_id FROM v1._collective_event AS c WHERE c.capture_id = $capture
        )) AS is_collective
    FROM main.kernel_event AS k
    WHERE
        k.capture_id = $capture AND k.time_fault IS NULL
        AND ($collectives OR k.event_id NOT IN (
            SELECT c.event_id FROM v1._collective_event AS c WHERE c.capture_id = $capture
        ))
    GROUP BY ALL
),
up AS (
    SELECT w.op_id AS leaf, o.name AS leaf_name, o.name, o.parent_op_id
    FROM own AS w INNER JOIN main.op AS o ON o.capture_id = w.capture_id AND o.op_id = w.op_id
    UNION ALL
    SELECT u.leaf, u.leaf_name, p.name, p.parent_op_id
    FROM up AS u INNER JOIN main.op AS p ON p.capture_id = $capture AND p.op_id = u.parent_op_id
),
directions AS (
    -- Within a backward pass, a linear layer is a forward that is run again, since gradients are plain products; and so
    -- is whatever else runs within the gradient of a product, whose inputs a checkpoint then computes again.
    SELECT
        u.leaf,
        bool_or(u.name LIKE 'autograd::%' OR u.name LIKE '%Backward0')
        AND NOT bool_or(u.name = 'aten::linear' OR (u.name = 'MmBackward0' AND u.leaf_name <> 'aten::mm'))
            AS is_backward
    FROM up AS u GROUP BY u.leaf
)
SELECT
    coalesce(o.name, ''), coalesce(o.input_dims, ''), coalesce(d.is_backward, false), y.dtype,
    CASE
        WHEN w.is_collective THEN 'comm'
        WHEN z.end_ns >= o.start_ns THEN 'step'
        WHEN d.is_backward THEN 'bwd'
        ELSE 'fwd'
    END AS pass,
    count(*), sum(w.kernels)::BIGINT, sum(w.total_ns)::BIGINT
FROM own AS w
LEFT JOIN main.op AS o ON o.capture_id = w.capture_id AND o.op_id = w.op_id
LEFT JOIN directions AS d ON d.leaf = w.op_id
LEFT JOIN v1._element_type AS y ON y.input_types = o.input_types
ASOF LEFT JOIN v1._optimizer_range AS z
    ON z.capture_id = o.capture_id AND z.process_id IS NOT DISTINCT FROM o.process_id
    AND z.thread_id IS NOT DISTINCT FROM o.thread_id AND z.start_ns <= o.start_ns
GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True)
class Recorded:
    """All calls of one operator with the same input shapes and element type in one direction."""

    name: str
    dims: tuple[tuple[int, ...], ...]
    is_backward: bool
    dtype: str | None
    """Element type; None if it was not recorded."""
    pass_: str
    """comm, step (inside the optimizer), bwd or fwd, as in the view ``operator_calls``."""
    calls: int
    kernels: int
    total_ns: int


def operators(connection: duckdb.DuckDBPyConnection, capture_id: int, *, collectives: bool = True) -> list[Recorded]:
    """Return the GPU time of a capture by operator, with or without collectives.

    Raises ``NotCaptured`` if no operator launched any.
    """
    rows = connection.execute(QUERY, {"capture": capture_id, "collectives": collectives}).fetchall()
    found = [Recorded(name, _dims(dims), backward, *rest) for name, dims, backward, *rest in rows]
    if not any(item.name for item in found):
        raise NotCaptured(
            "no operator of the trace launched GPU work; record it with the CPU activity and record_shapes"
        )
    return found


def _dims(text: str) -> tuple[tuple[int, ...], ...]:
    """Return the input shapes; a list of tensors is flattened."""
    if not text:
        return ()
    flat: list[tuple[int, ...]] = []
    for item in json.loads(text):
        if item and isinstance(item[0], list):
            flat += [tuple(member) for member in item]
        else:
            flat.append(tuple(item))
    return tuple(flat)
