"""The work that keeps a GPU in the state of a training step between the measured passes of a sample.

A GPU that rests between samples runs at its highest clock; in a training step it runs at the clock which its power
limit allows. The load is the work of a training step in small: matrix products (about 60 % of its time), attention
(15 %) and passes over memory. It never ends in the middle of a sample, so a sample follows it without a gap, at the
clock of the mix. It also replaces the content of the L2 cache, so an operator finds there only what the operator
before it in a step would have left: the inputs that ``freshen`` writes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracedb.sampling import device as devices

if TYPE_CHECKING:
    import torch

TOKENS, WIDTH, HEAD = 4096, 3072, 128
"""Sizes of the load on a GPU; a round takes about 3 ms on an H200."""
SMALL_TOKENS, SMALL_WIDTH = 32, 128
"""Sizes on the CPU, where the load only shows that it runs."""
STREAMED_BYTES = 256 << 20
"""Bytes of each of the three tensors that a round passes over: several times any L2 cache."""
BATCH_SECONDS = 0.05
"""Load that is queued at a time while the GPU warms up."""
SHARE = 2.0
"""Least time of the load before a pass, as a multiple of the pass: the mix, not the operator, sets the clock."""
LONGEST_SECONDS = 0.06


class SteadyLoad:
    """Work in the proportions of a training step, on one device."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        import torch

        on_gpu = device.type == "cuda"
        tokens, width = (TOKENS, WIDTH) if on_gpu else (SMALL_TOKENS, SMALL_WIDTH)
        streamed = (STREAMED_BYTES if on_gpu else 4096) // dtype.itemsize

        def random(*size: int) -> torch.Tensor:
            return torch.randn(size, dtype=dtype, device=device)

        self._device = device
        self._x, self._weight, self._y = random(tokens, width), random(width, 4 * width), random(tokens, 4 * width)
        self._x_out, self._weight_out, self._y_out = (torch.empty_like(t) for t in (self._x, self._weight, self._y))
        self._heads = random(max(tokens // 2048, 1), width // HEAD, min(tokens, 2048), HEAD)
        self._streamed = [random(streamed) for _ in range(3)]
        self._round_seconds = self._time_of_round()

    def run(self, rounds: int = 1) -> None:
        """Launch the load; it returns before the device has finished."""
        import torch
        from torch.nn.functional import gelu, scaled_dot_product_attention

        with torch.no_grad():
            for _ in range(rounds):
                torch.mm(self._x, self._weight, out=self._y_out)
                gelu(self._y)
                torch.mm(self._y, self._weight.t(), out=self._x_out)
                scaled_dot_product_attention(self._heads, self._heads, self._heads, is_causal=True)
                scaled_dot_product_attention(self._heads, self._heads, self._heads, is_causal=True)
                torch.mm(self._x.t(), self._y, out=self._weight_out)
                torch.add(self._streamed[0], self._streamed[1], alpha=0.5, out=self._streamed[2])
                torch.mul(self._streamed[2], 0.5, out=self._streamed[1])

    def warm_up(self, seconds: float) -> None:
        """Run the load for about this long on a GPU, so that its clock settles; the last part is still queued."""
        if self._device.type == "cuda":
            for _ in range(math.ceil(seconds / BATCH_SECONDS)):
                devices.wait_for(self._device)
                self.run(max(math.ceil(BATCH_SECONDS / self._round_seconds), 1))

    def rounds_for(self, seconds: float) -> int:
        """Return the rounds to run before a pass of this length."""
        return max(math.ceil(min(SHARE * seconds, LONGEST_SECONDS) / self._round_seconds), 1)

    def _time_of_round(self) -> float:
        from time import perf_counter

        for rounds in (2, 10 if self._device.type == "cuda" else 1):
            devices.wait_for(self._device)
            begin = perf_counter()
            self.run(rounds)
            devices.wait_for(self._device)
        return max((perf_counter() - begin) / rounds, 1e-6)


def freshen(tensors: Sequence[torch.Tensor]) -> None:
    """Write tensors anew with the same values, as the operator before would have: their end is then in the L2 cache."""
    import torch

    with torch.no_grad():
        for tensor in tensors:
            tensor.mul_(1)
