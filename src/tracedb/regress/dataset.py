"""The training table: rows of the view ``operator_samples``, by target. Nothing else of the database is read."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracedb.errors import NotCaptured, TracedbError
from tracedb.regress import operator_energy
from tracedb.regress.conditions import Conditions, Sample, in_one_state
from tracedb.regress.features import multiprocessors
from tracedb.regress.model import Target
from tracedb.regress.work_model import completed

if TYPE_CHECKING:
    import duckdb

VIEW = "v1.operator_samples"
ROWS = f"""
SELECT
    s.gpu, s.operator, s.pass, s.dtype,
    s.shape, s.target_ns, s.sm_count, s.regime, s.sm_clock_mhz, s.memory_clock_mhz, s.gpu_events,
    CASE WHEN s.gpu_events > 1 THEN (s.span_median_ns - s.busy_median_ns) / (s.gpu_events - 1) END AS gap_ns,
    s.range_median_ns
FROM {VIEW} AS s
WHERE s.target_ns > 0 AND s.labels['beside'] IS NULL
ORDER BY s.gpu, s.operator, s.pass, s.dtype, list_sort(map_entries(s.shape)), s.target_ns, s.regime
"""


@dataclass
class Table:
    """The samples of one target; all shapes have the same parameters, in the same order."""

    target: Target
    sm_count: int
    shapes: list[dict[str, int]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    left_out: int = 0
    """Number of samples dropped because their parameters differ from most."""
    conditions: Conditions = field(default_factory=Conditions)
    """The state of the device that the times are for."""

    @property
    def target_ns(self) -> NDArray[np.float64]:
        """The times as an array, in ns."""
        return np.array(self.times)

    def digest(self) -> str:
        """Return the SHA-256 of the samples."""
        text = "\n".join(
            f"{sorted(shape.items())} {time!r}" for shape, time in zip(self.shapes, self.times, strict=True)
        )
        return hashlib.sha256(text.encode()).hexdigest()


def tables(*connections: duckdb.DuckDBPyConnection) -> list[Table]:
    """Return the samples of one or several databases by target. Raises ``NotCaptured`` if there are none."""
    rows = [row for connection in connections for row in _rows(connection)]
    if not rows:
        raise NotCaptured(
            "no sampled operators with a measured time on a GPU (samples of the CPU have none): no range is named "
            "fwd|OPERATOR|key=value|… (or bwd, step, comm); `tracedb sample` records some"
        )
    found: dict[Target, list[Sample]] = {}
    for gpu, operator, pass_, dtype, shape, time, *state in rows:
        target = Target(gpu or "unknown", operator, pass_, dtype)
        found.setdefault(target, []).append(Sample(shape, float(time), *state))
    shares = operator_energy.product_shares(connections)
    return [_of_samples(target, samples, shares.get(target.gpu)) for target, samples in found.items()]


def _rows(connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """Return the rows of the view; raises ``TracedbError`` if the file's views are of a tracedb without its columns."""
    import duckdb

    try:
        return connection.execute(ROWS).fetchall()
    except (duckdb.BinderException, duckdb.CatalogException) as error:
        raise TracedbError(
            f"{VIEW} of the database lacks columns: its views are of another tracedb; any command that writes, such as "
            "`tracedb ingest`, brings them up to date"
        ) from error


def _of_samples(target: Target, everything: list[Sample], product_share: float | None) -> Table:
    samples, conditions = in_one_state(target.operator, everything, product_share)
    table = tabulated(target, [(sample.shape, sample.ns, sample.sm_count) for sample in samples])
    table.conditions = conditions
    return table


def tabulated(target: Target, samples: list[tuple[Mapping[str, int], float, int | None]]) -> Table:
    """Return the training table of a target from its shapes, times in ns and multiprocessors.

    What some sweeps leave out, since it follows from the other parameters, is filled in: heads of key and value if they
    are those of the query. Samples whose parameters still differ from most are left out, and counted.
    """
    every = set().union(*(shape for shape, _, _ in samples))
    samples = [(completed(target.operator, shape, every) or shape, time, count) for shape, time, count in samples]
    ((names, _),) = Counter(tuple(sorted(shape)) for shape, _, _ in samples).most_common(1)
    order = next(tuple(shape) for shape, _, _ in samples if tuple(sorted(shape)) == names)
    recorded = next((count for _, _, count in samples if count), None)
    table = Table(target, multiprocessors(target.gpu, recorded))
    for shape, time, _ in samples:
        if tuple(sorted(shape)) == names and min(shape.values(), default=1) >= 1:
            table.shapes.append({name: shape[name] for name in order})
            table.times.append(time)
        else:
            table.left_out += 1
    return table
