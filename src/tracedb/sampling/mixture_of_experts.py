"""A mixture of experts: router, dispatch, experts, combination, of one model-parallel rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.sampling.operator import Operator, Prepared
from tracedb.sampling.shapes import leaf

if TYPE_CHECKING:
    import torch

    from tracedb.sampling.sweep import Shape


def _mixture(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    """Every expert gets the same number of tokens, ordered by the router's choice.

    A sample must not depend on what random weights prefer: tokens are sorted by their expert and cut into equal
    loads, so the router, the dispatch and the experts do the work of a balanced layer.
    """
    import torch
    from torch.nn.functional import gelu

    tokens, dim, inner = shape["b"] * shape["l"], shape["dim"], shape["intermediate_size"]
    experts, chosen = shape["moe_num_experts"], shape["top_k"]
    local = experts // shape.get("mp", 1)
    load = tokens * chosen // experts
    x = leaf((tokens, dim), dtype, device)
    router = leaf((dim, experts), dtype, device)
    up, down = leaf((local, dim, inner), dtype, device), leaf((local, inner, dim), dtype, device)

    def forward() -> torch.Tensor:
        weights, expert = torch.topk(torch.softmax(x @ router, dim=-1), chosen, dim=-1)
        places = torch.argsort(expert.flatten(), stable=True)[: local * load]
        rows = places // chosen
        worked = torch.bmm(gelu(torch.bmm(x[rows].view(local, load, dim), up)), down)
        weighted = worked.view(local * load, dim) * weights.flatten()[places, None]
        return torch.zeros_like(x).index_add(0, rows, weighted)

    return Prepared(forward, [x, router, up, down])


def _no_mixture(shape: Shape, dtype: torch.dtype, device: torch.device) -> str | None:
    experts, chosen, parts = shape["moe_num_experts"], shape["top_k"], shape.get("mp", 1)
    if experts % parts:
        return f"moe_num_experts {experts} is not divisible by mp {parts}"
    if chosen > experts:
        return f"top_k {chosen} is more than moe_num_experts {experts}"
    if shape["b"] * shape["l"] * chosen % experts:
        return f"{shape['b'] * shape['l'] * chosen} routed tokens cannot be divided evenly among {experts} experts"
    if shape["intermediate_size"] > 4 * shape["dim"]:
        return f"intermediate_size {shape['intermediate_size']} is more than four times dim {shape['dim']}"
    return None


RANKS, LOCAL = 2, 2
"""Ranks that send tokens, and experts that they are for. Their number does not matter as long as there are several."""


def _copies(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    """Order the tokens that several ranks sent by expert: blocks of rows change places."""
    rows = shape["b"] * shape["l"] // (RANKS * LOCAL)
    x = leaf((RANKS, LOCAL, rows, shape["dim"]), dtype, device)
    return Prepared(lambda: x.transpose(0, 1).reshape(LOCAL, -1, shape["dim"]), [x])


def _no_copies(shape: Shape, dtype: torch.dtype, device: torch.device) -> str | None:
    tokens = shape["b"] * shape["l"]
    return f"{tokens} tokens cannot be divided by {RANKS * LOCAL}" if tokens % (RANKS * LOCAL) else None


OPERATORS = (
    Operator("expert_copies", _copies, _no_copies, ("b", "l", "dim")),
    Operator("moe", _mixture, _no_mixture, ("b", "l", "dim", "moe_num_experts", "intermediate_size", "top_k")),
)
