"""The end of a pipeline's last micro-batch, by schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """The cost of one micro-batch on one stage, and of passing its result on, in ns."""

    forward: float
    backward: float


def makespan(schedule: str, stages: Sequence[Work], micro_batches: int, passing: float) -> float:
    """Return the end of the last backward: stages work in order and wait for their neighbours.

    ``passing`` is the time a result takes to the next stage, in either direction; it is not hidden.
    """
    if schedule == "lockstep":
        return lockstep(stages, micro_batches, passing)
    orders = [_order(schedule, place, len(stages), micro_batches) for place in range(len(stages))]
    done: dict[tuple[str, int, int], float] = {}
    clocks = [0.0] * len(stages)
    heads = [0] * len(stages)
    left = sum(len(order) for order in orders)
    while left:
        moved = False
        for place, order in enumerate(orders):
            while heads[place] < len(order):
                kind, number = order[heads[place]]
                ready = _ready(kind, place, number, len(stages), done, passing)
                if ready is None:
                    break
                cost = stages[place].forward if kind == "F" else stages[place].backward
                clocks[place] = max(clocks[place], ready) + cost
                done[kind, place, number] = clocks[place]
                heads[place] += 1
                left -= 1
                moved = True
        assert moved, "the schedule deadlocks"
    return max(clocks)


def lockstep(stages: Sequence[Work], micro_batches: int, passing: float) -> float:
    """Return the time by estimate-train-time's formula: every stage runs at the pace of the slowest.

    A stage's time includes passing results on, except for the last one's forward and the first one's backward.
    """
    last = len(stages) - 1
    forward = max(work.forward + (passing if place < last else 0.0) for place, work in enumerate(stages))
    backward = max(work.backward + (passing if place > 0 else 0.0) for place, work in enumerate(stages))
    return (micro_batches - 1 + len(stages)) * (forward + backward)


def _order(schedule: str, place: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    """Return the work of a stage, in order: all forwards then all backwards, or alternating after a warm-up."""
    forwards = [("F", number) for number in range(micro_batches)]
    backwards = [("B", number) for number in range(micro_batches)]
    if schedule == "afab":
        return forwards + backwards
    ahead = min(stages - place - 1, micro_batches)
    order = forwards[:ahead]
    for number in range(micro_batches - ahead):
        order += [forwards[ahead + number], backwards[number]]
    return order + backwards[micro_batches - ahead :]


def _ready(
    kind: str, place: int, number: int, stages: int, done: dict[tuple[str, int, int], float], passing: float
) -> float | None:
    """Return when the input of a piece of work is available; None while unknown."""
    if kind == "F":
        if place == 0:
            return 0.0
        before = done.get(("F", place - 1, number))
        return None if before is None else before + passing
    if place == stages - 1:
        return done.get(("F", place, number))
    after = done.get(("B", place + 1, number))
    return None if after is None else after + passing
