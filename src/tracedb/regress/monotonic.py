"""Guard against predictions that fall while work grows: more of every size must not take less time.

Real kernels break this slightly, if a larger size is better aligned or gets another kernel. The guard allows as much
as the samples themselves show, and no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SLACK = 0.02
"""Fall in log time allowed beyond the largest among the samples."""
PAIRS = 1_500
BLOCK = 256


@dataclass(frozen=True)
class Guard:
    """Samples as (rising sizes, log time), and the allowed fall in log time between comparable ones."""

    sizes: Array
    times: Array
    signs: Array
    allowed: float

    @classmethod
    def of(cls, sizes: Array, times: Array, signs: Array) -> Guard:
        """Return the guard for samples: logarithms of sizes and of times; ``signs``: -1 where time falls with one."""
        rising = sizes * signs
        few = np.linspace(0, len(rising) - 1, min(len(rising), PAIRS)).astype(int)
        some, at = rising[few], times[few]
        falls = []
        for start in range(0, len(some), BLOCK):
            smaller = np.all(some[start : start + BLOCK, None, :] <= some[None, :, :] + 1e-9, axis=2)
            fall = at[start : start + BLOCK, None] - at[None, :]
            falls.append(np.where(smaller, fall, 0).max(axis=1))
        return cls(rising, times, signs, float(np.concatenate(falls).max()) + SLACK)

    def within(self, sizes: Array, times: Array) -> Array:
        """Return predicted log times, clamped between the samples that do less and those that do more."""
        rising = sizes * self.signs
        found = times.copy()
        for start in range(0, len(rising), BLOCK):
            part = rising[start : start + BLOCK, None, :]
            below = np.all(self.sizes[None, :, :] <= part + 1e-9, axis=2)
            above = np.all(self.sizes[None, :, :] >= part - 1e-9, axis=2)
            low = np.where(below, self.times[None, :], -np.inf).max(axis=1) - self.allowed
            high = np.where(above, self.times[None, :], np.inf).min(axis=1) + self.allowed
            drawn = np.clip(found[start : start + BLOCK], np.minimum(low, high), np.maximum(low, high))
            crossed = low > high  # both are finite there
            middle = (np.where(crossed, low, 0.0) + np.where(crossed, high, 0.0)) / 2
            found[start : start + BLOCK] = np.where(crossed, middle, drawn)
        return found
