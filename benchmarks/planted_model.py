"""The models that ``planted_causes.py`` trains: a small GPT, plain, in pipeline stages, or with an expert per rank."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 4096


@dataclass(frozen=True)
class Plan:
    """A model, how it is spread over the ranks, and the cause that is planted."""

    spread: str
    """one, ddp, reduce (all gradients in one all-reduce after the backward), pipeline or experts."""
    layers: int = 8
    """Of each rank."""
    moved: int = 0
    """Layers that the first pipeline stage has taken over from the last."""
    dim: int = 1536
    batch: int = 8
    """Sequences of a micro-batch."""
    length: int = 1024
    micro_batches: int = 1
    expert_width: int = 4
    """Hidden width of an expert over the width of the model."""
    load: float = 1
    """Tokens that go to the expert of rank 1, over the mean of all ranks."""
    bucket_mb: float = 25
    sleep_ms: float = 0
    """Sleep of rank 1 before each step."""
    neighbour: str = ""
    """When another process works on the last GPU: always, or in some steps."""
    fetches_loss: bool = False
    """Whether the host fetches the loss of each micro-batch."""
    custom_kernel: str = ""
    """A kernel of Triton in each layer: slow (one program does all) or fast."""
    strided: bool = False
    """Whether each layer gets its input transposed, that is, not contiguous."""


class Layer(nn.Module):  # type: ignore[misc]
    """Attention and an MLP of two products, each with a norm before it and a residual connection."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        dim = plan.dim
        self.heads = max(dim // 128, 2)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.linear1, self.linear2 = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.linear3, self.linear4 = nn.Linear(dim, 4 * dim, bias=False), nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        b, length, dim = x.shape
        query, key, value = (
            part.view(b, length, self.heads, dim // self.heads).transpose(1, 2)
            for part in self.linear1(self.norm1(x)).chunk(3, dim=-1)
        )
        with nn.attention.sdpa_kernel(nn.attention.SDPBackend.FLASH_ATTENTION) if x.is_cuda else nullcontext():
            y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.linear2(y.transpose(1, 2).reshape(b, length, -1))
        return x + self.linear4(functional.gelu(self.linear3(self.norm2(x))))


class Exchange(torch.autograd.Function):  # type: ignore[misc]
    """Send rows to the ranks: an all-to-all with uneven splits, and the reverse for the gradient."""

    @staticmethod
    def forward(context: Any, rows: Tensor, send: list[int], receive: list[int]) -> Tensor:
        context.splits = send, receive
        return _exchanged(rows, send, receive)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        send, receive = context.splits
        return _exchanged(gradient.contiguous(), receive, send), None, None


def _exchanged(rows: Tensor, send: list[int], receive: list[int]) -> Tensor:
    found = rows.new_empty((sum(receive), rows.shape[1]))
    dist.all_to_all_single(found, rows, receive, send)
    return found


def sent_to(rows: int, ranks: int, load: float) -> list[int]:
    """Return how many of its rows a rank sends to each: to rank 1 ``load`` times the mean, to the others the rest."""
    second = round(rows * load / ranks)
    share, more = divmod(rows - second, ranks - 1)
    others = [share + (place < more) for place in range(ranks - 1)]
    return [others[0], second, *others[1:]]


def layers_of(plan: Plan, rank: int, ranks: int) -> int:
    """Return the number of layers of a rank."""
    return plan.layers + plan.moved * ((rank == 0) - (rank == ranks - 1))


class ExpertLayer(nn.Module):  # type: ignore[misc]
    """A layer of every rank, then one expert per rank, to which a fixed share of the tokens goes."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.load = plan.load
        self.dense = Layer(plan)
        self.norm = nn.LayerNorm(plan.dim)
        inner = plan.expert_width * plan.dim
        self.expert = nn.Sequential(
            nn.Linear(plan.dim, inner, bias=False), nn.GELU(), nn.Linear(inner, plan.dim, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.dense(x)
        rows = self.norm(x).flatten(0, 1)
        send = sent_to(len(rows), dist.get_world_size(), self.load)
        receive = [send[dist.get_rank()]] * len(send)
        order = torch.randperm(len(rows), device=x.device)
        sent = Exchange.apply(rows[order], send, receive)
        back = Exchange.apply(self.expert(sent), receive, send)
        return x + torch.zeros_like(rows).index_copy(0, order, back).view_as(x)


class KernelLayer(nn.Module):  # type: ignore[misc]
    """A layer, and a kernel of Triton on its output that changes nothing."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.layer = Layer(plan)
        from planted_kernels import custom_kernel

        self.kernel = custom_kernel(plan.custom_kernel)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer(x)
        self.kernel(x.detach())
        return x


def _layer(plan: Plan) -> nn.Module:
    if plan.spread == "experts":
        return ExpertLayer(plan)
    return KernelLayer(plan) if plan.custom_kernel else Layer(plan)


class Model(nn.Module):  # type: ignore[misc]
    """Layers of one rank, the first stage with the embedding, the last with the head and the loss."""

    def __init__(self, plan: Plan, rank: int, ranks: int) -> None:
        super().__init__()
        self.strided = plan.strided
        first, last = (rank == 0, rank == ranks - 1) if plan.spread == "pipeline" else (True, True)
        self.embedding = nn.Embedding(VOCABULARY, plan.dim) if first else None
        self.layers = nn.ModuleList(_layer(plan) for _ in range(layers_of(plan, rank, ranks)))
        self.norm = nn.LayerNorm(plan.dim) if last else None
        self.head = nn.Linear(plan.dim, VOCABULARY, bias=False) if last else None

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        if self.embedding is not None:
            x = self.embedding(x)
        for layer in self.layers:
            x = layer(x.transpose(1, 2).contiguous().transpose(1, 2) if self.strided else x)
        if self.norm is None or self.head is None:
            return x
        return functional.cross_entropy(self.head(self.norm(x)).view(-1, VOCABULARY).float(), target.view(-1))
