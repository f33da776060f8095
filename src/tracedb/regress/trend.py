"""The part of a time that may be extrapolated beyond the samples: a sum of amounts of work, each at its own rate.

Amounts are all products of the sizes, FLOPs and elements moved; a constant stands for launch overhead. Rates are not
negative, so the trend rises with every size it depends on, and moves from one bound to the next as a machine does. The
rates minimise the squares of relative errors (non-negative least squares, Lawson and Hanson 1974).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tracedb.regress.work_model import Problem

Array = NDArray[np.float64]


def amounts(found: Problem) -> Array:
    """Return the amounts of work of many shapes: one row per shape, the constant first."""
    sizes = [1 / values if name in found.falling else values for name, values in found.sizes.items()]
    columns = [np.ones_like(found.flops), found.flops, found.elements]
    for many in range(1, len(sizes) + 1):
        columns += [np.prod(chosen, axis=0) for chosen in combinations(sizes, many)]
    return np.stack(columns, axis=1)


def rates(work: Array, times: Array) -> Array:
    """Return the time per unit of each amount, at least 0."""
    scaled = work / times[:, None]
    norms = np.sqrt(np.sum(scaled**2, axis=0))
    return np.asarray(_least_squares(scaled / norms, np.ones(len(times))) / norms)


def _least_squares(columns: Array, wanted: Array) -> Array:
    """Minimise |columns x - wanted| over x >= 0 by active sets."""
    inner, right = columns.T @ columns, columns.T @ wanted
    inner[np.diag_indices_from(inner)] += 1e-10
    found = np.zeros(columns.shape[1])
    active = np.zeros(columns.shape[1], dtype=bool)
    for _ in range(3 * columns.shape[1]):
        slope = right - inner @ found
        slope[active] = -np.inf
        if slope.max() <= 1e-9:
            break
        active[int(slope.argmax())] = True
        while True:
            trial = np.zeros_like(found)
            trial[active] = np.linalg.solve(inner[np.ix_(active, active)], right[active])
            if trial[active].min() > 0:
                found = trial
                break
            falling = active & (trial <= 0)
            share = np.min(found[falling] / np.maximum(found[falling] - trial[falling], 1e-300))
            found = found + share * (trial - found)
            active &= found > 1e-15
            found[~active] = 0.0
            if not active.any():
                break
    return found
