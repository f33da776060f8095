"""Evaluate a model on held-out samples, with three kinds of splits that test different things."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracedb.regress.dataset import Table
from tracedb.regress.features import features
from tracedb.regress.model import COVERAGE, Model

Array = NDArray[np.float64]
Rows = NDArray[np.int_]

TEST_SHARE = 0.2
BY_CHANCE = 0.01
"""Probability below which an interval holds too few test rows for it to be chance."""
ROUNDING = 1e-12
"""Half width of an interval, in log time, of samples without any noise."""
SPLITS = ("random", "grouped", "extrapolation")


@dataclass(frozen=True)
class Score:
    """Errors over the test rows of a split, in percent of the measured time; means over its repeats."""

    split: str
    rows: int
    mean_percent: float
    median_percent: float
    p90_percent: float
    covered_percent: float
    """Test rows whose measured time is in the interval."""
    shortfall: float = 1.0
    """How many times as wide the interval had to be to hold nine of ten test rows; 1 if it held about as many."""


def scores(table: Table, fit: Callable[[Table], Model], repeats: int, seed: int) -> list[Score]:
    """Return the errors by split; ``fit`` sees only the training rows."""
    found = []
    for split in SPLITS:
        parts = [_judged(table, fit, train, test) for train, test in split_rows(table, split, repeats, seed)]
        if parts:
            rows = sum(len(errors) for errors, _ in parts)
            numbers = [
                (errors.mean(), np.median(errors), np.quantile(errors, 0.9), (widths <= 1).mean() * 100)
                for errors, widths in parts
            ]
            mean, median, p90, covered = (float(value) for value in np.mean(numbers, axis=0))
            shortfall = _shortfall([widths for _, widths in parts])
            found.append(Score(split, rows, mean, median, p90, covered, shortfall))
    return found


def _shortfall(repeats: Sequence[Array]) -> float:
    """Return how many times as wide an interval had to be, from the half widths at which test rows lie in each repeat.

    Repeats draw from the same samples, so that together they count as often as one of them. Whether too few rows are
    inside is decided by the binomial distribution.
    """
    widths = np.sort(np.concatenate(repeats))
    count = round(len(widths) / len(repeats))
    inside = round(float((widths <= 1).mean()) * count)
    chance = sum(math.exp(_log_binomial(count, k)) for k in range(inside + 1))
    if chance >= BY_CHANCE:
        return 1.0
    return max(float(widths[min(math.ceil((len(widths) + 1) * COVERAGE), len(widths)) - 1]), 1.0)


def split_rows(table: Table, split: str, repeats: int, seed: int) -> Iterator[tuple[Rows, Rows]]:
    """Yield training and test rows: 80/20 of the rows, 80/20 of the distinct works, or the largest fifth as test."""
    known = features(table.target.operator, table.target.pass_, table.shapes, table.sm_count)
    if split == "extrapolation":
        large = known.work > np.percentile(known.work, 100 * (1 - TEST_SHARE))
        if large.any() and not large.all():
            yield np.flatnonzero(~large), np.flatnonzero(large)
        return
    groups = work_of(known.values[:, : known.base]) if split == "grouped" else np.arange(len(table.shapes))
    count = int(groups.max()) + 1
    for repeat in range(repeats):
        order = np.random.default_rng([seed, repeat]).permutation(count)
        is_test = np.isin(groups, order[: max(1, round(TEST_SHARE * count))])
        yield np.flatnonzero(~is_test), np.flatnonzero(is_test)


def work_of(sizes: Array) -> Rows:
    """Return the number of the distinct work of each row."""
    return np.unique(np.round(sizes, 9), axis=0, return_inverse=True)[1].ravel()


def noise_floor(table: Table) -> float | None:
    """Return the mean error, in percent, of predicting a sample by others of the same work; None if there are none.

    No model of these sizes can be expected to do better on the same samples.
    """
    known = features(table.target.operator, table.target.pass_, table.shapes, table.sm_count)
    groups, times = work_of(known.values[:, : known.base]), table.target_ns
    count, total = np.bincount(groups), np.bincount(groups, times)
    again = count[groups] > 1
    if not again.any():
        return None
    others = (total[groups] - times)[again] / (count[groups] - 1)[again]
    return float(np.mean(np.abs(others - times[again]) / times[again]) * 100)


def _log_binomial(count: int, inside: int) -> float:
    """Return the logarithm of the probability that so many of ``count`` rows are inside; numbers of ways to choose
    among a thousand rows exceed a double."""
    ways = math.lgamma(count + 1) - math.lgamma(inside + 1) - math.lgamma(count - inside + 1)
    return ways + inside * math.log(COVERAGE) + (count - inside) * math.log(1 - COVERAGE)


def _judged(table: Table, fit: Callable[[Table], Model], train: Rows, test: Rows) -> tuple[Array, Array]:
    """Return the errors of test rows in percent, and how far from the prediction they lie in half widths."""
    model = fit(_part(table, train))
    wanted = _part(table, test)
    predictions, times = model.predict(wanted.shapes), wanted.target_ns
    middle = np.array([item.predicted_ns for item in predictions])
    half = np.maximum(np.log([item.high_ns / item.predicted_ns for item in predictions]), ROUNDING)
    return np.abs(middle - times) / times * 100, np.abs(np.log(times / middle)) / half


def _part(table: Table, rows: Rows) -> Table:
    return Table(table.target, table.sm_count, [table.shapes[row] for row in rows], [table.times[row] for row in rows])
