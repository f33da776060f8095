"""How long the host takes to launch an operator: from the bursts of ``tracedb sample``, without a profiler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tracedb.regress.model_folder import plain
from tracedb.regress.operator_energy import fetched

if TYPE_CHECKING:
    import duckdb

ROWS = """
SELECT
    b.gpu, b.operator, b.pass, b.dtype,
    median(b.host_ns / coalesce(b.shape['encoders'], 1)) AS host_ns,
    bool_or(b.is_synchronous) AS is_synchronous
FROM v1._operator_burst AS b
WHERE b.host_ns > 0 AND b.gpu IS NOT NULL AND b.pass IN ('fwd', 'bwd', 'step')
GROUP BY ALL
ORDER BY ALL
"""


class Launch(NamedTuple):
    """The host's part in a call of an operator; of an optimizer, in the update of one layer's weights."""

    host_ns: float
    is_synchronous: bool
    """Whether the host waits for the device within the call; ``host_ns`` is then that on an idle device."""


def measured(connections: Iterable[duckdb.DuckDBPyConnection]) -> list[dict[str, Any]]:
    """Return a row for each operator, pass and element type of a GPU whose launching was timed."""
    keys = ("gpu", "operator", "pass", "dtype", "host_ns", "is_synchronous")
    return list({row[:4]: dict(zip(keys, row, strict=True)) for row in fetched(connections, ROWS)}.values())


def of(facts: Mapping[str, Any], gpu: str, dtype: str) -> dict[tuple[str, str], Launch]:
    """Return what the facts of a folder of models say of launching beside this GPU: by operator and pass."""
    return {
        (row["operator"], row["pass"]): Launch(float(row["host_ns"]), bool(row["is_synchronous"]))
        for row in facts.get("launching", ())
        if plain(row["gpu"]) == plain(gpu) and row["dtype"] == dtype
    }
