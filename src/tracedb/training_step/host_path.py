"""How long the device waits for its host in a step: operators one after another, launched and run.

The host launches the operators in order; the device runs each when it is launched and the one before it has ended.
While the host is ahead, its time does not matter; an operator that makes the host wait for the device ends its lead.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tracedb.regress.host_steps import PASSES, HostStep
from tracedb.regress.launching import Launch
from tracedb.sampling.layer_kinds import HOST, LAYERS
from tracedb.training_step.composition import GRADIENT_LAYOUT, Part, Stage
from tracedb.training_step.configuration import Step

HOST_WAIT = "host_wait"
"""The part of a step in which the device waits for its host."""
UNSYNCHRONIZED_STEPS = 3
"""Steps that are replayed where the host does not wait at their end: it is then as far ahead as it gets."""
Known = Mapping[tuple[str, str], Launch]


class Task(NamedTuple):
    """An operator on the two timelines."""

    host_ns: float
    device_ns: float
    launches: int = 1
    """With none, only the host works."""
    is_synchronous: bool = False

    def scaled(self, host: float, device: float) -> Task:
        """Return the task on a slower or faster host and device."""
        return self._replace(host_ns=self.host_ns * host, device_ns=self.device_ns * device)


def replayed(tasks: Iterable[Task], gap_ns: float, lead_ns: float = 0.0) -> tuple[float, float]:
    """Return when the host and the device have finished, in ns since the host began.

    ``gap_ns``: least idle time between two launches on the device; ``lead_ns``: when the device is free for the first.
    """
    host, device = 0.0, lead_ns
    for task in tasks:
        if task.is_synchronous:
            host = max(host, device)
        if not task.launches:
            host += task.host_ns
        for _ in range(task.launches):
            host += task.host_ns / task.launches
            device = max(device + gap_ns, host) + task.device_ns / task.launches
    return host, device


def waiting(tasks: Sequence[Task], gap_ns: float, ends_in_step: bool = True) -> float:
    """Return how long the device waits for the host in a step, in ns.

    ``ends_in_step``: the host waits for the device at the end of a step, as it does to log the loss. Else it begins the
    next one at once.
    """
    alone = sum(task.device_ns + gap_ns * task.launches for task in tasks)
    host, device = replayed(tasks, gap_ns)
    if ends_in_step:
        return max(max(host, device) - alone, 0.0)
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
    known: Known,
    whole: HostStep | None = None,
) -> list[Task]:
    """Return a micro-batch of a stage in order. ``device``, ``launches``: of one call of a part.

    ``known``: the host's times of operators alone. ``whole``: those of a step, which the operators of a layer and those
    around the layers then share out in proportion to their own.
    """
    found: list[Task] = []
    for counts, name, before, after in (
        (stage.forward, "forward", _embedding(stage.forward, "fwd"), _head(step, stage.forward, "fwd")),
        (stage.backward, "backward", _head(step, stage.backward, "bwd")[::-1], _embedding(stage.backward, "bwd")),
    ):
        layer = forward_layer(step.layer) if name == "forward" else _backward_layer(step, stage)
        often = Counter([*before, *layer * stage.layers, *after])
        inside = whole.per_layer[name] / (host_ns(layer, known) or 1.0) if whole else 1.0
        around = whole.per_step[name] / (host_ns([*before, *after], known) or 1.0) if whole else 1.0
        for parts, speed in ((before, around), *[(layer, inside)] * stage.layers, (after, around)):
            for part in parts:
                each = device.get(part, 0.0) * counts[part] / often[part] if counts[part] else 0.0
                launch = known.get((part.operator, part.pass_))
                least = 1 if each else 0
                count = max(launches.get(part, least), least)
                is_synchronous = launch is not None and launch.is_synchronous
                alone = host_ns([part], known) if launch or whole else 0.0
                found.append(Task(speed * alone, each, count, is_synchronous))
        if left := sum(device.get(part, 0.0) * count for part, count in counts.items() if part not in often):
            found.append(Task(0.0, left))
    return found


def update(stage: Stage, device_ns: float, launches: int, known: Launch | None, whole: HostStep | None) -> list[Task]:
    """Return the optimizer's update of the weights: Python goes through all weights before the first launch."""
    if whole is None:
        return [Task(known.host_ns * stage.layers if known else 0.0, device_ns, launches)]
    host = whole.total("optimizer", stage.layers)
    return [Task(host * whole.lead, 0.0, 0), Task(host * (1 - whole.lead), device_ns, max(launches, 1))]


