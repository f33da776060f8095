"""The optimizer's step over the weights of a pipeline stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.sampling.operator import Operator, Prepared
from tracedb.sampling.shapes import VOCABULARY, divides

if TYPE_CHECKING:
    import torch

    from tracedb.sampling.sweep import Shape


WEIGHT, GRADIENT = 0.02, 1e-3
"""Standard deviations of weights and gradients."""


def encoder_weights(mp: int, dim: int) -> list[tuple[int, ...]]:
    """Return the sizes of one encoder's weights: two norms with bias, four linear layers without."""
    linears: list[tuple[int, ...]] = [
        (3 * dim // mp, dim),
        (dim, dim // mp),
        (4 * dim // mp, dim),
        (dim, 4 * dim // mp),
    ]
    return [(dim,)] * 4 + linears


def stage_weights(stage: str, mp: int, dim: int, encoders: int) -> list[tuple[int, ...]]:
    """Return the sizes of a stage's weights: first (with the embedding), middle or last (with norm and projection)."""
    sizes = encoder_weights(mp, dim) * encoders
    if stage == "first":
        sizes.insert(0, (VOCABULARY // mp, dim))
    if stage == "last":
        sizes += [(dim,), (dim,), (VOCABULARY // mp, dim)]
    return sizes


def _optimizer(stage: str) -> Operator:
    def build(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
        import torch

        weights = []
        for size in stage_weights(stage, shape.get("mp", 1), shape["dim"], shape["encoders"]):
            # Random numbers, as in training: equal ones toggle no bits, draw less power, and so run at a higher clock.
            weight = torch.randn(size, dtype=dtype, device=device).mul_(WEIGHT).requires_grad_()
            weight.grad = torch.randn_like(weight).mul_(GRADIENT)
            weights.append(weight)
        optimizer = torch.optim.AdamW(weights)

        def step() -> torch.Tensor:
            optimizer.step()
            return weights[0]

        return Prepared(step, is_step=True)

    rules = ("dim",) if stage == "middle" else ("dim", "vocabulary")
    return Operator(f"{stage}Stage_optimizer", build, divides(*rules), ("dim", "encoders"))


OPERATORS = tuple(_optimizer(stage) for stage in ("first", "middle", "last"))
