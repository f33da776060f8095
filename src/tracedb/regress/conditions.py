"""The state of the device that a model's times are for, and what another clock would do to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from tracedb.regress.work_model import PRODUCTS

STEADY = "steady"
LEAST_CLOCK_RATIO, FEWEST_PAIRS = 1.05, 5
"""How far apart two clocks must be to tell what the clock does, and how many shapes must have been sampled at both."""


class Sample(NamedTuple):
    """One measured shape; None where something was not recorded."""

    shape: Mapping[str, int]
    ns: float
    sm_count: int | None
    regime: str | None
    sm_clock_mhz: float | None
    memory_clock_mhz: float | None
    gpu_events: float | None
    gap_ns: float | None
    """Mean idle time between two of its GPU activities."""
    host_ns: float | None = None
    """Time of its range on the host, which launches it."""


@dataclass(frozen=True)
class Conditions:
    """The state of the device in the middle of the samples; None where it was not recorded."""

    regime: str | None = None
    """steady or rested."""
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    clock_share: float | None = None
    """Share of the time that scales with the SM clock; the rest scales with the memory clock."""
    gpu_events: float | None = None
    """Kernels, copies and memsets of one run."""
    gap_ns: float | None = None
    """Mean idle time between two of these, in ns."""
    host_ns: float | None = None
    """Time in which the host launches one run, with the profiler, in ns; of steady samples, whose host never waits."""

    def slowdown(self, sm_clock_mhz: float | None, memory_clock_mhz: float | None = None) -> float:
        """Return how many times as long a run takes at other clocks.

        The part that computes scales with the SM clock, the part that moves bytes with the memory clock. 1 for clocks
        that are not known, or if their effect was not measured.
        """
        if self.clock_share is None:
            return 1.0
        compute, moved = _ratio(self.sm_clock_mhz, sm_clock_mhz), _ratio(self.memory_clock_mhz, memory_clock_mhz)
        return self.clock_share * compute + (1 - self.clock_share) * moved

    def facts(self) -> dict[str, Any]:
        """Return what is known, for the description of a model."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def of_facts(cls, said: Mapping[str, Any]) -> Conditions:
        """Return the conditions in a model's description."""
        return cls(**{field.name: said[field.name] for field in fields(cls) if field.name in said})


def in_one_state(
    operator: str, everything: Sequence[Sample], product_share: float | None = None
) -> tuple[list[Sample], Conditions]:
    """Return the samples to learn from, at one clock as far as its effect is known, and the state they are for.

    These are the steady ones if there are any: a training step runs so. ``product_share``: see ``clock_share``.
    """
    samples = [sample for sample in everything if sample.regime == STEADY] or list(everything)
    regimes = {sample.regime for sample in samples}
    found = Conditions(
        regime=regimes.pop() if len(regimes) == 1 else None,
        sm_clock_mhz=_median([sample.sm_clock_mhz for sample in samples]),
        memory_clock_mhz=_median([sample.memory_clock_mhz for sample in samples]),
        clock_share=clock_share(operator, everything, product_share),
        gpu_events=_median([sample.gpu_events for sample in samples]),
        gap_ns=_median([sample.gap_ns for sample in samples]),
        host_ns=_median([sample.host_ns for sample in samples if sample.regime == STEADY]),
    )
    return [
        sample._replace(ns=sample.ns / found.slowdown(sample.sm_clock_mhz, sample.memory_clock_mhz))
        for sample in samples
    ], found


def clock_share(operator: str, samples: Sequence[Sample], product_share: float | None = None) -> float | None:
    """Return which share of the time scales with the SM clock; None if it is not known.

    It is learnt from shapes that were sampled at clocks far apart, as the median over these; None if there are too few.
    The share is that at the slower of the clocks, the steady one.
    That of a product cannot be learnt from a rested GPU, which a product drives to its power limit within the sample,
    while the clock that is read is still that of the idle GPU. It is ``product_share``, learnt from bursts; without
    these, all of a product scales with the clock.
    """
    if operator in PRODUCTS:
        return (
            (1.0 if product_share is None else product_share)
            if any(sample.sm_clock_mhz for sample in samples)
            else None
        )
    by_shape: dict[tuple[tuple[str, int], ...], list[tuple[float, float]]] = {}
    for sample in samples:
        if sample.sm_clock_mhz:
            by_shape.setdefault(tuple(sorted(sample.shape.items())), []).append((sample.sm_clock_mhz, sample.ns))
    shares = []
    for group in by_shape.values():
        (slow, long), (fast, short) = min(group), max(group)
        if fast / slow >= LEAST_CLOCK_RATIO:
            shares.append((1 - short / long) / (1 - slow / fast))
    return float(np.clip(np.median(shares), 0.0, 1.0)) if len(shares) >= FEWEST_PAIRS else None


def _ratio(known: float | None, wanted: float | None) -> float:
    return known / wanted if known and wanted else 1.0


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None
