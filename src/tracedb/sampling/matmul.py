"""Linear layers and batched matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tracedb.sampling.operator import Operator, Prepared
from tracedb.sampling.shapes import VOCABULARY, divides, leaf, width

if TYPE_CHECKING:
    import torch

    from tracedb.sampling.sweep import Shape

Widths = Callable[[int, int], tuple[int, int]]
"""Model-parallel ranks and hidden size → features in and out."""


def _linear(name: str, widths: Widths, *rules: str) -> Operator:
    def build(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
        from torch.nn.functional import linear

        into, out = widths(shape.get("mp", 1), shape["dim"])
        x = leaf((shape["b"], shape["l"], into), dtype, device)
        weight = leaf((out, into), dtype, device)
        return Prepared(lambda: linear(x, weight), [x, weight])

    return Operator(name, build, divides(*rules), ("b", "l", "dim"))


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
    _linear("linear1", lambda mp, dim: (dim, 3 * dim // mp), "dim"),
    _linear("linear2", lambda mp, dim: (dim // mp, dim), "dim"),
    _linear("linear3", lambda mp, dim: (dim, 4 * dim // mp), "dim"),
    _linear("linear4", lambda mp, dim: (4 * dim // mp, dim), "dim"),
    _linear("linear_final", lambda mp, dim: (dim, VOCABULARY // mp), "vocabulary"),
    Operator("baddbmm", _scores, divides("h", "dim"), _MATRIX),
    Operator("bmm", _values, divides("h", "dim"), _MATRIX),
)
