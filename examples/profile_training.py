"""Profile training steps: one process, DDP or FSDP; or a sweep over NCCL's channels and threads.

    python examples/profile_training.py -o profile/train
    torchrun --nproc-per-node 2 examples/profile_training.py --parallel fsdp -o profile/fsdp
    python examples/profile_training.py --sweep --processes 2 --channels 4,16 --threads 256,512 -o sweep_base

A sweep starts torchrun for every setting and writes OUTPUT/{T}thread/nccl_{C}channels/torch_profiler/rank{R}/, rank 0
first, and run_output.log beside: what ran, with which settings, and how it ended. ``tracedb ingest OUTPUT`` takes the
labels threads and channels from these folders. Outside a sweep, passes.csv holds wall time and energy of steps without
the profiler, for ``tracedb replay --range train_step --measured``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from pass_meter import PassMeter
from profile_inference import device_of, wait
from small_models import Decoder, Size


class Training:
    """A model, its optimizer, and a batch."""

    def __init__(self, given: argparse.Namespace, device: torch.device, ranks: int) -> None:
        torch.manual_seed(0)
        size = Size(given.layers, given.hidden, given.heads, given.heads, given.vocabulary)
        model: nn.Module = Decoder(given.model, size).to(device, getattr(torch, given.dtype))
        self.model = _parallel(model, given.parallel, device, ranks)
        options = {"fused": {"fused": True}, "foreach": {"foreach": True}, "single": {"foreach": False}}
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, **options[given.optimizer])
        shape = (given.batch, given.length)
        self.tokens = torch.randint(0, given.vocabulary, shape, device=device)
        self.targets = torch.randint(0, given.vocabulary, shape, device=device)
        self.device = device

    def step(self) -> None:
        """Run one step in the ranges train_step, forward, backward and optimizer, and wait for its end."""
        with record_function("train_step"):
            with record_function("forward"):
                logits = self.model(self.tokens)
                loss = F.cross_entropy(logits.float().flatten(0, 1), self.targets.flatten())
            with record_function("backward"):
                loss.backward()
            with record_function("optimizer"):
                self.optimizer.step()
                self.optimizer.zero_grad()
            wait(self.device)


def _parallel(model: nn.Module, parallel: str, device: torch.device, ranks: int) -> nn.Module:
    if ranks == 1:
        return model
    if parallel == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(device.type, (ranks,))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return model
    from torch.nn.parallel import DistributedDataParallel

    found: nn.Module = DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)
    return found


def record(given: argparse.Namespace, rank: int, ranks: int) -> None:
    """Train on this rank under the profiler, and write the trace: rank 0 first."""
    device = device_of(int(os.environ.get("LOCAL_RANK", rank)), given.device)
    training = Training(given, device, ranks)
    for _ in range(given.warmup):
        training.step()
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    steps: Any = schedule(wait=0, warmup=1, active=given.steps, repeat=1)
    folder = given.output / "torch_profiler" / f"rank{rank}"
    folder.mkdir(parents=True, exist_ok=True)

    def write(done: Any) -> None:
        for turn in range(ranks):
            if turn == rank:
                done.export_chrome_trace(str(folder / f"trace_rank{rank}.json.gz"))
            if ranks > 1:
                dist.barrier()

    if given.no_profiler:  # another one records: ranges are NVTX ranges then
        with torch.autograd.profiler.emit_nvtx(enabled=device.type == "cuda"):
            for _ in range(given.steps):
                training.step()
        return
    with profile(activities=activities, schedule=steps, on_trace_ready=write, record_shapes=True) as profiler:
        for _ in range(1 + given.steps):
            training.step()
            profiler.step()
    if ranks == 1:  # loops of a fixed time would end at different steps on several ranks
        meter = PassMeter(device)
        meter.run("train_step", training.step, given.measure_seconds)
        meter.write(given.output / "passes.csv")
    print(f"rank {rank} of {ranks} wrote {folder.name}")


def sweep(given: argparse.Namespace, own: list[str]) -> int:
    """Run every setting, one after the other, and return how many failed."""
    failed = 0
    for threads in given.threads.split(","):
        for channels in given.channels.split(","):
            folder = given.output / f"{int(threads)}thread" / f"nccl_{int(channels)}channels"
            failed += _setting(given, own, folder, int(threads), int(channels)) != 0
    return failed


def _setting(given: argparse.Namespace, own: list[str], folder: Path, threads: int, channels: int) -> int:
    settings = {
        "NCCL_NTHREADS": str(threads),
        "RCCL_THREADS_PER_BLOCK": str(threads),
        "NCCL_MIN_NCHANNELS": str(channels),
        "NCCL_MAX_NCHANNELS": str(channels),
    }
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={given.processes}"]
    command += [__file__, *own, "-o", str(folder)]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "run_output.log").open("w", encoding="utf-8") as log:
        print(f"settings: {' '.join(f'{key}={value}' for key, value in settings.items())}", file=log)
        print(f"processes: {given.processes}; options: {' '.join(own)}", file=log, flush=True)
        begin = time.perf_counter()
        code = subprocess.run(command, env={**os.environ, **settings}, stdout=log, stderr=log, check=False).returncode
        print(f"ended with code {code} after {time.perf_counter() - begin:.1f} s", file=log)
    print(f"{threads} threads, {channels} channels: {'done' if code == 0 else f'failed, see {folder}/run_output.log'}")
    return code


def _without_sweep(arguments: list[str]) -> list[str]:
    """Return the options for one setting: those of the sweep itself, and the output, are left out."""
    own: list[str] = []
    left = iter(arguments)
    for item in left:
        name, equals, _ = item.partition("=")
        if name in ("--processes", "--channels", "--threads", "-o", "--output"):
            if not equals:
                next(left, None)
        elif name != "--sweep":
            own.append(item)
    return own


def main() -> None:
    """Read the options; sweep, or join the other ranks if there are any and record."""
    parser = argparse.ArgumentParser(description="Profile training steps of a decoder.")
    parser.add_argument("--model", default="bloom", choices=["bloom", "llama"])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=512)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--length", type=int, default=64, help="tokens of a sequence")
    parser.add_argument("--steps", type=int, default=3, help="steps to record")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--measure-seconds", type=float, default=1.0, help="time without the profiler")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--optimizer", default="foreach", choices=["fused", "foreach", "single"])
    parser.add_argument("--parallel", default="ddp", choices=["ddp", "fsdp"])
    parser.add_argument("--device", choices=["cuda", "cpu"])
    parser.add_argument("--no-profiler", action="store_true", help="run under another profiler, such as nsys")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--processes", type=int, default=2, help="ranks of each run of a sweep")
    parser.add_argument("--channels", default="4,16", help="NCCL's channels to sweep over")
    parser.add_argument("--threads", default="256,512", help="NCCL's threads a block to sweep over")
    parser.add_argument("-o", "--output", type=Path, default=Path("profile"))
    given = parser.parse_args()
    if given.sweep:
        sys.exit(1 if sweep(given, _without_sweep(sys.argv[1:])) else 0)
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if ranks > 1:
        use_gpu = torch.cuda.is_available() and given.device != "cpu"
        dist.init_process_group("nccl" if use_gpu else "gloo")
    record(given, rank, ranks)
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
