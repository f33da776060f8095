"""Shared by the shipped operators: leaf tensors, the vocabulary, and rules for invalid shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from tracedb.sampling.sweep import Shape

VOCABULARY = 50_304
"""Rows of the embedding over all model-parallel ranks: GPT-2's 50,257 rounded up to a multiple of 128."""

HEAD_WIDTH = 128
"""Width of an attention head if a shape has no ``dim``."""

Rule = Callable[["Shape", "torch.dtype", "torch.device"], str | None]


def leaf(size: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return a tensor of random numbers that requires a gradient."""
    import torch

    return torch.randn(tuple(size), dtype=dtype, device=device, requires_grad=True)


def width(shape: Shape) -> int:
    """Return the hidden size: ``dim``, else heads of 128."""
    return shape.get("dim", HEAD_WIDTH * shape.get("h", 1))


def divides(*what: str) -> Rule:
    """Return the rule that ``mp`` divides each of ``what``, and, if heads are among these, heads the hidden size."""

    def rule(shape: Shape, dtype: torch.dtype, device: torch.device) -> str | None:
        parts = shape.get("mp", 1)
        for name in what:
            size = VOCABULARY if name == "vocabulary" else width(shape) if name == "dim" else shape[name]
            if size % parts:
                return f"{name} {size} is not divisible by mp {parts}"
        if "h" in what and width(shape) % shape["h"]:
            return f"dim {width(shape)} is not divisible by h {shape['h']}"
        return None

    return rule
