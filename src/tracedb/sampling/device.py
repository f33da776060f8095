"""The device that samples run on, and the names of element types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.errors import TracedbError

if TYPE_CHECKING:
    import torch

PRECISIONS = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}


def require_torch(what: str = "sampling") -> None:
    """Raise ``TracedbError`` if PyTorch is not installed."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError as error:
        raise TracedbError(f"{what} needs PyTorch: pip install 'tracedb-gpu[torch]'") from error


def dtype(precision: str) -> torch.dtype:
    """Return the element type of a name such as fp16."""
    import torch

    found = getattr(torch, PRECISIONS[precision])
    assert isinstance(found, torch.dtype)
    return found


def choose(name: str | None) -> torch.device:
    """Return the named device, else the current GPU. Raises ``TracedbError`` if it does not exist."""
    import torch

    if name is None and not torch.cuda.is_available():
        raise TracedbError("PyTorch sees no GPU here; --device cpu runs every operator on the processor, for a trial")
    try:
        device = torch.device(name or "cuda")
    except RuntimeError as error:
        raise TracedbError(f"--device {name}: {str(error).splitlines()[0]}") from error
    if device.type not in ("cpu", "cuda"):
        raise TracedbError(f"--device {name}: expected cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise TracedbError(f"--device {name}: PyTorch sees {torch.cuda.device_count()} GPUs")
    if device.type == "cuda":
        device = torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)
        torch.cuda.set_device(device)
    return device


def title(device: torch.device) -> str:
    """Return the GPU's product name, or cpu."""
    import torch

    return str(torch.cuda.get_device_name(device)) if device.type == "cuda" else device.type


def uuid(device: torch.device) -> str | None:
    """Return the GPU's UUID; None for the processor, or where PyTorch does not tell it."""
    import torch

    if device.type != "cuda":
        return None
    found = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return None if found is None else str(found)


def can_spin(device: torch.device) -> bool:
    """Whether the device can be kept busy without work, as bursts do it."""
    import torch

    return device.type == "cuda" and hasattr(torch.cuda, "_sleep")


def wait_for(device: torch.device) -> None:
    """Wait until the device has finished all launched work."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)


def release(device: torch.device) -> None:
    """Free the memory that PyTorch caches."""
    import gc

    import torch

    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
