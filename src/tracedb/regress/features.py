"""Physical features of sampled operators that determine a kernel's time, on a log scale.

Base features are the logarithms of the sizes, along which a trend may be extrapolated beyond the samples. The others
only shape the residual: waves of tiles over the multiprocessors, alignment of sizes to tiles. FLOPs and bytes are in
the trend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tracedb.regress.work_model import Array, Problem, problem

TILES = ((128, 128), (256, 128), (128, 256))
"""Output tiles of the matrix kernels of cuBLAS and CUTLASS on NVIDIA since Ampere; rows by columns."""
ALIGNED = (16, 64, 128)
"""Multiples that kernels pad the sizes of rows and matrices to."""
UNPADDED = ("b", "tokens", "batch", "heads", "mp", "encoders", "experts")
"""Sizes that only count repetitions of the same work."""
SM_COUNTS = {"A100": 108, "GH200": 132, "H100": 132, "H200": 132, "V100": 80, "A800": 108, "L40": 142, "MI300": 304}
"""Multiprocessors by a word in the product name, for samples without a recorded number."""
MANY_MULTIPROCESSORS = 128


@dataclass(frozen=True)
class Features:
    """Features of many shapes, one row per shape."""

    names: tuple[str, ...]
    values: Array
    base: int
    """Number of base features, which are the first columns."""
    signs: Array
    """+1 or -1 for each base feature: whether time rises or falls with it."""
    work: Array
    """Product of the sizes as in estimate-train-time, which orders a split by amount of work."""


def multiprocessors(gpu: str | None, recorded: int | None) -> int:
    """Return the number of multiprocessors: as recorded, else by product name, else a usual one."""
    if recorded:
        return recorded
    name = (gpu or "").upper()
    for word, count in sorted(SM_COUNTS.items(), key=lambda item: -len(item[0])):
        if word in name:
            return count
    return MANY_MULTIPROCESSORS


def features(operator: str, pass_: str, shapes: Sequence[Mapping[str, int]], sm_count: int) -> Features:
    """Return the features of shapes, which all have the same parameters."""
    found = problem(operator, pass_, shapes)
    columns = {f"log {name}": np.log(values) for name, values in found.sizes.items()}
    base = len(columns)
    columns |= _waves(found, sm_count)
    columns |= _alignment(found)
    signs = np.array([-1.0 if name in found.falling else 1.0 for name in found.sizes])
    volume = np.prod(list(found.sizes.values()), axis=0)
    return Features(tuple(columns), np.stack(list(columns.values()), axis=1), base, signs, volume)


def _waves(found: Problem, sm_count: int) -> dict[str, Array]:
    """How much longer the last, partly filled wave of tiles makes each matrix product than full waves would."""
    columns = {}
    for number, (rows, width, _, batch) in enumerate(found.matrices):
        for high, wide in TILES:
            tiles = np.ceil(rows / high) * np.ceil(width / wide) * batch
            columns[f"waves {number} {high}x{wide}"] = np.log(np.ceil(tiles / sm_count) * sm_count / tiles)
    return columns


def _alignment(found: Problem) -> dict[str, Array]:
    """How much padding each size needs to become a multiple of what kernels work in."""
    columns = {}
    for name, values in found.sizes.items():
        for unit in ALIGNED if name not in UNPADDED else ():
            columns[f"padding {name} {unit}"] = np.log(np.ceil(values / unit) * unit / values)
    return columns
