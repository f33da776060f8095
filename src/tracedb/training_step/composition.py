"""The operators of a pipeline stage in one micro-batch, of the optimizer, and of communication between GPUs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tracedb.training_step.configuration import Step

GRADIENT_LAYOUT = "qkv_gradients"
"""Brings the gradients of query, key and value, each ordered by heads, into the layout of the one product that made all
three. No operator of a sweep covers it."""
GRADIENT_COPIES = "gradient_copies"
"""Accumulates the gradients of further micro-batches, and copies them into the buckets of an all-reduce that overlaps
the backward pass. No operator of a sweep covers it."""
PIPELINE = "pipeline_wait"
"""Filling and draining of the pipeline, and transfers between stages."""


@dataclass(frozen=True, order=True)
class Part:
    """An operator in one pass."""

    operator: str
    pass_: str

    @property
    def name(self) -> str:
        """Its name in the answer."""
        return self.operator if self.pass_ in ("step", "comm") else f"{self.operator}_{self.pass_}"


@dataclass(frozen=True)
class Stage:
    """The work of one stage: parts of a micro-batch with their counts, and its weights."""

    number: int
    layers: int
    forward: Counter[Part]
    backward: Counter[Part]
    weights: int
    """Weights on one rank of the stage."""
    layer_weights: int
    """Number of these weights that are in the layers."""


def stages(step: Step) -> list[Stage]:
    """Return the stages of a step."""
    counts = step.stage_layers()
    return [_stage(step, number, layers, len(counts)) for number, layers in enumerate(counts)]


def shape(step: Step) -> dict[str, int]:
    """Return every shape parameter that samples of the step's operators may have."""
    return {"mp": step.mp, "b": step.batch, "h": step.heads, "l": step.length, "dim": step.dim}


def _stage(step: Step, number: int, layers: int, of: int) -> Stage:
    names = Counter({name: count * layers for name, count in Counter(step.layer).items()})
    forward: Counter[Part] = Counter({Part(name, "fwd"): count for name, count in names.items() if count})
    backward: Counter[Part] = Counter({Part(name, "bwd"): count for name, count in names.items() if count})
    if layers and "flash_atten" in names and "linear1" in names:
        backward[Part(GRADIENT_LAYOUT, "bwd")] = layers
    if step.mp > 1:
        forward[Part("mp_allreduce", "comm")] = step.forward_syncs * layers
        backward[Part("mp_allreduce", "comm")] = step.backward_syncs * layers
    if step.recompute:
        backward.update(forward)
    weights = layer_weights = layers * _layer_weights(step)
    if number == 0:
        forward[Part("embedding", "fwd")] += 1
        backward[Part("embedding", "bwd")] += 1
        weights += step.vocabulary // step.mp * step.dim
        if step.mp > 1:
            forward[Part("mp_allreduce", "comm")] += 1
    if number == of - 1:
        for name in (step.norm, "linear_final", step.loss):
            forward[Part(name, "fwd")] += 1
            backward[Part(name, "bwd")] += 1
        weights += step.vocabulary // step.mp * step.dim + 2 * step.dim
    return Stage(number, layers, forward, backward, weights, layer_weights)


def _layer_weights(step: Step) -> int:
    """Return the weights of a layer on one rank: four products and two norms with bias."""
    return 12 * step.dim * step.dim // step.mp + 4 * step.dim


def launches(part: Part) -> int:
    """Return roughly how many GPU activities a part launches: the GPU idles briefly between two of them."""
    if part.operator.startswith("linear"):
        return 4 if part.pass_ == "bwd" else 2
    fixed = {
        ("flash_atten", "bwd"): 3,
        ("layernorm", "bwd"): 2,
        ("RMSlayernorm", "bwd"): 2,
        ("embedding", "bwd"): 30,
        ("RoPE", "fwd"): 5,
        ("RoPE", "bwd"): 5,
        (GRADIENT_LAYOUT, "bwd"): 2,
        ("parallel_cross_entropy_128", "fwd"): 3,
        ("parallel_cross_entropy_128", "bwd"): 3,
    }
    return fixed.get((part.operator, part.pass_), 1)
