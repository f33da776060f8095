"""Samples in folds, for learners that are judged by samples that they did not see."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tracedb.regress.learners import Samples

Array = NDArray[np.float64]

MEMBERS = 5


def folds(count: int, seed: int, members: int = MEMBERS) -> NDArray[np.int_]:
    """Return the fold of each of ``count`` samples. A sample is a distinct work, so no work is in two folds."""
    return np.asarray(np.random.default_rng(seed).permutation(np.arange(count) % members))


def left_out(samples: Samples, fold: NDArray[np.int_], predict: Callable[[int, Array], Array]) -> tuple[Array, Array]:
    """Return, for each sample, what the member that did not see its fold predicts, and how far members are off.

    ``predict(member, values)``. The spread is one number: what these learners know of their own errors.
    """
    mean = np.empty(len(fold))
    for member in range(int(fold.max()) + 1):
        mean[fold == member] = predict(member, samples.values[fold == member])
    spread = float(np.sqrt(np.mean((samples.residuals - mean) ** 2))) + 1e-9
    return mean, np.full(len(fold), spread)
