"""The ways in which a recorded operator may have been called, where the trace leaves something open.

A trace holds no element types inside lists of tensors, no shapes of lists of more than 30 tensors, no texts, and not
whether a number was a tensor of the host. Each choice is tried; the kernels that it launches tell which one it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracedb.replay import operators, tensors, values
from tracedb.replay.operators import Form, Incomplete
from tracedb.replay.recorded_passes import Recorded, Signature
from tracedb.replay.tensors import Spec

MOST = 16
"""Variants of a signature that are tried."""
_FALLBACK = ("float32", "bfloat16", "float16")
_COPIES = ("copy_",)


@dataclass(frozen=True)
class Context:
    """What the rest of the capture says about an operator's open inputs."""

    dtypes: Sequence[str]
    """Element types for lists of tensors, the likeliest first."""
    parameters: Sequence[Spec]
    """The model's parameters, in the order of the forward pass; empty if no backward pass was recorded."""


def context(recorded: Recorded) -> Context:
    """Return the floating-point types of a capture by recorded time, and its parameters."""
    time: dict[str, float] = {}
    for signature in recorded.signatures:
        for kind in signature.types:
            name = tensors.DTYPES.get(str(kind), "")
            if "float" in name:
                time[name] = time.get(name, 0.0) + signature.share_percent
    ordered = sorted(time, key=lambda name: (-time[name], name))
    parameters = [
        Spec(dims, None, tensors.DTYPES[kind]) for dims, kind in recorded.parameters if kind in tensors.DTYPES
    ]
    return Context(list(dict.fromkeys([*ordered, *_FALLBACK])), parameters)


def of(signature: Signature, around: Context) -> list[Form]:
    """Return the ways to call a signature's operator, the likeliest first. Raises ``Incomplete`` if there is none."""
    found: list[Form] = []
    faults: list[Incomplete] = []
    for form in operators.bound(signature):
        try:
            for known in _with_lists(form, around):
                for typed in _with_types(known, around):
                    for complete in _with_modes(typed):
                        found += _with_places(complete, signature)
        except Incomplete as error:
            faults.append(error)
    if not found:
        raise faults[0] if faults else Incomplete("no inputs that fit")
    return [*found, *_with_tf32(found, signature)][:MOST]


def _with_lists(form: Form, around: Context) -> Iterator[Form]:
    """Yield the form with shapes for its lists of tensors that have none recorded."""
    unknown = [name for name, value in form.inputs.items() if operators.is_unrecorded(value)]
    if not unknown:
        yield form
        return
    if not around.parameters:
        raise Incomplete(f"the shapes of the tensors in {unknown[0]} are not recorded")
    note = "shapes of the lists taken from the gradients of the pass, since lists of more than 30 tensors have none"
    steps = [Spec((), None, "float32", "ones")] * len(around.parameters)
    for is_steps in (False, True) if form.overload.operator.startswith("_foreach_") else (False,):
        inputs = dict(form.inputs)
        for name in unknown:
            inputs[name] = steps if is_steps or name == "state_steps" else list(around.parameters)
            if name == "max_exp_avg_sqs" and not form.inputs.get("amsgrad"):
                inputs[name] = []
        yield operators.with_inputs(form, inputs, note)


def _with_types(form: Form, around: Context) -> Iterator[Form]:
    """Yield the form with each likely element type for lists of tensors whose type is not recorded."""

    def typed(value: Any, dtype: str) -> Any:
        return [replace(item, dtype=item.dtype or dtype) for item in value] if _is_tensors(value) else value

    if not any(_is_tensors(value) and any(not item.dtype for item in value) for value in form.inputs.values()):
        yield form
        return
    for dtype in around.dtypes:
        yield operators.with_inputs(form, {name: typed(value, dtype) for name, value in form.inputs.items()})


def _is_tensors(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Spec) for item in value)


def _with_modes(form: Form) -> Iterator[Form]:
    """Yield the form with numbers for lists of numbers, and with each mode where a text chooses between kernels."""
    inputs = dict(form.inputs)
    length = max((len(value) for value in inputs.values() if _is_tensors(value)), default=0)
    for name, value in inputs.items():
        if value is values.MISSING:
            if not length:
                raise Incomplete(f"input {name} is not recorded")
            inputs[name] = [1.0] * length
    if "approximate" not in inputs:
        yield replace(form, inputs=inputs)
        return
    for mode in ("none", "tanh"):
        yield replace(form, inputs={**inputs, "approximate": mode})


def _with_places(form: Form, signature: Signature) -> Iterator[Form]:
    """Yield the form with its tensors on the device or the host, as far as the recording tells."""
    if form.overload.operator in _COPIES and signature.copy_kind in ("HtoD", "DtoH"):
        host = "pinned" if "pinned" in (signature.kernels or "").lower() else "host"
        name = "src" if signature.copy_kind == "HtoD" else "self"
        value = form.inputs.get(name)
        if isinstance(value, Spec):
            yield replace(form, inputs={**form.inputs, name: replace(value, place=host)})
            return
    numbers = [
        name
        for name, value in form.inputs.items()
        if isinstance(value, Spec) and value.dims == () and value.dtype in ("float64", "int64")
    ]
    sized = any(spec.dims for spec in form.specs())
    if numbers and sized:  # a Python number comes as a tensor of the host without dimensions
        hosted = {name: replace(form.inputs[name], place="host") for name in numbers}
        yield replace(form, inputs={**form.inputs, **hosted})
    yield form


def _with_tf32(forms: Sequence[Form], signature: Signature) -> list[Form]:
    is_single = any(spec.dtype == "float32" for form in forms[:1] for spec in form.specs())
    if not (signature.matrix_product and is_single):
        return []
    return [replace(form, tf32=True, note="TF32 allowed, as the recorded kernels show") for form in forms]
