"""Time and trace a training step of a GPT on several GPUs, to compare with ``tracedb predict --step``.

``torchrun --standalone --nproc-per-node=2 benchmarks/training_step.py OUT --spread dp``; OUT gets ``NAME.json`` with
the configuration and the times of whole steps, as ``predict --step`` reads it, and ``config=NAME/rankN.json.gz``, a
trace of two steps per rank.

``--spread``: ``one`` GPU alone; ``dp`` replicas that all-reduce their gradients after the backward, one weight at a
time; ``ddp`` the same overlapping the backward, by DistributedDataParallel; ``mp`` every product split over the
ranks; ``pp`` one pipeline stage per rank, 1F1B. With ``mp`` each rank computes the loss over its own share of the
vocabulary: the same work as in training, but not a training objective.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile, schedule

VOCABULARY = 50_304
WARMUPS, STEPS, TRACED = 5, 20, 2


class Into(torch.autograd.Function):  # type: ignore[misc]
    """Enter a split product: identity in the forward, all-reduce of the gradient in the backward."""

    @staticmethod
    def forward(context: object, x: Tensor) -> Tensor:
        return x

    @staticmethod
    def backward(context: object, gradient: Tensor) -> Tensor:
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient


class Out(torch.autograd.Function):  # type: ignore[misc]
    """Leave a split product: all-reduce of the output in the forward, identity in the backward."""

    @staticmethod
    def forward(context: object, x: Tensor) -> Tensor:
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(context: object, gradient: Tensor) -> Tensor:
        return gradient


class Layer(nn.Module):  # type: ignore[misc]
    """Attention and an MLP of two products, each with a norm before it and a residual connection."""

    def __init__(self, dim: int, heads: int, ranks: int) -> None:
        super().__init__()
        self.heads, self.width, self.ranks = heads // ranks, dim // heads, ranks
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.linear1 = nn.Linear(dim, 3 * dim // ranks, bias=False)
        self.linear2 = nn.Linear(dim // ranks, dim, bias=False)
        self.linear3 = nn.Linear(dim, 4 * dim // ranks, bias=False)
        self.linear4 = nn.Linear(4 * dim // ranks, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        into, out = (Into.apply, Out.apply) if self.ranks > 1 else (_same, _same)
        b, length, _ = x.shape
        query, key, value = (
            part.view(b, length, self.heads, self.width).transpose(1, 2)
            for part in self.linear1(into(self.norm1(x))).chunk(3, dim=-1)
        )
        with nn.attention.sdpa_kernel(nn.attention.SDPBackend.FLASH_ATTENTION) if x.is_cuda else nullcontext():
            y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + out(self.linear2(y.transpose(1, 2).reshape(b, length, -1)))
        return x + out(self.linear4(functional.gelu(self.linear3(into(self.norm2(x))))))


class Gpt(nn.Module):  # type: ignore[misc]
    """Layers of one pipeline stage, the first with the embedding, the last with the head and the loss."""

    def __init__(self, said: argparse.Namespace, layers: int, *, first: bool, last: bool) -> None:
        super().__init__()
        self.ranks = dist.get_world_size() if said.spread == "mp" else 1
        self.rows = VOCABULARY // self.ranks
        self.start = dist.get_rank() * self.rows if self.ranks > 1 else 0
        self.embedding = nn.Embedding(self.rows, said.dim) if first else None
        self.layers = nn.ModuleList(Layer(said.dim, said.heads, self.ranks) for _ in range(layers))
        self.norm = nn.LayerNorm(said.dim) if last else None
        self.head = nn.Linear(said.dim, self.rows, bias=False) if last else None

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        if self.embedding is not None:
            x = self._embed(x)
        for layer in self.layers:
            x = layer(x)
        if self.norm is None or self.head is None:
            return x
        x = self.norm(x)
        logits = self.head(Into.apply(x) if self.ranks > 1 else x)
        return functional.cross_entropy(logits.view(-1, self.rows), target.view(-1))

    def _embed(self, tokens: Tensor) -> Tensor:
        assert self.embedding is not None
        if self.ranks == 1:
            return self.embedding(tokens)
        local = tokens - self.start
        inside = (local >= 0) & (local < self.rows)
        found = self.embedding(local.clamp(0, self.rows - 1)) * inside[..., None]
        return Out.apply(found)


def _same(x: Tensor) -> Tensor:
    return x


class Trainer:
    """Runs steps with one kind of parallelism (``--spread``)."""

    def __init__(self, said: argparse.Namespace, device: torch.device, dtype: torch.dtype) -> None:
        self.said, self.device, self.dtype = said, device, dtype
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        layers, first, last = said.layers, True, True
        if said.spread == "pp":
            # As the prediction shares layers out: the embedding counts as two of them, the head as three.
            behind = (said.layers + 5) // 2 - 3
            layers, first, last = (said.layers - behind, behind)[self.rank], self.rank == 0, self.rank == 1
        torch.manual_seed(self.rank if said.spread == "mp" else 0)
        with device:
            self.module = Gpt(said, layers, first=first, last=last).to(dtype)
        self.model: nn.Module = self.module
        if said.spread == "ddp":
            self.model = nn.parallel.DistributedDataParallel(
                self.module, device_ids=[device] if device.type == "cuda" else None,
                bucket_cap_mb=said.bucket_mb, gradient_as_bucket_view=True, broadcast_buffers=False,
            )  # fmt: skip
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, eps=said.eps)
        self.buckets: list[int] = []

    def batch(self) -> tuple[Tensor, Tensor]:
        shape, rows = (self.said.batch, self.said.seq), self.module.rows
        return (
            torch.randint(0, VOCABULARY, shape, device=self.device),
            torch.randint(0, rows, shape, device=self.device),
        )

    def step(self, tokens: Tensor, target: Tensor) -> None:
        self.optimizer.zero_grad()
        if self.said.spread == "pp":
            self._pipeline(tokens, target)
        else:
            self.model(tokens, target).backward()
        if self.said.spread == "dp":
            self._reduce()
        self.optimizer.step()

    def _reduce(self) -> None:
        """Average the gradients over the replicas: large ones individually, those of the norms in one all-reduce."""
        found = [parameter.grad for parameter in self.module.parameters() if parameter.grad is not None]
        small = [gradient for gradient in found if gradient.dim() == 1]
        flat = torch.cat(small)
        sent = [gradient for gradient in found if gradient.dim() > 1] + [flat]
        for gradient in sent:
            dist.all_reduce(gradient, op=dist.ReduceOp.AVG if gradient.is_cuda else dist.ReduceOp.SUM)
        for gradient, piece in zip(small, flat.split([gradient.numel() for gradient in small]), strict=True):
            gradient.copy_(piece)
        self.buckets = [gradient.numel() for gradient in sent]

    def _pipeline(self, tokens: Tensor, target: Tensor) -> None:
        """Run the micro-batches of two stages, alternating forward and backward (1F1B)."""
        shape = (self.said.batch, self.said.seq, self.said.dim)
        count, kept = self.said.micro_batches, {}

        def pass_on(send: Tensor | None, receive: bool) -> Tensor | None:
            got = torch.empty(shape, dtype=self.dtype, device=self.device) if receive else None
            other = 1 - self.rank
            calls = [dist.P2POp(dist.isend, send, other)] if send is not None else []
            calls += [dist.P2POp(dist.irecv, got, other)] if got is not None else []
            for call in dist.batch_isend_irecv(calls):
                call.wait()
            return got

        if self.rank == 0:
            kept[0] = self.model(tokens, target)
            pass_on(kept[0].detach(), False)
            for number in range(count):
                ahead = self.model(tokens, target) if number + 1 < count else None
                gradient = pass_on(None if ahead is None else ahead.detach(), True)
                kept.pop(number).backward(gradient)
                if ahead is not None:
                    kept[number + 1] = ahead
            return
        x = pass_on(None, True)
        for number in range(count):
            assert x is not None
            leaf = x.requires_grad_()
            self.model(leaf, target).backward()
            assert leaf.grad is not None
            x = pass_on(leaf.grad, number + 1 < count)


def measured(run: Callable[[], None], device: torch.device) -> list[float]:
    """Return the microseconds of each of ``STEPS`` steps, each from a common start to the end on this rank."""
    found = []
    for number in range(WARMUPS + STEPS):
        _meet(device)
        start = time.perf_counter_ns()
        run()
        _wait(device)
        if number >= WARMUPS:
            found.append((time.perf_counter_ns() - start) / 1000)
    return found


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _meet(device: torch.device) -> None:
    _wait(device)
    dist.barrier()
    _wait(device)


def traced(run: Callable[[], None], device: torch.device, trace: Path) -> None:
    """Write the trace of ``TRACED`` steps."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    plan = schedule(wait=0, warmup=2, active=TRACED, repeat=1)

    def keep(profiler: profile) -> None:
        profiler.export_chrome_trace(str(trace))

    with profile(activities=activities, schedule=plan, record_shapes=True, on_trace_ready=keep) as profiler:
        for _ in range(2 + TRACED):
            _meet(device)
            run()
            _wait(device)
            profiler.step()


