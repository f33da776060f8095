"""Operators found by name in PyTorch's registry, and their inputs bound to the arguments of a schema.

A trace is untrusted: a name only looks up a schema, of the namespace aten or of a library that the user named; nothing
is imported or evaluated, and texts (file names, modes) are never taken from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

from tracedb.errors import TracedbError
from tracedb.replay import fills, tensors, values
from tracedb.replay.recorded_passes import Signature
from tracedb.replay.tensors import Spec

_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,99})::([A-Za-z_][A-Za-z0-9_]{0,99})")
_SPACES = {"aten"}
"""Namespaces whose operators may be run: PyTorch's own, and those of libraries that the user named."""
_UNRECORDED_LIST = "unrecorded list"
_DEVICE = object()
"""Stands for the device that replays."""
MOST_TENSORS = 10_000
"""Longest list of tensors that is made."""


@dataclass(frozen=True)
class Argument:
    """An argument of a schema."""

    name: str
    kind: str
    is_optional: bool
    by_name: bool
    default: Any = values.MISSING


@dataclass(frozen=True)
class Overload:
    """An overload of an operator: ``aten::add`` with ``Tensor``, for instance."""

    operator: str
    name: str
    arguments: tuple[Argument, ...]
    space: str = "aten"

    def function(self) -> Callable[..., Any]:
        """Return what runs it."""
        import torch

        packet = getattr(getattr(torch.ops, self.space), self.operator)
        found: Callable[..., Any] = getattr(packet, self.name or "default")
        return found


@dataclass(frozen=True)
class Form:
    """One way to call an operator: an overload with inputs; a tensor to make is a ``Spec``."""

    overload: Overload
    inputs: Mapping[str, Any]
    note: str | None = None
    """What had to be assumed."""
    tf32: bool = False
    """Whether matrix products of fp32 may use TF32, as the recording program may have allowed."""

    def specs(self) -> Iterator[Spec]:
        """Yield the tensors to make."""
        for value in self.inputs.values():
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, Spec):
                    yield item

    def call(self, make: Callable[[Spec], Any]) -> Callable[[], Any]:
        """Return a function that runs the operator on tensors made now."""

        def made_of(value: Any) -> Any:
            if isinstance(value, list):
                return [made_of(item) for item in value]
            if value is _DEVICE:
                return make(Spec((), None, "uint8")).device
            return make(value) if isinstance(value, Spec) else value

        made = {name: made_of(value) for name, value in self.inputs.items()}
        function = self.overload.function()
        arguments = self.overload.arguments
        first = [made[item.name] for item in arguments if not item.by_name and item.name in made]
        named = {item.name: made[item.name] for item in arguments if item.by_name and item.name in made}
        return lambda: function(*first, **named)


def load_library(module: str) -> list[str]:
    """Import a module that the user named, and let operators of the namespaces that it registers be run.

    Returns these namespaces. Raises ``TracedbError`` if it cannot be imported or registers none.
    """
    import torch

    before = {name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names()}
    try:
        import_module(module)
    except ImportError as error:
        raise TracedbError(f"--library {module}: cannot be imported: {error}") from error
    after = {name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names()}
    found = sorted((after - before) | ({module.partition(".")[0]} & after))
    if not found:
        raise TracedbError(f"--library {module}: registers no operators with PyTorch")
    _SPACES.update(found)
    overloads.cache_clear()
    return found


@cache
def overloads(name: str) -> tuple[Overload, ...]:
    """Return the overloads that PyTorch's dispatcher has of a recorded name; empty if it has no such operator."""
    import torch

    found = _NAME.fullmatch(name)
    if found is None or found[1] not in _SPACES:
        return ()
    known = []
    for schema in torch._C._jit_get_schemas_for_operator(name):
        try:
            torch._C._dispatch_find_schema_or_throw(name, schema.overload_name)
        except RuntimeError:  # of TorchScript only
            continue
        arguments = [_argument(item) for item in schema.arguments]
        known.append(Overload(found[2], schema.overload_name, tuple(arguments), found[1]))
    return tuple(known)


def _argument(item: Any) -> Argument:
    kind = str(item.real_type)
    optional = re.fullmatch(r"Optional\[(.*)\]", kind)
    default = item.default_value if item.has_default_value() else values.MISSING
    return Argument(item.name, optional[1] if optional else kind, bool(optional), bool(item.kwarg_only), default)


class Incomplete(ValueError):
    """An input is not recorded, and cannot be made up."""


