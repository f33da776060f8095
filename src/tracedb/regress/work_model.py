"""The work of an operator for a shape: the sizes that its kernels see, its FLOPs and the minimum bytes moved.

Shape parameters are those of estimate-train-time and of ``tracedb sample``: mp (model-parallel ranks), b, h, l, dim and
others; they are converted to the sizes of the matrices and rows of one rank.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracedb.errors import UsageError
from tracedb.regress import own_features

Array = NDArray[np.float64]

VOCABULARY = 50_304
"""Rows of the embedding over all ranks, if a shape does not give them: GPT-2's, rounded up to a multiple of 128."""
HEAD_WIDTH = 128
"""Width of an attention head, if a shape does not give it."""
ELEMENT_BYTES = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1}


PRODUCTS = ("linear1", "linear2", "linear3", "linear4", "linear_final", "bmm", "baddbmm", "moe")
"""Operators that are matrix products: the multiplications take their time, not the bytes."""


@dataclass(frozen=True)
class Problem:
    """Sizes of many shapes of one operator: every value is an array with one element per shape.

    ``sizes``: what the kernels see; shapes with the same sizes are the same work. ``elements``: minimum number of
    elements read and written. ``matrices``: (rows, columns, depth, batch) of each matrix product. ``falling``: sizes
    with which the time falls.
    """

    sizes: Mapping[str, Array]
    flops: Array
    elements: Array
    matrices: tuple[tuple[Array, Array, Array, Array], ...] = ()
    falling: tuple[str, ...] = ()


