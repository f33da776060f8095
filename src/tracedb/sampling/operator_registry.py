"""Find operators: shipped ones, installed ones, or one in a Python file."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path

from tracedb.errors import TracedbError
from tracedb.sampling import attention, host_models, matmul, mixture_of_experts, optimizers, pointwise
from tracedb.sampling.operator import Operator

GROUP = "tracedb.operators"
SHIPPED_MODULE = "target_functions"
"""Name of the operator module in configurations of estimate-train-time; the shipped operators replace it."""


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
    parts = (
        pointwise.OPERATORS,
        matmul.OPERATORS,
        attention.OPERATORS,
        mixture_of_experts.OPERATORS,
        optimizers.OPERATORS,
        host_models.OPERATORS,
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
