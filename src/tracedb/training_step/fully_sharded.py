"""What sharding weights by layer (FSDP, ``fully_shard``) adds to a step.

The weights of a layer are gathered before its forward and again before its backward, and its gradients are summed up
and scattered after the backward. Each of these runs beside the computation of a neighbouring layer. What no layer
hides is the start of the step (the embedding's and the head's weights, gathered together and kept, and those of the
first layer) and its end (the gradients of the same). Copies between tensors and shards are work of the GPU like any
other, also those in a stream of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tracedb.training_step.composition import SHARD_COPIES, SHARD_COPIES_IN, Part, Stage
from tracedb.training_step.configuration import Step
from tracedb.training_step.price import Price, PriceList

Sum = Callable[[Counter[Part]], float]


@dataclass(frozen=True)
class Sharding:
    """Times of a step in ns: collectives that nothing hides, those that computation hides, and copies."""

    gathering: float = 0.0
    reducing: float = 0.0
    hidden: float = 0.0
    copies: float = 0.0
    copies_in: float = 0.0
    prices: dict[str, Price] = field(default_factory=dict)
    """The prices that these are made of, by part."""

    @property
    def exposed(self) -> float:
        """The time that the step becomes longer by, but for what is slowed down beside a collective."""
        return self.gathering + self.reducing + self.copies + self.copies_in


NOTHING = Sharding()


def sharding(step: Step, stage: Stage, prices: PriceList, total: Sum) -> Sharding:
    """Return what sharding adds to a step. ``total``: time of parts with their counts, in ns."""
    layer = stage.layer_weights // max(stage.layers, 1)
    ends = stage.weights - stage.layer_weights
    gather, gather_ends = (prices.collective("fsdp_allgather", -(-n // step.dp)) for n in (layer, ends))
    reduce, reduce_ends = (prices.collective("fsdp_reducescatter", n) for n in (layer, ends))
    forward, backward = total(stage.forward) / stage.layers, total(stage.backward) / stage.layers
    others = stage.layers - 1
    # The gathers and reductions of all layers share one channel with each other, but not with the computation.
    late_forward = others * max(gather.ns - forward, 0.0)
    late_backward = others * max(gather.ns + reduce.ns - backward, 0.0)
    whole = (others + stage.layers) * gather.ns + others * reduce.ns
    late = late_forward + late_backward
    # Out of what was gathered, twice for a layer, and into what is scattered: each read once and written once.
    copies = prices.moved(2 * (3 * stage.layer_weights + 2 * ends))
    # A rank's shards into what is gathered: beside computation, from which it takes bandwidth and multiprocessors.
    copies_in = prices.moved(2 * (2 * stage.layer_weights + ends) / step.dp)
    count = step.micro_batches
    return Sharding(
        gathering=count * (gather_ends.ns + gather.ns + late_forward),
        reducing=count * (reduce_ends.ns + reduce.ns + late_backward),
        hidden=count * max(whole - late, 0.0),
        copies=count * copies.ns,
        copies_in=count * copies_in.ns,
        prices={
            "fsdp_allgather": gather,
            "fsdp_reducescatter": reduce,
            SHARD_COPIES: copies,
            SHARD_COPIES_IN: copies_in,
        },
    )
