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


def key_value_heads(shape: Shape) -> int:
    """Return the heads of key and value: ``kv``, else those of the query."""
    return shape.get("kv", shape.get("h", 1))


def inner(shape: Shape) -> int:
    """Return the width between the two products of an MLP: ``ffn``, else four times the hidden size."""
    return shape.get("ffn", 4 * width(shape))


def divides(*what: str) -> Rule:
    """Return the rule that ``mp`` divides each of ``what``, and, if heads are among these, heads the hidden size.

    Of grouped-query attention (``kv`` in the shape), ``mp`` also divides the heads of key and value, and these divide
    the heads of the query.
    """

    sizes: dict[str, Callable[[Shape], int]] = {"vocabulary": lambda shape: VOCABULARY, "dim": width, "ffn": inner}

    def rule(shape: Shape, dtype: torch.dtype, device: torch.device) -> str | None:
        parts = shape.get("mp", 1)
        if "dim" in what and not {"dim", "h"} & set(shape):
            return "needs dim or h in columns_name"
        for name in what:
            size = sizes[name](shape) if name in sizes else shape[name]
            if size % parts:
                return f"{name} {size} is not divisible by mp {parts}"
        if "h" in what and width(shape) % shape["h"]:
            return f"dim {width(shape)} is not divisible by h {shape['h']}"
        return _grouping(shape, parts) if "kv" in shape else None

    return rule


def _grouping(shape: Shape, parts: int) -> str | None:
    """Return why heads cannot share keys and values as the shape says, or None."""
    kv = shape["kv"]
    if "h" not in shape:
        return "kv needs h in columns_name"
    if kv % parts:
        return f"kv {kv} is not divisible by mp {parts}"
    if shape["h"] % kv:
        return f"h {shape['h']} is not divisible by kv {kv}"
    if width(shape) % shape["h"]:
        return f"dim {width(shape)} is not divisible by h {shape['h']}"
    return None
