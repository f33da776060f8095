"""A blend of a Gaussian process and boosted trees, weighted by their errors on held-out samples. Numpy alone.

The process is smooth and estimates its own uncertainty; trees follow the steps where a library switches kernels. There
are three forests, each trained without a third of the samples, so that every sample has a held-out prediction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracedb.regress import boosting, gaussian
from tracedb.regress.folds import folds, left_out
from tracedb.regress.learners import Samples

Array = NDArray[np.float64]

MEMBERS = 3
SHARES = np.linspace(0, 1, 11)


@dataclass
class Blend:
    """A process, forests, and the weight of the forests in the prediction. ``off``: the forests' held-out error."""

    process: gaussian.Gaussian
    forests: list[boosting.Forest]
    share: float
    off: float
    left_out: tuple[Array, Array]

    def predict(self, values: Array) -> tuple[Array, Array]:
        """Return mean and spread at each row."""
        mean, spread = self.process.predict(values)
        if not self.share:
            return mean, spread
        wide = _products(values, self.process.base)
        trees = np.mean([forest.predict(wide) for forest in self.forests], axis=0)
        return (1 - self.share) * mean + self.share * trees, (1 - self.share) * spread + self.share * self.off

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return all that ``restore`` needs."""
        kept = {f"process/{name}": array for name, array in self.process.arrays().items()}
        kept["blend"] = np.array([self.share, self.off])
        for number, forest in enumerate(self.forests if self.share else []):
            kept |= {f"forest{number}/{name}": array for name, array in vars(forest).items()}
        return kept


def restore(arrays: Mapping[str, NDArray[np.generic]]) -> Blend:
    """Restore a stored blend."""
    share, off = (float(value) for value in np.asarray(arrays["blend"], dtype=np.float64))
    forests = [_forest(_under(arrays, f"forest{number}/")) for number in range(MEMBERS if share else 0)]
    return Blend(gaussian.restore(_under(arrays, "process/")), forests, share, off, (np.zeros(0), np.zeros(0)))


def _forest(arrays: Mapping[str, NDArray[np.generic]]) -> boosting.Forest:
    edges, steps = (np.asarray(arrays[name], dtype=np.float64) for name in ("edges", "steps"))
    features, cuts = (np.asarray(arrays[name], dtype=np.int_) for name in ("features", "cuts"))
    return boosting.Forest(edges, features, cuts, steps)


def fit(samples: Samples, seed: int) -> Blend:
    """Fit both, and choose the weight of the forests by held-out samples."""
    process = gaussian.fit(samples, seed)
    fold = folds(len(samples.residuals), seed, MEMBERS)
    wide = Samples(_products(samples.values, samples.base), samples.base, samples.residuals, samples.noise)
    forests = [
        boosting.fit(wide.values[fold != member], wide.residuals[fold != member], 1 / wide.noise[fold != member])
        for member in range(MEMBERS)
    ]
    trees, trees_off = left_out(wide, fold, lambda member, values: forests[member].predict(values))
    mean, spread = process.left_out
    known = np.isfinite(mean)
    off = [
        float(np.mean(np.abs(samples.residuals - (1 - share) * mean - share * trees)[known] / samples.noise[known]))
        for share in SHARES
    ]
    share, forests_off = float(SHARES[int(np.argmin(off))]), float(trees_off[0])
    both = ((1 - share) * mean + share * trees, (1 - share) * spread + share * forests_off)
    return Blend(process, forests, share, forests_off, both)


def _products(values: Array, base: int) -> Array:
    """Return features with the pairwise products of sizes (sums of their logarithms), for cuts along them."""
    pairs = [values[:, one] + values[:, other] for one in range(base) for other in range(one)]
    return np.column_stack([values, *pairs])


def _under(arrays: Mapping[str, NDArray[np.generic]], start: str) -> dict[str, NDArray[np.generic]]:
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
