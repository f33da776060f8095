"""Run the operators of a whole pass in their recorded order: call by call, and as one CUDA graph."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracedb.replay.energy_meter import Counter
from tracedb.replay.measure import Chosen
from tracedb.replay.probe import MEMORY_SHARE, Bench
from tracedb.replay.timing import Call
from tracedb.sampling import device as devices
from tracedb.sampling.recording import FAULTS, fault_of

if TYPE_CHECKING:
    import torch

ENERGY_SECONDS = 3.0
MOST_SECONDS = 10.0
"""Time after which the pass is not repeated again."""


@dataclass
class WholePass:
    """A pass replayed as a whole; times in ns a pass."""

    calls: int = 0
    share_percent: float | None = None
    eager: tuple[float, ...] = ()
    graph: tuple[float, ...] = ()
    joules: float | None = None
    detail: str | None = None


def run(
    order: Sequence[int],
    chosen: Mapping[int, Chosen],
    bench: Bench,
    device: torch.device,
    samples: int,
    counter: Counter | None = None,
) -> WholePass:
    """Replay the calls that can be replayed, one set of inputs for each signature."""
    needed = {number: chosen[number] for number in order if number in chosen}
    size = sum(item.bytes for item in needed.values())
    if not needed:
        return WholePass(detail="none of its operators can be replayed")
    if size > bench.free() * MEMORY_SHARE:
        return WholePass(detail=f"{size:,} bytes of inputs do not fit into memory")
    try:
        calls = {number: bench.prepared(item.form) for number, item in needed.items()}
        steps = [(calls[number], needed[number].form.tf32) for number in order if number in calls]
        found = WholePass(len(steps))
        found.eager = _eager(steps, device, samples)
        if counter is not None:
            energy = counter.loop(lambda: _once(steps), ENERGY_SECONDS)
            found.joules = None if energy is None else energy.joules
        if device.type == "cuda":
            found.graph, found.detail = _graph(steps, device, samples)
        return found
    except FAULTS as error:
        return WholePass(detail=fault_of(error).words)
    finally:
        devices.release(device)


def _once(steps: Sequence[tuple[Call, bool]]) -> int:
    import torch

    matmul: Any = torch.backends.cuda.matmul
    for call, tf32 in steps:
        if matmul.allow_tf32 != tf32:
            matmul.allow_tf32 = tf32
        call()
    return 1


def _eager(steps: Sequence[tuple[Call, bool]], device: torch.device, samples: int) -> tuple[float, ...]:
    def timed() -> float:
        devices.wait_for(device)
        begin = time.perf_counter_ns()
        _once(steps)
        devices.wait_for(device)
        return float(time.perf_counter_ns() - begin)

    found: list[float] = []
    timed()
    while len(found) < samples and (not found or sum(found) < MOST_SECONDS * 1e9):
        found.append(timed())
    return tuple(found)


def _graph(
    steps: Sequence[tuple[Call, bool]], device: torch.device, samples: int
) -> tuple[tuple[float, ...], str | None]:
    import torch

    graph: Any = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            _once(steps)
    except RuntimeError as error:  # a call waits for the GPU
        torch.cuda.synchronize(device)
        return (), f"not captured as a graph: {' '.join(str(error).split())[:200]}"

    def timed() -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        graph.replay()
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e6

    timed()
    return tuple(timed() for _ in range(samples)), None
