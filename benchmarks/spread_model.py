"""The models that ``training_step.py`` trains: a GPT, a LLaMA-like one, and one with experts, split over ranks.

``gpt``: layer norm, GELU; ``rope``: RMS norm, rotary embedding, GELU; ``llama``: RMS norm, rotary embedding,
grouped-query attention, SwiGLU; ``moe``: a GPT whose MLPs are experts that get equal loads, as ``tracedb sample`` runs
them. None has a bias.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

VOCABULARY = 50_304
LAYERS = {
    "gpt": "layernorm linear1 flash_atten linear2 res_add layernorm linear3 gelu linear4 res_add",
    "rope": "RMSlayernorm linear1 RoPE RoPE flash_atten linear2 res_add RMSlayernorm linear3 gelu linear4 res_add",
    "llama": "RMSlayernorm linear1 RoPE RoPE flash_atten linear2 res_add "
    "RMSlayernorm linear3 linear3 swiglu linear4 res_add",
    "moe": "layernorm linear1 flash_atten linear2 res_add layernorm moe res_add",
}
"""Operators of a layer, as ``predict --step`` names them."""
ROTATING = ("rope", "llama")
"""Kinds with a rotary embedding, and RMS norms."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model."""

    kind: str
    layers: int
    dim: int
    heads: int
    kv_heads: int
    ffn: int
    seq: int
    experts: int
    top_k: int
    recompute: bool


@dataclass(frozen=True)
class Share:
    """A rank's share of a model: its place among the ranks that split products, and among those that share experts."""

    rank: int = 0
    ranks: int = 1
    group: dist.ProcessGroup | None = None
    expert_ranks: int = 1
    expert_group: dist.ProcessGroup | None = None


