"""Gaussian-process regression: a linear trend, a smooth residual and a rough one, with numpy alone.

The covariance of two shapes is ``t² x·x' + a² Matérn-5/2 + b² Matérn-3/2 + noise``; each feature has a length scale of
The covariance of two shapes is ``t² x·x' + a² Matérn-5/2 + b² Matérn-3/2 + noise``; each feature has its own length
scale in both residuals, so irrelevant features fade out. Scales maximise the posterior (marginal likelihood and weak
priors) on a subset, by quasi-Newton steps; the weights then use every sample. Beyond the range of the samples, the
trend decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracedb.regress import neighbours
from tracedb.regress.learners import Samples
from tracedb.regress.neighbours import covariance, distance

Array = NDArray[np.float64]

SUBSET = 320
STEPS = 24
JITTER = 1e-7
BLOCK = 512
EXACT = 1_300
"""Up to this many samples, all are weighted at once."""
CHECKED = 600
"""Number of samples held out one by one if there are more than that."""
MOST_OUTLYING = 0.03
"""Share of samples above which outlying ones are not outliers but the spread of the times."""
OUTLYING = 4.0
"""Standard deviations beyond which a sample's weight is reduced."""


@dataclass
class Gaussian:
    """A fitted process. ``left_out``: held-out mean and spread at each sample; NaN where not computed."""

    mean: Array
    spread: Array
    base: int
    level: float
    scale: float
    parameters: Array
    points: Array
    targets: Array
    noise: Array
    weights: Array
    """For all samples; empty if there are too many, and predictions then use the nearest."""
    left_out: tuple[Array, Array]

    def predict(self, values: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation for each row; the latter from the nearest samples alone."""
        points = (values - self.mean) / self.spread
        mean, variance = neighbours.predict(self.parameters, self.points, self.targets, self.noise, self.base, points)
        for start in range(0, len(points) if self.weights.size else 0, BLOCK):
            part = points[start : start + BLOCK]
            mean[start : start + BLOCK] = covariance(self.parameters, part, self.points, self.base) @ self.weights
        deviation = np.sqrt(np.maximum(variance, 0) + np.exp(2 * self.parameters[-1]))
        return mean * self.scale + self.level, deviation * self.scale

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return everything that ``restore`` needs."""
        return {
            "mean": self.mean,
            "spread": self.spread,
            "numbers": np.array([self.base, self.level, self.scale]),
            "parameters": self.parameters,
            "points": self.points,
            "targets": self.targets,
            "noise": self.noise,
            "weights": self.weights,
        }


def restore(arrays: Mapping[str, NDArray[np.generic]]) -> Gaussian:
    """Restore a stored process."""
    held = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
    base, level, scale = held.pop("numbers")
    return Gaussian(base=int(base), level=float(level), scale=float(scale), left_out=(np.zeros(0), np.zeros(0)), **held)


def fit(samples: Samples, seed: int) -> Gaussian:
    """Fit to the residuals of samples."""
    mean, spread = samples.values.mean(axis=0), samples.values.std(axis=0) + 1e-12
    level, scale = float(samples.residuals.mean()), float(samples.residuals.std()) + 1e-12
    order = np.random.default_rng(seed).permutation(len(samples.values))  # so that anchors come from all over
    points = ((samples.values - mean) / spread)[order]
    targets, noise = ((samples.residuals - level) / scale)[order], samples.noise[order]
    part = min(1.0, SUBSET / len(points))
    repeated = (samples.repeated[0] * part, samples.repeated[1] * part / scale**2)
    parameters = _parameters(points[:SUBSET], targets[:SUBSET], noise[:SUBSET], samples.base, repeated)
    found = Gaussian(
        mean, spread, samples.base, level, scale, parameters, points, targets, noise, np.zeros(0), (points, points)
    )
    middle, deviation = _exact(found) if len(points) <= EXACT else _near(found)
    back = np.argsort(order)
    found.left_out = (middle[back] * scale + level, deviation[back] * scale)
    return found


def _parameters(points: Array, targets: Array, noise: Array, base: int, repeated: tuple[float, float]) -> Array:
    """Return the most likely length scales, amplitudes and noise."""
    tamed = _tamed(points, targets, base)
    centre, width = _prior(points.shape[1])

    def loss(parameters: Array) -> tuple[float, Array]:
        value, slope = _loss(parameters, points, tamed, noise, base, centre, width)
        # Rows of one work differ only by noise: their likelihood is that of independent draws.
        count, squares = repeated
        own = np.exp(2 * parameters[-1])
        slope[-1] += count - squares / own
        return value + count * float(parameters[-1]) + 0.5 * squares / float(own), slope

    return minimise(loss, centre, STEPS)


def _exact(found: Gaussian) -> tuple[Array, Array]:
    """Set the weights of all samples; return the held-out mean and standard deviation of each."""
    own, plain = np.exp(2 * found.parameters[-1]), found.noise
    inner = covariance(found.parameters, found.points, found.points, found.base)
    inner[np.diag_indices_from(inner)] += own * plain + JITTER
    inverse = np.linalg.inv(inner)
    while True:
        known, found.weights = np.diag(inverse).copy(), inverse @ found.targets
        far = np.flatnonzero((np.abs(found.weights / np.sqrt(known)) > OUTLYING) & (found.noise <= plain))
        if not 0 < len(far) <= MOST_OUTLYING * len(plain):
            break
        more = found.noise[far] * (found.weights[far] ** 2 / known[far] - 1)
        found.noise = found.noise.copy()
        found.noise[far] += more
        # Updates the inverse for a changed diagonal (Woodbury) instead of inverting again.
        between = np.diag(1 / (own * more)) + inverse[np.ix_(far, far)]
        inverse -= inverse[:, far] @ np.linalg.solve(between, inverse[far])
    variance = np.maximum(1 / known - own * found.noise, 0) + own
    return found.targets - found.weights / known, np.sqrt(variance)


def _near(found: Gaussian) -> tuple[Array, Array]:
    """Return the held-out mean and standard deviation at some samples, NaN at the others."""
    rows = np.arange(min(len(found.points), CHECKED))
    mean, deviation = np.full((2, len(found.points)), np.nan)
    mean[rows], variance = neighbours.predict(
        found.parameters, found.points, found.targets, found.noise, found.base, found.points[rows], rows
    )
    deviation[rows] = np.sqrt(np.maximum(variance, 0) + np.exp(2 * found.parameters[-1]))
    return mean, deviation


def _tamed(points: Array, targets: Array, base: int) -> Array:
    """Return targets with outliers of a linear trend pulled towards it, so that they do not dominate the scales."""
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


def _amplitudes(parameters: Array) -> tuple[float, float, float, float]:
    trend, smooth, rough, noise = np.exp(2 * parameters[-4:])
    return float(trend), float(smooth), float(rough), float(noise)


def _loss(
    parameters: Array, points: Array, targets: Array, noise: Array, base: int, centre: Array, width: Array
) -> tuple[float, Array]:
    """Return the negative log posterior and its gradient."""
    features = points.shape[1]
    far = distance(points, points, np.exp(parameters[:features]) / np.sqrt(5))
    near = distance(points, points, np.exp(parameters[features : 2 * features]) / np.sqrt(3))
    far_fade, near_fade = np.exp(-far), np.exp(-near)
    trend, smooth, rough, own = _amplitudes(parameters)
    along = trend * (points[:, :base] @ points[:, :base].T)
    slow, quick = smooth * (1 + far + far * far / 3) * far_fade, rough * (1 + near) * near_fade
    covariance = along + slow + quick
    covariance[np.diag_indices_from(covariance)] += own * noise + JITTER
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return np.inf, np.zeros_like(parameters)
    inverse = np.linalg.inv(covariance)
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
    """Minimise by quasi-Newton steps (BFGS with backtracking) and return the result."""
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
