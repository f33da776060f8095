"""AMD GPUs, by amdsmi, which ROCm ships."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from tracedb.conditions.reading import Gpu, Limits, Reading, Unavailable, visible

MICROWATTS = 10_000
"""A power cap above this is in microwatts: no card draws ten kilowatts."""


class AmdReader:
    """Reads the AMD GPUs that HIP programs see. Raises ``Unavailable``."""

    def __init__(self) -> None:
        try:
            import amdsmi
        except (ImportError, OSError, KeyError) as error:  # it loads ROCm's library, and asks where ROCm is
            raise Unavailable("amdsmi is not installed; ROCm ships it") from error
        self._smi: Any = amdsmi
        try:
            amdsmi.amdsmi_init()
            handles = list(amdsmi.amdsmi_get_processor_handles())
            uuids = [str(amdsmi.amdsmi_get_gpu_device_uuid(handle)) for handle in handles]
        except amdsmi.AmdSmiException as error:
            raise Unavailable(f"amdsmi finds no GPU ({error})") from error
        numbers = dict(zip(uuids, range(len(uuids)), strict=True))
        variables = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
        said = next((os.environ[name] for name in variables if name in os.environ), None)
        seen = visible(numbers, said)
        if not seen:
            raise Unavailable("amdsmi finds no GPU that programs may use")
        self._handles = {place: handles[number] for place, number in enumerate(seen)}
        self.gpus = [Gpu(place, "AMD", self._name(handles[number]), uuids[number]) for place, number in enumerate(seen)]

    def read(self, gpu: Gpu) -> Reading:
        """Return the state of a GPU now."""
        handle, smi = self._handles[gpu.device_id], self._smi
        power = self._ask(smi.amdsmi_get_power_info, handle) or {}
        return Reading(
            gpu.device_id,
            time.time_ns(),
            self._clock(handle, smi.AmdSmiClkType.GFX),
            self._clock(handle, smi.AmdSmiClkType.MEM),
            _first(power, "current_socket_power", "socket_power", "average_socket_power"),
            _number(
                self._ask(
                    smi.amdsmi_get_temp_metric,
                    handle,
                    smi.AmdSmiTemperatureType.HOTSPOT,
                    smi.AmdSmiTemperatureMetric.CURRENT,
                )
            ),
            self._throttle(handle),
        )

    def limits(self, gpu: Gpu) -> Limits:
        """Return the power limit, which amdsmi gives in microwatts or watts by its release, and the highest clock."""
        handle, smi = self._handles[gpu.device_id], self._smi
        power = _first(self._ask(smi.amdsmi_get_power_cap_info, handle) or {}, "power_cap")
        clock = self._ask(smi.amdsmi_get_clock_info, handle, smi.AmdSmiClkType.GFX) or {}
        return Limits(
            None if not power else power / 1e6 if power > MICROWATTS else power, _first(clock, "max_clk") or None
        )

    def _name(self, handle: Any) -> str | None:
        found = self._ask(self._smi.amdsmi_get_gpu_asic_info, handle) or {}
        name = found.get("market_name")
        return str(name) if name else None

    def _clock(self, handle: Any, kind: Any) -> float | None:
        return _first(self._ask(self._smi.amdsmi_get_clock_info, handle, kind) or {}, "clk", "cur_clk")

    def _throttle(self, handle: Any) -> str | None:
        """Return the throttle bits of the driver in hexadecimal: their meaning differs between cards."""
        found = self._ask(self._smi.amdsmi_get_gpu_metrics_info, handle) or {}
        bits = _first(found, "indep_throttle_status", "throttle_status")
        return None if bits is None else "none" if bits == 0 else hex(int(bits))

    def _ask(self, ask: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return ask(*arguments)
        except self._smi.AmdSmiException:
            return None


def _first(found: dict[str, Any], *keys: str) -> float | None:
    return next((number for key in keys if (number := _number(found.get(key))) is not None), None)


def _number(value: object) -> float | None:
    """Return a number; None for what amdsmi says instead of one it does not know (N/A, the largest of its type)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value in (0xFFFF, 0xFFFFFFFF, 2**64 - 1):
        return None
    return float(value)