class Into(torch.autograd.Function):  # type: ignore[misc]
    """Enter a split product: identity in the forward, all-reduce of the gradient in the backward."""

    @staticmethod
    def forward(context: object, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        context.group = group  # type: ignore[attr-defined]
        return x

    @staticmethod
    def backward(context: object, gradient: Tensor) -> tuple[Tensor, None]:
        gradient = gradient.contiguous()
        dist.all_reduce(gradient, group=context.group)  # type: ignore[attr-defined]
        return gradient, None


class Out(torch.autograd.Function):  # type: ignore[misc]
    """Leave a split product: all-reduce of the output in the forward, identity in the backward."""

    @staticmethod
    def forward(context: object, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(context: object, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


class Swap(torch.autograd.Function):  # type: ignore[misc]
    """Exchange equal parts between all ranks, in both passes."""

    @staticmethod
    def forward(context: object, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        context.group = group  # type: ignore[attr-defined]
        return swapped(x, group)

    @staticmethod
    def backward(context: object, gradient: Tensor) -> tuple[Tensor, None]:
        return swapped(gradient.contiguous(), context.group), None  # type: ignore[attr-defined]


def swapped(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Return what the other ranks sent."""
    got = torch.empty_like(x)
    dist.all_to_all_single(got, x, group=group)
    return got


def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Return a rotary embedding, as ``tracedb sample`` runs it."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class Attention(nn.Module):  # type: ignore[misc]
    """Attention of one rank's heads."""

    def __init__(self, sizes: Sizes, share: Share) -> None:
        super().__init__()
        self.width = sizes.dim // sizes.heads
        self.heads, self.kv_heads = sizes.heads // share.ranks, sizes.kv_heads // share.ranks
        self.linear1 = nn.Linear(sizes.dim, (self.heads + 2 * self.kv_heads) * self.width, bias=False)
        self.linear2 = nn.Linear(self.heads * self.width, sizes.dim, bias=False)
        self.rotates = sizes.kind in ROTATING
        if self.rotates:
            half = self.width // 2
            rates = 10_000.0 ** (-torch.arange(0, half, dtype=torch.float32) / half)
            angles = torch.arange(sizes.seq, dtype=torch.float32)[:, None] * rates[None, :]
            self.register_buffer("cosine", torch.cat((angles, angles), dim=-1).cos())
            self.register_buffer("sine", torch.cat((angles, angles), dim=-1).sin())

    def forward(self, x: Tensor) -> Tensor:
        b, length, _ = x.shape
        heads, kv = self.heads * self.width, self.kv_heads * self.width
        joined = self.linear1(x)
        parts = joined.chunk(3, dim=-1) if heads == kv else joined.split([heads, kv, kv], dim=-1)
        query, key, value = (part.view(b, length, -1, self.width).transpose(1, 2) for part in parts)
        if self.rotates:
            query, key = rotated(query, self.cosine, self.sine), rotated(key, self.cosine, self.sine)
        with nn.attention.sdpa_kernel(nn.attention.SDPBackend.FLASH_ATTENTION) if x.is_cuda else nullcontext():
            y = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=heads != kv)
        return self.linear2(y.transpose(1, 2).reshape(b, length, -1))


class Mlp(nn.Module):  # type: ignore[misc]
    """Two products with GELU between them, or three with SwiGLU."""

    def __init__(self, sizes: Sizes, share: Share) -> None:
        super().__init__()
        inner = sizes.ffn // share.ranks
        self.linear3 = nn.Linear(sizes.dim, inner, bias=False)
        self.gate = nn.Linear(sizes.dim, inner, bias=False) if sizes.kind == "llama" else None
        self.linear4 = nn.Linear(inner, sizes.dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            return self.linear4(functional.gelu(self.linear3(x)))
        return self.linear4(functional.silu(self.gate(x)) * self.linear3(x))


class Experts(nn.Module):  # type: ignore[misc]
    """Experts shared out over ranks: each token goes to the ranks that hold its experts, and comes back.

    Every expert gets the same number of tokens, so that a step does not depend on what random weights prefer.
    """

    def __init__(self, sizes: Sizes, share: Share) -> None:
        super().__init__()
        self.share, self.chosen = share, sizes.top_k
        self.local = sizes.experts // share.expert_ranks
        self.router = nn.Linear(sizes.dim, sizes.experts, bias=False)
        self.up = nn.Parameter(torch.randn(self.local, sizes.dim, sizes.ffn) * sizes.dim**-0.5)
        self.down = nn.Parameter(torch.randn(self.local, sizes.ffn, sizes.dim) * sizes.ffn**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.view(-1, x.shape[-1])
        weights, expert = torch.topk(torch.softmax(self.router(flat), dim=-1), self.chosen, dim=-1)
        places = torch.argsort(expert.flatten(), stable=True)
        rows = places // self.chosen
        worked = self.work(flat[rows])
        weighted = worked * weights.flatten()[places, None]
        return torch.zeros_like(flat).index_add(0, rows, weighted).view_as(x)

    def work(self, sent: Tensor) -> Tensor:
        """Return the experts' outputs for tokens that are ordered by expert."""
        ranks, dim = self.share.expert_ranks, sent.shape[-1]
        got = sent if ranks == 1 else Swap.apply(sent, self.share.expert_group)
        by_expert = got.view(ranks, self.local, -1, dim).transpose(0, 1).reshape(self.local, -1, dim)
        done = torch.bmm(functional.gelu(torch.bmm(by_expert, self.up)), self.down)
        back = done.view(self.local, ranks, -1, dim).transpose(0, 1).reshape(-1, dim)
        return back if ranks == 1 else Swap.apply(back, self.share.expert_group)


class Layer(nn.Module):  # type: ignore[misc]
    """Attention and an MLP or experts, each with a norm before it and a residual connection."""

    def __init__(self, sizes: Sizes, share: Share) -> None:
        super().__init__()
        norm = nn.RMSNorm if sizes.kind in ROTATING else nn.LayerNorm
        self.norm1, self.norm2 = norm(sizes.dim), norm(sizes.dim)
        self.attention = Attention(sizes, share)
        self.mlp = (Experts if sizes.kind == "moe" else Mlp)(sizes, share)
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        into, out = _edges(self.share)
        x = x + out(self.attention(into(self.norm1(x))))
        return x + out(self.mlp(into(self.norm2(x))))


def _edges(share: Share) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """Return what enters and leaves split products."""
    if share.ranks == 1:
        return (lambda x: x), (lambda x: x)
    return (lambda x: Into.apply(x, share.group)), (lambda x: Out.apply(x, share.group))


class Stage(nn.Module):  # type: ignore[misc]
    """Layers of one pipeline stage, the first with the embedding, the last with the head and the loss.

    Split over ranks, each computes the loss over its own share of the vocabulary.
    """

    def __init__(self, sizes: Sizes, share: Share, layers: int, *, first: bool, last: bool) -> None:
        super().__init__()
        self.share, self.recompute = share, sizes.recompute
        self.rows = VOCABULARY // share.ranks
        self.start = share.rank * self.rows
        self.embedding = nn.Embedding(self.rows, sizes.dim) if first else None
        self.layers = nn.ModuleList(Layer(sizes, share) for _ in range(layers))
        norm = nn.RMSNorm if sizes.kind in ROTATING else nn.LayerNorm
        self.norm = norm(sizes.dim) if last else None
        self.head = nn.Linear(sizes.dim, self.rows, bias=False) if last else None

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        if self.embedding is not None:
            x = self._embed(x)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        if self.norm is None or self.head is None:
            return x
        logits = self.head(_edges(self.share)[0](self.norm(x)))
        return functional.cross_entropy(logits.view(-1, self.rows), target.view(-1))

    def _embed(self, tokens: Tensor) -> Tensor:
        assert self.embedding is not None
        if self.share.ranks == 1:
            return self.embedding(tokens)
        local = tokens - self.start
        inside = (local >= 0) & (local < self.rows)
        found = self.embedding(local.clamp(0, self.rows - 1)) * inside[..., None]
        return Out.apply(found, self.share.group)
