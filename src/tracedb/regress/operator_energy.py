"""The energy of operators, and the clock at which work meets the power limit: from bursts of ``tracedb sample``.

A device that only spins draws a power of its own; what an operator draws beyond it, times the length of a call, is the
energy of the call. It is proportional to the FLOPs and the bytes of a shape, and grows with the clock, since a higher
clock needs a higher voltage: as a power of the clock, which is learnt from operators that were repeated at two clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tracedb.errors import UsageError
from tracedb.regress.model_folder import plain
from tracedb.regress.work_model import PRODUCTS, completed, work

if TYPE_CHECKING:
    import duckdb

ROWS = """
SELECT
    b.gpu, b.operator, b.pass, b.dtype, b.shape, b.energy_j, b.is_diluted, b.sm_clock_mhz, b.spin_power_w,
    b.power_limit_w, b.sm_clock_limit_mhz
FROM v1._operator_burst AS b
-- Less is the noise of the readings: the device did next to nothing.
WHERE b.energy_j > 0.1 * b.whole_energy_j AND b.sm_clock_mhz > 0 AND b.gpu IS NOT NULL
ORDER BY ALL
"""
PAIRS = """
SELECT a.gpu, a.operator, a.sm_clock_mhz, b.sm_clock_mhz, a.call_ns, b.call_ns
FROM v1._operator_burst AS a
INNER JOIN v1._operator_burst AS b
    ON b.capture_id = a.capture_id AND b.operator = a.operator AND b.pass = a.pass AND b.shape = a.shape
    AND b.is_diluted AND NOT a.is_diluted
WHERE a.sm_clock_mhz > 0 AND b.sm_clock_mhz >= ? * a.sm_clock_mhz AND a.call_ns > 0 AND b.call_ns > 0
    AND a.gpu IS NOT NULL AND list_contains(?, a.operator)
ORDER BY ALL
"""
LEAST_CLOCK_RATIO, FEWEST_PAIRS = 1.04, 3
"""How far apart two clocks must be to tell what the clock does to the energy, and how many operators must tell it."""
LARGEST_POWER = 4.0
"""Of the clock that the energy may be proportional to; beyond it, the readings are noise."""


class Row(NamedTuple):
    """One burst. ``energy_j``: of a call, beyond what the device draws when it spins."""

    gpu: str
    operator: str
    pass_: str
    dtype: str
    shape: Mapping[str, int]
    energy_j: float
    is_diluted: bool
    sm_clock_mhz: float
    spin_power_w: float
    power_limit_w: float | None
    sm_clock_limit_mhz: float | None


def measured(connections: Iterable[duckdb.DuckDBPyConnection]) -> list[dict[str, Any]]:
    """Return a row for each GPU of the databases: its limits, the effect of the clock, and the energy of operators."""
    rows = [Row(*row) for row in fetched(connections, ROWS)]
    return [found for gpu in sorted({row.gpu for row in rows}) if (found := _of_gpu([r for r in rows if r.gpu == gpu]))]


def product_shares(connections: Iterable[duckdb.DuckDBPyConnection]) -> dict[str, float]:
    """Return which share of a product's time scales with the SM clock, by GPU: median over those at two clocks.

    A product that is repeated alone meets the power limit; one that is diluted does not, and runs at a higher clock.
    The share is that at the lower clock.
    """
    found: dict[str, list[float]] = {}
    for gpu, _, low, high, long, short in fetched(connections, PAIRS, [LEAST_CLOCK_RATIO, list(PRODUCTS)]):
        found.setdefault(gpu, []).append((1 - short / long) / (1 - low / high))
    return {
        gpu: float(np.clip(np.median(shares), 0, 1)) for gpu, shares in found.items() if len(shares) >= FEWEST_PAIRS
    }


def fetched(
    connections: Iterable[duckdb.DuckDBPyConnection], query: str, values: Sequence[object] = ()
) -> list[tuple[Any, ...]]:
    """Return the rows of all databases; none of one whose views are of a tracedb without bursts."""
    import duckdb

    rows = []
    for connection in connections:
        try:
            rows += connection.execute(query, list(values)).fetchall()
        except (duckdb.BinderException, duckdb.CatalogException):
            continue
    return rows


def _of_gpu(rows: Sequence[Row]) -> dict[str, Any] | None:
    """Return what bursts tell of their GPU; None if a limit is not known, or if none was repeated at two clocks."""
    limits = [row.power_limit_w for row in rows if row.power_limit_w]
    highest = [row.sm_clock_limit_mhz for row in rows if row.sm_clock_limit_mhz]
    power = _clock_power(rows)
    if not limits or not highest or power is None:
        return None
    top = float(max(highest))
    found: dict[tuple[str, str, str], list[tuple[float, float, float]]] = {}
    for row in rows:
        flops, moved = _work(row)
        energy = row.energy_j * (top / row.sm_clock_mhz) ** power
        found.setdefault((row.operator, row.pass_, row.dtype), []).append((flops, moved, energy))
    return {
        "gpu": rows[0].gpu,
        "power_limit_w": float(np.median(limits)),
        "spin_power_w": float(np.median([row.spin_power_w for row in rows])),
        "sm_clock_limit_mhz": top,
        "clock_power": power,
        "bursts": len(rows),
        "any": list(_rates([item for items in found.values() for item in items])),
        "operators": [
            {"operator": operator, "pass": pass_, "dtype": dtype, "rates": list(_rates(items))}
            for (operator, pass_, dtype), items in sorted(found.items())
        ],
    }


def _clock_power(rows: Sequence[Row]) -> float | None:
    """Return to which power of the clock energy is proportional: the median over operators repeated at two clocks."""
    pairs: dict[object, dict[bool, Row]] = {}
    for row in rows:
        key = (row.operator, row.pass_, row.dtype, tuple(sorted(row.shape.items())))
        pairs.setdefault(key, {})[row.is_diluted] = row
    found = [
        np.log(both[True].energy_j / both[False].energy_j) / np.log(both[True].sm_clock_mhz / both[False].sm_clock_mhz)
        for both in pairs.values()
        if len(both) == 2 and both[True].sm_clock_mhz >= LEAST_CLOCK_RATIO * both[False].sm_clock_mhz
    ]
    return float(np.clip(np.median(found), 0, LARGEST_POWER)) if len(found) >= FEWEST_PAIRS else None


def _work(row: Row) -> tuple[float, float]:
    shape = completed(row.operator, row.shape, row.shape.keys()) or row.shape
    return work(row.operator, row.pass_, row.dtype, shape)


def _rates(items: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Return J per FLOP and J per byte, neither negative, with the least relative errors."""
    amounts = np.array([[flops, moved] for flops, moved, _ in items])
    energies = np.array([energy for *_, energy in items])
    relative = amounts / energies[:, None]
    best = (np.inf, 0.0, 0.0)
    for kept in ((0, 1), (0,), (1,)):
        used = relative[:, list(kept)]
        scale = np.maximum(np.abs(used).max(axis=0), 1e-300)
        rates, *_ = np.linalg.lstsq(used / scale, np.ones(len(items)), rcond=1e-6)
        rates = rates / scale
        if (rates < 0).any():
            continue
        error = float(np.sum((used @ rates - 1) ** 2))
        if error < best[0] - 1e-12:
            both = dict(zip(kept, rates, strict=True))
            best = (error, float(both.get(0, 0.0)), float(both.get(1, 0.0)))
    return best[1], best[2]


