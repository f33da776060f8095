"""The clock at which a step runs: that at which its mix draws as much power as the card may.

Each operator's energy is learnt from bursts of ``tracedb sample``. What moves bytes without being an operator, such as
copies of gradients, draws as much as a sum; gaps in which the device waits, no more than a device that spins.
"""

from __future__ import annotations

from collections.abc import Mapping

from tracedb.errors import UsageError
from tracedb.regress.operator_energy import Card
from tracedb.training_step import composition
from tracedb.training_step.composition import Part
from tracedb.training_step.cost_model import Prices

COPIES = (composition.GRADIENT_COPIES, composition.EXPERT_COPIES, composition.SHARD_COPIES)
SUM = Part("res_add", "fwd")


def solved(prices: Prices, card: Card, parts: Mapping[str, float], waiting_ns: float) -> float:
    """Return the SM clock of a step in MHz. ``parts``: their times in ns at the clocks of the samples."""
    rows = []
    rest = waiting_ns
    joules = 0.0
    for name, ns in parts.items():
        part = SUM if name in COPIES else prices.priced(name)
        if part is None:
            rest += ns
            continue
        rows.append((ns, prices.conditions(part)))
        joules += _power(prices, card, part) * ns / 1e9

    def time_ns(clock: float) -> float:
        return rest + sum(ns * state.slowdown(clock) for ns, state in rows)

    return card.clock(time_ns, joules)


def _power(prices: Prices, card: Card, part: Part) -> float:
    """Return the energy of a part at the highest clock over its time at that of the samples, in W; 0 if not known."""
    found = prices.sampled(part)
    if found is None:
        return 0.0
    shape, ns = found
    try:
        return card.joules(part.operator, part.pass_, prices.dtype, shape) / (ns / 1e9)
    except UsageError:
        return 0.0
