"""A kernel of Triton that multiplies a tensor by 1, by one program or by many. Needs a GPU."""

from collections.abc import Callable

import triton  # type: ignore[import-not-found, unused-ignore]
import triton.language as tl  # type: ignore[import-not-found, unused-ignore]
from torch import Tensor

SLOW_BLOCK, FAST_BLOCK = 8192, 1024


@triton.jit  # type: ignore[misc, untyped-decorator, unused-ignore]
def slow_custom_kernel(x, size, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Go through all elements in one program."""
    for begin in range(0, size, block):
        places = begin + tl.arange(0, block)
        tl.store(x + places, tl.load(x + places, mask=places < size) * 1.0, mask=places < size)


@triton.jit  # type: ignore[misc, untyped-decorator, unused-ignore]
def fast_custom_kernel(x, size, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Go through a block of elements in each program."""
    places = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(x + places, tl.load(x + places, mask=places < size) * 1.0, mask=places < size)


def custom_kernel(kind: str) -> Callable[[Tensor], None]:
    """Return a function that runs the slow or the fast kernel."""

    def slow(x: Tensor) -> None:
        slow_custom_kernel[(1,)](x, x.numel(), SLOW_BLOCK)

    def fast(x: Tensor) -> None:
        fast_custom_kernel[(triton.cdiv(x.numel(), FAST_BLOCK),)](x, x.numel(), FAST_BLOCK)

    return slow if kind == "slow" else fast