@dataclass(frozen=True)
class Card:
    """The energy of operators on one GPU, and its limits."""

    power_limit_w: float
    spin_power_w: float
    sm_clock_limit_mhz: float
    clock_power: float
    known: Mapping[tuple[str, str, str], tuple[float, float]]
    other: tuple[float, float]

    def joules(self, operator: str, pass_: str, dtype: str, shape: Mapping[str, int]) -> float:
        """Return the energy of a call at the highest clock, beyond what the device draws when it spins.

        Raises ``UsageError`` if the work of the operator is not known.
        """
        by_flops, by_bytes = self.known.get((operator, pass_, dtype), self.other)
        try:
            flops, moved = work(operator, pass_, dtype, shape)
        except KeyError as error:
            raise UsageError(f"the work of {operator} needs {error}") from error
        return by_flops * flops + by_bytes * moved

    def clock(self, time_ns: Callable[[float], float], joules: float) -> float:
        """Return the SM clock in MHz at which work draws as much as the limit; the highest if it never does.

        ``time_ns``: function from the clock to the time that the work takes; ``joules``: its energy at the highest.
        """
        low, high = self.sm_clock_limit_mhz / 4, self.sm_clock_limit_mhz

        def power(clock: float) -> float:
            drawn = joules * (clock / self.sm_clock_limit_mhz) ** self.clock_power
            return float(self.spin_power_w + drawn / (time_ns(clock) / 1e9))

        if power(high) <= self.power_limit_w:
            return high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if power(middle) > self.power_limit_w else (middle, high)
        return low


def card(facts: Mapping[str, Any], gpu: str) -> Card | None:
    """Return what the facts of a folder of models say of this GPU's energy; None if it was not measured."""
    for row in facts.get("energy", ()):
        if plain(row["gpu"]) == plain(gpu):
            known = {(o["operator"], o["pass"], o["dtype"]): (o["rates"][0], o["rates"][1]) for o in row["operators"]}
            return Card(
                row["power_limit_w"], row["spin_power_w"], row["sm_clock_limit_mhz"], row["clock_power"], known,
                (row["any"][0], row["any"][1]),
            )  # fmt: skip
    return None
