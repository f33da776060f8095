"""How much faster a matrix product runs in a training step than alone in a sweep.

Tensor cores of an H100 reach their power limit before their clock limit, so their speed depends on what they did the
moment before and on the bits of their operands. Measured on an H100 (PyTorch 2.11) with GPTs 2,048 wide,
of 8 layers at 4 sequences of 2,048 tokens and of 12 layers at 8 of 1,024, in fp16:

- forward and backward on freshly made weights took 49.96 and 67.82 ms, and 43.90 and 59.33 ms on the same weights after
  two steps of AdamW with PyTorch's defaults: by then every weight was NaN, since an epsilon of 1e-8 is 0 in fp16.
  Operands that are all alike toggle no bits; the matrix products were 1.22 times as fast, in both models.
- what is left to the products of the first, finite, pass is 1.14 times as fast, in both models, as models of the
  recorded sweep have it, whose iterations follow one another. (``tracedb sample`` waits for the GPU before and after an
  iteration: on another H100 its matrix products came out 1.10 times as fast as these models say, while every other
  operator agreed within 4 %.)
"""

from __future__ import annotations

import re

from tracedb.steps.configuration import Step

IN_A_STEP = 1.14
ON_NAN = 1.22
MEASURED_ON = "h100"
MATRIX_OPERATORS = ("linear1", "linear2", "linear3", "linear4", "linear_final", "bmm", "baddbmm", "moe")


def speedup(step: Step, operator: str) -> float:
    """Return by what a sampled time is divided: what the step says, else 1 where nothing was measured."""
    if operator not in MATRIX_OPERATORS:
        return 1.0
    if step.product_speedup is not None:
        return step.product_speedup
    if MEASURED_ON not in re.sub(r"[^a-z0-9]", "", step.gpu.lower()):
        return 1.0
    return IN_A_STEP * (ON_NAN if step.operands == "nan" else 1.0)
