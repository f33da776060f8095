"""Boosted trees in numpy, for steps that a smooth process rounds off, as where a library switches kernels.

Features are binned once; each tree grows level by level, on the gradient of the squared error, with the gain of every
cut of every node computed from histograms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bins = NDArray[np.int_]

BINS = 64
ROUNDS = 110
DEEP, SHALLOW = 6, 4
FEW = 600
"""Samples below which trees are shallow."""
RATE = 0.12
SHRINK = 2.0
"""Weight of the regularisation that pulls every leaf towards zero."""


@dataclass(frozen=True)
class Forest:
    """Trees: feature and last left bin of each inner node, and the value of each leaf."""

    edges: Array
    features: Bins
    cuts: Bins
    steps: Array

    def predict(self, values: Array) -> Array:
        """Return the sum of the trees' outputs for each row."""
        bins = _binned(values, self.edges)
        leaves = self.steps.shape[1]
        found = np.zeros(len(values))
        rows = np.arange(len(values))
        for features, cuts, steps in zip(self.features, self.cuts, self.steps, strict=True):
            node = np.zeros(len(values), dtype=np.int_)
            for _ in range(leaves.bit_length() - 1):
                node = 2 * node + 1 + (bins[rows, features[node]] > cuts[node])
            found += steps[node - (leaves - 1)]
        return found


def fit(values: Array, targets: Array, weights: Array) -> Forest:
    """Fit to rows of features, their targets and weights."""
    edges = np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1], axis=0)
    bins = _binned(values, edges)
    cells = bins + np.arange(bins.shape[1]) * BINS
    rest = targets.copy()
    trees = []
    spread_weights = np.repeat(weights, bins.shape[1])
    depth = DEEP if len(values) >= FEW else SHALLOW
    for _ in range(ROUNDS):
        features, cuts, leaf = _grow(bins, cells, rest * weights, spread_weights, depth)
        total = np.bincount(leaf, rest * weights, minlength=2**depth)
        count = np.bincount(leaf, weights, minlength=2**depth)
        steps = RATE * total / (count + SHRINK)
        rest -= steps[leaf]
        trees.append((features, cuts, steps))
    return Forest(edges, *(np.stack(part) for part in zip(*trees, strict=True)))


def _binned(values: Array, edges: Array) -> Bins:
    columns = [np.searchsorted(edges[:, column], values[:, column]) for column in range(values.shape[1])]
    return np.stack(columns, axis=1)


def _grow(bins: Bins, cells: Bins, pull: Array, weights: Array, depth: int) -> tuple[Bins, Bins, Bins]:
    """Return the feature and cut of each inner node of one tree, and the leaf of each row.

    ``cells``: position of each bin in a node's histogram; ``weights``: the weight of each.
    """
    width = bins.shape[1]
    features, cuts = np.zeros(2**depth - 1, dtype=np.int_), np.full(2**depth - 1, BINS, dtype=np.int_)
    node = np.zeros(len(bins), dtype=np.int_)
    pulls = np.repeat(pull, width)
    rows = np.arange(len(bins))
    for level in range(depth):
        nodes = 2**level
        place = (node[:, None] * (width * BINS) + cells).ravel()
        size = nodes * width * BINS
        left = np.bincount(place, pulls, minlength=size).reshape(nodes, width, BINS)
        left_count = np.bincount(place, weights, minlength=size).reshape(nodes, width, BINS)
        np.cumsum(left, axis=2, out=left)
        np.cumsum(left_count, axis=2, out=left_count)
        right, right_count = left[:, :, -1:] - left, left_count[:, :, -1:] - left_count
        gain = left * left / (left_count + SHRINK) + right * right / (right_count + SHRINK)
        best = gain.reshape(nodes, -1).argmax(axis=1)
        start = nodes - 1
        features[start : start + nodes], cuts[start : start + nodes] = best // BINS, best % BINS
        node = 2 * node + (bins[rows, features[start + node]] > cuts[start + node])
    return features, cuts, node
