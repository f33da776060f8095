"""Measured peaks of a device: the fastest of a few large products and copies, into ``main.device_peak``.

A data sheet's peak is that of the clock which the vendor states; under load a card may run slower. Each rate is the
best of several batches, after a warm-up: what this card can do, not what it does on average.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.pipeline import writable_database
from tracedb.pipeline.task import MEMORY_LIMIT
from tracedb.sampling import device as devices
from tracedb.storage.connection import transaction, workbench

if TYPE_CHECKING:
    import torch

PRIORITY = 50
"""Before the shipped data sheets, so that a row of the same name is found by it."""
BATCHES, WARM_SECONDS = 5, 0.5
ELEMENTS = {"fp64": "float64", "fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16"}


@dataclass(frozen=True)
class Peaks:
    """Rates of one device: TFLOP/s by element type, and GB/s read and written by a copy."""

    device: str
    tflops: dict[str, float]
    memory_gbps: float


def measure(name: str | None) -> Peaks:
    """Measure the named device, by default the current GPU. Raises ``TracedbError`` if it does not exist."""
    devices.require_torch()
    device = devices.choose(name)
    is_gpu = device.type == "cuda"
    sizes = (4096, 8192) if is_gpu else (256, 512)
    kinds = [kind for kind in ELEMENTS if kind != "tf32" or is_gpu]
    rates = {kind: max(_product(device, kind, size) for size in sizes) for kind in kinds}
    found = Peaks(devices.title(device), rates, _copy(device, (1 << 30) if is_gpu else (16 << 20)))
    devices.release(device)
    return found


def _product(device: torch.device, kind: str, size: int) -> float:
    """Return TFLOP/s of a square product: 2·size³ FLOPs."""
    import torch

    dtype = getattr(torch, ELEMENTS[kind])
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    try:
        a, b = (torch.randn(size, size, device=device, dtype=torch.float32).to(dtype) for _ in range(2))
        out = torch.empty(size, size, device=device, dtype=dtype)
        return 2 * size**3 / _seconds(device, lambda: torch.mm(a, b, out=out)) / 1e12
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _copy(device: torch.device, size: int) -> float:
    """Return GB/s of a copy within the device; each byte is read once and written once."""
    import torch

    source, target = (torch.empty(size, device=device, dtype=torch.uint8) for _ in range(2))
    return 2 * size / _seconds(device, lambda: target.copy_(source)) / 1e9


def _seconds(device: torch.device, work: Callable[[], object]) -> float:
    """Return the time of one call, in the best of several batches."""
    work()
    devices.wait_for(device)
    begin, calls = time.perf_counter(), 0
    while time.perf_counter() - begin < WARM_SECONDS:
        work()
        devices.wait_for(device)
        calls += 1
    batch = max(1, calls // 4)
    best = float("inf")
    for _ in range(BATCHES):
        begin = time.perf_counter()
        for _ in range(batch):
            work()
        devices.wait_for(device)
        best = min(best, (time.perf_counter() - begin) / batch)
    return best


def write(database: Path, peaks: Peaks) -> None:
    """Put the peaks into ``device_peak``, replacing earlier measurements; creates the database if needed."""
    pattern = f"^{re.escape(peaks.device)}$"
    names = [f"{kind}_tflops" for kind in peaks.tflops]
    with (
        workbench(MEMORY_LIMIT, 1, database) as connection,
        writable_database.opened(connection, database),
        transaction(connection),
    ):
        writable_database.prepare(connection, database)
        connection.execute("DELETE FROM main.device_peak WHERE source = 'measured' AND device_name = ?", [pattern])
        connection.execute(
            f"""INSERT INTO main.device_peak (priority, device_name, source, memory_gbps, {", ".join(names)})
                VALUES (?, ?, 'measured', ?{", ?" * len(names)})""",
            [PRIORITY, pattern, peaks.memory_gbps, *peaks.tflops.values()],
        )
