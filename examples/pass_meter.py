"""Wall time, and energy where NVML counts it, of passes without a profiler: for ``tracedb replay --measured``."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class PassMeter:
    """Times passes of named kinds, and writes them as CSV: range, duration_s, joules."""

    device: Any
    rows: list[tuple[str, float, float | None]] = field(default_factory=list)

    def run(self, name: str, once: Callable[[], object], seconds: float) -> None:
        """Repeat a pass for some seconds, at least three times, and wait for its end each time.

        Energy is the difference of the GPU's total over the whole loop, shared out evenly: the counter is updated some
        ten times a second, so a pass of its own has none.
        """
        wait = self._wait()
        counter = _energy_counter(self.device)
        wait()
        times: list[float] = []
        before, begin = counter(), time.perf_counter()
        while len(times) < 3 or time.perf_counter() - begin < seconds:
            start = time.perf_counter()
            once()
            wait()
            times.append(time.perf_counter() - start)
        after = counter()
        joules = (after - before) / 1000 / len(times) if before is not None and after is not None else None
        self.rows += [(name, duration, joules) for duration in times]

    def _wait(self) -> Callable[[], None]:
        import torch

        if self.device.type == "cuda":
            return lambda: torch.cuda.synchronize(self.device)
        return lambda: None

    def write(self, path: Path) -> None:
        """Write all passes as CSV."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["range", "duration_s", "joules"])
            writer.writerows((name, f"{duration:.9f}", joules) for name, duration, joules in self.rows)


def _energy_counter(device: Any) -> Callable[[], int | None]:
    """Return a function for the GPU's energy so far in mJ, None without NVML."""
    if device.type != "cuda":
        return lambda: None
    try:
        import pynvml
        import torch

        pynvml.nvmlInit()
        uuid = str(torch.cuda.get_device_properties(device).uuid)
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.removeprefix('GPU-')}")
        pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    except Exception as error:  # noqa: BLE001  no NVML, no such counter: energy is then not measured
        print(f"no energy is measured: {error}")
        return lambda: None
    return lambda: int(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle))
