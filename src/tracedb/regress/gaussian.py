"""Gaussian-process regression: a linear trend, a smooth residual and a rough one, with numpy alone.

The covariance of two shapes is ``t² x·x' + a² Matérn-5/2 + b² Matérn-3/2 + noise``; each feature has a length scale of
its own in both residuals, so features that do not matter fade out. Scales maximise the posterior (marginal likelihood
and weak priors) on a subset, by quasi-Newton steps; the weights then use every sample. What the samples cannot tell,
beyond their range, is left to the trend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracedb.regress.learners import Samples

Array = NDArray[np.float64]

SUBSET = 320
STEPS = 24
JITTER = 1e-7
NEIGHBOURS = 48
BLOCK = 512
OUTLYING = 4.0
"""Standard deviations from which a sample counts less."""


@dataclass
class Gaussian:
    """A fitted process."""

    mean: Array
    spread: Array
    base: int
    level: float
    scale: float
    parameters: Array
    points: Array
    weights: Array
    noise: Array
    left_out: tuple[Array, Array]

    def predict(self, values: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation at each row; the latter from the nearest samples alone."""
        points = (values - self.mean) / self.spread
        means, variances = [np.zeros(0)], [np.zeros(0)]
        for start in range(0, len(points), BLOCK):
            part = points[start : start + BLOCK]
            cross = _covariance(self.parameters, part, self.points, self.base)
            means.append(cross @ self.weights)
            variances.append(self._variance(part, cross))
        deviation = np.sqrt(np.maximum(np.concatenate(variances), 0) + np.exp(2 * self.parameters[-1]))
        return np.concatenate(means) * self.scale + self.level, deviation * self.scale

    def _variance(self, part: Array, cross: Array) -> Array:
        """Return what is not known of each point, given the samples that tell most of it."""
        near = np.argsort(-cross, axis=1)[:, :NEIGHBOURS]
        own = _own(self.parameters, part, self.base)
        noise = np.exp(2 * self.parameters[-1]) * self.noise + JITTER
        for row, chosen in enumerate(near):
            inner = _covariance(self.parameters, self.points[chosen], self.points[chosen], self.base)
            inner[np.diag_indices_from(inner)] += noise[chosen]
            told = cross[row, chosen]
            own[row] -= told @ np.linalg.solve(inner, told)
        return np.asarray(own)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return all that ``restore`` needs."""
        return {
            "mean": self.mean,
            "spread": self.spread,
            "numbers": np.array([self.base, self.level, self.scale]),
            "parameters": self.parameters,
            "points": self.points,
            "weights": self.weights,
            "noise": self.noise,
        }


def restore(arrays: Mapping[str, NDArray[np.generic]]) -> Gaussian:
    """Return a process as it was kept."""
    held = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
    base, level, scale = held.pop("numbers")
    return Gaussian(base=int(base), level=float(level), scale=float(scale), left_out=(np.zeros(0), np.zeros(0)), **held)


def fit(samples: Samples, seed: int) -> Gaussian:
    """Fit to the residuals of samples."""
    mean, spread = samples.values.mean(axis=0), samples.values.std(axis=0) + 1e-12
    points, base, noise = (samples.values - mean) / spread, samples.base, samples.noise
    level, scale = float(samples.residuals.mean()), float(samples.residuals.std()) + 1e-12
    targets = (samples.residuals - level) / scale
    chosen = np.random.default_rng(seed).permutation(len(points))[:SUBSET]
    few, tamed, few_noise = points[chosen], _tamed(points[chosen], targets[chosen], base), noise[chosen]
    centre, width = _prior(points.shape[1])

    def loss(parameters: Array) -> tuple[float, Array]:
        return _loss(parameters, few, tamed, few_noise, base, centre, width)

    parameters = minimise(loss, centre, STEPS)
    own = np.exp(2 * parameters[-1])
    while True:
        inverse_diagonal, weights = _solve(parameters, points, targets, noise, base)
        far = (np.abs(weights / np.sqrt(inverse_diagonal)) > OUTLYING) & (noise <= samples.noise)
        if not far.any():
            break
        noise = np.where(far, noise * weights**2 / inverse_diagonal, noise)
    without = targets - weights / inverse_diagonal
    deviation = np.sqrt(np.maximum(1 / inverse_diagonal - own * noise, 0) + own)
    left_out = (without * scale + level, deviation * scale)
    return Gaussian(mean, spread, base, level, scale, parameters, points, weights, noise, left_out)


def _tamed(points: Array, targets: Array, base: int) -> Array:
    """Return targets with those far from a linear trend drawn nearer, so that they do not rule the scales."""
    design = np.column_stack([points[:, :base], np.ones(len(points))])
    trend = design @ np.linalg.lstsq(design, targets, rcond=None)[0]
    rest = targets - trend
    limit = 8 * np.median(np.abs(rest)) + 1e-9
    return np.asarray(trend + np.clip(rest, -limit, limit))


def _prior(features: int) -> tuple[Array, Array]:
    """Return centre and width of the priors: length scales of both residuals, then log amplitudes and noise."""
    centre = np.concatenate([np.full(features, 1.0), np.full(features, 0.5), [0.0, -1.0, -2.5, -3.5]])
    width = np.concatenate([np.full(2 * features, 1.0), [2.0, 1.5, 1.5, 1.5]])
    return centre, width


def _distance(left: Array, right: Array) -> Array:
    found = np.sum(left**2, axis=1)[:, None] + np.sum(right**2, axis=1)[None, :] - 2 * left @ right.T
    return np.asarray(np.sqrt(np.maximum(found, 0) + 1e-12))


def _parts(parameters: Array, left: Array, right: Array) -> tuple[Array, Array, Array, Array]:
    features = left.shape[1]
    smooth, rough = np.exp(parameters[:features]), np.exp(parameters[features : 2 * features])
    far = np.sqrt(5) * _distance(left / smooth, right / smooth)
    near = np.sqrt(3) * _distance(left / rough, right / rough)
    return far, np.exp(-far), near, np.exp(-near)


def _amplitudes(parameters: Array) -> tuple[float, float, float, float]:
    trend, smooth, rough, noise = np.exp(2 * parameters[-4:])
    return float(trend), float(smooth), float(rough), float(noise)


def _covariance(parameters: Array, left: Array, right: Array, base: int) -> Array:
    far, far_fade, near, near_fade = _parts(parameters, left, right)
    trend, smooth, rough, _ = _amplitudes(parameters)
    found = trend * (left[:, :base] @ right[:, :base].T)
    found += smooth * (1 + far + far * far / 3) * far_fade
    found += rough * (1 + near) * near_fade
    return np.asarray(found)


def _own(parameters: Array, points: Array, base: int) -> Array:
    trend, smooth, rough, _ = _amplitudes(parameters)
    return np.asarray(trend * np.sum(points[:, :base] ** 2, axis=1) + smooth + rough)


def _solve(parameters: Array, points: Array, targets: Array, noise: Array, base: int) -> tuple[Array, Array]:
    """Return the diagonal of the inverse covariance, and the weights of the samples."""
    covariance = _covariance(parameters, points, points, base)
    covariance[np.diag_indices_from(covariance)] += _amplitudes(parameters)[3] * noise + JITTER
    inverse = np.linalg.inv(np.linalg.cholesky(covariance))
    return np.sum(inverse**2, axis=0), np.asarray(inverse.T @ (inverse @ targets))


def _loss(
    parameters: Array, points: Array, targets: Array, noise: Array, base: int, centre: Array, width: Array
) -> tuple[float, Array]:
    """Return the negative log posterior and its gradient."""
    features = points.shape[1]
    far, far_fade, near, near_fade = _parts(parameters, points, points)
    trend, smooth, rough, own = _amplitudes(parameters)
    along = trend * (points[:, :base] @ points[:, :base].T)
    slow, quick = smooth * (1 + far + far * far / 3) * far_fade, rough * (1 + near) * near_fade
    covariance = along + slow + quick
    covariance[np.diag_indices_from(covariance)] += own * noise + JITTER
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return np.inf, np.zeros_like(parameters)
    inverse = np.linalg.inv(factor)
    inverse = inverse.T @ inverse
    weights = inverse @ targets
    value = 0.5 * float(targets @ weights) + float(np.log(np.diag(factor)).sum())
    change = inverse - np.outer(weights, weights)
    gradient = np.empty_like(parameters)
    for place, slope in ((0, smooth * 5 / 3 * (1 + far) * far_fade), (features, rough * 3 * near_fade)):
        pull = change * slope
        squares = pull.sum(axis=1) @ points**2 - np.sum(points * (pull @ points), axis=0)
        gradient[place : place + features] = squares * np.exp(-2 * parameters[place : place + features])
    gradient[-4:] = [
        np.sum(change * along),
        np.sum(change * slow),
        np.sum(change * quick),
        own * float(np.diag(change) @ noise),
    ]
    off = (parameters - centre) / width
    return value + 0.5 * float(off @ off), gradient + off / width


def minimise(loss: Callable[[Array], tuple[float, Array]], start: Array, steps: int) -> Array:
    """Return where quasi-Newton steps (BFGS with backtracking) end."""
    place, (value, slope) = start, loss(start)
    inverse = np.eye(len(start)) / max(1.0, float(np.linalg.norm(slope)))
    for _ in range(steps):
        move = -inverse @ slope
        if float(move @ slope) >= 0:
            inverse, move = np.eye(len(start)), -slope / max(1.0, float(np.linalg.norm(slope)))
        move *= min(1.0, 2.0 / (float(np.abs(move).max()) + 1e-12))
        length = 1.0
        for _ in range(8):
            new_value, new_slope = loss(place + length * move)
            if new_value <= value + 1e-4 * length * float(move @ slope):
                break
            length /= 3
        else:
            return place
        step, turn = length * move, new_slope - slope
        gain, place, slope = value - new_value, place + step, new_slope
        value = new_value
        curve = float(step @ turn)
        if curve > 1e-10:
            cross = np.eye(len(start)) - np.outer(step, turn) / curve
            inverse = cross @ inverse @ cross.T + np.outer(step, step) / curve
        if gain < 1e-3:
            break
    return place
