"""Prediction from the nearest samples and a few anchors, where there are too many samples to weigh all at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int_]

NEAREST = 64
ANCHORS = 24
"""Samples all over, which hold the trend where the nearest lie on one side."""
BLOCK = 64
JITTER = 1e-6


def covariance(parameters: Array, left: Array, right: Array, base: int) -> Array:
    """Return the covariance of points, of stacks of them as well (see ``tracedb.regress.gaussian``)."""
    features = left.shape[-1]
    trend, smooth, rough, _ = np.exp(2 * parameters[-4:])
    far = np.sqrt(5) * distance(left, right, np.exp(parameters[:features]))
    near = np.sqrt(3) * distance(left, right, np.exp(parameters[features : 2 * features]))
    found = trend * (left[..., :base] @ np.swapaxes(right[..., :base], -1, -2))
    found += smooth * (1 + far + far * far / 3) * np.exp(-far)
    found += rough * (1 + near) * np.exp(-near)
    return np.asarray(found)


def distance(left: Array, right: Array, scales: Array) -> Array:
    """Return the distances of points in length scales."""
    a, b = left / scales, right / scales
    found = np.sum(a * a, axis=-1)[..., :, None] + np.sum(b * b, axis=-1)[..., None, :]
    found -= 2 * (a @ np.swapaxes(b, -1, -2))
    return np.asarray(np.sqrt(np.maximum(found, 0) + 1e-12))


def predict(
    parameters: Array, samples: Array, targets: Array, noise: Array, base: int, points: Array, own: Rows | None = None
) -> tuple[Array, Array]:
    """Return mean and variance at points, noise aside; ``own``: the sample that a point is, which is left out."""
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
    # An anchor that is among the nearest counts once: the same sample twice would be a singular system.
    diagonal[:, nearest.shape[1] :][(nearest[:, :, None] == anchors).any(axis=1)] += 1e6
    if own is not None:
        diagonal = np.where(chosen == own[:, None], 1e6, diagonal)
    inner[:, np.arange(chosen.shape[1]), np.arange(chosen.shape[1])] += diagonal
    told = covariance(parameters, points[:, None, :], around, base)[:, 0, :]
    solved = np.linalg.solve(inner, np.stack([targets[chosen], told], axis=2))
    before = trend * np.sum(points[:, :base] ** 2, axis=1) + smooth + rough
    return np.sum(told * solved[:, :, 0], axis=1), before - np.sum(told * solved[:, :, 1], axis=1)