def bound(signature: Signature) -> list[Form]:
    """Return the ways to call a recorded operator, the likeliest first. Raises ``Incomplete`` if there is none."""
    fitting: list[Form] = []
    faults: list[str] = []
    for overload in overloads(signature.name):
        if not _may_fit(overload, signature):
            continue
        try:
            fitting.append(_form(overload, signature))
        except ValueError as error:
            faults.append(str(error))
    if not fitting:
        raise Incomplete(faults[0] if faults else f"no schema of {signature.name} has inputs as recorded")
    count = len(signature.types)
    return sorted(fitting, key=lambda form: len(form.overload.arguments) != count)


def _may_fit(overload: Overload, signature: Signature) -> bool:
    """Whether an overload takes inputs of the recorded kinds; a later version may have more, with defaults."""
    arguments, recorded = overload.arguments, signature.types
    if len(arguments) < len(recorded):
        return False
    if any(item.default is values.MISSING for item in arguments[len(recorded) :]):
        return False
    return all(_takes(item, str(kind)) for item, kind in zip(arguments, recorded, strict=False))


def _takes(argument: Argument, recorded: str) -> bool:
    kind = argument.kind
    if recorded == "Scalar":
        return kind in ("int", "SymInt", "float", "bool", "number", "ScalarType", "Layout", "Device", "MemoryFormat")
    if recorded == "ScalarList":
        return kind.startswith("List[") and "Tensor" not in kind
    if recorded == "TensorList":
        return kind in ("List[Tensor]", "List[Optional[Tensor]]")
    if recorded in ("", "GenericList", "None"):
        return argument.is_optional or kind not in ("int", "SymInt", "float", "bool", "number")
    return kind == "Tensor"


def _form(overload: Overload, signature: Signature) -> Form:
    inputs: dict[str, Any] = {}
    for place, argument in enumerate(overload.arguments[: len(signature.types)]):
        inputs[argument.name] = _input(argument, signature, place)
    return Form(overload, with_roles(overload, inputs))


def with_roles(overload: Overload, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs with contents that their roles ask for."""

    def filled(name: str, item: Any) -> Any:
        return fills.filled(overload.operator, name, item, inputs) if isinstance(item, Spec) else item

    return {
        name: [filled(name, item) for item in value] if isinstance(value, list) else filled(name, value)
        for name, value in inputs.items()
    }


def _input(argument: Argument, signature: Signature, place: int) -> Any:
    recorded = str(signature.types[place])
    dims = signature.dims[place] if place < len(signature.dims) else []
    strides = signature.strides[place] if place < len(signature.strides) else None
    if recorded == "TensorList":
        return _tensor_list(dims, strides)
    if recorded in ("Scalar", "ScalarList"):
        text = signature.values[place] if place < len(signature.values) else ""
        return _scalar(argument, str(text))
    if recorded in ("", "GenericList", "None"):
        return _absent(argument)
    return _tensor(dims, strides, tensors.dtype_of(recorded))


def _tensor(dims: object, strides: object, dtype: str) -> Spec:
    size = tensors.shape(dims)
    steps = tensors.shape(strides) if isinstance(strides, list) and len(strides) == len(size) else None
    return Spec(size, steps, dtype)


def _tensor_list(dims: object, strides: object) -> Any:
    """Return the tensors of a list, their type still unknown; traces hold no shapes of lists of more than 30."""
    if not isinstance(dims, list) or not dims or not all(isinstance(item, list) for item in dims):
        return _UNRECORDED_LIST
    if len(dims) > MOST_TENSORS:
        raise Incomplete(f"a list of {len(dims)} tensors")
    steps = strides if isinstance(strides, list) and len(strides) == len(dims) else [None] * len(dims)
    return [_tensor(size, step, "") for size, step in zip(dims, steps, strict=True)]


def _scalar(argument: Argument, text: str) -> Any:
    if argument.kind in ("Device", "Layout") or text == "":
        return _absent(argument)
    try:
        return values.read(text, argument.kind)
    except (ValueError, OverflowError) as error:
        raise Incomplete(f"input {argument.name}: {text[:40]!r} is {error}") from error


def _absent(argument: Argument) -> Any:
    """Return what stands for an input without a value: None, the schema's default, or an undefined tensor."""
    if argument.kind == "Device":
        return _DEVICE
    if argument.default is not values.MISSING:
        return argument.default
    if argument.is_optional or argument.kind == "Tensor":
        return None
    if argument.kind == "List[number]":
        return values.MISSING
    raise Incomplete(f"input {argument.name} ({argument.kind}) is not recorded")


def is_unrecorded(value: Any) -> bool:
    """Whether an input is a list of tensors whose shapes were not recorded."""
    return isinstance(value, str) and value == _UNRECORDED_LIST


def with_inputs(form: Form, inputs: Mapping[str, Any], note: str | None = None) -> Form:
    """Return the form with other inputs, whose roles are looked at again."""
    return replace(form, inputs=with_roles(form.overload, inputs), note=note or form.note)
