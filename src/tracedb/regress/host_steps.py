"""How long the host takes in a training step, Python included: from whole models that ``tracedb sample`` trained.

Each model was timed with several numbers of layers; the difference is what a layer takes, the rest what a step takes.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tracedb.regress.model_folder import plain
from tracedb.regress.operator_energy import fetched

if TYPE_CHECKING:
    import duckdb

PASSES = ("zero_grad", "forward", "backward", "optimizer")
ROWS = """
SELECT
    b.gpu, b.operator, b.dtype, coalesce(b.shape['recompute'], 0) > 0 AS is_recomputed,
    b.shape['layers']::BIGINT AS layers, b.pass, b.host_ns::DOUBLE AS host_ns
FROM v1._operator_burst AS b
WHERE b.host_ns > 0 AND b.gpu IS NOT NULL AND list_contains(?, b.pass) AND b.shape['layers'] IS NOT NULL
ORDER BY ALL
"""
LEADS = """
WITH models AS (
    SELECT DISTINCT b.capture_id, b.gpu, b.operator, b.dtype FROM v1._operator_burst AS b WHERE b.pass = 'optimizer'
),
steps AS (
    SELECT
        m.gpu, m.operator, m.dtype,
        (min(l.start_ns) - r.start_ns) / (r.end_ns - r.start_ns) AS lead
    FROM models AS m
    INNER JOIN main.annotation AS a ON a.capture_id = m.capture_id AND starts_with(a.name, 'host|')
    -- The warm-ups before it make the optimizer's state.
    INNER JOIN v1._optimizer_range AS r
        ON r.capture_id = m.capture_id AND r.start_ns BETWEEN a.start_ns AND a.start_ns + a.duration_ns
    INNER JOIN main.launch AS l
        ON l.capture_id = r.capture_id AND l.start_ns BETWEEN r.start_ns AND r.end_ns
        AND l.thread_id IS NOT DISTINCT FROM r.thread_id
    INNER JOIN main.kernel_event AS e ON e.capture_id = l.capture_id AND e.launch_id = l.launch_id
    WHERE r.end_ns > r.start_ns
    GROUP BY m.gpu, m.operator, m.dtype, m.capture_id, r.process_id, r.thread_id, r.start_ns, r.end_ns
)
SELECT s.gpu, s.operator, s.dtype, median(s.lead) FROM steps AS s GROUP BY ALL ORDER BY ALL
"""
LOW, HIGH = 0.05, 0.95
"""Quantiles of the host's speed, over the rounds of all models: it varies over seconds."""


_Times = defaultdict[tuple[str, str, str, bool], defaultdict[tuple[int, str], list[float]]]
"""GPU, operator, element type and recomputation → layers and pass → times of the rounds."""


class HostStep(NamedTuple):
    """The host's time in a step of one kind of layer, in ns by pass (``PASSES``)."""

    per_step: Mapping[str, float]
    per_layer: Mapping[str, float]
    low: float
    high: float
    """How fast and how slow the host is at times, as a multiple of its mean time."""
    lead: float
    """Share of the optimizer's time before its first launch."""

    def total(self, pass_: str, layers: int) -> float:
        """Return the time in a pass of a model with so many layers."""
        return self.per_step[pass_] + layers * self.per_layer[pass_]


def measured(connections: Sequence[duckdb.DuckDBPyConnection]) -> list[dict[str, Any]]:
    """Return a row for each model, with and without recomputation, that was timed with several numbers of layers."""
    leads = {row[:3]: row[3] for row in fetched(connections, LEADS)}
    times: _Times = defaultdict(lambda: defaultdict(list))
    for *key, layers, pass_, host_ns in fetched(connections, ROWS, [list(PASSES)]):
        times[tuple(key)][layers, pass_].append(host_ns)
    spread = _spread(times)
    found = []
    for (gpu, operator, dtype, is_recomputed), by in sorted(times.items()):
        numbers = sorted({layers for layers, _ in by})
        if len(numbers) < 2 or any((layers, name) not in by for layers in numbers for name in PASSES):
            continue
        means = {name: [statistics.fmean(by[layers, name]) for layers in numbers] for name in PASSES}
        lines = {name: _line(numbers, means[name]) for name in PASSES}
        whole = sum(means[name][-1] for name in PASSES)
        low, high = (sum(spread[gpu, dtype, name][end] * means[name][-1] for name in PASSES) / whole for end in (0, 1))
        found.append(
            {
                "gpu": gpu, "operator": operator, "dtype": dtype, "is_recomputed": is_recomputed,
                "per_step_ns": {name: line[0] for name, line in lines.items()},
                "per_layer_ns": {name: line[1] for name, line in lines.items()},
                "low": min(low, 1.0), "high": max(high, 1.0), "lead": leads.get((gpu, operator, dtype)) or 0.0,
                "rounds": min(len(by[numbers[-1], name]) for name in PASSES),
            }
        )  # fmt: skip
    return found


def _spread(times: _Times) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Return how far the rounds of a GPU's host, an element type and a pass lie from the mean of their model."""
    found: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    for (gpu, _, dtype, _), by in times.items():
        for (_, name), values in by.items():
            found[gpu, dtype, name] += [value / statistics.fmean(values) for value in values]
    return {key: (float(np.quantile(values, LOW)), float(np.quantile(values, HIGH))) for key, values in found.items()}


def _line(layers: Sequence[int], times: Sequence[float]) -> tuple[float, float]:
    """Return the time of a step without layers and that of a layer; neither is negative."""
    slope = max((times[-1] - times[0]) / (layers[-1] - layers[0]), 0.0)
    return max(times[0] - slope * layers[0], 0.0), slope


def of(facts: Mapping[str, Any], gpu: str, dtype: str) -> dict[tuple[str, bool], HostStep]:
    """Return what the facts of a folder of models say of this GPU's host: by operator, and whether it recomputes."""
    rows: Iterable[Mapping[str, Any]] = facts.get("host_steps", ())
    return {
        (row["operator"], bool(row["is_recomputed"])): HostStep(
            row["per_step_ns"], row["per_layer_ns"], float(row["low"]), float(row["high"]), float(row["lead"])
        )
        for row in rows
        if plain(row["gpu"]) == plain(gpu) and row["dtype"] == dtype
    }
