"""The learners of the residual over the trend. All fit arrays, store arrays, and predict a mean and a spread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tracedb.errors import UsageError

Array = NDArray[np.float64]

WHERE = {
    "blend": "tracedb.regress.blend",
    "gaussian": "tracedb.regress.gaussian",
    "torch": "tracedb.regress.network",
    "trees": "tracedb.regress.trees",
}
"""Learner → the module with its ``fit`` and ``restore``. Heavy libraries are imported there, on use."""
DEFAULT = "blend"


@dataclass(frozen=True)
class Samples:
    """Rows of features with their residuals: one row per distinct work.

    ``base``: how many of the first columns are sizes. ``noise``: variance of each residual relative to the others'.
    """

    values: Array
    base: int
    residuals: Array
    noise: Array
    repeated: tuple[int, float] = (0, 0.0)
    """Number of further rows per work, and the sum of squares of rows around the mean of their work."""


class Learned(Protocol):
    """A fitted learner."""

    left_out: tuple[Array, Array]
    """For each sample, the held-out mean and spread; NaN if it was never held out."""

    def predict(self, values: Array) -> tuple[Array, Array]:
        """Return mean and spread at each row."""
        ...

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return everything that ``restore`` needs."""
        ...


def fit(kind: str, samples: Samples, seed: int) -> Learned:
    """Fit a learner of a kind. Raises ``UsageError`` if it is unknown or its library is not installed."""
    learned: Learned = _module(kind).fit(samples, seed)
    return learned


def restore(kind: str, arrays: Mapping[str, NDArray[np.generic]]) -> Learned:
    """Restore a stored learner."""
    learned: Learned = _module(kind).restore(arrays)
    return learned


def _module(kind: str):  # type: ignore[no-untyped-def]
    if kind not in WHERE:
        raise UsageError(f"there is no learner {kind!r}; there are: {', '.join(WHERE)}")
    return import_module(WHERE[kind])
