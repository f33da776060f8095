"""Whole models as operators: a training step of each kind of layer, small enough that the host bounds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.sampling.layer_kinds import HOST, LAYERS
from tracedb.sampling.operator import Operator, Prepared
from tracedb.sampling.shapes import VOCABULARY, divides, inner, key_value_heads

if TYPE_CHECKING:
    import torch

    from tracedb.sampling.sweep import Shape

NEEDS = ("layers", "b", "l", "dim", "h")
EXPERTS, TOP_K = 4, 1
"""Of a model with experts, unless its shape says otherwise."""


def _operator(kind: str) -> Operator:
    def build(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
        from tracedb.sampling import whole_models

        sizes = whole_models.Sizes(
            LAYERS[kind], shape["layers"], shape["dim"], shape["h"], key_value_heads(shape), inner(shape), shape["l"],
            shape.get("moe_num_experts", EXPERTS), shape.get("top_k", TOP_K), bool(shape.get("recompute")),
        )  # fmt: skip
        passes = whole_models.passes(sizes, shape["b"], dtype, device, shape.get("vocabulary", VOCABULARY))
        return Prepared(passes["forward"], passes=passes)

    return Operator(HOST + kind, build, divides("h", "dim"), NEEDS, is_model=True)


OPERATORS = tuple(_operator(kind) for kind in LAYERS)
