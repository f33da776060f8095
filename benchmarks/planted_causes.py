"""Train a small GPT with one cause of slowness planted at a time, and without it.

    torchrun --standalone --nproc-per-node=4 benchmarks/planted_causes.py OUT [--only NAME]... [--size SIZE]
    NCCL_ALGO=allreduce:tree torchrun --standalone --nproc-per-node=4 benchmarks/planted_causes.py OUT --only tree
    torchrun --standalone --nproc-per-node=1 benchmarks/planted_causes.py OUT --runs 2

OUT gets ``config=NAME/rankN.json.gz``, a trace of a few steps of each rank (``config=NAME/run=K/rankN.json.gz`` with
``--runs``), and ``NAME.json``, the times of steps without the profiler.

| cause | with it | without |
|---|---|---|
| another process multiplies matrices on the GPU of the last rank | shared_gpu | ddp |
| rank 1 has fewer multiprocessors; needs MPS and ``--processors 50,25`` | gpu_slow | ddp |
| the host of rank 1 sleeps before each step | host_sleeps | ddp |
| the first pipeline stage has half of the layers of the last, besides its own | stages_unequal | stages_equal |
| the expert of rank 1 gets 1.6 times the mean of tokens | experts_uneven | experts_even |
| each gradient is reduced on its own | buckets_small | buckets_default |
| NCCL reduces along a tree; ``NCCL_ALGO`` has to be set for the process | tree | ring |
| one process: another one works on its GPU in some steps | shared_steps | one |
| one process: a slow kernel of its own in each layer | kernel_slow | kernel_fast |
| one process: inputs of the layers are not contiguous | strided | one |
| one process: the loss of each micro-batch is fetched | loss_fetched | loss_kept |

The causes of one process, named with ``--only``, can be planted on several ranks, which then reduce their gradients.

Python collects no garbage meanwhile, and each rank keeps to its own part of the cores, so that nothing but the cause
disturbs the host. The GPUs are the bound of the models, also under the profiler, but for buckets.

Two ranks on one GPU (``--size shared``) have to be taken for two machines by NCCL, which then sends over sockets: the
kernels are those of several machines, but the times are not.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from planted_model import VOCABULARY, Model, Plan
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

WARMUPS, STEPS, TRACED = 10, 20, 5
PROFILED_WARMUPS = 6
"""Steps under the profiler before the recorded ones."""
AT_TIMES = 6
"""Steps that are recorded if another process works in every other one."""
REDUCED = Plan("reduce", batch=2)
DDP = Plan("ddp", layers=6, dim=3072)
PIPELINE = Plan("pipeline", layers=4, dim=3072, batch=4, micro_batches=4)
EXPERTS = Plan("experts", layers=4, dim=2560)
BUCKETS = Plan("ddp", layers=12, dim=1024, batch=2)
ONE = Plan("one", layers=4, dim=2048)
LOSS = replace(ONE, batch=4, micro_batches=4)
PLANS = {
    "ddp": DDP,
    "shared_gpu": replace(DDP, neighbour="always"),
    "gpu_slow": DDP,
    "host_sleeps": replace(DDP, sleep_ms=20),
    "stages_equal": PIPELINE,
    "stages_unequal": replace(PIPELINE, moved=2),
    "experts_even": EXPERTS,
    "experts_uneven": replace(EXPERTS, load=1.6),
    "buckets_default": BUCKETS,
    "buckets_small": replace(BUCKETS, bucket_mb=0.001),
    "ring": REDUCED,
    "tree": REDUCED,
    "one": ONE,
    "shared_steps": replace(ONE, neighbour="some"),
    "kernel_fast": replace(ONE, custom_kernel="fast"),
    "kernel_slow": replace(ONE, custom_kernel="slow"),
    "loss_kept": LOSS,
    "loss_fetched": replace(LOSS, fetches_loss=True),
    "strided": replace(ONE, strided=True),
}
SMALL: dict[str, Any] = {"dim": 32, "batch": 2, "length": 16}
"""Sizes for a CPU."""
SHARED: dict[str, dict[str, Any]] = {
    "ddp": {"dim": 512, "layers": 6, "batch": 16},
    "reduce": {"dim": 512, "layers": 6, "batch": 16},
    "pipeline": {"dim": 4096, "batch": 1},
    "experts": {"dim": 2048, "batch": 2, "layers": 2, "expert_width": 16},
    "buckets": {"dim": 256},
}
"""Sizes for two ranks on one GPU, whose network is slow: more work per byte sent. By ``Plan.spread``, or buckets."""


class Trainer:
    """Runs the steps of a plan on this rank."""

    def __init__(self, plan: Plan, device: torch.device) -> None:
        self.plan, self.device = plan, device
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        torch.manual_seed(0)
        with device:
            self.module = Model(plan, self.rank, self.ranks).to(self.dtype)
        self.model: nn.Module = self.module
        if plan.spread == "ddp":
            self.model = nn.parallel.DistributedDataParallel(
                self.module, device_ids=[device] if device.type == "cuda" else None,
                bucket_cap_mb=plan.bucket_mb, gradient_as_bucket_view=True, broadcast_buffers=False,
            )  # fmt: skip
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        shape = (plan.batch, plan.length)
        self.tokens, self.target = (torch.randint(0, VOCABULARY, shape, device=device) for _ in range(2))
        self.losses: list[float] = []

    def step(self) -> None:
        with record_function("get_batch"):
            if self.rank == 1 and self.plan.sleep_ms:
                time.sleep(self.plan.sleep_ms / 1000)
        self.optimizer.zero_grad()
        if self.plan.spread == "pipeline":
            self._pipeline()
        else:
            self._micro_batches()
        if self.plan.spread == "reduce":
            with record_function("reduce_gradients"):
                self._reduce()
        with record_function("optimizer"):
            self.optimizer.step()
        wait(self.device)

    def _micro_batches(self) -> None:
        for _ in range(self.plan.micro_batches):
            with record_function("forward"):
                loss = self.model(self.tokens, self.target)
            if self.plan.fetches_loss:
                with record_function("log loss"):
                    self.losses.append(loss.item())
            with record_function("backward"):
                loss.backward()

    def _reduce(self) -> None:
        """Average all gradients in one all-reduce."""
        gradients = [value.grad for value in self.module.parameters() if value.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        pieces = flat.split([gradient.numel() for gradient in gradients])
        torch._foreach_copy_(gradients, [p.view_as(g) for p, g in zip(pieces, gradients, strict=True)])

    def _pipeline(self) -> None:
        """Run the micro-batches of a stage, alternating forward and backward (1F1B)."""
        count, last = self.plan.micro_batches, self.rank == self.ranks - 1
        ahead = min(self.ranks - 1 - self.rank, count)
        kept: list[tuple[Tensor, Tensor]] = []

        def forward(received: Tensor | None) -> Tensor:
            with record_function("forward"):
                taken = self.tokens if received is None else received.requires_grad_()
                kept.append((taken, self.model(taken, self.target)))
            return kept[-1][1].detach()

        def backward(gradient: Tensor | None) -> Tensor | None:
            with record_function("backward"):
                taken, made = kept.pop(0)
                made.backward(gradient)
            return taken.grad

        x = self._exchange(None, -1, receives=True)
        for number in range(ahead):
            self._exchange(forward(x), 1, receives=False)
            x = self._exchange(None, -1, receives=number + 1 < count)
        for number in range(count - ahead):
            y = forward(x)
            gradient = backward(None if last else self._exchange(y, 1, receives=True))
            x = self._exchange(gradient, -1, receives=number + 1 < count - ahead)
        for _ in range(ahead):
            self._exchange(backward(self._exchange(None, 1, receives=True)), -1, receives=False)

    def _exchange(self, sent: Tensor | None, step: int, *, receives: bool) -> Tensor | None:
        """Send to a neighbouring stage and receive from it; does nothing at the ends of the pipeline."""
        other = self.rank + step
        if not 0 <= other < self.ranks or (sent is None and not receives):
            return None
        shape = (self.plan.batch, self.plan.length, self.plan.dim)
        got = torch.empty(shape, dtype=self.dtype, device=self.device) if receives else None
        calls = [dist.P2POp(dist.isend, sent, other)] if sent is not None else []
        calls += [dist.P2POp(dist.irecv, got, other)] if got is not None else []
        for call in dist.batch_isend_irecv(calls):
            call.wait()
        return got


def wait(device: torch.device) -> None:
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def meet(device: torch.device) -> None:
    """Wait until all ranks are here and their GPUs are done."""
    wait(device)
    dist.barrier()
    wait(device)


def measured(run: Callable[[], None], device: torch.device) -> list[float]:
    """Return the time of each of ``STEPS`` steps that follow each other. [us]"""
    for _ in range(WARMUPS):
        run()
    meet(device)
    found = []
    for _ in range(STEPS):
        start = time.perf_counter_ns()
        run()
        found.append((time.perf_counter_ns() - start) / 1000)
    return found


def traced(run: Callable[[], None], device: torch.device, trace: Path, beside: Neighbour | None) -> None:
    """Write the trace of some steps, which begin when all ranks have run some under the profiler.

    A process beside this one works in every other step.
    """
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    trace.parent.mkdir(parents=True, exist_ok=True)
    steps = TRACED if beside is None else AT_TIMES
    with profile(
        activities=activities,
        schedule=schedule(wait=1, warmup=PROFILED_WARMUPS - 1, active=steps, repeat=1),
        record_shapes=True,
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(trace)),
    ) as profiler:
        for number in range(PROFILED_WARMUPS + steps):
            if number < PROFILED_WARMUPS:
                meet(device)
            if beside is not None:
                beside.tell("begin" if number % 2 else "end")
            run()
            profiler.step()


class Neighbour:
    """Another process that multiplies matrices on the GPU of this one, from ``begin`` to ``end``."""

    def __init__(self, device: torch.device) -> None:
        command = [sys.executable, __file__, "--neighbour", str(device)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answered()

    def _answered(self) -> None:
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise RuntimeError("the process beside this one ended")

    def tell(self, word: str) -> None:
        """Say ``begin`` or ``end`` and wait until it has done so."""
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        self._answered()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)


def neighbour(device: torch.device) -> None:
    """Multiply matrices between the lines ``begin`` and ``end`` on standard input, until it is closed."""
    size = 8192 if device.type == "cuda" else 256
    a = torch.randn(size, size, device=device, dtype=torch.bfloat16 if device.type == "cuda" else torch.float32)
    a @ a
    wait(device)
    print("ready", flush=True)
    works, count = False, 0
    while True:
        if not works or select.select([sys.stdin], [], [], 0)[0]:
            line = sys.stdin.readline()
            if not line:
                print(f"{count} products beside", file=sys.stderr)
                return
            works = line.strip() == "begin"
            print(line.strip(), flush=True)
        if works:
            for _ in range(2):
                a @ a
            wait(device)
            count += 2


def one(name: str, plan: Plan, device: torch.device, out: Path, trace: Path) -> None:
    """Time and trace a plan."""
    rank = dist.get_rank()
    trainer = Trainer(plan, device)
    beside = Neighbour(device) if plan.neighbour and rank == dist.get_world_size() - 1 else None
    meet(device)
    if beside is not None and plan.neighbour == "always":
        beside.tell("begin")
    meet(device)
    gc.collect()
    gc.disable()  # a collection takes 50 ms, and comes when it likes
    times = measured(trainer.step, device)
    traced(trainer.step, device, trace / f"rank{rank}.json.gz", beside if plan.neighbour == "some" else None)
    gc.enable()
    if beside is not None:
        beside.tell("end")
        beside.close()
    everyone: list[list[float]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(everyone, times)
    if rank == 0:
        medians = [round(statistics.median(mine), 1) for mine in everyone]
        content = {"config": name, **vars(plan), "step_us_median": medians, "step_us": everyone}
        (out / f"{trace.relative_to(out).as_posix().replace('/', ' ')}.json").write_text(json.dumps(content) + "\n")
        print(f"{trace.relative_to(out)}: {max(medians) / 1000:.2f} ms a step", flush=True)


def joined(size: str, processors: list[str]) -> torch.device:
    """Join the other ranks and return this rank's device."""
    if processors:
        os.environ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = processors[int(os.environ["RANK"])]
    if size == "small":
        dist.init_process_group("gloo")
        return torch.device("cpu")
    if size == "shared":  # NCCL refuses two ranks on one GPU of one machine
        alone = {"NCCL_HOSTID": f"rank{os.environ['RANK']}", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
        os.environ.update(alone)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    keep_cores()
    dist.init_process_group("nccl", device_id=device)
    return device


def keep_cores() -> None:
    """Keep this rank to its own part of the cores, if there are at least four for each."""
    rank, ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) >= 4 * ranks:
        part = len(cores) // ranks
        os.sched_setaffinity(0, cores[rank * part : (rank + 1) * part])


