"""The time of a step: its parts priced, its stages scheduled, its collectives and its optimizer added."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tracedb.errors import TracedbError
from tracedb.regress import host_steps, launching, operator_energy
from tracedb.regress.model_folder import named
from tracedb.regress.operator_energy import Card
from tracedb.training_step import (
    composition,
    fully_sharded,
    host_path,
    host_wait,
    pipeline_schedule,
    recorded_effects,
    step_clock,
)
from tracedb.training_step.composition import Part, Stage
from tracedb.training_step.configuration import Step
from tracedb.training_step.cost_model import OPTIMIZER, Prices
from tracedb.training_step.fully_sharded import NOTHING
from tracedb.training_step.host_wait import ELEMENTS_A_LAUNCH, GAP_NS, OPTIMIZER_LAUNCHES
from tracedb.training_step.pipeline_schedule import Work
from tracedb.training_step.predicted_step import Prediction, StageTimes
from tracedb.training_step.price import Predictor, Price, PriceList
from tracedb.training_step.recorded_effects import Beside

ADDING, INTO_BUCKETS = 3, 2
"""Reads and writes per gradient element for accumulation, or for copying into a bucket."""


def predict(step: Step, models: Predictor, link_gbps: float | None = None) -> Prediction:
    """Return the time of a step, on the models' GPU if it names none and they are of one.

    Raises ``TracedbError`` if the models lack what it needs.
    """
    gpus = getattr(models, "gpus", [])
    if gpus and (step.gpu or len(gpus) == 1):
        step = replace(step, gpu=_known(step, gpus))  # effects that were recorded on a kind of GPU go by its name
    gpu = step.gpu or (gpus or [""])[0]
    prices = Prices(models, step, link_gbps)
    facts = getattr(models, "facts", {})
    found = _priced(step, prices, facts)
    known = launching.of(facts, gpu, step.dtype) if step.pp == 1 else {}
    whole = host_path.whole_step(step, known, host_steps.of(facts, gpu, step.dtype)) if step.pp == 1 else None
    waiting = host_wait.waited(step, found, prices, known, whole)
    clock = step.sm_clock_mhz or _clock(found, prices, operator_energy.card(facts, gpu), waiting.ns)
    if clock is not None and step.sm_clock_mhz is None:
        prices = Prices(models, replace(step, sm_clock_mhz=clock), link_gbps)
        found = _priced(step, prices, facts)
    found.sm_clock_mhz = clock
    if known or whole:
        found.wait(host_wait.waited(step, found, prices, known, whole))
    else:
        found.host_ns = _launching(step, found, prices)
    found.speedup = prices.speedup("linear1")
    found.is_as_in_sweep = prices.is_as_in_sweep
    found.outside = sorted(prices.outside)
    return found


def _known(step: Step, gpus: Sequence[str]) -> str:
    """Return the models' name of the step's GPU. Raises ``TracedbError`` if they are of others."""
    meant = named(step.gpu, gpus) if step.gpu else gpus
    if len(meant) == 1:
        return meant[0]
    if not meant:
        raise TracedbError(
            f"step {step.name}: the models know no GPU {step.gpu!r}, only {', '.join(gpus)}; --gpu-spec FILE scales "
            "them to another one"
        )
    raise TracedbError(f"step {step.name}: GPU {step.gpu!r} may be {' or '.join(meant)}; name one of these")


def _clock(found: Prediction, prices: Prices, card: Card | None, waiting: float) -> float | None:
    """Return the SM clock of a step: where its power meets the limit, else the mean of those of its samples.

    What a collective draws is not measured, so the power of a step of several GPUs is not known.
    """
    step = found.step
    if card is None or step.pp * step.mp * step.dp > 1:
        return prices.step_clock(found.parts)
    return step_clock.solved(prices, card, found.parts, waiting)


def _launching(step: Step, found: Prediction, prices: Prices) -> float | None:
    """Return the time in which the host of the busiest stage launches a step, or None if it is not known."""
    longest = 0.0
    for stage in (item.stage for item in found.stages):
        total = 0.0
        for part, count in [*stage.forward.items(), *stage.backward.items()]:
            if part.pass_ != "comm" and part.name in found.parts:
                host = prices.conditions(Part("res_add", "fwd") if part.operator == "res_add" else part).host_ns
                if host is None:
                    return None
                total += count * step.micro_batches * host
        optimizer = prices.conditions(OPTIMIZER)
        if optimizer.host_ns and optimizer.gpu_events:
            launches = OPTIMIZER_LAUNCHES * math.ceil(stage.weights / ELEMENTS_A_LAUNCH)
            total += optimizer.host_ns / optimizer.gpu_events * launches
        longest = max(longest, total)
    return longest


def _priced(step: Step, prices: Prices, facts: Mapping[str, Any]) -> Prediction:
    first = assemble(step, prices, GAP_NS, prices.launches, facts)
    gap = prices.gap_ns()
    return first if gap is None else assemble(step, prices, gap, prices.launches, facts)


def assemble(
    step: Step,
    prices: PriceList,
    gap_ns: float = GAP_NS,
    launches: Callable[[Part], float] = composition.launches,
    facts: Mapping[str, Any] | None = None,
) -> Prediction:
    """Return the time of a step whose parts have the given prices and numbers of launches.

    ``facts``: of the models, for effects that were measured on the user's own card.
    """
    return _Builder(step, prices, gap_ns, launches, recorded_effects.beside_allreduce(step.gpu, facts or {})).build()


class _Builder:
    """Computes one step."""

    def __init__(
        self,
        step: Step,
        prices: PriceList,
        gap_ns: float,
        launches: Callable[[Part], float],
        beside: Beside,
    ) -> None:
        self._step = step
        self._prices = prices
        self._gap_ns = gap_ns
        self._launches = launches
        self._beside = beside
        self._known: dict[Part, Price] = {}
        self._estimated: dict[str, str] = {}

    def build(self) -> Prediction:
        step = self._step
        stages = [self._stage(stage) for stage in composition.stages(step)]
        passing = self._passing()
        pace = [Work(item.forward, item.backward) for item in stages]
        pipeline = pipeline_schedule.makespan(step.schedule, pace, step.micro_batches, passing)
        slowest_forward = max(stages, key=lambda item: item.forward).stage
        slowest_backward = max(stages, key=lambda item: item.backward).stage
        parts: defaultdict[str, float] = defaultdict(float)
        spread: defaultdict[str, float] = defaultdict(float)
        for counts in (slowest_forward.forward, slowest_backward.backward):
            for part, count in counts.items():
                price = self._price(part).times(count * step.micro_batches)
                parts[part.name] += price.ns
                spread[part.name] += (price.high - price.low) / 2
            parts["launch_gaps"] += self._gaps(counts) * step.micro_batches
        if copies := max(stages, key=lambda item: item.backward).copies * step.micro_batches:
            parts[composition.GRADIENT_COPIES] = copies
        if step.pp > 1:
            # The time that the slowest stages do not explain.
            parts[composition.PIPELINE] = pipeline - sum(parts.values())
        last = self._update(stages, parts, spread)
        total = pipeline + last
        half = math.sqrt(sum(value * value for value in spread.values()))
        return Prediction(
            step, total, total - half, total + half, dict(parts), stages, self._estimated, beside=self._beside
        )

    def _stage(self, stage: Stage) -> StageTimes:
        step = self._step
        copies = self._copies(stage)
        forward, backward = self._sum(stage.forward), self._sum(stage.backward) + copies
        optimizer = self._prices.optimizer(stage.weights, stage.layer_weights, stage.layers)
        self._note("optimizer", optimizer)
        shared = step.dp if step.zero1 or step.fsdp else 1
        launched = OPTIMIZER_LAUNCHES * math.ceil(stage.weights / shared / ELEMENTS_A_LAUNCH) * self._gap_ns
        summed = stage.weights - stage.expert_weights
        allreduce = self._bucketed("dp_allreduce", summed) if step.dp > 1 and not step.fsdp else 0.0
        allgather = self._bucketed("dp_allgather", stage.weights // step.dp) if step.dp > 1 and step.zero1 else 0.0
        sharding = fully_sharded.sharding(step, stage, self._prices, self._sum) if step.fsdp else NOTHING
        for name, price in sharding.prices.items():
            self._note(name, price)
        return StageTimes(
            stage, forward, backward, copies, optimizer.ns / shared, launched, allreduce, allgather, sharding
        )

    def _copies(self, stage: Stage) -> float:
        """Return the average cost per micro-batch of accumulating gradients and copying them into buckets.

        estimate-train-time, whose schedule is lockstep, has no such cost.
        """
        step = self._step
        passes = ADDING * (step.micro_batches - 1) + (INTO_BUCKETS if step.overlap and step.dp > 1 else 0)
        if not passes or step.schedule == "lockstep":
            return 0.0
        price = self._prices.moved(passes * stage.weights / step.micro_batches)
        self._note(composition.GRADIENT_COPIES, price)
        return price.ns

    def _update(
        self, stages: list[StageTimes], parts: defaultdict[str, float], spread: defaultdict[str, float]
    ) -> float:
        """Add what follows the last backward: gradients over the replicas, optimizer, weights over the replicas."""
        step = self._step
        # The first stage's backward ends last, so all others wait for its all-reduce.
        allreduce, slowed = stages[0].allreduce, 0.0
        if step.overlap and allreduce:
            # A weight is not split: the last bucket holds at least the embedding's gradient, which comes last.
            last = min(stages[0].stage.weights, max(step.bucket, step.vocabulary // step.mp * step.dim))
            exposed = max(self._prices.collective("dp_allreduce", last).ns, allreduce - stages[0].backward)
            slowed = self._slowed(allreduce - exposed, stages[0].stage.backward)
            allreduce = exposed
        sharding = stages[0].sharding
        slowed += self._slowed(sharding.hidden, stages[0].stage.forward + stages[0].stage.backward)
        slowest = max(stages, key=lambda item: item.optimizer + item.optimizer_gaps + item.allgather)
        price = self._prices.optimizer(slowest.stage.weights, slowest.stage.layer_weights, slowest.stage.layers)
        for name, value in (
            ("dp_allreduce", allreduce),
            ("overlap_slowdown", slowed),
            ("fsdp_allgather", sharding.gathering),
            ("fsdp_reducescatter", sharding.reducing),
            (composition.SHARD_COPIES, sharding.copies),
            (composition.SHARD_COPIES_IN, sharding.copies_in),
            ("optimizer", slowest.optimizer),
            ("dp_allgather", slowest.allgather),
        ):
            if value:
                parts[name] = value
        parts["launch_gaps"] += slowest.optimizer_gaps
        spread["optimizer"] = (price.high - price.low) / 2 / (step.dp if step.zero1 or step.fsdp else 1)
        return allreduce + slowed + sharding.exposed + slowest.optimizer + slowest.optimizer_gaps + slowest.allgather

    def _slowed(self, hidden: float, counts: Counter[Part]) -> float:
        """Return how much longer computation takes beside collectives that would take so long alone.

        Beside computation these are slower too, so that they slow it down for longer.
        """
        elements, transfer = self._beside.elements, self._beside.transfer_ns
        computed = {part: count * self._price(part).ns for part, count in counts.items() if part.pass_ != "comm"}
        slowdown = self._beside.slowdown_of(computed)
        longer = 1.0
        if hidden and elements is not None:
            alone = self._prices.collective("dp_allreduce", elements)
            longer = max(transfer / alone.ns, 1.0) if alone.basis == "model" else 1.0
        return hidden * longer * (1 - 1 / slowdown)

    def _sum(self, counts: Counter[Part]) -> float:
        return sum(count * self._price(part).ns for part, count in counts.items()) + self._gaps(counts)

    def _price(self, part: Part) -> Price:
        if part not in self._known:
            self._known[part] = self._prices.part(part)
            self._note(part.name, self._known[part])
        return self._known[part]

    def _note(self, name: str, price: Price) -> None:
        if price.basis != "model":
            self._estimated[name] = price.basis

    def _passing(self) -> float:
        step = self._step
        if step.pp == 1:
            return 0.0
        price = self._prices.collective("pp_p2p", step.batch * step.length * step.dim // step.mp)
        self._note("pp_p2p", price)
        return price.ns

    def _bucketed(self, what: str, elements: int) -> float:
        """Return the time of a collective over many elements, a bucket at a time."""
        total = 0.0
        while elements > 0:
            price = self._prices.collective(what, min(elements, self._step.bucket))
            self._note(what, price)
            total += price.ns
            elements -= self._step.bucket
        return total

    def _gaps(self, counts: Mapping[Part, int]) -> float:
        """Return the idle time of the GPU between the launches of a micro-batch."""
        return self._gap_ns * sum(count * self._launches(part) for part, count in counts.items())