def described(said: argparse.Namespace, name: str, trainer: Trainer, times: list[float]) -> dict[str, object]:
    """Return the configuration as ``tracedb predict --step`` reads it, with the measured times."""
    keys = ("layers", "dim", "heads", "seq", "batch", "dtype")
    found: dict[str, object] = {"config": name, **{key: getattr(said, key) for key in keys}}
    if trainer.device.type == "cuda":
        found["gpu"] = torch.cuda.get_device_name()
    spread = {"dp": "dp", "ddp": "dp"}.get(said.spread, said.spread)
    if spread != "one":
        found[spread] = trainer.ranks
    if spread == "pp":
        found |= {"micro_batches": said.micro_batches, "schedule": "1f1b"}
    if said.spread == "ddp":
        found |= {"overlap": True, "bucket": said.bucket_mb * 2**20 // trainer.dtype.itemsize}
    if trainer.buckets:
        found["bucket"] = round(statistics.mean(trainer.buckets))
    finite = all(bool(parameter.isfinite().all()) for parameter in trainer.module.parameters())
    return found | {
        "gpus_per_node": trainer.ranks,
        "operands": "finite" if finite else "nan",
        "step_us_median": round(statistics.median(times), 1),
        "step_us_min": round(min(times), 1),
        "step_us_p90": round(statistics.quantiles(times, n=10)[-1], 1),
        "trace": f"config={name}/rank0.json.gz",
        "torch": torch.__version__,
    }


def main() -> None:
    """Time and trace one configuration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--spread", choices=("one", "dp", "ddp", "mp", "pp"), default="one")
    for key, value in {"layers": 8, "dim": 2560, "heads": 20, "seq": 2048, "batch": 4, "micro_batches": 4}.items():
        parser.add_argument(f"--{key.replace('_', '-')}", type=int, default=value)
    parser.add_argument("--bucket-mb", type=int, default=100)
    parser.add_argument("--dtype", choices=("bf16", "fp16", "fp32"), default="bf16")
    parser.add_argument("--eps", type=float, default=1e-8, help="of AdamW; in fp16 1e-8 is 0 and weights become NaN")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    said = parser.parse_args()
    device = torch.device(said.device)
    if said.device == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        dist.init_process_group("gloo")
    try:
        trainer = Trainer(
            said, device, {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[said.dtype]
        )
        tokens, target = trainer.batch()
        name = f"{said.spread}_{said.layers}x{said.dim}_{said.batch}x{said.seq}"
        folder = said.out / f"config={name}"
        folder.mkdir(parents=True, exist_ok=True)

        def run() -> None:
            trainer.step(tokens, target)

        times = measured(run, device)
        traced(run, device, folder / f"rank{dist.get_rank()}.json.gz")
        if dist.get_rank() == 0:
            content = [described(said, name, trainer, times)]
            (said.out / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
            print(json.dumps(content))
        dist.barrier()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
