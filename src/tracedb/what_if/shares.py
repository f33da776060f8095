"""How ranks share work out: the same for all, or pipeline stages and experts, whose shares may be uneven."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import duckdb
import numpy as np

from tracedb.what_if.capture_model import CaptureModel

UNEVEN = 1.02
"""Tokens of the largest share of experts over the mean, above which shares count as uneven."""


class Shares(Enum):
    """What ranks that are equal would have to do."""

    SAME = "same"
    """All do the same, and a slower rank is late."""
    STAGES = "stages"
    """Each computes for the others and sends them messages, as stages of a pipeline do: equal ones take the mean."""
    EXPERTS = "experts"
    """Each has experts with other numbers of tokens: equal ones take the mean."""


def read(connection: duckdb.DuckDBPyConnection, captures: Sequence[int], has_messages: bool) -> Shares:
    """Return how the ranks share work out."""
    if has_messages:
        return Shares.STAGES
    tokens = [elements for (elements,) in connection.execute(RECEIVED, [list(captures)]).fetchall()]
    is_uneven = len(tokens) > 1 and max(tokens) * len(tokens) > UNEVEN * sum(tokens)
    return Shares.EXPERTS if is_uneven else Shares.SAME


def factors(models: Sequence[CaptureModel]) -> list[float]:
    """Return for each rank by what its work has to be scaled for all stages to compute equally long."""
    own = []
    for model in models:
        gpu = model.graph.recorded.gpu
        inside = (gpu.start >= model.span.begin) & (gpu.start < model.span.end) & ~model.is_collective
        own.append(int((gpu.end - gpu.start)[inside].sum()))
    return [float(np.mean(own)) / time if time else 1.0 for time in own]


RECEIVED = """
SELECT sum(e.message_out_elements)::BIGINT AS elements
FROM main.kernel_event AS e
WHERE list_contains(?::BIGINT[], e.capture_id) AND replace(e.collective, '_', '') LIKE 'alltoall%'
    AND e.message_out_elements IS NOT NULL
GROUP BY e.capture_id
ORDER BY e.capture_id
"""
"""Elements that each rank receives in all-to-all calls."""
