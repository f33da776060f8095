"""How long the device of a predicted step waits for its host, and between which bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from tracedb.regress.host_steps import HostStep
from tracedb.training_step import host_path
from tracedb.training_step.configuration import Step
from tracedb.training_step.cost_model import OPTIMIZER, Prices
from tracedb.training_step.host_path import Known, Task

if TYPE_CHECKING:
    from tracedb.training_step.predicted_step import Prediction

GAP_NS = 1_400.0
"""GPU idle time between two queued launches: median over the samples of an H100, whose quartiles are 1,100 and
1,900 ns."""
ELEMENTS_A_LAUNCH = 320 * 65_536
"""Weights per launch of an optimizer over lists of tensors."""
OPTIMIZER_LAUNCHES = 9
"""Launches of AdamW for this many weights."""


class Wait(NamedTuple):
    """How long the device waits for its host in a step, in ns: predicted, at the lowest, at the highest."""

    ns: float = 0.0
    low: float = 0.0
    high: float = 0.0
    is_whole: bool = True
    """Whether the host's time between operators is in it."""


def waited(step: Step, found: Prediction, prices: Prices, known: Known, whole: HostStep | None) -> Wait:
    """Return how long the device of a step without a pipeline waits for its host; nothing if that is not known.

    The interval is that between a fast host and device and slow ones.
    """
    if not known and whole is None:
        return Wait()
    gap = prices.gap_ns() or GAP_NS
    tasks = timeline(step, found, prices, known, whole)
    ns = host_path.waiting(tasks, gap, step.ends_on_host)
    if whole is None:
        return Wait(ns, ns, ns, is_whole=False)
    low, high = (
        host_path.waiting([task.scaled(host, device / found.ns) for task in tasks], gap, step.ends_on_host)
        for host, device in ((whole.low, found.low), (whole.high, found.high))
    )
    return Wait(ns, low, high)


def timeline(step: Step, found: Prediction, prices: Prices, known: Known, whole: HostStep | None) -> list[Task]:
    """Return the tasks of a step in the order of their launch."""
    stage = found.stages[0].stage
    parts = {*stage.forward, *stage.backward}
    device = {part: prices.part(part).ns for part in parts}
    counts = {part: round(prices.launches(part)) for part in parts}
    tasks = [Task(whole.total("zero_grad", stage.layers), 0.0, 0)] if whole else []
    tasks += host_path.tasks(step, stage, device, counts, known, whole) * step.micro_batches
    names = {part.name for part in parts}
    tasks.append(
        Task(0.0, sum(ns for name, ns in found.parts.items() if name not in names | {"optimizer", "launch_gaps"}))
    )
    launched = OPTIMIZER_LAUNCHES * math.ceil(stage.weights / ELEMENTS_A_LAUNCH)
    alone = known.get((OPTIMIZER.operator, OPTIMIZER.pass_))
    return tasks + host_path.update(stage, found.parts.get("optimizer", 0.0), launched, alone, whole)