class _Shapes:
    """Parameters of many shapes as arrays."""

    def __init__(self, shapes: Sequence[Mapping[str, int]]) -> None:
        self._shapes = shapes

    def __getitem__(self, name: str) -> Array:
        return np.array([shape[name] for shape in self._shapes], dtype=np.float64)

    def get(self, name: str, default: float) -> Array:
        return np.array([shape.get(name, default) for shape in self._shapes], dtype=np.float64)

    @property
    def names(self) -> Collection[str]:
        """Their parameters, the same for all."""
        return self._shapes[0]

    @property
    def ranks(self) -> Array:
        return self.get("mp", 1)

    @property
    def tokens(self) -> Array:
        return self["b"] * self["l"]

    @property
    def heads(self) -> Array:
        return np.maximum(np.floor(self["h"] / self.ranks), 1)

    @property
    def head_width(self) -> Array:
        return np.array(
            [shape["dim"] // shape["h"] if "dim" in shape else HEAD_WIDTH for shape in self._shapes], dtype=np.float64
        )

    @property
    def key_value_heads(self) -> Array:
        """Heads of key and value on one rank: fewer than those of the query in grouped-query attention."""
        kv = np.array([shape.get("kv", shape["h"]) for shape in self._shapes], dtype=np.float64)
        return np.maximum(np.floor(kv / self.ranks), 1)

    @property
    def projected(self) -> Array:
        """Features of query, key and value together on one rank."""
        if "kv" in self.names or "dim" not in self.names:
            kv = np.array([shape.get("kv", shape["h"]) for shape in self._shapes], dtype=np.float64)
            return np.floor((self["h"] + 2 * kv) * self.head_width / self.ranks)
        return np.floor(3 * self["dim"] / self.ranks)

    @property
    def width(self) -> Array:
        """The hidden size: heads of 128 if a shape does not give it."""
        return self["dim"] if "dim" in self.names else HEAD_WIDTH * self["h"]

    @property
    def inner(self) -> Array:
        """Width between the two products of an MLP on one rank."""
        ffn = np.array([shape.get("ffn", 4 * shape["dim"]) for shape in self._shapes], dtype=np.float64)
        return np.floor(ffn / self.ranks)

    @property
    def vocabulary(self) -> Array:
        return np.ceil(VOCABULARY / self.ranks)


def _product(
    pass_: str, sizes: Mapping[str, Array], product: tuple[Array, Array, Array, Array], extra: float = 0.0
) -> Problem:
    """Return one matrix product, or for the backward pass the two of its gradients."""
    rows, columns, depth, batch = product
    flops, elements = 2 * batch * rows * columns * depth, batch * (rows * depth + depth * columns + rows * columns)
    elements = elements + extra * batch * rows * columns
    if pass_ != "bwd":
        return Problem(sizes, flops, elements, (product,))
    of_input, of_weight = (rows, depth, columns, batch), (depth, columns, rows, batch)
    return Problem(sizes, 2 * flops, 2 * elements, (of_input, of_weight))


def _linear(widths: Callable[[_Shapes], tuple[Array, Array]]) -> Callable[[_Shapes, str], Problem]:
    def build(shapes: _Shapes, pass_: str) -> Problem:
        into, out = widths(shapes)
        sizes = {"tokens": shapes.tokens, "inputs": into, "outputs": out}
        return _product(pass_, sizes, (shapes.tokens, out, into, np.ones_like(into)))

    return build


def _scores(shapes: _Shapes, pass_: str) -> Problem:
    """Scores of attention: query times key, added to a bias."""
    batch, length, width = np.floor(shapes["b"] * shapes["h"] / shapes.ranks), shapes["l"], shapes.head_width
    sizes = {"batch": batch, "length": length, "width": width}
    return _product(pass_, sizes, (length, length, width, batch), extra=1.0)


def _values(shapes: _Shapes, pass_: str) -> Problem:
    """Probabilities of attention times values."""
    batch, length, width = np.floor(shapes["b"] * shapes["h"] / shapes.ranks), shapes["l"], shapes.head_width
    sizes = {"batch": batch, "length": length, "width": width}
    return _product(pass_, sizes, (length, width, length, batch))


def _flash(shapes: _Shapes, pass_: str) -> Problem:
    b, h, length, width = shapes["b"], shapes.heads, shapes["l"], shapes.head_width
    products = 4.0 if pass_ != "bwd" else 10.0
    sizes = {"b": b, "heads": h, "length": length, "width": width}
    kv = shapes.key_value_heads
    if "kv" in shapes.names:
        sizes["shared"] = kv
    flops = products * b * h * length**2 * width
    # A quarter each of what is read and written belongs to query, key, value and output.
    elements = products * b * (h + kv) / 2 * length * width
    return Problem(sizes, flops, elements, ((length, width, length, b * h),))


def _rows(
    names: Sequence[str], work: Callable[[_Shapes], Mapping[str, Array]], forward: float, backward: float
) -> Callable[[_Shapes, str], Problem]:
    """Return an operator that passes over its elements: ``forward`` and ``backward`` numbers moved for each."""

    def build(shapes: _Shapes, pass_: str) -> Problem:
        sizes = work(shapes)
        elements = np.prod([sizes[name] for name in names], axis=0)
        return Problem(sizes, 10 * elements, (backward if pass_ == "bwd" else forward) * elements)

    return build


def _embedding(shapes: _Shapes, pass_: str) -> Problem:
    tokens, rows, width = shapes.tokens, shapes.vocabulary, shapes["dim"]
    elements = 2 * tokens * width + (2 * rows * width if pass_ == "bwd" else 0)
    return Problem({"tokens": tokens, "vocabulary": rows, "width": width}, tokens * width, elements)


def _mixture(shapes: _Shapes, pass_: str) -> Problem:
    tokens, dim, inner = shapes.tokens, shapes["dim"], shapes["intermediate_size"]
    local, chosen = np.floor(shapes["moe_num_experts"] / shapes.ranks), shapes.get("top_k", 1)
    load = np.maximum(np.floor(tokens * chosen / shapes["moe_num_experts"]), 1)
    sizes = {"tokens": tokens, "dim": dim, "inner": inner, "experts": local, "load": load}
    return _product(pass_, sizes, (load, inner, dim, 2 * local), extra=1.0)


def _optimizer(ends: int) -> Callable[[_Shapes, str], Problem]:
    """Return the update of a stage's weights; ``ends``: embeddings or output layers among them."""

    def build(shapes: _Shapes, pass_: str) -> Problem:
        ranks, dim, layers = shapes.ranks, shapes["dim"], shapes["encoders"]
        weights = layers * (12 * dim**2 / ranks + 13 * dim) + ends * shapes.vocabulary * dim
        return Problem({"mp": ranks, "dim": dim, "encoders": layers}, 12 * weights, 7 * weights, (), ("mp",))

    return build


_TOKEN_SIZES: Callable[[_Shapes], Mapping[str, Array]] = lambda s: {"b": s["b"], "length": s["l"], "width": s["dim"]}  # noqa: E731
_INNER_SIZES: Callable[[_Shapes], Mapping[str, Array]] = lambda s: {"b": s["b"], "length": s["l"], "width": s.inner}  # noqa: E731
_SCORE_SIZES: Callable[[_Shapes], Mapping[str, Array]] = lambda s: {  # noqa: E731
    "batch": s["b"] * s.heads,
    "length": s["l"],
}


def _squares(forward: float, backward: float) -> Callable[[_Shapes, str], Problem]:
    def build(shapes: _Shapes, pass_: str) -> Problem:
        batch, length = shapes["b"] * shapes.heads, shapes["l"]
        elements = batch * length**2
        moved = backward if pass_ == "bwd" else forward
        return Problem({"batch": batch, "length": length}, 10 * elements, moved * elements)

    return build


OPERATORS: dict[str, Callable[[_Shapes, str], Problem]] = {
    "linear1": _linear(lambda s: (s.width, s.projected)),
    "linear2": _linear(lambda s: (np.floor(s["dim"] / s.ranks), s["dim"])),
    "linear3": _linear(lambda s: (s["dim"], s.inner)),
    "linear4": _linear(lambda s: (s.inner, s["dim"])),
    "linear_final": _linear(lambda s: (s["dim"], s.vocabulary)),
    "baddbmm": _scores,
    "bmm": _values,
    "flash_atten": _flash,
    "moe": _mixture,
    "embedding": _embedding,
    "RoPE": _rows(
        ("b", "length", "heads", "width"),
        lambda s: {"b": s["b"], "length": s["l"], "heads": s.heads, "width": s.head_width},
        2,
        2,
    ),
    "gelu": _rows(("b", "length", "width"), _INNER_SIZES, 2, 3),
    "swiglu": _rows(("b", "length", "width"), _INNER_SIZES, 5, 9),
    "qkv_gradients": _rows(
        ("b", "length", "width"), lambda s: {"b": s["b"], "length": s["l"], "width": s.projected}, 2, 2
    ),
    "layernorm": _rows(("b", "length", "width"), _TOKEN_SIZES, 2, 3),
    "RMSlayernorm": _rows(("b", "length", "width"), _TOKEN_SIZES, 2, 3),
    "res_add": _rows(("b", "length", "width"), _TOKEN_SIZES, 3, 2),
    "expert_copies": _rows(("b", "length", "width"), _TOKEN_SIZES, 2, 2),
    "softmax": _squares(2, 3),
    "ScaledUpperTriangMaskedSoftmax": _squares(2, 3),
    "fillmask": _squares(2.5, 2.5),
    "parallel_cross_entropy_128": _rows(
        ("b", "length", "vocabulary"),
        lambda s: {"b": s["b"], "length": s["l"], "vocabulary": s.vocabulary},
        3,
        2,
    ),
    "firstStage_optimizer": _optimizer(1),
    "middleStage_optimizer": _optimizer(0),
    "lastStage_optimizer": _optimizer(1),
}


OPTIONAL = {
    "linear1": ("dim", "h", "kv"),
    "linear3": ("ffn",),
    "linear4": ("ffn",),
    "gelu": ("ffn",),
    "swiglu": ("ffn",),
    "flash_atten": ("dim", "kv"),
    "qkv_gradients": ("dim", "kv"),
    "RoPE": ("dim",),
}
"""Parameters that a shape of an operator may leave out, in the order in which they follow from the others."""


def completed(operator: str, shape: Mapping[str, int], wanted: Collection[str]) -> dict[str, int] | None:
    """Return a shape with all of the wanted parameters, or None if one of them does not follow from the others."""
    found = dict(shape)
    for name in OPTIONAL.get(operator, ()):
        if name in found or name not in wanted:
            continue
        if name == "dim" and "h" in found:
            found["dim"] = HEAD_WIDTH * found["h"]
        elif name == "h" and "dim" in found:
            found["h"] = found["dim"] // HEAD_WIDTH if found["dim"] % HEAD_WIDTH == 0 else 1
        elif name == "kv" and "h" in found:
            found["kv"] = found["h"]
        elif name == "ffn" and "dim" in found:
            found["ffn"] = 4 * found["dim"]
    return found if set(found) == set(wanted) else None


PRODUCT = {"batch", "m", "n", "k"}
"""Parameters of the shape of a recorded matrix product, convolution or attention (the view ``op_flops``)."""


def problem(operator: str, pass_: str, shapes: Sequence[Mapping[str, int]]) -> Problem:
    """Return the work of an operator for each of the shapes, which all have the same parameters.

    Functions of one's own come first (see ``own_features``). An operator with the parameters batch, m, n and k, as
    recorded ones have, is a product. The work of any other unknown operator is assumed proportional to each of its
    parameters.
    """
    if own_features.function(operator) is not None:
        return _own(operator, shapes)
    if operator in OPERATORS:
        try:
            return OPERATORS[operator](_Shapes(shapes), pass_)
        except KeyError:
            pass  # another operator of that name, with other parameters
    values = _Shapes(shapes)
    sizes = {name: np.maximum(values[name], 1) for name in shapes[0]}
    if set(sizes) == PRODUCT:
        return _product("fwd", sizes, (sizes["m"], sizes["n"], sizes["k"], sizes["batch"]))
    volume = np.prod(list(sizes.values()), axis=0)
    return Problem(sizes, volume, volume)


def _own(operator: str, shapes: Sequence[Mapping[str, int]]) -> Problem:
    """Return the work by the operator's own function; its sizes are all but FLOPs and bytes, if there are others."""
    rows = [own_features.of(operator, shape) or {} for shape in shapes]
    if any(set(row) != set(rows[0]) for row in rows):
        raise UsageError(f"features of {operator!r} must have the same names at every shape")
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    sizes = {name: values for name, values in columns.items() if name not in ("flops", "bytes")} or columns
    volume = np.prod(list(sizes.values()), axis=0)
    return Problem(sizes, columns.get("flops", volume), columns.get("bytes", volume))


def work(operator: str, pass_: str, dtype: str, shape: Mapping[str, int]) -> tuple[float, float]:
    """Return the FLOPs and minimum bytes moved for one shape."""
    found = problem(operator, pass_, [shape])
    return float(found.flops[0]), float(found.elements[0]) * ELEMENT_BYTES.get(dtype, 2)
