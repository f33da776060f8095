"""The interface of an operator that can be sampled, and the lookup of operators: shipped, installed or in a file."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.errors import TracedbError
from tracedb.sampling.sweep import Shape

if TYPE_CHECKING:
    import torch

GROUP = "tracedb.operators"
SHIPPED_MODULE = "target_functions"
"""Name of the operator module in configurations of estimate-train-time; the shipped operators replace it."""


@dataclass
class Prepared:
    """An operator with its inputs on the device, ready to be run repeatedly."""

    forward: Callable[[], torch.Tensor]
    """Runs the forward pass; for an optimizer, the step."""
    leaves: list[torch.Tensor] = field(default_factory=list)
    """Inputs and weights with gradients; these are cleared before each iteration."""
    is_step: bool = False
    """Whether it is an optimizer's step, which has no backward pass."""


@dataclass(frozen=True)
class Operator:
    """An operator that can be sampled."""

    name: str
    build: Callable[[Shape, torch.dtype, torch.device], Prepared]
    """Makes the inputs of a shape. The only expected failure is running out of memory."""
    invalid: Callable[[Shape, torch.dtype, torch.device], str | None] = lambda shape, dtype, device: None
    """Says why a shape is invalid (heads that do not divide, …), or returns None."""
    needs: tuple[str, ...] = ()
    """Parameters that a shape must have."""


def find(name: str, module: str | None, function: str | None, beside: Path) -> Operator:
    """Return the operator of a configuration. Raises ``TracedbError`` if there is none.

    ``module`` names a Python file, relative to the folder ``beside``; it defines the operator as ``function``.
    Without a file, installed operators take precedence over the shipped ones.
    """
    if module is not None and module.endswith(".py"):
        return _checked(_from_file(beside / module, function or name), name)
    installed = [point for point in entry_points(group=GROUP) if point.name == name]
    if installed:
        try:
            return _checked(installed[0].load(), name)
        except ImportError as error:
            raise TracedbError(f"operator {name!r} of {installed[0].value} cannot be imported: {error}") from error
    if module is not None and module != SHIPPED_MODULE and (beside / f"{module}.py").is_file():
        return _checked(_from_file(beside / f"{module}.py", function or name), name)
    found = shipped().get(name)
    if found is None:
        raise TracedbError(
            f"there is no operator {name!r}; shipped are {', '.join(shipped())}; "
            f"others come from entry points {GROUP} or from a Python file in module_name"
        )
    return found


def shipped() -> Mapping[str, Operator]:
    """Return the shipped operators by name."""
    from tracedb.sampling import attention, matmul, mixture_of_experts, optimizers, pointwise

    parts = (
        pointwise.OPERATORS,
        matmul.OPERATORS,
        attention.OPERATORS,
        mixture_of_experts.OPERATORS,
        optimizers.OPERATORS,
    )
    return {operator.name: operator for part in parts for operator in part}


def _from_file(path: Path, attribute: str) -> object:
    spec = importlib.util.spec_from_file_location(f"tracedb_operators_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise TracedbError(f"{path}: no such Python file; module_name is relative to the configuration's folder")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: object = getattr(module, attribute, None)
    if found is None:
        raise TracedbError(f"{path}: has no {attribute!r}, which function_name or kernel_name asks for")
    return found


def _checked(found: object, name: str) -> Operator:
    """Return an ``Operator``; a plain function ``build(shape, dtype, device)`` is wrapped in one."""
    if isinstance(found, Operator):
        return found
    if callable(found):
        return Operator(name, found)
    raise TracedbError(f"operator {name!r} is a {type(found).__name__}, expected a tracedb.sampling.operator.Operator")
