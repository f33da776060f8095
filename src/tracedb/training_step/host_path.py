"""How long the device waits for its host in a step: operators one after another, launched and run.

The host launches the operators in order; the device runs each when it is launched and the one before it has ended.
While the host is ahead, its time does not matter; an operator that makes the host wait for the device ends its lead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tracedb.regress.launching import Launch
from tracedb.training_step.composition import GRADIENT_LAYOUT, Part, Stage
from tracedb.training_step.configuration import Step

HOST_WAIT = "host_wait"
"""The part of a step in which the device waits for its host."""
UNSYNCHRONIZED_STEPS = 3
"""Steps that are replayed where the host does not wait at their end: it is then as far ahead as it gets."""


class Task(NamedTuple):
    """An operator on the two timelines."""

    host_ns: float
    device_ns: float
    launches: int = 1
    is_synchronous: bool = False


def replayed(tasks: Iterable[Task], gap_ns: float, lead_ns: float = 0.0) -> tuple[float, float]:
    """Return when the host and the device have finished, in ns since the host began.

    ``gap_ns``: least idle time between two launches on the device; ``lead_ns``: when the device is free for the first.
    """
    host, device = 0.0, lead_ns
    for task in tasks:
        count = max(task.launches, 1)
        if task.is_synchronous:
            host = max(host, device)
        for _ in range(count):
            host += task.host_ns / count
            device = max(device + gap_ns, host) + task.device_ns / count
    return host, device


def waiting(tasks: Sequence[Task], gap_ns: float, ends_in_step: bool = True) -> float:
    """Return how long the device waits for the host in a step, in ns.

    ``ends_in_step``: the host waits for the device at the end of a step, as it does to log the loss. Else it begins the
    next one at once.
    """
    alone = sum(task.device_ns + gap_ns * max(task.launches, 1) for task in tasks)
    host, device = replayed(tasks, gap_ns)
    if ends_in_step:
        return max(device - alone, 0.0)
    length = 0.0
    for _ in range(UNSYNCHRONIZED_STEPS):
        # The next step begins on the host where it ended; the device is free so much later.
        begun = device - host
        host, device = replayed(tasks, gap_ns, max(begun, 0.0))
        length = device - max(begun, 0.0)
    return max(length - alone, 0.0)


def tasks(
    step: Step,
    stage: Stage,
    device: Mapping[Part, float],
    launches: Mapping[Part, int],
    known: Mapping[tuple[str, str], Launch],
) -> list[Task]:
    """Return a micro-batch of a stage in order. ``device``, ``launches``: of one call of a part."""
    found: list[Task] = []
    for counts, order in (
        (stage.forward, list(_forward(step, stage))),
        (stage.backward, list(_backward(step, stage))),
    ):
        often = Counter(order)
        for part in order:
            launch = known.get((part.operator, part.pass_)) or Launch(0.0, False)
            found.append(
                Task(
                    launch.host_ns,
                    device.get(part, 0.0) * counts[part] / often[part] if counts[part] else 0.0,
                    launches.get(part, 1),
                    launch.is_synchronous,
                )
            )
        left = sum(device.get(part, 0.0) * count for part, count in counts.items() if part not in often)
        found.append(Task(0.0, left))
    return found


def _forward(step: Step, stage: Stage) -> Iterator[Part]:
    if Part("embedding", "fwd") in stage.forward:
        yield Part("embedding", "fwd")
    for _ in range(stage.layers):
        yield from _layer(step)
    if Part("linear_final", "fwd") in stage.forward:
        yield from (Part(name, "fwd") for name in (step.norm, "linear_final", step.loss))


def _layer(step: Step) -> Iterator[Part]:
    """Yield the forward pass of a layer; splitting query, key and value has no work on the device."""
    for name in step.layer:
        yield Part(name, "fwd")
        if name == "linear1" and "flash_atten" in step.layer:
            yield Part(GRADIENT_LAYOUT, "fwd")


def _backward(step: Step, stage: Stage) -> Iterator[Part]:
    if Part("linear_final", "bwd") in stage.backward:
        yield from (Part(name, "bwd") for name in (step.loss, "linear_final", step.norm))
    for _ in range(stage.layers):
        if step.recompute:
            yield from _layer(step)
        for name in reversed(step.layer):
            if name == "linear1" and Part(GRADIENT_LAYOUT, "bwd") in stage.backward:
                yield Part(GRADIENT_LAYOUT, "bwd")
            yield Part(name, "bwd")
    if Part("embedding", "bwd") in stage.backward:
        yield Part("embedding", "bwd")
