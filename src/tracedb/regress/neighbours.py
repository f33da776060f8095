"""Prediction from the nearest samples and a few anchors, if there are too many samples to weight all at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int_]

NEAREST = 64
ANCHORS = 24
"""Anchors across the whole range, which fix the trend if the nearest samples are all on one side."""
BLOCK = 16
JITTER = 1e-6


def covariance(parameters: Array, left: Array, right: Array, base: int) -> Array:
    """Return the covariance of points, of stacks of them as well (see ``tracedb.regress.gaussian``)."""
    features = left.shape[-1]
    trend, smooth, rough, _ = np.exp(2 * parameters[-4:])
    found = left[..., :base] @ np.swapaxes(trend * right[..., :base], -1, -2)
    far = distance(left, right, np.exp(parameters[:features]) / np.sqrt(5))
    part = far / 3
    part += 1
    part *= far
    part += 1
    found += _faded(part, far, smooth)
    near = distance(left, right, np.exp(parameters[features : 2 * features]) / np.sqrt(3))
    found += _faded(near + 1, near, rough)
    return np.asarray(found)


def _faded(part: Array, away: Array, amplitude: float) -> Array:
    """Return ``amplitude * part * exp(-away)``, computed in place."""
    np.negative(away, out=away)
    np.exp(away, out=away)
    part *= away
    part *= amplitude
    return part


def distance(left: Array, right: Array, scales: Array) -> Array:
    """Return the distances of points in length scales."""
    a, b = left / scales, right / scales
    found = a @ np.swapaxes(-2 * b, -1, -2)
    found += np.einsum("...i,...i->...", a, a)[..., :, None]
    found += np.einsum("...i,...i->...", b, b)[..., None, :]
    np.maximum(found, 0, out=found)
    found += 1e-12
    return np.sqrt(found, out=found)


def predict(
    parameters: Array, samples: Array, targets: Array, noise: Array, base: int, points: Array, own: Rows | None = None
) -> tuple[Array, Array]:
    """Return mean and variance at points, without noise; ``own``: the sample at a point, which is excluded."""
    means, variances = [np.zeros(0)], [np.zeros(0)]
    for start in range(0, len(points), BLOCK):
        left_out = own[start : start + BLOCK] if own is not None else None
        mean, variance = _block(parameters, samples, targets, noise, base, points[start : start + BLOCK], left_out)
        means.append(mean)
        variances.append(variance)
    return np.concatenate(means), np.concatenate(variances)


def _block(
    parameters: Array, samples: Array, targets: Array, noise: Array, base: int, points: Array, own: Rows | None
) -> tuple[Array, Array]:
    features = samples.shape[1]
    away = distance(points, samples, np.exp(parameters[features : 2 * features]))
    if own is not None:
        away[np.arange(len(points)), own] = np.inf
    anchors = np.linspace(0, len(samples) - 1, min(ANCHORS, len(samples))).astype(int)
    nearest = np.argpartition(away, min(NEAREST, len(samples) - 1) - 1, axis=1)[:, :NEAREST]
    chosen = np.concatenate([nearest, np.broadcast_to(anchors, (len(points), len(anchors)))], axis=1)
    around = samples[chosen]
    inner = covariance(parameters, around, around, base)
    trend, smooth, rough, own_noise = np.exp(2 * parameters[-4:])
    diagonal = own_noise * noise[chosen] + JITTER * (1 + smooth + rough)
    # An anchor among the nearest counts once: the same sample twice would make the system singular.
    diagonal[:, nearest.shape[1] :][(nearest[:, :, None] == anchors).any(axis=1)] += 1e6
    if own is not None:
        diagonal = np.where(chosen == own[:, None], 1e6, diagonal)
    inner[:, np.arange(chosen.shape[1]), np.arange(chosen.shape[1])] += diagonal
    told = covariance(parameters, points[:, None, :], around, base)[:, 0, :]
    solved = np.linalg.solve(inner, np.stack([targets[chosen], told], axis=2))
    before = trend * np.sum(points[:, :base] ** 2, axis=1) + smooth + rough
    return np.sum(told * solved[:, :, 0], axis=1), before - np.sum(told * solved[:, :, 1], axis=1)
