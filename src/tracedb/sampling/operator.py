"""What an operator must provide to be sampled, and where operators are found: shipped, installed or in a file."""

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
"""What configurations of estimate-train-time call the module of their operators; the shipped ones stand for it."""


@dataclass
class Prepared:
    """An operator with its inputs on the device, ready to run again and again."""

    forward: Callable[[], torch.Tensor]
    """Runs the forward pass; of an optimizer, the step."""
    leaves: list[torch.Tensor] = field(default_factory=list)
    """Inputs and weights that get gradients; these are dropped before each iteration."""
    is_step: bool = False
    """Whether it is an optimizer's step, which has no backward pass."""


@dataclass(frozen=True)
class Operator:
    """An operator that can be sampled."""

    name: str
    build: Callable[[Shape, torch.dtype, torch.device], Prepared]
    """Makes the inputs of a shape. Raises nothing that is expected but running out of memory."""
    invalid: Callable[[Shape, torch.dtype, torch.device], str | None] = lambda shape, dtype, device: None
    """Says why a shape does not exist (heads that do not divide, …), or None."""
    needs: tuple[str, ...] = ()
    """Parameters that a shape must have."""


def find(name: str, module: str | None, function: str | None, beside: Path) -> Operator:
    """Return the operator of a configuration. Raises ``TracedbError`` where there is none.

    ``module`` names a Python file, taken from the folder ``beside``; it holds the operator under ``function``.
    Without a file, installed operators come before the shipped ones.
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
        raise TracedbError(f"{path}: no such Python file; module_name names one beside the configuration")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: object = getattr(module, attribute, None)
    if found is None:
        raise TracedbError(f"{path}: has no {attribute!r}, which function_name or kernel_name asks for")
    return found


def _checked(found: object, name: str) -> Operator:
    """Return an operator as such; a plain function ``build(shape, dtype, device)`` becomes one."""
    if isinstance(found, Operator):
        return found
    if callable(found):
        return Operator(name, found)
    raise TracedbError(f"operator {name!r} is a {type(found).__name__}, expected a tracedb.sampling.operator.Operator")
