"""Linear layers and batched matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tracedb.sampling.operator import Operator, Prepared
from tracedb.sampling.shapes import VOCABULARY, divides, inner, leaf, width

if TYPE_CHECKING:
    import torch

    from tracedb.sampling.sweep import Shape

Widths = Callable[["Shape"], tuple[int, int]]
"""Shape → features in and out, over all model-parallel ranks."""


def _linear(name: str, widths: Widths, *rules: str, split: str, needs: tuple[str, ...] = ("b", "l", "dim")) -> Operator:
    """Return a linear layer without bias; ``split`` says which features are divided over the ranks: in or out."""

    def build(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
        from torch.nn.functional import linear

        parts = shape.get("mp", 1)
        into, out = widths(shape)
        into, out = (into // parts, out) if split == "in" else (into, out // parts)
        x = leaf((shape["b"], shape["l"], into), dtype, device)
        weight = leaf((out, into), dtype, device)
        return Prepared(lambda: linear(x, weight), [x, weight])

    return Operator(name, build, divides(*rules), needs)


def _projected(shape: Shape) -> int:
    """Return the features of query, key and value together."""
    if "kv" not in shape:
        return 3 * width(shape)
    return (shape["h"] + 2 * shape["kv"]) * (width(shape) // shape["h"])


def _heads(shape: Shape) -> tuple[int, int, int]:
    """Return the batch of matrices, the sequence length and the width of a head."""
    return shape["b"] * shape["h"] // shape.get("mp", 1), shape["l"], width(shape) // shape["h"]


def _scores(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    """Query times key, scaled, into a buffer whose content is ignored (beta 0)."""
    import torch

    count, length, head = _heads(shape)
    query = leaf((count, length, head), dtype, device)
    key = leaf((count, head, length), dtype, device)
    buffer = torch.empty((count, length, length), dtype=dtype, device=device)
    return Prepared(lambda: torch.baddbmm(buffer, query, key, beta=0, alpha=head**-0.5), [query, key])


def _values(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    """Scores times values."""
    import torch

    count, length, head = _heads(shape)
    scores = leaf((count, length, length), dtype, device)
    value = leaf((count, length, head), dtype, device)
    return Prepared(lambda: torch.bmm(scores, value), [scores, value])


_MATRIX = ("b", "h", "l")
OPERATORS = (
    _linear("linear1", lambda shape: (width(shape), _projected(shape)), "dim", split="out", needs=("b", "l")),
    _linear("linear2", lambda shape: (shape["dim"], shape["dim"]), "dim", split="in"),
    _linear("linear3", lambda shape: (shape["dim"], inner(shape)), "dim", "ffn", split="out"),
    _linear("linear4", lambda shape: (inner(shape), shape["dim"]), "dim", "ffn", split="in"),
    _linear("linear_final", lambda shape: (shape["dim"], VOCABULARY), "vocabulary", split="out"),
    Operator("baddbmm", _scores, divides("h", "dim"), _MATRIX),
    Operator("bmm", _values, divides("h", "dim"), _MATRIX),
)