def sized(name: str, size: str) -> Plan:
    """Return a plan with the sizes of ``--size``."""
    plan = PLANS[name]
    if plan.spread == "one" and dist.get_world_size() > 1:
        plan = replace(plan, spread="ddp")
    if size == "shared":
        plan = replace(plan, **SHARED.get("buckets" if name.startswith("buckets") else plan.spread, {}))
        half = replace(plan, layers=plan.layers // 2, moved=plan.moved // 2)
        return half if plan.spread == "pipeline" else plan
    return replace(plan, **SMALL) if size == "small" else plan


def main() -> None:
    """Run the plans one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--only", action="append", choices=sorted(PLANS), help="by default all but tree and gpu_slow")
    parser.add_argument("--size", choices=("full", "shared", "small"), default="full", help="small: a CPU, and gloo")
    parser.add_argument("--processors", help="under MPS: multiprocessors of each rank in percent, such as 50,50")
    parser.add_argument("--runs", type=int, default=1, help="how often each is recorded")
    parser.add_argument("--neighbour", metavar="DEVICE", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.neighbour:
        neighbour(torch.device(given.neighbour))
        return
    if given.out is None:
        parser.error("OUT is missing")
    device = joined(given.size, given.processors.split(",") if given.processors else [])
    try:
        is_alone = dist.get_world_size() == 1
        for name in given.only or [key for key, plan in PLANS.items() if (plan.spread == "one") == is_alone]:
            if name in ("tree", "gpu_slow") and not given.only:
                continue
            for number in range(given.runs):
                folder = given.out / f"config={name}"
                folder = folder / f"run={number + 1}" if given.runs > 1 else folder
                one(name, sized(name, given.size), device, given.out, folder)
                if device.type == "cuda":
                    torch.cuda.empty_cache()
        dist.barrier()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
