"""One rank of a sweep beside a collective, under torchrun: ``python -m tracedb.sampling.beside_worker ORDER.json``.

Every pass runs behind the load of the steady regime, while all ranks run all-reduces on another stream. These are
launched outside of the pass's range, so its time has only its own kernels.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracedb.sampling import device as devices
from tracedb.sampling.beside import Order
from tracedb.sampling.configuration import Configuration
from tracedb.sampling.recording import WARM_SECONDS, Recorder
from tracedb.sampling.steady_load import SteadyLoad
from tracedb.sampling.worker_sweep import Task

if TYPE_CHECKING:
    import torch

MESSAGES = 4
"""All-reduces before each pass, so that they outlast it."""


class BesideCollective(SteadyLoad):
    """The load of a step, after which all-reduces run beside what follows."""

    def __init__(self, dtype: torch.dtype, device: torch.device, elements: int) -> None:
        import torch

        super().__init__(dtype, device)
        self._message = torch.ones(elements, dtype=dtype, device=device)
        self._pending: list[Any] = []

    def run(self, rounds: int = 1) -> None:
        """Launch the load, then the collectives; those of the pass before have ended."""
        super().run(rounds)
        if not hasattr(self, "_message"):
            return  # the load is being timed
        import torch.distributed as dist

        for pending in self._pending:
            pending.wait()
        largest = dist.ReduceOp.MAX  # not the sum, which would overflow fp16
        self._pending = [dist.all_reduce(self._message, op=largest, async_op=True) for _ in range(MESSAGES)]

    def rounds_for(self, seconds: float) -> int:
        """Return the same number on every rank: each must launch the same collectives."""
        return 2

    def warm_up(self, seconds: float) -> None:
        """Run the load alone; every rank for as long as it takes."""
        for _ in range(20 if seconds >= WARM_SECONDS else 2):
            super().run(4 if self._device.type == "cuda" else 1)
            devices.wait_for(self._device)


def work(order: Order) -> None:
    """Run all shapes under the profiler and write this rank's trace and outcomes."""
    import torch
    import torch.distributed as dist

    on_gpu = order.backend == "nccl"
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
        dist.init_process_group(order.backend, device_id=device)
    else:
        dist.init_process_group(order.backend)
    try:
        dtype = devices.dtype(order.dtype)
        load = BesideCollective(dtype, device, order.elements)
        folder, rank = Path(order.folder), dist.get_rank()
        for number, said in enumerate(order.tasks):
            task = Task(**said)
            mine = folder / f"sweep{number}"
            outcomes = _recorder(task, dtype, device, load).profile(task.shapes, mine / f"rank{rank}.json.gz")
            told = [[outcome.status, outcome.detail] for outcome in outcomes]
            written = mine / f"{rank}.part"
            written.write_text(json.dumps(told), encoding="utf-8")
            written.rename(mine / f"outcomes{rank}.json")  # complete as soon as it has this name, and after the trace
            devices.release(device)
            dist.barrier()
    finally:
        dist.destroy_process_group()


def _recorder(task: Task, dtype: torch.dtype, device: torch.device, load: SteadyLoad) -> Recorder:
    configuration = Configuration(
        Path(task.configuration), task.operator, (), (), None, wait=0, warmup=task.warmups,
        active=task.active, module=task.module, function=task.function,
    )  # fmt: skip
    return Recorder(task.found(), configuration, dtype, device, load)


if __name__ == "__main__":
    work(Order(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
