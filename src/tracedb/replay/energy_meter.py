"""Energy of an NVIDIA GPU by NVML's total, which counts millijoules and is updated some ten times a second."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracedb.errors import TracedbError

if TYPE_CHECKING:
    import torch

LEAST_UPDATES = 4
"""Updates of the counter within a loop below which no energy is stated."""
QUEUED = 2
"""Batches of calls in the GPU's queue at a time."""
BATCH_SECONDS = 0.02


@dataclass(frozen=True)
class Energy:
    """Power over a loop of calls, and what follows for one call."""

    watts: float
    joules: float
    seconds: float
    interval_ns: int
    """Longest time between two updates of the counter."""


class Counter:
    """The energy counter of a device. Raises ``TracedbError`` where NVML or the counter is not there."""

    def __init__(self, device: torch.device) -> None:
        import torch

        try:
            import pynvml
        except ModuleNotFoundError as error:
            raise TracedbError("--energy needs NVML's bindings: pip install 'tracedb-gpu[energy]'") from error
        if device.type != "cuda" or torch.version.hip is not None:
            raise TracedbError(f"--energy: {device} has no counter of NVML; only NVIDIA GPUs have one")
        self._nvml: Any = pynvml
        try:
            pynvml.nvmlInit()
            uuid = str(torch.cuda.get_device_properties(device).uuid)
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.removeprefix('GPU-')}")
            self.millijoules()
        except pynvml.NVMLError as error:
            raise TracedbError(f"--energy: NVML has no energy counter for this GPU ({error})") from error
        self._device = device

    def millijoules(self) -> int:
        """Return the total since the driver was loaded."""
        return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))

    def loop(self, enqueue: Callable[[], int], seconds: float) -> Energy | None:
        """Repeat calls for some seconds; None if the counter was updated too seldom to say anything.

        The counter is read while the GPU works off its queue: reading it takes a millisecond, in which a GPU with an
        empty queue would idle.
        """
        import torch

        repeats = self._calibrated(enqueue)
        updates: list[tuple[float, int]] = []
        pending: list[tuple[Any, int]] = []
        calls = 0
        begin = time.perf_counter()
        while time.perf_counter() - begin < seconds or pending:
            if time.perf_counter() - begin < seconds:
                count = sum(enqueue() for _ in range(repeats))
                event = torch.cuda.Event()
                event.record()
                pending.append((event, count))
                if len(pending) <= QUEUED:
                    continue
            done, count = pending.pop(0)
            while not done.query():
                self._look(updates)
            calls += count
            ended = time.perf_counter()
        return _energy(updates, calls, ended - begin)

    def _calibrated(self, enqueue: Callable[[], int]) -> int:
        """Return how often to enqueue calls for a batch of ``BATCH_SECONDS``."""
        import torch

        enqueue()
        torch.cuda.synchronize(self._device)
        begin = time.perf_counter()
        for _ in range(3):
            enqueue()
        torch.cuda.synchronize(self._device)
        return max(1, round(BATCH_SECONDS / ((time.perf_counter() - begin) / 3)))

    def idle(self, seconds: float) -> float | None:
        """Return the power of the device in W while nothing runs."""
        import torch

        torch.cuda.synchronize(self._device)
        updates: list[tuple[float, int]] = []
        begin = time.perf_counter()
        while time.perf_counter() - begin < seconds:
            time.sleep(0.005)
            self._look(updates)
        found = _energy(updates, 1, seconds)
        return None if found is None else found.watts

    def _look(self, updates: list[tuple[float, int]]) -> None:
        total = self.millijoules()
        if not updates or updates[-1][1] != total:
            updates.append((time.perf_counter(), total))


def _energy(updates: list[tuple[float, int]], calls: int, seconds: float) -> Energy | None:
    """Return power between the first and the last update that were seen happening; the first look is none of them."""
    seen = updates[1:]
    if len(seen) < LEAST_UPDATES or not calls:
        return None
    (first, low), (last, high) = seen[0], seen[-1]
    watts = (high - low) / 1000 / (last - first)
    interval = max(after[0] - before[0] for before, after in itertools.pairwise(seen))
    return Energy(watts, watts * seconds / calls, seconds, int(interval * 1e9))
