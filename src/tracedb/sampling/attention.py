"""The parts of attention: flash attention, rotary embedding, masking and the softmaxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.sampling.operator import Operator, Prepared
from tracedb.sampling.shapes import divides, key_value_heads, leaf, width

if TYPE_CHECKING:
    import torch

    from tracedb.sampling.sweep import Shape

LARGEST_FLASH_HEAD = 256
ROTARY_BASE = 10_000.0


def _head_size(shape: Shape) -> tuple[int, int, int, int]:
    return shape["b"], shape["h"] // shape.get("mp", 1), shape["l"], width(shape) // shape["h"]


def _heads(shape: Shape, dtype: torch.dtype, device: torch.device) -> list[torch.Tensor]:
    """Return query, key and value as a layer has them: parts of the output of one product, whose row is a token."""
    import torch

    b, h, length, head = _head_size(shape)
    kv = _key_value(shape)
    joined = torch.randn((b, length, h + 2 * kv, head), dtype=dtype, device=device)
    return [part.transpose(1, 2).requires_grad_() for part in joined.split([h, kv, kv], dim=2)]


def _key_value(shape: Shape) -> int:
    """Return one rank's heads of key and value."""
    return key_value_heads(shape) // shape.get("mp", 1)


def _flash(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    """Causal scaled dot-product attention by the flash backend; with ``kv``, several heads share a key and a value."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    query, key, value = _heads(shape, dtype, device)
    is_grouped = key.shape[1] < query.shape[1]
    backends = [SDPBackend.FLASH_ATTENTION]
    if is_grouped and device.type == "cpu":
        backends.append(SDPBackend.MATH)  # the CPU's flash attention has no grouped heads

    def forward() -> torch.Tensor:
        with sdpa_kernel(backends):
            return scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=is_grouped)

    return Prepared(forward, [query, key, value], recent=[query, key, value])


def _qkv_gradients(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    """Splits the output of the product of query, key and value; its backward joins their gradients."""
    b, h, length, head = _head_size(shape)
    kv = _key_value(shape)
    joined = leaf((b, length, (h + 2 * kv) * head), dtype, device)
    if kv == h:
        return Prepared(lambda: joined.chunk(3, dim=-1), [joined])
    return Prepared(lambda: joined.split([h * head, kv * head, kv * head], dim=-1), [joined])


def _no_flash(shape: Shape, dtype: torch.dtype, device: torch.device) -> str | None:
    head = width(shape) // shape["h"]
    if head > LARGEST_FLASH_HEAD:
        return f"the flash backend supports heads up to {LARGEST_FLASH_HEAD}, not {head}"
    if device.type == "cuda" and dtype.itemsize > 2:
        return "the flash backend supports only fp16 and bf16"
    return divides("h", "dim")(shape, dtype, device)


def _rotary(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    """Rotates one tensor; a layer rotates two, query and key."""
    import torch

    size = _head_size(shape)
    x = _heads(shape, dtype, device)[0]
    half = size[3] // 2
    rates = ROTARY_BASE ** (-torch.arange(0, half, device=device, dtype=torch.float32) / half)
    angles = torch.arange(size[2], device=device, dtype=torch.float32)[:, None] * rates[None, :]
    turned = torch.cat((angles, angles), dim=-1)
    cosine, sine = turned.cos().to(dtype), turned.sin().to(dtype)

    def forward() -> torch.Tensor:
        first, second = x.chunk(2, dim=-1)
        return x * cosine + torch.cat((-second, first), dim=-1) * sine

    return Prepared(forward, [x])


def _odd_head(shape: Shape, dtype: torch.dtype, device: torch.device) -> str | None:
    refused = divides("h", "dim")(shape, dtype, device)
    if refused is None and width(shape) // shape["h"] % 2:
        return f"heads of {width(shape) // shape['h']} do not split in halves"
    return refused


def _scores(shape: Shape, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return leaf((shape["b"], shape["h"] // shape.get("mp", 1), shape["l"], shape["l"]), dtype, device)


def _softmax(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    import torch

    scores = _scores(shape, dtype, device)
    return Prepared(lambda: torch.softmax(scores, dim=-1), [scores])


def _future(length: int, device: torch.device) -> torch.Tensor:
    """Return the mask that is true where a key comes after the query."""
    import torch

    return torch.ones((length, length), dtype=torch.bool, device=device).triu(1)


def _fillmask(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    scores, future = _scores(shape, dtype, device), _future(shape["l"], device)
    return Prepared(lambda: scores.masked_fill(future, -1e4), [scores])


def _masked_softmax(shape: Shape, dtype: torch.dtype, device: torch.device) -> Prepared:
    """Scale, mask and softmax as in PyTorch: three kernels, where Megatron has one fused."""
    import torch

    scores, future = _scores(shape, dtype, device), _future(shape["l"], device)
    scale = (width(shape) // shape["h"]) ** -0.5
    return Prepared(lambda: torch.softmax((scores * scale).masked_fill(future, -1e4), dim=-1), [scores])


_NEEDS = ("b", "h", "l")
OPERATORS = (
    Operator("flash_atten", _flash, _no_flash, _NEEDS),
    Operator("qkv_gradients", _qkv_gradients, divides("h", "dim"), _NEEDS),
    Operator("RoPE", _rotary, _odd_head, _NEEDS),
    Operator("softmax", _softmax, divides("h"), _NEEDS),
    Operator("fillmask", _fillmask, divides("h"), _NEEDS),
    Operator("ScaledUpperTriangMaskedSoftmax", _masked_softmax, divides("h"), _NEEDS),
)
