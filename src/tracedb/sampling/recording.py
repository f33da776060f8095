"""Run shapes under the profiler; each batch of shapes gives one trace file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tracedb.errors import TracedbError
from tracedb.sampling import device as devices
from tracedb.sampling.configuration import Configuration
from tracedb.sampling.operator import Operator, Prepared
from tracedb.sampling.sweep import Shape, text

if TYPE_CHECKING:
    import torch

FAULTS = (RuntimeError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError)
"""Exceptions an operator may raise for a shape; any other is a bug in the operator and ends the sweep."""
OUT_OF_MEMORY = ("out of memory", "can't allocate memory")
LOST_DEVICE = ("cuda error:", "device-side assert", "unspecified launch failure")


class Fault(NamedTuple):
    """What an exception of an operator means: out_of_memory, lost (the GPU cannot be used any more) or failed."""

    kind: str
    words: str
    """Its text in one line; of a failure with the exception's name."""


def fault_of(error: BaseException) -> Fault:
    """Return what one of ``FAULTS`` means."""
    words = " ".join(str(error).split())[:300] or type(error).__name__
    lowered = words.lower()
    if isinstance(error, MemoryError) or any(word in lowered for word in OUT_OF_MEMORY):
        return Fault("out_of_memory", words)
    if any(word in lowered for word in LOST_DEVICE):
        return Fault("lost", words)
    return Fault("failed", f"{type(error).__name__}: {words}")


@dataclass(frozen=True)
class Outcome:
    """The result for a shape: sampled, invalid, out_of_memory or error."""

    shape: Shape
    status: str
    detail: str | None = None


class Recorder:
    """Runs shapes of one operator with one element type on one device."""

    def __init__(
        self, operator: Operator, configuration: Configuration, dtype: torch.dtype, device: torch.device
    ) -> None:
        self._operator = operator
        self._iterations = configuration.active
        self._warmups = configuration.wait + configuration.warmup
        self._dtype = dtype
        self._device = device

    def invalid(self, shape: Shape) -> str | None:
        """Return why a shape is invalid, or None."""
        missing = [name for name in self._operator.needs if name not in shape]
        if missing:
            return f"{self._operator.name} needs {', '.join(missing)} in columns_name"
        return self._operator.invalid(shape, self._dtype, self._device)

    def once(self, shape: Shape) -> Outcome:
        """Run a shape once, without the profiler."""
        return self._guarded(shape, warmups=0, iterations=1)

    def profile(self, shapes: Sequence[Shape], trace: Path) -> list[Outcome]:
        """Run shapes under the profiler and write its trace."""
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CPU]
        if self._device.type == "cuda":
            activities.append(ProfilerActivity.CUDA)
        with profile(activities=activities, record_shapes=True) as profiler:
            outcomes = [self._guarded(shape, self._warmups, self._iterations) for shape in shapes]
        profiler.export_chrome_trace(str(trace))
        return outcomes

    def _guarded(self, shape: Shape, warmups: int, iterations: int) -> Outcome:
        """Run a shape; if memory runs out, retry once with all cached memory freed."""
        for is_last in (False, True):
            try:
                self._run(shape, warmups, iterations)
            except FAULTS as error:
                kind, words = fault_of(error)
                if kind == "lost":
                    raise TracedbError(
                        f"{text(self._operator.name, shape)}: {words}; the GPU cannot be used any more by this "
                        "process; leave the shape out and run again"
                    ) from error
                if kind == "failed":
                    return Outcome(shape, "error", words)
            else:
                return Outcome(shape, "sampled")
            devices.release(self._device)
            if is_last:
                return Outcome(shape, "out_of_memory", words)
        raise AssertionError("both tries returned")

    def _run(self, shape: Shape, warmups: int, iterations: int) -> None:
        """Build the inputs, warm the shape up, then run it in annotated iterations."""
        import torch

        prepared = self._operator.build(shape, self._dtype, self._device)
        output = prepared.forward()
        gradient = None if prepared.is_step else torch.ones_like(output)
        del output
        for _ in range(warmups):
            self._iterate(prepared, gradient, None)
        for _ in range(iterations):
            self._iterate(prepared, gradient, text(self._operator.name, shape))

    def _iterate(self, prepared: Prepared, gradient: torch.Tensor | None, name: str | None) -> None:
        """Run both passes once, each in its range, and wait for the device."""
        from contextlib import nullcontext

        from torch.profiler import record_function

        def within(what: str) -> record_function | nullcontext[None]:
            return nullcontext() if name is None else record_function(f"{what}|{name}")

        for leaf in prepared.leaves:
            leaf.grad = None
        devices.wait_for(self._device)
        with within("sample"):
            with within("step" if prepared.is_step else "fwd"):
                output = prepared.forward()
            if not prepared.is_step:
                with within("bwd"):
                    output.backward(gradient)
        devices.wait_for(self._device)
