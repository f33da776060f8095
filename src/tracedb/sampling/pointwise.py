"""Norms, activations, residuals, embedding, softmax and cross entropy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.sampling.operator import Operator, Prepared
from tracedb.sampling.shapes import VOCABULARY, divides, inner, leaf

if TYPE_CHECKING:
    import torch

    from tracedb.sampling.sweep import Shape


def _hidden(shape: Shape, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return leaf((shape["b"], shape["l"], shape["dim"]), dtype, device)


def _layernorm(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    from torch.nn.functional import layer_norm

    x, width = _hidden(shape, dtype, device), (shape["dim"],)
    weight, bias = leaf(width, dtype, device), leaf(width, dtype, device)
    return Prepared(lambda: layer_norm(x, width, weight, bias), [x, weight, bias])


def _rms_norm(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    from torch.nn.functional import rms_norm

    x, width = _hidden(shape, dtype, device), (shape["dim"],)
    weight = leaf(width, dtype, device)
    return Prepared(lambda: rms_norm(x, width, weight), [x, weight])


def _gelu(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    from torch.nn.functional import gelu

    x = leaf((shape["b"], shape["l"], inner(shape) // shape.get("mp", 1)), dtype, device)
    return Prepared(lambda: gelu(x), [x])


def _swiglu(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    """SiLU of the gate's product, times the other product."""
    from torch.nn.functional import silu

    size = (shape["b"], shape["l"], inner(shape) // shape.get("mp", 1))
    gate, up = leaf(size, dtype, device), leaf(size, dtype, device)
    return Prepared(lambda: silu(gate) * up, [gate, up], recent=[gate, up])


def _residual(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    x, y = _hidden(shape, dtype, device), _hidden(shape, dtype, device)
    return Prepared(lambda: x + y, [x, y])


def _embedding(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    import torch
    from torch.nn.functional import embedding

    rows = VOCABULARY // shape.get("mp", 1)
    tokens = torch.randint(0, rows, (shape["b"], shape["l"]), device=device)
    weight = leaf((rows, shape["dim"]), dtype, device)
    return Prepared(lambda: embedding(tokens, weight), [weight], recent=[])


def _cross_entropy(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    """One rank's share of the vocabulary, without the collectives between the shares."""
    import torch
    from torch.nn.functional import cross_entropy

    columns = VOCABULARY // shape.get("mp", 1)
    tokens = shape["b"] * shape["l"]
    logits = leaf((tokens, columns), dtype, device)
    target = torch.randint(0, columns, (tokens,), device=device)
    return Prepared(lambda: cross_entropy(logits, target), [logits])


OPERATORS = (
    Operator("embedding", _embedding, divides("vocabulary"), ("b", "l", "dim")),
    Operator("layernorm", _layernorm, needs=("b", "l", "dim")),
    Operator("RMSlayernorm", _rms_norm, needs=("b", "l", "dim")),
    Operator("gelu", _gelu, divides("ffn"), ("b", "l", "dim")),
    Operator("swiglu", _swiglu, divides("ffn"), ("b", "l", "dim")),
    Operator("res_add", _residual, needs=("b", "l", "dim")),
    Operator("parallel_cross_entropy_128", _cross_entropy, divides("vocabulary"), ("b", "l")),
)
