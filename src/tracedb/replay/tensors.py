"""Tensors made up to recorded shapes, strides and types. Their contents are random, since traces hold none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

DTYPES = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2",
    "c10::Float8_e4m3fnuz": "float8_e4m3fnuz",
    "c10::Float8_e5m2fnuz": "float8_e5m2fnuz",
    "int": "int32",
    "long": "int64",
    "long int": "int64",
    "long long": "int64",
    "short": "int16",
    "short int": "int16",
    "char": "int8",
    "signed char": "int8",
    "unsigned char": "uint8",
    "unsigned short": "uint16",
    "short unsigned int": "uint16",
    "unsigned int": "uint32",
    "unsigned long": "uint64",
    "long unsigned int": "uint64",
    "bool": "bool",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}
"""Name of an element type in a trace → in PyTorch."""
MOST_DIMENSIONS = 64


@dataclass(frozen=True)
class Spec:
    """A tensor to make: shape, strides in elements (None: contiguous), element type as PyTorch names it."""

    dims: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: str
    fill: str = "normal"
    """normal, positive, ones, zeros, index (whole numbers from 0 to ``bound`` - 1), offsets (rising to ``bound``)."""
    bound: int = 1
    place: str = "device"
    """device, host, or pinned (page-locked memory of the host)."""

    @property
    def span(self) -> int:
        """Number of elements from the first to the last in memory."""
        if any(size == 0 for size in self.dims):
            return 0
        if self.strides is None:
            count = 1
            for size in self.dims:
                count *= size
            return count
        return 1 + sum((size - 1) * stride for size, stride in zip(self.dims, self.strides, strict=True))

    @property
    def bytes(self) -> int:
        """Memory that it takes."""
        return self.span * itemsize(self.dtype)


def shape(dims: object) -> tuple[int, ...]:
    """Return recorded dimensions or strides as a tuple. Raises ``ValueError`` if they are none."""
    if not isinstance(dims, list | tuple) or len(dims) > MOST_DIMENSIONS:
        raise ValueError("not a shape")
    if not all(isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 2**48 for size in dims):
        raise ValueError("not a shape")
    return tuple(dims)


def dtype_of(recorded: str) -> str:
    """Return PyTorch's name of a recorded element type. Raises ``ValueError`` for an unknown one."""
    import torch

    name = DTYPES.get(recorded)
    if name is None or not hasattr(torch, name):
        raise ValueError(f"element type {recorded!r} is not known")
    return name


def itemsize(name: str) -> int:
    """Return the bytes of an element."""
    import torch

    return int(getattr(torch, name).itemsize)


def make(spec: Spec, device: torch.device) -> torch.Tensor:
    """Make the tensor. Raises what PyTorch raises where there is no memory."""
    import torch

    where = device if spec.place == "device" else torch.device("cpu")
    dtype = getattr(torch, spec.dtype)
    options = {"dtype": dtype, "device": where, "pin_memory": spec.place == "pinned"}
    if spec.strides is None:
        made = torch.empty(spec.dims, **options)
    else:
        made = torch.empty_strided(spec.dims, spec.strides, **options)
    _fill(made.as_strided((spec.span,), (1,)), spec)  # elements that share memory are filled once
    return made


def _fill(flat: torch.Tensor, spec: Spec) -> None:
    import torch

    if spec.fill == "offsets":
        steps = max(flat.numel() - 1, 1)
        flat.copy_(torch.arange(flat.numel()) * (spec.bound // steps))
    elif spec.fill in ("ones", "zeros"):
        flat.fill_(1 if spec.fill == "ones" else 0)
    elif flat.dtype == torch.bool:
        flat.random_(0, 2)
    elif not flat.dtype.is_floating_point and not flat.dtype.is_complex:
        high = max(min(spec.bound, torch.iinfo(flat.dtype).max), 1)
        flat.copy_(torch.randint(0, high, flat.shape, device=flat.device))
    elif flat.element_size() == 1:  # eight-bit floats have no random numbers of their own
        flat.copy_(torch.randn(flat.shape, device=flat.device))
    elif spec.fill == "positive":
        flat.uniform_(0.5, 1.5)
    else:
        flat.normal_()


def on_meta(spec: Spec) -> torch.Tensor:
    """Return a tensor of these shapes without memory."""
    import torch

    dtype = getattr(torch, spec.dtype)
    if spec.strides is None:
        return torch.empty(spec.dims, dtype=dtype, device="meta")
    return torch.empty_strided(spec.dims, spec.strides, dtype=dtype, device="meta")


def bytes_of(result: Any) -> int:
    """Return the memory of the tensors in an operator's result."""
    import torch

    if isinstance(result, torch.Tensor):
        return int(result.numel() * result.element_size())
    if isinstance(result, Sequence) and not isinstance(result, str):
        return sum(bytes_of(item) for item in result)
    return 0
