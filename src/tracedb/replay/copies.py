"""Copies and memsets that no operator is recorded for, repeated by their number of bytes."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tracedb.replay.operators import Incomplete
from tracedb.replay.recorded_passes import Signature
from tracedb.replay.tensors import Spec

_PLACES = {"HtoD": ("device", "host"), "DtoH": ("host", "device"), "DtoD": ("device", "device")}
"""Direction of a copy → place of its target and of its source."""
_RUNTIMES = re.compile(r"/\S*/(?:libcudart|libamdhip64)\S*\.so\S*")


@dataclass(frozen=True)
class Transfer:
    """A copy, or a memset if there is no source."""

    target: Spec
    source: Spec | None
    note: str | None = None
    tf32: bool = False

    def specs(self) -> Iterator[Spec]:
        """Yield the tensors to make."""
        yield self.target
        if self.source is not None:
            yield self.source

    def call(self, make: Callable[[Spec], Any]) -> Callable[[], Any]:
        """Return a function that copies or sets memory allocated now."""
        target = make(self.target)
        if self.source is None:
            return lambda: _memset(target)
        source = make(self.source)
        is_asynchronous = "pinned" in (self.target.place, self.source.place)
        return lambda: target.copy_(source, non_blocking=is_asynchronous)


def transfer(signature: Signature) -> Transfer:
    """Return the copy or memset of a signature. Raises ``Incomplete`` if its bytes or direction are not recorded."""
    if not signature.bytes:
        raise Incomplete("the number of bytes is not recorded")
    if signature.hint == "memset":
        return Transfer(Spec((signature.bytes,), None, "uint8"), None)
    places = _PLACES.get(signature.copy_kind or "")
    if places is None:
        raise Incomplete(f"a copy of direction {signature.copy_kind or 'unknown'} needs more than one device")
    pinned = "pinned" in (signature.kernels or "").lower()
    target, source = (
        Spec((signature.bytes,), None, "uint8", place="pinned" if pinned and place == "host" else place)
        for place in places
    )
    return Transfer(target, source)


def _memset(target: Any) -> Any:
    import torch

    if target.device.type != "cuda":
        return target.zero_()
    stream = ctypes.c_void_p(torch.cuda.current_stream(target.device).cuda_stream)
    pointer, size = ctypes.c_void_p(target.data_ptr()), ctypes.c_size_t(target.numel())
    code = _runtime_memset()(pointer, ctypes.c_int(0), size, stream)
    if code:
        raise RuntimeError(f"memset failed with code {code}")
    return target


@cache
def _runtime_memset() -> Any:
    """Return the memset of the GPU runtime that PyTorch has loaded."""
    mapped = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    found = _RUNTIMES.search(mapped)
    if found is None:
        raise RuntimeError("the GPU runtime is not loaded as a library of its own")
    library = ctypes.CDLL(found[0])
    return library.hipMemsetAsync if "amdhip" in found[0] else library.cudaMemsetAsync
