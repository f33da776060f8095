"""An operator repeated alone, outside of the profiler: what it costs in energy, and what its launches cost the host.

Within a sample an operator is a small part of the time, so the power that is read is that of the load. A burst repeats
it back to back for long enough that the power and the clock settle and are read several times. A second burst of the
same operator, in which the device also spins idly for half of the time, draws less power and so runs at a higher clock:
the two tell how the energy depends on the clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracedb.conditions.reading import Gpu, Limits, Reader, Reading
from tracedb.sampling import device as devices
from tracedb.sampling.operator import Prepared
from tracedb.sampling.sweep import Shape

if TYPE_CHECKING:
    import torch

SETTLE_SECONDS, MEASURED_SECONDS = 0.15, 0.25
"""Of a burst: until clock and power have settled (some tens of ms), and while they are read. A driver renews the power
about every 100 ms, as the mean over the last 25 ms or more."""
QUEUED_SECONDS = 0.02
"""Work per batch of calls; two batches are queued at a time."""
LEAST_SPIN_SECONDS = 2e-4
"""Shortest spin between calls; calls are grouped so that the two take the same time."""
BUSY = 0.85
"""A burst counts if launching takes at most this share of its time: else the device waits for the host."""
COPIES, ROUNDS = 16, 5
"""Inputs that the host launches one after another, and how often; the median counts."""
BLOCKED_SECONDS = 0.03
"""How long the device is kept busy while the host launches; a host that takes as long has waited for it."""
CYCLES_A_SECOND = 1.5e9
"""A spin of this many cycles takes a second or less at most clocks."""


@dataclass(frozen=True)
class Burst:
    """A burst of one pass; None where something was not measured."""

    shape: Shape
    pass_: str
    calls: int | None = None
    duration_ns: int | None = None
    """Time of these calls on the device."""
    spin_ns: int | None = None
    """How long of this the device only spun."""
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    power_w: float | None = None
    spin_power_w: float | None = None
    """Power of the device while it only spins."""
    power_limit_w: float | None = None
    sm_clock_limit_mhz: float | None = None
    host_ns: int | None = None
    """Time in which the host launches one call, without a profiler and without waiting for the device."""
    is_synchronous: bool | None = None
    """Whether the host waits for the device within the call."""


class Meter:
    """Reads one device while it works; without a reader only the host is timed."""

    def __init__(self, device: torch.device, reader: Reader | None, gpu: Gpu | None) -> None:
        self.device = device
        self._reader, self._gpu = reader, gpu
        limits = reader.limits(gpu) if reader is not None and gpu is not None else Limits()
        self._card = Burst({}, "", power_limit_w=limits.power_w, sm_clock_limit_mhz=limits.sm_clock_mhz)
        self._spin_clock = CYCLES_A_SECOND
        if reader is not None:
            self._measure_spin()

    def _measure_spin(self) -> None:
        """Measure the power and the clock of the device while it only spins."""
        count = int(CYCLES_A_SECOND * QUEUED_SECONDS)
        found = self._loop(lambda: spin(self.device, count), 1, SETTLE_SECONDS + MEASURED_SECONDS)
        self._card = replace(self._card, spin_power_w=found.power_w)
        if found.duration_ns and found.calls:
            self._spin_clock = count / (found.duration_ns / found.calls / 1e9)

    def energies(self, shape: Shape, prepared: Prepared, gradients: Sequence[torch.Tensor], both: bool) -> list[Burst]:
        """Return a burst for each pass, and with ``both`` another one half of which is spinning."""
        found: list[Burst] = []
        for pass_, call in passes(prepared, gradients).items():
            alone = self._alone(call)
            if alone is None:
                continue
            found.append(replace(alone, shape=shape, pass_=pass_))
            if both:
                found.append(replace(self._diluted(call, alone), shape=shape, pass_=pass_))
        return found

    def _alone(self, call: Callable[[], object]) -> Burst | None:
        """Return a burst of calls back to back; None if the host cannot launch them fast enough."""
        call()
        host = self._launching(call, 4)[0]
        devices.wait_for(self.device)
        begin = time.perf_counter()
        for _ in range(3):
            call()
        devices.wait_for(self.device)
        seconds = (time.perf_counter() - begin) / 3
        if host > BUSY * seconds:
            return None
        found = self._loop(call, max(round(QUEUED_SECONDS / seconds), 1), SETTLE_SECONDS + MEASURED_SECONDS)
        # One that has no work on the device takes as long as it is launched, without the latency of a first call.
        is_busy = found.duration_ns and found.calls and host <= BUSY * found.duration_ns / found.calls / 1e9
        return found if is_busy else None

    def _diluted(self, call: Callable[[], object], alone: Burst) -> Burst:
        """Return a burst in which the device spins for as long as the calls take."""
        assert alone.calls and alone.duration_ns
        seconds = alone.duration_ns / alone.calls / 1e9
        group = max(math.ceil(LEAST_SPIN_SECONDS / seconds), 1)
        cycles = int(group * seconds * self._spin_clock)

        def mixed() -> None:
            for _ in range(group):
                call()
            spin(self.device, cycles)

        found = self._loop(
            mixed, max(round(QUEUED_SECONDS / (2 * group * seconds)), 1), SETTLE_SECONDS + MEASURED_SECONDS
        )
        assert found.calls
        clock = (found.sm_clock_mhz or 0) * 1e6 or self._spin_clock
        return replace(found, calls=found.calls * group, spin_ns=round(found.calls * cycles / clock * 1e9))

    def _loop(self, call: Callable[[], object], batch: int, seconds: float) -> Burst:
        """Repeat a call for some seconds, and return what was read in the last of these.

        The device is read while it works off a batch that is queued: reading takes a millisecond.
        """
        pending: list[Any] = []
        readings: list[Reading] = []
        first = last = None
        calls = 0
        begin = time.perf_counter()
        while (now := time.perf_counter() - begin) < seconds or not calls:
            for _ in range(batch):
                call()
            pending.append(_mark(self.device))
            if len(pending) < 2:
                continue
            done = pending.pop(0)
            while not done.query():
                self._look(readings, now)
            self._look(readings, now)
            if now >= SETTLE_SECONDS:
                calls += batch if first is not None else 0
                first, last = first or done, done
        devices.wait_for(self.device)
        length = round(first.elapsed_time(last) * 1e6) if first is not None and last is not None else None
        return replace(
            self._card,
            calls=calls or None,
            duration_ns=length,
            sm_clock_mhz=_middle([reading.sm_clock_mhz for reading in readings]),
            memory_clock_mhz=_middle([reading.memory_clock_mhz for reading in readings]),
            power_w=_mean(_renewed([reading.power_w for reading in readings])),
        )

    def _look(self, readings: list[Reading], now: float) -> None:
        if now >= SETTLE_SECONDS and self._reader is not None and self._gpu is not None:
            readings.append(self._reader.read(self._gpu))
        else:
            time.sleep(0.0005)

    def host(
        self, shape: Shape, prepared: Sequence[Prepared], gradients: Sequence[Sequence[torch.Tensor]]
    ) -> list[Burst]:
        """Return how long the host takes to launch each pass: of several copies, in one backward pass, as in a step.

        Nothing waits for the device in between, so the host stays as warm as in a step; that it runs ahead needs a
        shape whose work is short.
        """
        wanted = _together(prepared, gradients)
        waits = {pass_: self._launching(call, 1)[1] for pass_, call in wanted.items()}
        times: dict[str, list[float]] = {pass_: [] for pass_ in wanted}
        devices.wait_for(self.device)
        for _ in range(ROUNDS + 1):
            for pass_, call in wanted.items():
                begin = time.perf_counter()
                call()
                times[pass_].append((time.perf_counter() - begin) / len(prepared))
        devices.wait_for(self.device)
        return [
            Burst(shape, pass_, host_ns=round(sorted(found[1:])[ROUNDS // 2] * 1e9), is_synchronous=waits[pass_])
            for pass_, found in times.items()
        ]

    def _launching(self, call: Callable[[], object], count: int) -> tuple[float, bool]:
        """Return how long the host takes per call while the device is busy, and whether it waited for the device.

        If it did, the time is that of a call on an idle device.
        """
        times = []
        for is_blocked in (True, False):
            devices.wait_for(self.device)
            if is_blocked:
                spin(self.device, int(BLOCKED_SECONDS * CYCLES_A_SECOND))
            begin = time.perf_counter()
            for _ in range(count):
                call()
            times.append(time.perf_counter() - begin)
            if times[-1] < BLOCKED_SECONDS / 2:
                break
        devices.wait_for(self.device)
        return times[-1] / count, times[0] - times[-1] > BLOCKED_SECONDS / 3


def _together(
    prepared: Sequence[Prepared], gradients: Sequence[Sequence[torch.Tensor]]
) -> dict[str, Callable[[], object]]:
    """Return what runs each pass of several copies: all forward passes, then one backward pass through all of them."""
    from torch.autograd import grad

    leaves = [leaf for one in prepared for leaf in one.leaves]
    outputs: list[torch.Tensor] = []
    given = [gradient for one in gradients for gradient in one]

    def forward() -> None:
        outputs.clear()
        for one in prepared:
            found = one.forward()
            outputs.extend(found if isinstance(found, tuple | list) else (found,))

    def backward() -> None:
        grad(outputs, leaves, given, allow_unused=True, retain_graph=True)

    found: dict[str, Callable[[], object]] = {"step" if prepared[0].is_step else "fwd": forward}
    if leaves and not prepared[0].is_step:
        found["bwd"] = backward
    return found


def passes(prepared: Prepared, gradients: Sequence[torch.Tensor]) -> dict[str, Callable[[], object]]:
    """Return what runs each pass once; the backward pass of one graph, which is kept."""
    from torch.autograd import grad

    if prepared.is_step or not prepared.leaves:
        return {"step" if prepared.is_step else "fwd": prepared.forward}
    found = prepared.forward()
    outputs = tuple(found) if isinstance(found, tuple | list) else (found,)

    def backward() -> None:
        grad(outputs, prepared.leaves, gradients, allow_unused=True, retain_graph=True)

    return {"fwd": prepared.forward, "bwd": backward}


def spin(device: torch.device, cycles: int) -> None:
    """Keep one multiprocessor busy without work for this many cycles of the SM clock; the CPU sleeps instead."""
    import torch

    if device.type == "cuda":
        torch.cuda._sleep(cycles)
    else:
        time.sleep(cycles / CYCLES_A_SECOND)


class _Moment:
    """An event of the CPU, which has finished its work whenever it is asked."""

    def __init__(self) -> None:
        self.at = time.perf_counter()

    def query(self) -> bool:
        return True

    def elapsed_time(self, later: _Moment) -> float:
        """Return the ms until a later event, as PyTorch's events do."""
        return 1e3 * (later.at - self.at)


def _mark(device: torch.device) -> Any:
    """Return an event after all launched work."""
    import torch

    if device.type != "cuda":
        return _Moment()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def chosen(shapes: Sequence[Shape], count: int) -> list[Shape]:
    """Return some shapes for bursts: the largest, and others down to a quarter of the way to the smallest."""
    ordered = sorted(shapes, key=lambda shape: (math.prod(shape.values()), tuple(sorted(shape.items()))), reverse=True)
    reach = max(len(ordered) * 3 // 4, min(count, len(ordered)))
    places = {round(number * (reach - 1) / max(count - 1, 1)) for number in range(count)} if ordered else set()
    return [ordered[place] for place in sorted(places)]


def _renewed(values: Sequence[float | None]) -> list[float | None]:
    """Return the values without the first and its repeats, which are older than the readings; all if none is newer."""
    newer = next((place for place, value in enumerate(values) if value != values[0]), 0)
    return list(values[newer:])


def _middle(values: Sequence[float | None]) -> float | None:
    known = sorted(value for value in values if value is not None)
    return known[len(known) // 2] if known else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
