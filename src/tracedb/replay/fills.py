"""What a made-up input must hold so that an operator accepts it: indices that exist, steps and variances above zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tracedb.replay.tensors import Spec

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

POSITIVE = ("sqrt", "sqrt_", "rsqrt", "rsqrt_", "log", "log_", "_foreach_sqrt", "_foreach_sqrt_")
"""Operators whose results on numbers below zero are NaN, which a CPU is slow on."""


def filled(operator: str, argument: str, spec: Spec, inputs: Mapping[str, Any]) -> Spec:
    """Return the input with the contents that its role asks for.

    ``inputs``: the operator's inputs by the names of its schema; tensors as ``Spec``.
    """
    if argument == "found_inf":
        return replace(spec, fill="zeros")
    if argument in ("state_steps", "grad_scale", "inv_scale"):
        return replace(spec, fill="ones")
    if spec.dtype not in INTEGERS:
        is_positive = operator in POSITIVE or any(word in argument for word in ("_sq", "var", "rstd"))
        return replace(spec, fill="positive") if is_positive else spec
    if argument.startswith(("cum_seq", "cu_seqlens", "seqstart")):
        query = inputs.get("query")
        return replace(spec, fill="offsets", bound=query.dims[0] if isinstance(query, Spec) and query.dims else 1)
    return replace(spec, fill="index", bound=_bound(operator, argument, inputs))


def _bound(operator: str, argument: str, inputs: Mapping[str, Any]) -> int:
    """Return the number of values that an index may have; without a known role, what is valid for every input."""
    weight, own = inputs.get("weight"), inputs.get("self")
    if argument in ("indices", "index") and isinstance(inputs.get("num_weights"), int):
        return max(int(inputs["num_weights"]), 1)
    if argument in ("indices", "index") and "embedding" in operator and isinstance(weight, Spec) and weight.dims:
        return max(weight.dims[0], 1)
    if argument == "target" and isinstance(own, Spec) and own.dims:
        return max(own.dims[1 if len(own.dims) > 1 else 0], 1)
    dim = inputs.get("dim")
    if argument == "index" and isinstance(own, Spec) and own.dims and isinstance(dim, int):
        return max(own.dims[dim], 1) if -len(own.dims) <= dim < len(own.dims) else 1
    sizes = [size for item in inputs.values() if isinstance(item, Spec) for size in item.dims if size > 1]
    return min(sizes, default=1)
