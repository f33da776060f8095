"""A model of one target: GPU, operator, pass and element type; its trend, residual, interval and guard."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracedb.regress import learners, trend
from tracedb.regress.conditions import Conditions
from tracedb.regress.features import features
from tracedb.regress.monotonic import Guard
from tracedb.regress.work_model import problem

Array = NDArray[np.float64]
Shape = Mapping[str, int]

COVERAGE = 0.90
"""Share of new measurements that the interval should contain."""
SMALLEST_SPREAD = 0.003
"""Below this, in log time, clocks and cards differ more than shapes do."""
SHORTEST_NS = 1_000.0
"""An extrapolated time is not shorter than this, or than the shortest sample: a kernel that does nothing takes about a
microsecond."""


@dataclass(frozen=True)
class Target:
    """The operator, pass, element type and GPU that a model predicts."""

    gpu: str
    operator: str
    pass_: str
    dtype: str | None

    def __str__(self) -> str:
        return f"{self.operator} {self.pass_} {self.dtype or 'of unknown element type'} on {self.gpu}"


@dataclass(frozen=True)
class Prediction:
    """A predicted time and its interval, in ns."""

    predicted_ns: float
    low_ns: float
    high_ns: float
    outside: tuple[str, ...] = ()
    """Parameters of the shape that lie beyond the samples: the time is extrapolated, and its interval a guess."""


def predictions(middle: Array, half: Array, outside: Sequence[tuple[str, ...]]) -> list[Prediction]:
    """Return predictions from their logarithms, half widths of the intervals, and parameters beyond the samples."""
    times = np.exp([middle, middle - half, middle + half])
    return [
        Prediction(float(ns), float(low), float(high), names)
        for ns, low, high, names in zip(*times, outside, strict=True)
    ]


@dataclass
class Model:
    """A fitted model. ``kept``: mask of feature columns that vary among the samples. ``quantile``: the interval's half
    width in spreads."""

    target: Target
    parameters: tuple[str, ...]
    sm_count: int
    learner: str
    rates: Array
    kept: NDArray[np.bool_]
    learned: learners.Learned
    quantile: float
    guard: Guard
    facts: dict[str, Any] = field(default_factory=dict)

    def predict(self, shapes: Sequence[Shape]) -> list[Prediction]:
        """Return the prediction at each shape; shapes have the parameters of the samples."""
        ordered = [{name: shape[name] for name in self.parameters} for shape in shapes]
        operator, pass_ = self.target.operator, self.target.pass_
        found = features(operator, pass_, ordered, self.sm_count)
        along = np.log(trend.amounts(problem(operator, pass_, ordered)) @ self.rates)
        mean, spread = self.learned.predict(found.values[:, self.kept])
        middle = self.guard.within(found.values[:, : found.base], along + mean)
        beyond = [self.beyond(shape) for shape in ordered]
        middle = np.where([bool(item) for item in beyond], np.maximum(middle, self._shortest), middle)
        half = self.quantile * np.maximum(spread, SMALLEST_SPREAD) * [1 + sum(item.values()) for item in beyond]
        return predictions(middle, half, [tuple(item) for item in beyond])

    @property
    def _shortest(self) -> float:
        """The logarithm of the time that no extrapolation goes below."""
        return min(float(self.guard.times.min()), math.log(SHORTEST_NS))

    @property
    def conditions(self) -> Conditions:
        """The state of the device that the times are for."""
        return Conditions.of_facts(self.facts.get("conditions", {}))

    def outside(self, shape: Shape) -> list[str]:
        """Return the parameters of a shape that are beyond those of the samples."""
        return list(self.beyond(shape))

    def beyond(self, shape: Shape) -> dict[str, float]:
        """Return how far each parameter of a shape lies beyond the samples, as a multiple of their range.

        Both are logarithms, and a range is at least a factor of two. An interval grows in proportion, as that of a line
        does beyond the points that it was fitted to.
        """
        found = {}
        for name, (least, most) in self.facts.get("ranges", {}).items():
            distance = max(math.log(least / shape[name]), math.log(shape[name] / most))
            if distance > 0:
                found[name] = distance / max(math.log(most / least), math.log(2))
        return found


def fit(
    target: Target, shapes: Sequence[Shape], times: Array, sm_count: int, learner: str = learners.DEFAULT, seed: int = 0
) -> Model:
    """Fit a model to shapes, all with the same parameters, and their times in ns."""
    parameters = tuple(shapes[0])
    found = features(target.operator, target.pass_, shapes, sm_count)
    amounts = trend.amounts(problem(target.operator, target.pass_, shapes))
    rates = trend.rates(amounts, times)
    rest = np.log(times) - np.log(amounts @ rates)
    kept = np.ptp(found.values, axis=0) > 1e-9
    distinct, place, count = _distinct(found.values)
    samples = learners.Samples(
        found.values[distinct][:, kept],
        int(kept[: found.base].sum()),
        _means(rest, place, count),
        1 / count,
        _repeated(rest, place, count),
    )
    learned = learners.fit(learner, samples, seed)
    guard = Guard.of(found.values[distinct][:, : found.base], _means(np.log(times), place, count), found.signs)
    quantile = _quantile(learned.left_out, place, rest)
    return Model(target, parameters, sm_count, learner, rates, kept, learned, quantile, guard)


def _distinct(values: Array) -> tuple[NDArray[np.int_], NDArray[np.int_], Array]:
    """Return the first row of each distinct work, the work of each row, and how many rows it has."""
    _, first, place, count = np.unique(
        np.round(values, 9), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    return first, place.ravel(), count.astype(np.float64)


def _means(values: Array, place: NDArray[np.int_], count: Array) -> Array:
    return np.asarray(np.bincount(place, values) / count)


def _repeated(rest: Array, place: NDArray[np.int_], count: Array) -> tuple[int, float]:
    """Return how many rows repeat a work, and the sum of squares around the means of works, with outliers limited."""
    off = np.abs(rest - _means(rest, place, count)[place])[count[place] > 1]
    if not len(off):
        return 0, 0.0
    tamed = np.minimum(off, 8 * np.median(off) + 1e-9)
    return len(rest) - len(count), float(np.sum(tamed**2))


def _quantile(left_out: tuple[Array, Array], place: NDArray[np.int_], rest: Array) -> float:
    """Return the half width of the interval in spreads: the conformal quantile over held-out samples.

    All rows of a work are held out together, so the interval applies to work that was not sampled.
    """
    mean, spread = left_out
    scores = np.abs(rest - mean[place]) / np.maximum(spread[place], SMALLEST_SPREAD)
    scores = np.sort(scores[np.isfinite(scores)])
    rank = min(int(np.ceil((len(scores) + 1) * COVERAGE)), len(scores)) - 1
    return float(scores[rank])
