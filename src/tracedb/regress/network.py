"""A small ensemble of neural networks, trained with torch and evaluated with numpy.

Each member is trained on four folds of the samples, with early stopping on the fifth, whose works it never sees. The
members' mean is the prediction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracedb.errors import UsageError
from tracedb.regress.folds import MEMBERS, folds, left_out
from tracedb.regress.learners import Samples

if TYPE_CHECKING:
    import torch

Array = NDArray[np.float64]

WIDTH = 48
EPOCHS = 400
PATIENCE = 60
BATCH = 256
RATE = 4e-3
DECAY = 1e-4


@dataclass
class Network:
    """Trained members: for each layer, weights (member, inputs, outputs) and offsets (member, outputs)."""

    mean: Array
    spread: Array
    level: float
    scale: float
    layers: list[tuple[Array, Array]]
    off: float
    left_out: tuple[Array, Array]

    def members(self, values: Array) -> Array:
        """Return each member's prediction for each row."""
        points = (values - self.mean) / self.spread
        found = np.broadcast_to(points, (MEMBERS, *points.shape))
        for number, (weights, offsets) in enumerate(self.layers):
            found = found @ weights + offsets[:, None, :]
            if number < len(self.layers) - 1:
                found = found / (1 + np.exp(-np.clip(found, -60, 60)))
        return np.asarray(found[:, :, 0] * self.scale + self.level)

    def predict(self, values: Array) -> tuple[Array, Array]:
        """Return the members' mean, and the spread of their held-out errors."""
        found = self.members(values)
        return found.mean(axis=0), np.sqrt(self.off**2 + found.var(axis=0))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return everything that ``restore`` needs."""
        kept = {
            "mean": self.mean,
            "spread": self.spread,
            "numbers": np.array([self.level, self.scale, self.off]),
        }
        for number, (weights, offsets) in enumerate(self.layers):
            kept |= {f"weights{number}": weights, f"offsets{number}": offsets}
        return {name: np.asarray(array) for name, array in kept.items()}


def restore(arrays: Mapping[str, NDArray[np.generic]]) -> Network:
    """Restore stored networks."""
    held = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
    level, scale, off = (float(value) for value in held["numbers"])
    count = sum(name.startswith("weights") for name in held)
    layers = [(held[f"weights{number}"], held[f"offsets{number}"]) for number in range(count)]
    return Network(held["mean"], held["spread"], level, scale, layers, off, (np.zeros(0), np.zeros(0)))


def fit(samples: Samples, seed: int) -> Network:
    """Train all members together. Raises ``UsageError`` if torch is not installed."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise UsageError(
            "--learner torch needs torch, which is not installed: pip install 'tracedb-gpu[torch]'"
        ) from error
    mean, spread = samples.values.mean(axis=0), samples.values.std(axis=0) + 1e-12
    level, scale = float(samples.residuals.mean()), float(samples.residuals.std()) + 1e-12
    fold = folds(len(samples.residuals), seed)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        layers = _train(
            torch.tensor((samples.values - mean) / spread, dtype=torch.float32),
            torch.tensor((samples.residuals - level) / scale, dtype=torch.float32),
            torch.tensor(1 / samples.noise, dtype=torch.float32),
            torch.tensor(fold),
            seed,
        )
    finally:
        torch.set_num_threads(threads)
    found = Network(mean, spread, level, scale, layers, 0.0, (np.zeros(0), np.zeros(0)))
    found.left_out = left_out(samples, fold, lambda member, values: found.members(values)[member])
    found.off = float(found.left_out[1][0])
    return found


def _train(
    points: torch.Tensor, targets: torch.Tensor, counts: torch.Tensor, fold: torch.Tensor, seed: int
) -> list[tuple[Array, Array]]:
    """Return the layers of all members, each from the epoch with the best prediction of its own fold."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    layers = _new_layers(points.shape[1], generator)
    optimiser = torch.optim.AdamW([tensor for pair in layers for tensor in pair], lr=RATE, weight_decay=DECAY)
    seen = (fold[None, :] != torch.arange(MEMBERS)[:, None]) * counts
    held = (fold[None, :] == torch.arange(MEMBERS)[:, None]) * counts
    best = torch.full((MEMBERS,), torch.inf)
    kept = [tensor.detach().clone() for pair in layers for tensor in pair]
    since = 0
    for epoch in range(EPOCHS):
        for group in optimiser.param_groups:
            group["lr"] = RATE * 0.5 * (1 + float(np.cos(np.pi * epoch / EPOCHS)))
        for rows in torch.randperm(len(points), generator=generator).split(BATCH):
            off = (_forward(layers, points[rows]) - targets[rows]).abs()
            loss = (torch.nn.functional.huber_loss(off, torch.zeros_like(off), reduction="none", delta=0.3)
                    * seen[:, rows]).sum() / seen[:, rows].sum()  # fmt: skip
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            off = ((_forward(layers, points) - targets).abs() * held).sum(dim=1) / held.sum(dim=1)
            better = off < best
            best = torch.where(better, off, best)
            for old, new in zip(kept, (tensor for pair in layers for tensor in pair), strict=True):
                old[better] = new.detach()[better]
        since = 0 if bool(better.any()) else since + 1
        if since >= PATIENCE:
            break
    numbers = [tensor.double().numpy() for tensor in kept]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _new_layers(inputs: int, generator: torch.Generator) -> list[tuple[torch.Tensor, torch.Tensor]]:
    import torch

    layers = []
    for into, out in ((inputs, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)):
        weights = torch.randn(MEMBERS, into, out, generator=generator) * (1.5 / into) ** 0.5
        layers.append((weights.requires_grad_(), torch.zeros(MEMBERS, out).requires_grad_()))
    return layers


def _forward(layers: list[tuple[torch.Tensor, torch.Tensor]], points: torch.Tensor) -> torch.Tensor:
    import torch

    found = points.expand(MEMBERS, *points.shape)
    for number, (weights, offsets) in enumerate(layers):
        found = torch.baddbmm(offsets[:, None, :], found, weights)
        if number < len(layers) - 1:
            found = torch.nn.functional.silu(found)
    return found[:, :, 0]
