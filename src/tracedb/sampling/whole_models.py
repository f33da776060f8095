"""Small transformers to train while the host is timed: layers of the operators that ``predict --step`` names.

They are written as models usually are in PyTorch: modules within modules, since the Python of these is what is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from tracedb.sampling.shapes import VOCABULARY


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model; ``operators`` are those of one layer, in order."""

    operators: tuple[str, ...]
    layers: int
    dim: int
    heads: int
    kv_heads: int
    inner: int
    length: int
    experts: int
    top_k: int
    recompute: bool

    @property
    def norm(self) -> type[nn.Module]:
        """The kind of norm."""
        found: type[nn.Module] = nn.RMSNorm if "RMSlayernorm" in self.operators else nn.LayerNorm
        return found

    @property
    def norms(self) -> int:
        """Norms of a layer: one if attention and MLP share it."""
        return sum(name.endswith("norm") for name in self.operators)


def _rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class _Attention(nn.Module):  # type: ignore[misc]
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.width = sizes.dim // sizes.heads
        self.heads, self.kv_heads = sizes.heads, sizes.kv_heads
        self.joined = nn.Linear(sizes.dim, (self.heads + 2 * self.kv_heads) * self.width, bias=False)
        self.out = nn.Linear(sizes.dim, sizes.dim, bias=False)
        self.rotates = "RoPE" in sizes.operators
        if self.rotates:
            half = self.width // 2
            rates = 10_000.0 ** (-torch.arange(0, half, dtype=torch.float32) / half)
            angles = torch.arange(sizes.length, dtype=torch.float32)[:, None] * rates[None, :]
            self.register_buffer("cosine", torch.cat((angles, angles), dim=-1).cos())
            self.register_buffer("sine", torch.cat((angles, angles), dim=-1).sin())

    def forward(self, x: Tensor) -> Tensor:
        b, length, _ = x.shape
        q, kv = self.heads * self.width, self.kv_heads * self.width
        joined = self.joined(x)
        parts = joined.chunk(3, dim=-1) if q == kv else joined.split([q, kv, kv], dim=-1)
        query, key, value = (part.view(b, length, -1, self.width).transpose(1, 2) for part in parts)
        if self.rotates:
            query, key = _rotated(query, self.cosine, self.sine), _rotated(key, self.cosine, self.sine)
        with nn.attention.sdpa_kernel(nn.attention.SDPBackend.FLASH_ATTENTION) if x.is_cuda else nullcontext():
            y = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=q != kv)
        return self.out(y.transpose(1, 2).reshape(b, length, -1))


class _Mlp(nn.Module):  # type: ignore[misc]
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.up = nn.Linear(sizes.dim, sizes.inner, bias=False)
        self.gate = nn.Linear(sizes.dim, sizes.inner, bias=False) if "swiglu" in sizes.operators else None
        self.down = nn.Linear(sizes.inner, sizes.dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            return self.down(functional.gelu(self.up(x)))
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class _Experts(nn.Module):  # type: ignore[misc]
    """Experts with equal loads, as the operator ``moe`` is sampled."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.chosen, self.experts = sizes.top_k, sizes.experts
        self.router = nn.Linear(sizes.dim, sizes.experts, bias=False)
        self.up = nn.Parameter(torch.randn(sizes.experts, sizes.dim, sizes.inner) * sizes.dim**-0.5)
        self.down = nn.Parameter(torch.randn(sizes.experts, sizes.inner, sizes.dim) * sizes.inner**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.view(-1, x.shape[-1])
        weights, expert = torch.topk(torch.softmax(self.router(flat), dim=-1), self.chosen, dim=-1)
        places = torch.argsort(expert.flatten(), stable=True)
        rows = places // self.chosen
        loads = flat[rows].view(self.experts, -1, flat.shape[-1])
        worked = torch.bmm(functional.gelu(torch.bmm(loads, self.up)), self.down).view(-1, flat.shape[-1])
        weighted = worked * weights.flatten()[places, None]
        return torch.zeros_like(flat).index_add(0, rows, weighted).view_as(x)


class _Layer(nn.Module):  # type: ignore[misc]
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.norm1 = sizes.norm(sizes.dim)
        self.norm2 = sizes.norm(sizes.dim) if sizes.norms > 1 else None
        self.attention = _Attention(sizes)
        self.mlp = (_Experts if "moe" in sizes.operators else _Mlp)(sizes)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm1(x)
        if self.norm2 is None:
            return x + self.attention(normed) + self.mlp(normed)
        x = x + self.attention(normed)
        return x + self.mlp(self.norm2(x))


class WholeModel(nn.Module):  # type: ignore[misc]
    """Embedding, layers, norm, head and loss."""

    def __init__(self, sizes: Sizes, vocabulary: int = VOCABULARY) -> None:
        super().__init__()
        self.recompute, self.vocabulary = sizes.recompute, vocabulary
        self.embedding = nn.Embedding(vocabulary, sizes.dim)
        self.layers = nn.ModuleList(_Layer(sizes) for _ in range(sizes.layers))
        self.norm = sizes.norm(sizes.dim)
        self.head = nn.Linear(sizes.dim, vocabulary, bias=False)

    def forward(self, tokens: Tensor, target: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        return functional.cross_entropy(self.head(self.norm(x)).view(-1, self.vocabulary), target.view(-1))


def passes(
    sizes: Sizes, batch: int, dtype: torch.dtype, device: torch.device, vocabulary: int = VOCABULARY
) -> dict[str, Callable[[], Any]]:
    """Return what a training step calls one after another: ``zero_grad``, ``forward``, ``backward``, ``optimizer``."""
    with device:
        model = WholeModel(sizes, vocabulary).to(dtype)
        tokens, target = (torch.randint(0, vocabulary, (batch, sizes.length)) for _ in range(2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    kept: list[Tensor] = []

    def forward() -> None:
        kept[:] = [model(tokens, target)]

    return {
        "zero_grad": optimizer.zero_grad,
        "forward": forward,
        "backward": lambda: kept[0].backward(),
        "optimizer": optimizer.step,
    }


def is_known(operators: Sequence[str]) -> bool:
    """Whether a model can be made of these operators."""
    return {"linear1", "linear2", "flash_atten", "res_add"} <= set(operators)
