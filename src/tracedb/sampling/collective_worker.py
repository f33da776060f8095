"""One rank of a run of collectives, under torchrun: ``python -m tracedb.sampling.collective_worker ORDER.json``.

Before each call all ranks meet in a barrier and wait for their device. So a rank's waiting inside the collective comes
only from how unevenly the ranks leave the barrier, and the shortest rank's time is the transfer.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.sampling import device as devices
from tracedb.sampling.collectives import RUN, Order
from tracedb.sampling.sweep import text

if TYPE_CHECKING:
    import torch


def prepare(collective: str, elements: int, dtype: torch.dtype, device: torch.device) -> Callable[[], object]:
    """Return a call of the collective on fresh buffers; ``elements`` is what a rank puts in.

    Broadcast and scatter start at rank 0, gather ends there.
    """
    import torch
    import torch.distributed as dist

    rank, ranks = dist.get_rank(), dist.get_world_size()
    buffer = torch.ones(elements, dtype=dtype, device=device)
    if collective == "allreduce":
        # The largest, not the sum: the same traffic, and repeated calls do not overflow fp16.
        return lambda: dist.all_reduce(buffer, op=dist.ReduceOp.MAX)
    if collective == "allgather":
        gathered = torch.empty(elements * ranks, dtype=dtype, device=device)
        gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # renamed in PyTorch 2.13
        return lambda: gather(gathered, buffer)
    if collective == "reducescatter":
        piece = torch.empty(elements // ranks, dtype=dtype, device=device)
        scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
        return lambda: scatter(piece, buffer)
    if collective == "alltoall":
        swapped = torch.empty_like(buffer)
        return lambda: dist.all_to_all_single(swapped, buffer)
    if collective == "broadcast":
        return lambda: dist.broadcast(buffer, src=0)
    if collective == "gather":
        pieces = [torch.empty_like(buffer) for _ in range(ranks)] if rank == 0 else None
        return lambda: dist.gather(buffer, pieces, dst=0)
    if collective == "scatter":
        piece = torch.empty(elements // ranks, dtype=dtype, device=device)
        parts = list(buffer.chunk(ranks)) if rank == 0 else None
        return lambda: dist.scatter(piece, parts, src=0)
    return lambda: _pass_on(buffer, rank, ranks)


def _pass_on(buffer: torch.Tensor, rank: int, ranks: int) -> None:
    """Send from each even rank to the next one; a last rank without a partner does nothing."""
    import torch.distributed as dist

    if rank % 2 == 0 and rank + 1 < ranks:
        dist.send(buffer, dst=rank + 1)
    elif rank % 2 == 1:
        dist.recv(buffer, src=rank - 1)


def work(order: Order) -> None:
    """Run all sizes under the profiler and write this rank's trace."""
    import torch
    import torch.distributed as dist
    from torch.profiler import ProfilerActivity, profile

    on_gpu = order.backend == "nccl"
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
        dist.init_process_group(order.backend, device_id=device)
    else:
        dist.init_process_group(order.backend)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    try:
        _agree(order)
        with profile(activities=activities, record_shapes=True) as profiler:
            for elements in order.elements:
                _sample(order, elements, devices.dtype(order.dtype), device)
        profiler.export_chrome_trace(str(Path(order.folder) / f"rank{dist.get_rank()}.json.gz"))
        dist.barrier()
    finally:
        dist.destroy_process_group()


def _agree(order: Order) -> None:
    """Note the run's name, that of the first rank. Raises ``ValueError`` if the hosts were told different sizes."""
    import torch.distributed as dist

    first = [order.run, order.elements]
    dist.broadcast_object_list(first, src=0)
    if first[1] != order.elements:
        raise ValueError("Error: the nodes do not sample the same sizes; their databases hold different ones already")
    if int(os.environ.get("LOCAL_RANK", "0")) == 0:
        (Path(order.folder) / RUN).write_text(str(first[0]), encoding="utf-8")


def _sample(order: Order, elements: int, dtype: torch.dtype, device: torch.device) -> None:
    import torch.distributed as dist
    from torch.profiler import record_function

    call = prepare(order.collective, elements, dtype, device)
    for _ in range(order.warmups):
        call()
    near = int(os.environ.get("LOCAL_WORLD_SIZE", dist.get_world_size()))
    shape = {"elements": elements, "nodes": dist.get_world_size() // near, "gpus_per_node": near}
    name = f"comm|{text(order.collective, shape)}"
    for _ in range(order.iterations):
        devices.wait_for(device)
        dist.barrier()
        devices.wait_for(device)
        with record_function(name):
            call()
            devices.wait_for(device)


if __name__ == "__main__":
    work(Order(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
