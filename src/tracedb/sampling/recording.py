"""Run shapes under the profiler; each batch of shapes gives one trace file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tracedb.errors import TracedbError
from tracedb.sampling import device as devices
from tracedb.sampling.burst import COPIES, Burst, Meter
from tracedb.sampling.configuration import Configuration
from tracedb.sampling.operator import Operator, Prepared
from tracedb.sampling.steady_load import SteadyLoad, freshen
from tracedb.sampling.sweep import Shape, text

if TYPE_CHECKING:
    import torch

FAULTS = (RuntimeError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError)
"""Exceptions an operator may raise for a shape; any other is a bug in the operator and ends the sweep."""
WARM_SECONDS, WARM_AGAIN_SECONDS = 1.0, 0.15
"""Load before the first sample of a trace, so that the clock settles: before the profiler starts, and after."""
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
        self,
        operator: Operator,
        configuration: Configuration,
        dtype: torch.dtype,
        device: torch.device,
        load: SteadyLoad | None = None,
    ) -> None:
        self._operator = operator
        self._iterations = configuration.active
        self._warmups = configuration.wait + configuration.warmup
        self._dtype = dtype
        self._device = device
        self._load = load

    def invalid(self, shape: Shape) -> str | None:
        """Return why a shape is invalid, or None."""
        missing = [name for name in self._operator.needs if name not in shape]
        if missing:
            return f"{self._operator.name} needs {', '.join(missing)} in columns_name"
        return self._operator.invalid(shape, self._dtype, self._device)

    def once(self, shape: Shape) -> Outcome:
        """Run a shape once, without the profiler."""
        return self._guarded(shape, warmups=0, iterations=1)

    def profile(
        self, shapes: Sequence[Shape], trace: Path, goes_on: Callable[[int], bool] = lambda done: True
    ) -> list[Outcome]:
        """Run shapes under the profiler and write its trace.

        ``goes_on`` is called after each shape with the number of shapes run; the others are left out if it is false.
        """
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CPU]
        if self._device.type == "cuda":
            activities.append(ProfilerActivity.CUDA)
        if self._load is not None:
            self._load.warm_up(WARM_SECONDS)
        with profile(activities=activities, record_shapes=True) as profiler:
            if self._load is not None:
                self._load.warm_up(WARM_AGAIN_SECONDS)  # starting the profiler takes a moment, in which the GPU rests
            outcomes: list[Outcome] = []
            for shape in shapes:
                outcomes.append(self._guarded(shape, self._warmups, self._iterations))
                if not goes_on(len(outcomes)):
                    break
        profiler.export_chrome_trace(str(trace))
        return outcomes

    def energies(self, shape: Shape, meter: Meter, is_diluted: bool) -> list[Burst]:
        """Measure the power of each pass of a shape that was sampled; nothing if memory runs out now."""

        def measure() -> list[Burst]:
            prepared = self._operator.build(shape, self._dtype, self._device)
            return meter.energies(shape, prepared, _gradients(prepared), is_diluted)

        return self._or_nothing(measure)

    def host(self, shape: Shape, meter: Meter) -> list[Burst]:
        """Measure how long the host takes to launch each pass of a shape; nothing if memory runs out now."""

        def measure() -> list[Burst]:
            first = self._operator.build(shape, self._dtype, self._device)
            others = 0 if first.is_step else COPIES - 1
            copies = [first, *(self._operator.build(shape, self._dtype, self._device) for _ in range(others))]
            return meter.host(shape, copies, [_gradients(one) for one in copies])

        return self._or_nothing(measure)

    def _or_nothing(self, measure: Callable[[], list[Burst]]) -> list[Burst]:
        """Return what was measured, or nothing if the operator cannot be repeated so."""
        try:
            return measure()
        except FAULTS as error:
            if fault_of(error).kind == "lost":
                raise TracedbError(f"{self._operator.name}: {fault_of(error).words}; the GPU cannot be used any more "
                                   "by this process") from error  # fmt: skip
            return []
        finally:
            devices.release(self._device)

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
        prepared = self._operator.build(shape, self._dtype, self._device)
        gradients = _gradients(prepared)
        name = text(self._operator.name, shape)
        if self._load is None:
            for number in range(warmups + iterations):
                self._rested(prepared, gradients, name if number >= warmups else None)
            return
        rounds = self._load.rounds_for(self._seconds(prepared, gradients))
        for number in range(warmups + iterations):
            _steady(self._load, rounds, prepared, gradients, name if number >= warmups else None)
        devices.wait_for(self._device)

    def _seconds(self, prepared: Prepared, gradients: Sequence[torch.Tensor]) -> float:
        """Return the time of one iteration, after one that is not timed."""
        from time import perf_counter

        for _ in range(2):
            begin = perf_counter()
            self._rested(prepared, gradients, None)
        return perf_counter() - begin

    def _rested(self, prepared: Prepared, gradients: Sequence[torch.Tensor], name: str | None) -> None:
        """Run both passes once, each in its range, and wait for the device before and after."""
        devices.wait_for(self._device)
        with _within("sample", name):
            outputs = _forward(prepared, name)
            _backward(prepared, outputs, gradients, name)
        devices.wait_for(self._device)


def _steady(
    load: SteadyLoad, rounds: int, prepared: Prepared, gradients: Sequence[torch.Tensor], name: str | None
) -> None:
    """Run both passes once, each behind the load, without waiting for the device.

    As in a step, a pass finds its inputs in the L2 cache only if the operator before it has just written them: the
    forward its activations, the backward the gradient of its output.
    """
    load.run(rounds)
    freshen(prepared.just_written)
    with _within("sample", name):
        outputs = _forward(prepared, name)
        if not prepared.is_step:
            load.run(rounds)
            freshen(gradients)
            _backward(prepared, outputs, gradients, name)


def _gradients(prepared: Prepared) -> list[torch.Tensor]:
    """Return random gradients of the outputs; none for a step."""
    import torch

    return [] if prepared.is_step else [torch.randn_like(output) for output in _outputs(prepared)]


def _forward(prepared: Prepared, name: str | None) -> tuple[torch.Tensor, ...]:
    with _within("step" if prepared.is_step else "fwd", name):
        return _outputs(prepared)


def _outputs(prepared: Prepared) -> tuple[torch.Tensor, ...]:
    found = prepared.forward()
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def _backward(
    prepared: Prepared, outputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor], name: str | None
) -> None:
    """Compute the gradients of all leaves.

    They are returned, not accumulated in the leaves: in a step the operator before takes most of them as they are,
    while accumulating copies those whose layout is not that of the leaf. An operator that names no leaves accumulates.
    """
    from torch.autograd import backward, grad

    if not prepared.is_step:
        with _within("bwd", name):
            if prepared.leaves:
                grad(outputs, prepared.leaves, gradients, allow_unused=True)
            else:
                backward(outputs, gradients)


def _within(what: str, name: str | None) -> AbstractContextManager[object]:
    """Return the range of a measured pass; nothing for a warm-up."""
    from torch.profiler import record_function

    return nullcontext() if name is None else record_function(f"{what}|{name}")
