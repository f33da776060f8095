"""The interface of an operator that can be sampled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracedb.sampling.sweep import Shape

if TYPE_CHECKING:
    import torch


@dataclass
class Prepared:
    """An operator with its inputs on the device, ready to be run repeatedly."""

    forward: Callable[[], Any]
    """Runs the forward pass and returns its output, a tensor or several; for an optimizer, the step."""
    leaves: list[torch.Tensor] = field(default_factory=list)
    """Inputs and weights whose gradients the backward pass computes."""
    is_step: bool = False
    """Whether it is an optimizer's step, which has no backward pass."""
    recent: Sequence[torch.Tensor] | None = None
    """Inputs that the operator before it in a step has just written; None means the first of ``leaves``."""
    passes: Mapping[str, Callable[[], Any]] | None = None
    """Of a whole model: what a training step calls one after another, ``zero_grad``, ``forward``, ``backward`` and
    ``optimizer``."""

    @property
    def just_written(self) -> Sequence[torch.Tensor]:
        """The inputs that a step would have left in the L2 cache, as far as they fit."""
        return self.leaves[:1] if self.recent is None else self.recent


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
    is_model: bool = False
    """Whether it is a whole model, of which the host's time is sampled, without the profiler."""
