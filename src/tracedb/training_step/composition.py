"""The operators of a pipeline stage in one micro-batch, of the optimizer, and of communication between GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tracedb.training_step.configuration import Step

GRADIENT_LAYOUT = "qkv_gradients"
"""Brings the gradients of query, key and value, each ordered by heads, into the layout of the one product that made all
three. No operator of a sweep covers it."""
GRADIENT_COPIES = "gradient_copies"
"""Accumulates the gradients of further micro-batches, and copies them into the buckets of an all-reduce that overlaps
the backward pass. No operator of a sweep covers it."""
PIPELINE = "pipeline_wait"
"""Filling and draining of the pipeline, and transfers between stages."""
EXPERT_COPIES = "expert_copies"
"""Orders what other ranks sent by expert, and back."""
SHARD_COPIES = "fsdp_copies"
"""Moves gathered weights and gradients between the layout of their tensors and that of the shards. No operator of a
sweep covers it."""
SHARD_COPIES_IN = "fsdp_copy_in"
"""Moves a rank's shards into what is to be gathered, in a stream of its own. No operator of a sweep covers it."""
GROUPED = ("linear1", "flash_atten", "qkv_gradients")
"""Operators that depend on the number of heads of key and value."""
IN_MLP = ("linear3", "linear4", "gelu", "swiglu")
"""Operators that depend on the width between the products of an MLP."""


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
    expert_weights: int = 0
    """Number of these weights that no other replica has, since experts are shared out."""


def stages(step: Step) -> list[Stage]:
    """Return the stages of a step."""
    counts = step.stage_layers()
    return [_stage(step, number, layers, len(counts)) for number, layers in enumerate(counts)]


def shape(step: Step) -> dict[str, int]:
    """Return every shape parameter that samples of the step's operators may have."""
    return {
        "mp": step.mp,
        "b": step.batch,
        "h": step.heads,
        "kv": step.shared_heads,
        "l": step.length,
        "dim": step.dim,
        "ffn": step.inner,
        # What one rank does: its own experts, which together get as many tokens as it sends away.
        "moe_num_experts": step.experts // step.ep,
        "intermediate_size": step.inner,
        "top_k": step.top_k,
    }


def shape_for(operator: str, step: Step, parameters: Collection[str]) -> dict[str, int] | None:
    """Return the shape of an operator by the parameters of its samples; None if these cannot describe it."""
    found = shape(step)
    if operator in GROUPED and step.shared_heads != step.heads and "kv" not in parameters:
        return None
    if operator in IN_MLP and step.inner != 4 * step.dim and "ffn" not in parameters:
        if operator.startswith("linear") or step.inner % 4:
            return None
        found["dim"] = step.inner // 4
    return {name: found[name] for name in parameters} if set(parameters) <= set(found) else None


def _stage(step: Step, number: int, layers: int, of: int) -> Stage:
    names = Counter({name: count * layers for name, count in Counter(step.layer).items()})
    forward: Counter[Part] = Counter({Part(name, "fwd"): count for name, count in names.items() if count})
    backward: Counter[Part] = Counter({Part(name, "bwd"): count for name, count in names.items() if count})
    if layers and "flash_atten" in names and "linear1" in names:
        backward[Part(GRADIENT_LAYOUT, "bwd")] = layers
    if branches := layers * _branches(step.layer):
        backward[Part("res_add", "bwd")] += branches
    if step.mp > 1:
        forward[Part("mp_allreduce", "comm")] = step.forward_syncs * layers
        backward[Part("mp_allreduce", "comm")] = step.backward_syncs * layers
    if step.ep > 1:
        for counts in (forward, backward):
            counts[Part("ep_alltoall", "comm")] = 2 * names["moe"]
            if step.experts > step.ep:  # what comes for a single expert is in order
                counts[Part(EXPERT_COPIES, "comm")] = 2 * names["moe"]
    if step.recompute:
        backward.update(_recomputed(step, forward, layers))
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
        weights += step.vocabulary // step.mp * step.dim + _weights(step.norm, step)
    experts = layers * names["moe"] // max(layers, 1) * _expert_weights(step) if step.ep > 1 else 0
    return Stage(number, layers, forward, backward, weights, layer_weights, experts)


def _recomputed(step: Step, forward: Counter[Part], layers: int) -> Counter[Part]:
    """Return what of the layers' forward passes is run again.

    PyTorch's checkpoint stops before the last product: its gradients need its inputs only. The schedule lockstep runs
    everything again, as in estimate-train-time.
    """
    again = Counter(forward)
    for name in () if step.schedule == "lockstep" else reversed(step.layer):
        if name != "res_add" and not name.startswith("linear"):
            break
        again[Part(name, "fwd")] -= layers
        if step.mp > 1 and name != "res_add":
            again[Part("mp_allreduce", "comm")] -= layers
    return again


def _branches(layer: Sequence[str]) -> int:
    """Return how many gradients autograd adds in a layer since products share an input: gate and up of SwiGLU do."""
    return sum(name == before and name.startswith("linear") for before, name in pairwise(layer))


def _layer_weights(step: Step) -> int:
    """Return the weights of a layer on one rank."""
    return sum(_weights(name, step) for name in step.layer)


def _weights(operator: str, step: Step) -> int:
    """Return the weights of an operator on one rank; layer norms have a bias, products have none."""
    width, dim, inner = step.dim // step.heads, step.dim, step.inner
    found = {
        "linear1": (step.heads + 2 * step.shared_heads) * width * dim // step.mp,
        "linear2": dim * dim // step.mp,
        "linear3": dim * inner // step.mp,
        "linear4": dim * inner // step.mp,
        "layernorm": 2 * dim,
        "RMSlayernorm": dim,
        "moe": _expert_weights(step) + dim * step.experts,
    }
    return found.get(operator, 0)


def _expert_weights(step: Step) -> int:
    """Return the weights of the experts of one layer on one rank."""
    return 2 * step.dim * step.inner * step.experts // step.ep // step.mp


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
