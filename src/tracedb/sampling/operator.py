"""The interface of an operator that can be sampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracedb.sampling.sweep import Shape

if TYPE_CHECKING:
    import torch


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
