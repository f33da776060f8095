"""NVIDIA GPUs, by NVML (``nvidia-ml-py``)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from tracedb.conditions.reading import Gpu, Limits, Reading, Unavailable, visible

REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
"""Bits of nvmlClocksEventReasons (formerly nvmlClocksThrottleReasons)."""
SM, MEMORY, GPU_TEMPERATURE, POWER_INSTANT = 1, 2, 0, 186
"""NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU, NVML_FI_DEV_POWER_INSTANT."""


class NvmlReader:
    """Reads the NVIDIA GPUs that CUDA programs see. Raises ``Unavailable``."""

    def __init__(self) -> None:
        try:
            import pynvml
        except ModuleNotFoundError as error:
            raise Unavailable("NVML needs its bindings: pip install 'tracedb-gpu[conditions]'") from error
        self._nvml: Any = pynvml
        try:
            pynvml.nvmlInit()
            handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
            uuids = [_text(pynvml.nvmlDeviceGetUUID(handle)) for handle in handles]
            names = [_text(pynvml.nvmlDeviceGetName(handle)) for handle in handles]
        except pynvml.NVMLError as error:
            raise Unavailable(f"NVML finds no GPU ({error})") from error
        seen = visible(dict(zip(uuids, range(len(uuids)), strict=True)), os.environ.get("CUDA_VISIBLE_DEVICES"))
        if not seen:
            raise Unavailable("NVML finds no GPU that programs may use")
        self._handles = {place: handles[number] for place, number in enumerate(seen)}
        self.gpus = [Gpu(place, "NVIDIA", names[number], uuids[number]) for place, number in enumerate(seen)]

    def read(self, gpu: Gpu) -> Reading:
        """Return the state of a GPU now."""
        handle, nvml = self._handles[gpu.device_id], self._nvml
        milliwatts = self._power(handle)
        return Reading(
            gpu.device_id,
            time.time_ns(),
            self._number(nvml.nvmlDeviceGetClockInfo, handle, SM),
            self._number(nvml.nvmlDeviceGetClockInfo, handle, MEMORY),
            None if milliwatts is None else milliwatts / 1000,
            self._number(nvml.nvmlDeviceGetTemperature, handle, GPU_TEMPERATURE),
            self._throttle(handle),
        )

    def limits(self, gpu: Gpu) -> Limits:
        """Return the power limit that is enforced now, and the highest clock."""
        handle, nvml = self._handles[gpu.device_id], self._nvml
        milliwatts = self._number(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        return Limits(
            None if milliwatts is None else milliwatts / 1000, self._number(nvml.nvmlDeviceGetMaxClockInfo, handle, SM)
        )

    def _power(self, handle: Any) -> float | None:
        """Return the power of the moment in mW, else the driver's average, of up to a second."""
        try:
            (found,) = self._nvml.nvmlDeviceGetFieldValues(handle, [POWER_INSTANT])
            if found.nvmlReturn == 0:
                return float(found.value.uiVal)
        except (self._nvml.NVMLError, AttributeError):
            pass
        return self._number(self._nvml.nvmlDeviceGetPowerUsage, handle)

    def _throttle(self, handle: Any) -> str | None:
        nvml = self._nvml
        ask = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
        bits = None if ask is None else self._number(ask, handle)
        if bits is None:
            bits = self._number(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        if bits is None:
            return None
        return reasons(int(bits))

    def _number(self, ask: Callable[..., Any], *arguments: Any) -> float | None:
        try:
            return float(ask(*arguments))
        except self._nvml.NVMLError:
            return None


def reasons(bits: int) -> str:
    """Return the names of reasons; those without a name, of a newer driver, in hexadecimal."""
    names = [name for bit, name in REASONS.items() if bits & bit]
    if unnamed := bits & ~sum(REASONS):
        names.append(hex(unnamed))
    return ",".join(names) or "none"


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
