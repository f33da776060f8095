"""Split samples into folds, so that learners are evaluated on samples they did not see."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tracedb.regress.learners import Samples

Array = NDArray[np.float64]

MEMBERS = 5


def folds(count: int, seed: int, members: int = MEMBERS) -> NDArray[np.int_]:
    """Return the fold of each of ``count`` samples. Each is a distinct work, so no work is in two folds."""
    return np.asarray(np.random.default_rng(seed).permutation(np.arange(count) % members))


def left_out(samples: Samples, fold: NDArray[np.int_], predict: Callable[[int, Array], Array]) -> tuple[Array, Array]:
    """Return each sample's prediction by the member that did not see its fold, and the members' error.

    ``predict(member, values)``. The spread is a single number, since these learners have no uncertainty per sample.
    """
    mean = np.empty(len(fold))
    for member in range(int(fold.max()) + 1):
        mean[fold == member] = predict(member, samples.values[fold == member])
    spread = float(np.sqrt(np.mean((samples.residuals - mean) ** 2))) + 1e-9
    return mean, np.full(len(fold), spread)
