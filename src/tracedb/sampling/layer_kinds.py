"""The operators of a layer, in order, by the names that configurations give kinds of layers."""

from __future__ import annotations

GPT_LAYER = (
    *("layernorm", "linear1", "flash_atten", "linear2", "res_add"),
    *("layernorm", "linear3", "gelu", "linear4", "res_add"),
)
ROPE_LAYER = (
    *("RMSlayernorm", "linear1", "RoPE", "RoPE", "flash_atten", "linear2", "res_add"),
    *("RMSlayernorm", "linear3", "gelu", "linear4", "res_add"),
)
PARALLEL_LAYER = (
    *("layernorm", "linear1", "RoPE", "RoPE", "flash_atten", "linear2"),
    *("linear3", "gelu", "linear4", "res_add", "res_add"),
)
"""One norm for both attention and MLP, as in GPT-J."""
LLAMA_LAYER = (
    *("RMSlayernorm", "linear1", "RoPE", "RoPE", "flash_atten", "linear2", "res_add"),
    *("RMSlayernorm", "linear3", "linear3", "swiglu", "linear4", "res_add"),
)
"""A LLaMA-like layer: linear3 is both the gate's product and the one beside it."""
MOE_LAYER = ("layernorm", "linear1", "flash_atten", "linear2", "res_add", "layernorm", "moe", "res_add")
LAYERS = {"gpt": GPT_LAYER, "llama": LLAMA_LAYER, "moe": MOE_LAYER, "rope": ROPE_LAYER, "parallel": PARALLEL_LAYER}
HOST = "host_"
"""Begins the name of the operator that times the host of a kind of layer: ``host_gpt``."""
