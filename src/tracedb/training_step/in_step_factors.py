"""How much faster a matrix product runs in a training step than alone in a sweep.

Tensor cores of an H100 reach their power limit before their clock limit, so their speed depends on the preceding work
and on the bits of their operands. Measured on an H100 (PyTorch 2.11, ``benchmarks/training_step.py``)
with GPTs 2,048 wide in fp16, of 8 layers at 4 sequences of 2,048 tokens and of 12 layers at 8 of 1,024, over 20 steps:

- with finite weights (AdamW's epsilon 1e-4) the matrix products took 30.67 and 43.47 ms, which is 1.23 and 1.22 times
  as fast as models of the recorded sweep have it, whose iterations follow one another; in bf16 1.20 times.
- with PyTorch's default epsilon of 1e-8, which is 0 in fp16, every weight is NaN after two steps. Operands that are all
  alike toggle no bits: 27.67 and 38.95 ms, 1.11 and 1.12 times as fast again. The steps recorded with the sweep ran so.
"""

from __future__ import annotations

import re

from tracedb.training_step.configuration import Step

IN_A_STEP = 1.23
ON_NAN = 1.12
MEASURED_ON = "h100"
MATRIX_OPERATORS = ("linear1", "linear2", "linear3", "linear4", "linear_final", "bmm", "baddbmm", "moe")


def speedup(step: Step, operator: str) -> float:
    """Return the divisor of a sampled time: the step's own, else 1 if nothing was measured."""
    if operator not in MATRIX_OPERATORS:
        return 1.0
    if step.product_speedup is not None:
        return step.product_speedup
    if MEASURED_ON not in re.sub(r"[^a-z0-9]", "", step.gpu.lower()):
        return 1.0
    return IN_A_STEP * (ON_NAN if step.operands == "nan" else 1.0)
