"""One process that times the host in steps of whole models: ``python -m tracedb.sampling.host_worker ORDER.json``."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracedb.sampling import device as devices
from tracedb.sampling.host import Order, groups
from tracedb.sampling.recording import FAULTS, fault_of
from tracedb.sampling.sweep import Shape, text
from tracedb.sampling.worker_sweep import Task

if TYPE_CHECKING:
    import torch

STEPS = 7
"""Steps of a round, of which the median counts."""


def work(order: Order) -> None:
    """Time all shapes, write the times of each round, and then the traces if they are asked for."""
    device = devices.choose(order.device)
    folder = Path(order.folder)
    tasks = [Task(**said) for said in order.tasks]
    for place, task in enumerate(tasks):
        found: dict[str, dict[str, Any]] = {}
        for group in groups(task.shapes):
            found |= {
                text("", shape): one for shape, one in zip(group, _timed(task, group, order, device), strict=True)
            }
        told = [found[text("", shape)] for shape in task.shapes]
        (folder / f"{place}.json").write_text(json.dumps(told), encoding="utf-8")
    # The profiler comes last: where it has run, launches stay slower.
    for place, task in enumerate(tasks if order.is_traced else []):
        told = json.loads((folder / f"{place}.json").read_text(encoding="utf-8"))
        shapes = [shape for shape, item in zip(task.shapes, told, strict=True) if item["status"] == "sampled"]
        if shapes:
            _trace(task, shapes, order, device, folder / f"{place}.json.gz")


def _built(task: Task, shape: Shape, order: Order, device: torch.device) -> Mapping[str, Callable[[], Any]]:
    operator = task.found()
    passes = operator.build(shape, devices.dtype(order.dtype), device).passes
    if passes is None:
        raise ValueError(f"{operator.name} is a model without passes")
    for _ in range(max(task.warmups, 1)):
        step(passes, device)
    return passes


def _timed(task: Task, shapes: Sequence[Shape], order: Order, device: torch.device) -> list[dict[str, Any]]:
    """Return the host's times in each pass, a median for each round, and the outcome of each shape.

    The models take turns: the host's speed varies over seconds, and the difference between them is what counts.
    """
    models: list[Mapping[str, Callable[[], Any]]] = []
    try:
        models = [_built(task, shape, order, device) for shape in shapes]
        rounds = [_round(models, device) for _ in range(task.active)]
        return [
            {
                "status": "sampled",
                "detail": None,
                "rounds": {name: [one[at][name] for one in rounds] for name in passes},
            }
            for at, passes in enumerate(models)
        ]
    except FAULTS as error:
        kind, words = fault_of(error)
        if kind == "lost":
            raise
        status = "out_of_memory" if kind == "out_of_memory" else "error"
        return [{"status": status, "detail": words, "rounds": {}} for _ in shapes]
    finally:
        models.clear()
        devices.release(device)


def _round(models: Sequence[Mapping[str, Callable[[], Any]]], device: torch.device) -> list[dict[str, float]]:
    steps = [[step(passes, device) for passes in models] for _ in range(STEPS)]
    return [
        {name: statistics.median(one[at][name] for one in steps) for name in passes} for at, passes in enumerate(models)
    ]


def step(passes: Mapping[str, Callable[[], Any]], device: torch.device) -> dict[str, float]:
    """Run one step and return the host's time in each pass, in ns; the device is waited for before and after."""
    devices.wait_for(device)
    found = {}
    begin = time.perf_counter_ns()
    for name, call in passes.items():
        call()
        end = time.perf_counter_ns()
        found[name] = float(end - begin)
        begin = end
    devices.wait_for(device)
    return found


def _trace(task: Task, shapes: list[Shape], order: Order, device: torch.device, trace: Path) -> None:
    """Write a trace of the warm-ups and of one step of each shape, which a range encloses."""
    from torch.profiler import ProfilerActivity, profile, record_function

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with profile(activities=activities) as profiler:
        for shape in shapes:
            passes = _built(task, shape, order, device)
            with record_function(f"host|{text(task.operator, shape)}"):
                step(passes, device)
            passes = {}
            devices.release(device)
    profiler.export_chrome_trace(str(trace))


if __name__ == "__main__":
    work(Order(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