def whole_step(step: Step, known: Known, sampled: Mapping[tuple[str, bool], HostStep]) -> HostStep | None:
    """Return the host's times of a step of this kind of layer; None if no model was sampled.

    Without samples of this list of operators: by its operators alone, times the median over the sampled kinds of what a
    layer takes more than its operators alone. Without samples of its recomputation: by those of other kinds, since a
    checkpoint takes time of its own; without any, with another forward pass.
    """
    kinds, recomputed = (
        {kind: sampled[HOST + kind, again] for kind in LAYERS if (HOST + kind, again) in sampled}
        for again in (False, True)
    )
    same = next((kind for kind in LAYERS if LAYERS[kind] == step.layer), None)
    if same and (found := sampled.get((HOST + same, step.recompute))):
        return found
    if step.recompute and recomputed:
        return _between(step, known, recomputed)
    if not kinds:
        return None
    found = kinds[same] if same in kinds else _between(step, known, kinds)
    if not step.recompute:
        return found
    twice = {**found.per_layer, "backward": found.per_layer["forward"] + found.per_layer["backward"]}
    return found._replace(per_layer=twice)


def _between(step: Step, known: Known, kinds: Mapping[str, HostStep]) -> HostStep:
    """Return the times of a list of operators between those of the sampled kinds."""
    per_layer = {}
    for name in PASSES:
        more = [one.per_layer[name] / (_alone(LAYERS[kind], name, known) or 1.0) for kind, one in kinds.items()]
        per_layer[name] = statistics.median(more) * _alone(step.layer, name, known)
    per_step = {name: statistics.median(one.per_step[name] for one in kinds.values()) for name in PASSES}
    return HostStep(
        per_step,
        per_layer,
        min(one.low for one in kinds.values()),
        max(one.high for one in kinds.values()),
        statistics.median(one.lead for one in kinds.values()),
    )


def _alone(layer: Sequence[str], pass_: str, known: Known) -> float:
    """Return what the host takes for the operators of a layer alone; of a pass over weights their number."""
    if pass_ == "forward":
        return host_ns(forward_layer(layer), known)
    if pass_ == "backward":
        return host_ns([Part(part.operator, "bwd") for part in forward_layer(layer)], known)
    return float(sum(name.startswith("linear") or name.endswith("norm") or 3 * (name == "moe") for name in layer))


def host_ns(parts: Sequence[Part], known: Known) -> float:
    """Return what the host takes for parts alone; one that was not timed counts as the mean of those that were."""
    times = [launch.host_ns for part in parts if (launch := known.get((part.operator, part.pass_)))]
    mean = statistics.fmean(launch.host_ns for launch in known.values()) if known else 1.0
    return sum(times) + mean * (len(parts) - len(times))


def _embedding(counts: Counter[Part], pass_: str) -> list[Part]:
    part = Part("embedding", pass_)
    return [part] if part in counts else []


def _head(step: Step, counts: Counter[Part], pass_: str) -> list[Part]:
    is_last = Part("linear_final", pass_) in counts
    return [Part(name, pass_) for name in (step.norm, "linear_final", step.loss)] if is_last else []


def forward_layer(layer: Sequence[str]) -> list[Part]:
    """Return the forward pass of a layer; splitting query, key and value has no work on the device."""
    found = []
    for name in layer:
        found.append(Part(name, "fwd"))
        if name == "linear1" and "flash_atten" in layer:
            found.append(Part(GRADIENT_LAYOUT, "fwd"))
    return found


def _backward_layer(step: Step, stage: Stage) -> list[Part]:
    found = forward_layer(step.layer) if step.recompute else []
    for name in reversed(step.layer):
        if name == "linear1" and Part(GRADIENT_LAYOUT, "bwd") in stage.backward:
            found.append(Part(GRADIENT_LAYOUT, "bwd"))
        found.append(Part(name, "bwd"))
    return found
