"""Steps of ``training_step.py``: a model spread over ranks, its gradients, its optimizer, its pipeline."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from spread_model import VOCABULARY, Share, Sizes, Stage
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard

REPLICATED = ("dp", "ddp", "zero1", "fsdp", "ep")
"""Spreads in which every rank has its own sequences."""


@dataclass(frozen=True)
class Plan:
    """One configuration: a model, and how it is spread over the ranks."""

    spread: str
    sizes: Sizes
    batch: int
    micro_batches: int
    pp: int
    dp: int
    mp: int
    bucket_mb: int
    eps: float
    overlap: bool = False
    """Whether gradients are reduced beside the backward pass, by DistributedDataParallel."""
    zero1: bool = False
    """Whether replicas share out the optimizer's work, and gather the weights."""


@cache
def mesh_of(device: str, copies: int, pp: int, dp: int, mp: int) -> DeviceMesh:
    """Return the ranks by their place; neighbours split products. Made once for each spread."""
    return init_device_mesh(device, (copies, pp, dp, mp), mesh_dim_names=("copy", "pp", "dp", "mp"))


class Trainer:
    """Runs steps of one configuration."""

    def __init__(self, plan: Plan, device: torch.device, dtype: torch.dtype) -> None:
        self.plan, self.device, self.dtype = plan, device, dtype
        used = plan.pp * plan.dp * plan.mp
        self.mesh = mesh_of(device.type, dist.get_world_size() // used, plan.pp, plan.dp, plan.mp)
        self.stage, self.replica, rank = (int(self.mesh.get_local_rank(name)) for name in ("pp", "dp", "mp"))
        # Looked up once: in a mesh of several dimensions, each look-up takes the host half a millisecond.
        self.groups: dict[str, dist.ProcessGroup] = {n: self.mesh[n].get_group() for n in ("pp", "dp", "mp")}
        experts = plan.dp if plan.spread == "ep" else 1
        share = Share(rank, plan.mp, self.groups["mp"], experts, self.groups["dp"])
        torch.manual_seed(rank)
        with device:
            self.module = Stage(
                plan.sizes, share, self._layers(), first=self.stage == 0, last=self.stage == plan.pp - 1
            ).to(dtype)
        self.model: nn.Module = self.module
        if plan.overlap:
            self.model = nn.parallel.DistributedDataParallel(
                self.module, device_ids=[device] if device.type == "cuda" else None, process_group=self.groups["dp"],
                bucket_cap_mb=plan.bucket_mb, gradient_as_bucket_view=True, broadcast_buffers=False,
            )  # fmt: skip
        if plan.spread == "fsdp":
            for layer in self.module.layers:
                fully_shard(layer, mesh=self.mesh["dp"])
            fully_shard(self.module, mesh=self.mesh["dp"])
        self.shards = self._sharded() if plan.zero1 else []
        weights = [shard for _, shard in self.shards] + [p for p in self.module.parameters() if not self._is_split(p)]
        self.optimizer = torch.optim.AdamW(weights, lr=1e-4, eps=plan.eps)
        self.buckets: list[int] = []

    def _layers(self) -> int:
        """Return this stage's layers, shared out as the prediction does."""
        from tracedb.training_step.configuration import Step

        sizes, pp = self.plan.sizes, self.plan.pp
        shared: list[int] = Step("", "", "", sizes.layers, sizes.dim, sizes.heads, 1, 1, pp=pp).stage_layers()
        return shared[int(self.stage)]

    def _is_split(self, parameter: Tensor) -> bool:
        """Whether replicas share out the optimizer's work on a weight (ZeRO-1): not that on the few of the norms."""
        return self.plan.zero1 and parameter.dim() > 1

    def _sharded(self) -> list[tuple[Tensor, nn.Parameter]]:
        """Return each weight with this replica's part of it, which shares its memory."""
        found = []
        for weight in self.module.parameters():
            if self._is_split(weight):
                part = weight.data.view(self.plan.dp, -1)[self.replica]
                found.append((weight, nn.Parameter(part)))
        return found

    def batch(self) -> tuple[Tensor, Tensor]:
        shape = (self.plan.batch, self.plan.sizes.seq)
        return (
            torch.randint(0, VOCABULARY, shape, device=self.device),
            torch.randint(0, self.module.rows, shape, device=self.device),
        )

    def step(self, tokens: Tensor, target: Tensor) -> None:
        """Run one step."""
        self.optimizer.zero_grad()
        if self.plan.pp > 1:
            self._pipeline(tokens, target)
        else:
            for number in range(self.plan.micro_batches):
                self._backward(number, tokens, target)
        if self.plan.dp > 1 and not self.plan.overlap and self.plan.spread != "fsdp":
            self._reduce()
        for weight, shard in self.shards:
            assert weight.grad is not None
            shard.grad = weight.grad.view(self.plan.dp, -1)[self.replica]
        self.optimizer.step()
        for weight, shard in self.shards:
            weight.grad = None
            gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # renamed in PyTorch 2.13
            gather(weight.data.view(-1), shard.data, group=self.groups["dp"])

    def _backward(self, number: int, tokens: Tensor, target: Tensor) -> None:
        """Run one micro-batch without a pipeline; replicas that overlap sum up only the last one's gradients."""
        if self.plan.overlap and number + 1 < self.plan.micro_batches:
            with self.model.no_sync():
                self.model(tokens, target).backward()
            return
        self.model(tokens, target).backward()

    def _reduce(self) -> None:
        """Average the gradients over the replicas: large ones individually, those of the norms in one all-reduce.

        Experts that are shared out have a gradient of their own on each rank.
        """
        named = [(name, p.grad) for name, p in self.module.named_parameters() if p.grad is not None]
        found = [g for name, g in named if not (self.plan.spread == "ep" and name.endswith(("mlp.up", "mlp.down")))]
        small = [gradient for gradient in found if gradient.dim() == 1]
        flat = torch.cat(small)
        sent = [gradient for gradient in found if gradient.dim() > 1] + [flat]
        for gradient in sent:
            mean = dist.ReduceOp.AVG if gradient.is_cuda else dist.ReduceOp.SUM
            dist.all_reduce(gradient, op=mean, group=self.groups["dp"])
        for gradient, piece in zip(small, flat.split([gradient.numel() for gradient in small]), strict=True):
            gradient.copy_(piece)
        self.buckets = [gradient.numel() for gradient in sent]

    def _pipeline(self, tokens: Tensor, target: Tensor) -> None:
        """Run the micro-batches of a stage, alternating forward and backward (1F1B)."""
        count, last = self.plan.micro_batches, self.stage == self.plan.pp - 1
        ahead = min(self.plan.pp - 1 - self.stage, count)
        kept: list[tuple[Tensor, Tensor]] = []
        x = self._exchange(None, -1, receive=True)

        def forward() -> Tensor:
            source = tokens if x is None else x.requires_grad_()
            kept.append((source, self.model(source, target)))
            return kept[-1][1].detach()

        def backward(gradient: Tensor | None) -> Tensor | None:
            source, output = kept.pop(0)
            output.backward(gradient)
            return source.grad

        for number in range(ahead):
            self._exchange(forward(), 1, receive=False)
            x = self._exchange(None, -1, receive=number + 1 < count)
        for number in range(count - ahead):
            y = forward()
            gradient = backward(None if last else self._exchange(y, 1, receive=True))
            x = self._exchange(gradient, -1, receive=number + 1 < count - ahead)
        for _ in range(ahead):
            self._exchange(backward(self._exchange(None, 1, receive=True)), -1, receive=False)

    def _exchange(self, send: Tensor | None, step: int, *, receive: bool) -> Tensor | None:
        """Send to a neighbouring stage and receive from it; does nothing at the ends of the pipeline."""
        other = self.stage + step
        if not 0 <= other < self.plan.pp or (send is None and not receive):
            return None
        shape = (self.plan.batch, self.plan.sizes.seq, self.plan.sizes.dim)
        got = torch.empty(shape, dtype=self.dtype, device=self.device) if receive else None
        group = self.groups["pp"]
        peer: Any = {"peer": dist.get_global_rank(group, other), "group": group}
        calls = [dist.P2POp(dist.isend, send.contiguous(), **peer)] if send is not None else []
        calls += [dist.P2POp(dist.irecv, got, **peer)] if got is not None else []
        for call in dist.batch_isend_irecv(calls):
            call.wait()
        return got

    def described(self) -> dict[str, object]:
        """Return how the model is spread, as ``predict --step`` reads it."""
        plan = self.plan
        found: dict[str, object] = {key: value for key in ("pp", "mp", "dp") if (value := getattr(plan, key)) > 1}
        if plan.pp > 1 or plan.micro_batches > 1:
            found |= {"micro_batches": plan.micro_batches, "schedule": "1f1b"}
        if plan.overlap:
            found |= {"overlap": True, "bucket": plan.bucket_mb * 2**20 // self.dtype.itemsize}
        if self.buckets:
            found["bucket"] = round(statistics.mean(self.buckets))
        if plan.zero1:
            found["zero1"] = True
        if plan.spread == "fsdp":
            found["fsdp"] = True
        if plan.spread == "ep":
            found["ep"] = plan.dp
        return found

    def is_finite(self) -> bool:
        """Whether all weights are."""
        weights = (getattr(parameter, "_local_tensor", parameter) for parameter in self.module.parameters())
        return all(bool(weight.isfinite().all()) for weight in weights)
