"""A stand-in for NVML's Python bindings: two GPUs whose numbers are fixed. This machine need not have any."""

from __future__ import annotations

from pathlib import Path

SOURCE = """
class NVMLError(Exception):
    pass

class _Value:
    uiVal = 689_500

class _Field:
    nvmlReturn, value = 0, _Value()

def nvmlInit(): pass
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(number): return number
def nvmlDeviceGetUUID(handle): return ("GPU-aaaa-1", "GPU-bbbb-2")[handle]
def nvmlDeviceGetName(handle): return b"NVIDIA X"
def nvmlDeviceGetClockInfo(handle, kind): return {1: 1455 + handle, 2: 3201}[kind]
def nvmlDeviceGetFieldValues(handle, fields): return [_Field()]
def nvmlDeviceGetPowerUsage(handle): return 100_000
def nvmlDeviceGetTemperature(handle, sensor):
    if handle == 1:
        raise NVMLError("Not Supported")
    return 64
def nvmlDeviceGetEnforcedPowerLimit(handle): return 700_000
def nvmlDeviceGetMaxClockInfo(handle, kind): return 1980
def nvmlDeviceGetCurrentClocksThrottleReasons(handle): return 0x24 if handle == 0 else 0
"""
"""Old bindings without the newer names of the throttle reasons; the second GPU tells no temperature."""


def put(folder: Path) -> Path:
    """Write the module ``pynvml`` into a folder, to be put first on the path of modules."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pynvml.py").write_text(SOURCE)
    return folder
