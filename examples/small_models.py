"""Small decoders for the profile runners: one like BLOOM, one like LLaMA. Random weights, nothing is downloaded.

BLOOM: ALiBi, LayerNorm, GELU by tanh, biases, one product for query, key and value. LLaMA: rotary embedding, RMSNorm,
SwiGLU, fewer heads for key and value, no biases. With several ranks, heads and inner columns are shared out among them
and each half of a layer ends with an all-reduce (tensor parallelism).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Size:
    """Size of a decoder, and over how many ranks it is shared out."""

    layers: int = 4
    hidden: int = 256
    heads: int = 8
    kv_heads: int = 8
    vocabulary: int = 1024
    ranks: int = 1


Cache = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of each layer so far."""


def _reduced(x: torch.Tensor, size: Size) -> torch.Tensor:
    if size.ranks > 1:
        dist.all_reduce(x)
    return x


def _slopes(heads: int) -> torch.Tensor:
    """ALiBi's slopes of all heads."""
    return torch.tensor([2 ** (-8 * (head + 1) / heads) for head in range(heads)])


class BloomLayer(nn.Module):  # type: ignore[misc]  # PyTorch ships no hints that are used here
    """A layer of a BLOOM-like decoder."""

    def __init__(self, size: Size, rank: int) -> None:
        super().__init__()
        self.size = size
        self.heads = size.heads // size.ranks
        self.width = size.hidden // size.heads
        inner = self.heads * self.width
        self.input_layernorm = nn.LayerNorm(size.hidden)
        self.query_key_value = nn.Linear(size.hidden, 3 * inner)
        self.dense = nn.Linear(inner, size.hidden, bias=rank == 0)
        self.post_attention_layernorm = nn.LayerNorm(size.hidden)
        self.dense_h_to_4h = nn.Linear(size.hidden, 4 * size.hidden // size.ranks)
        self.dense_4h_to_h = nn.Linear(4 * size.hidden // size.ranks, size.hidden, bias=rank == 0)
        own = slice(rank * self.heads, (rank + 1) * self.heads)
        self.register_buffer("slopes", _slopes(size.heads)[own].view(1, -1, 1, 1), persistent=False)

    def forward(self, x: torch.Tensor, cache: Cache, layer: int) -> torch.Tensor:
        """Return the layer's output for new tokens, [batch, tokens, hidden]; keys and values join the cache."""
        batch, tokens, _ = x.shape
        fused = self.query_key_value(self.input_layernorm(x)).view(batch, tokens, self.heads, 3, self.width)
        query, key, value = (fused[..., part, :].transpose(1, 2) for part in range(3))
        key, value = _extended(cache, layer, key, value)
        scores = query @ key.transpose(-1, -2) / math.sqrt(self.width)
        places = torch.arange(key.shape[2], device=x.device)
        scores = scores + self.slopes.to(x.dtype) * places.to(x.dtype)
        scores = scores.masked_fill(_future(tokens, key.shape[2], x.device), float("-inf"))
        mixed = (F.softmax(scores, dim=-1) @ value).transpose(1, 2).reshape(batch, tokens, -1)
        x = x + _reduced(self.dense(mixed), self.size)
        inner = F.gelu(self.dense_h_to_4h(self.post_attention_layernorm(x)), approximate="tanh")
        return x + _reduced(self.dense_4h_to_h(inner), self.size)


class LlamaLayer(nn.Module):  # type: ignore[misc]  # PyTorch ships no hints that are used here
    """A layer of a LLaMA-like decoder."""

    def __init__(self, size: Size, rank: int) -> None:
        super().__init__()
        self.size = size
        self.heads = size.heads // size.ranks
        self.kv_heads = size.kv_heads // size.ranks
        self.width = size.hidden // size.heads
        self.inner = -(-8 * size.hidden // 3 // 64) * 64 // size.ranks
        self.input_layernorm = nn.RMSNorm(size.hidden)
        self.q_proj = nn.Linear(size.hidden, self.heads * self.width, bias=False)
        self.k_proj = nn.Linear(size.hidden, self.kv_heads * self.width, bias=False)
        self.v_proj = nn.Linear(size.hidden, self.kv_heads * self.width, bias=False)
        self.o_proj = nn.Linear(self.heads * self.width, size.hidden, bias=False)
        self.post_attention_layernorm = nn.RMSNorm(size.hidden)
        self.gate_proj = nn.Linear(size.hidden, self.inner, bias=False)
        self.up_proj = nn.Linear(size.hidden, self.inner, bias=False)
        self.down_proj = nn.Linear(self.inner, size.hidden, bias=False)

    def forward(self, x: torch.Tensor, cache: Cache, layer: int) -> torch.Tensor:
        """Return the layer's output for new tokens, [batch, tokens, hidden]; keys and values join the cache."""
        batch, tokens, _ = x.shape
        normal = self.input_layernorm(x)
        before = cache[layer][0].shape[2] if layer < len(cache) else 0
        query = _rotated(self.q_proj(normal).view(batch, tokens, self.heads, self.width).transpose(1, 2), before)
        key = _rotated(self.k_proj(normal).view(batch, tokens, self.kv_heads, self.width).transpose(1, 2), before)
        value = self.v_proj(normal).view(batch, tokens, self.kv_heads, self.width).transpose(1, 2)
        key, value = _extended(cache, layer, key, value)
        shared = self.heads // self.kv_heads
        key, value = key.repeat_interleave(shared, dim=1), value.repeat_interleave(shared, dim=1)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=tokens > 1)
        x = x + _reduced(self.o_proj(mixed.transpose(1, 2).reshape(batch, tokens, -1)), self.size)
        normal = self.post_attention_layernorm(x)
        inner = F.silu(self.gate_proj(normal)) * self.up_proj(normal)
        return x + _reduced(self.down_proj(inner), self.size)


def _extended(cache: Cache, layer: int, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return keys and values of all tokens so far, and keep them."""
    if layer < len(cache):
        key, value = torch.cat([cache[layer][0], key], 2), torch.cat([cache[layer][1], value], 2)
        cache[layer] = (key, value)
    else:
        cache.append((key, value))
    return key, value


def _future(tokens: int, total: int, device: Any) -> torch.Tensor:
    """Mask of what a token may not see, [tokens, total]."""
    return torch.ones(tokens, total, dtype=torch.bool, device=device).triu(total - tokens + 1)


def _rotated(x: torch.Tensor, before: int) -> torch.Tensor:
    """Rotate pairs of x, [batch, heads, tokens, width], by the places of its tokens."""
    half = x.shape[-1] // 2
    frequency = 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    place = torch.arange(before, before + x.shape[2], device=x.device, dtype=torch.float32)
    angle = torch.outer(place, frequency)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)


class Decoder(nn.Module):  # type: ignore[misc]  # PyTorch ships no hints that are used here
    """Embedding, layers, norm, and the product with the vocabulary."""

    def __init__(self, kind: str, size: Size, rank: int = 0) -> None:
        super().__init__()
        layer = {"bloom": BloomLayer, "llama": LlamaLayer}[kind]
        self.embedding = nn.Embedding(size.vocabulary, size.hidden)
        self.layers = nn.ModuleList([layer(size, rank) for _ in range(size.layers)])
        self.norm = nn.LayerNorm(size.hidden) if kind == "bloom" else nn.RMSNorm(size.hidden)
        self.head = nn.Linear(size.hidden, size.vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor, cache: Cache | None = None) -> torch.Tensor:
        """Return logits for new tokens, [batch, tokens, vocabulary]."""
        kept: Cache = [] if cache is None else cache
        x = self.embedding(tokens)
        for number, layer in enumerate(self.layers):
            x = layer(x, kept, number)
        return self.head(self.norm(x))
