"""Predict a card that was not sampled from models of other cards and the specifications of all of them.

An operator's time on a sampled card is scaled to the other one: after a constant part, by the ratio of the rates of
matrix products as far as FLOPs bound it there, and by that of memory bandwidths as far as bytes do. The predictions
from several sampled cards are averaged on a log scale, nearer cards counting more. The interval comes from predicting
each sampled card from each other one in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tracedb.errors import UsageError
from tracedb.regress.card_spec import Spec, known
from tracedb.regress.conditions import Conditions
from tracedb.regress.model import Array, Model, Prediction, Target, predictions
from tracedb.regress.model_folder import Ambiguous, Models, check_shape, filled, listed
from tracedb.regress.work_model import ELEMENT_BYTES, HEAD_WIDTH, problem

CONSTANT_NS = 2_500.0
"""Part of a kernel's time that no rate changes: its start, its end and the first access to memory."""
SHARPNESS = 2.0
"""How sharply the longer one of the two bounds decides; an operator between both is bound by both."""
NEAR = 0.05
"""Distance of cards, as a log ratio of their rates, below which nearness counts no more."""
PROBES = 40
"""Shapes at which sampled cards predict each other."""
LEAST_WIDTH = math.log(1.5)
"""Least half width of the interval: kernels differ between cards, and sampled ones may agree by chance."""
ONE_CARD_WIDTH = math.log(2.0)
"""Half width if there is only one sampled card, so that nothing tells how well cards predict each other."""
SAFETY = 1.5
"""How much further the new card may be off than the sampled ones from each other: there are few of them."""


@dataclass
class OtherModel:
    """A model of one target on the card that was not sampled."""

    target: Target
    spec: Spec
    sources: list[tuple[Model, Spec]]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The shape parameters: the fewest that a sampled card's model needs."""
        return min((model.parameters for model, _ in self.sources), key=len)

    @property
    def conditions(self) -> Conditions:
        """The state of the device: only its regime, where all sampled cards were in the same one."""
        regimes = {model.conditions.regime for model, _ in self.sources}
        return Conditions(regime=regimes.pop() if len(regimes) == 1 else None)

    def predict(self, shapes: Sequence[Mapping[str, int]]) -> list[Prediction]:
        """Return the prediction at each shape, from the cards whose samples have its parameters.

        Raises ``UsageError`` if no card's do.
        """
        found: dict[int, Prediction] = {}
        for usable in {self._usable(shape) for shape in shapes}:
            rows = [row for row, shape in enumerate(shapes) if self._usable(shape) == usable]
            found |= dict(zip(rows, self._by(usable, [shapes[row] for row in rows]), strict=True))
        return [found[row] for row in range(len(shapes))]

    def _usable(self, shape: Mapping[str, int]) -> tuple[int, ...]:
        found = tuple(
            number
            for number, (model, _) in enumerate(self.sources)
            if set(_adapted(model, shape)) == set(model.parameters)
        )
        if not found:
            check_shape(self.sources[0][0], _adapted(self.sources[0][0], shape), self.spec.name)
        return found

    def _by(self, usable: Sequence[int], shapes: Sequence[Mapping[str, int]]) -> list[Prediction]:
        sources = [self.sources[number] for number in usable]
        logs = [np.log(_scaled(model, spec, self.spec, shapes)) for model, spec in sources]
        weights = [1 / (NEAR + _distance(spec, self.spec, self.target.dtype)) for _, spec in sources]
        middle = np.average(np.array(logs), axis=0, weights=weights)
        beyond = [_beyond(sources, shape) for shape in shapes]
        half = self.width + np.array(
            [_extrapolated(sources, shape) if item else 0.0 for shape, item in zip(shapes, beyond, strict=True)]
        )
        return predictions(middle, half, [tuple(item) for item in beyond])

    @cached_property
    def width(self) -> float:
        """Half width of the interval on a log scale."""
        off = [
            abs(value)
            for model, spec in self.sources
            for other, card in self.sources
            if other is not model
            for value in _misses(model, spec, other, card)
        ]
        if not off:
            return ONE_CARD_WIDTH
        return max(LEAST_WIDTH, SAFETY * float(np.quantile(off, 0.9)))

    def outside(self, shape: Mapping[str, int]) -> list[str]:
        """Return the parameters of a shape that are beyond the samples of every card."""
        return _beyond([self.sources[number] for number in self._usable(shape)], shape)


class OtherCard:
    """Models of a card that was not sampled; used like ``Models``."""

    def __init__(self, models: Models, spec: Spec) -> None:
        self._spec = spec
        self._models = models
        self.facts = {"gpu_spec": spec.name}
        self.unknown = [gpu for gpu in models.gpus if known(gpu) is None]
        """Sampled cards without a data sheet, which are not used."""
        if len(self.unknown) == len(models.gpus):
            raise UsageError(
                f"no data sheet is known of {listed(models.gpus)}: another card cannot be predicted from it"
            )
        self._found: dict[tuple[str, str, str | None], OtherModel] = {}
        for target in models.targets:
            card, model = known(target.gpu), models.exact(target.gpu, target.operator, target.pass_, target.dtype)
            if card is None or model is None or target.pass_ == "comm":
                continue
            key = (target.operator, target.pass_, target.dtype)
            made = Target(spec.name, *key)
            self._found.setdefault(key, OtherModel(made, spec, [])).sources.append((model, card))

    @property
    def targets(self) -> list[Target]:
        """The targets that can be predicted, in order."""
        return sorted((model.target for model in self._found.values()), key=str)

    @property
    def gpus(self) -> list[str]:
        """The card."""
        return [self._spec.name]

    @property
    def sources(self) -> list[str]:
        """The sampled cards whose times are scaled."""
        return sorted({model.target.gpu for found in self._found.values() for model, _ in found.sources})

    @property
    def dtypes(self) -> list[str]:
        """The element types that can be predicted."""
        return sorted({target.dtype for target in self.targets if target.dtype is not None})

    def find(self, gpu: str | None, operator: str, pass_: str, dtype: str | None) -> OtherModel:
        """Return the model of a target on the card; ``gpu`` is not looked at. Raises ``UsageError``."""
        found = [
            model
            for (name, of, kind), model in self._found.items()
            if (name, of) == (operator, pass_) and dtype in (None, kind)
        ]
        if not found:
            wanted = f"{operator} {pass_}" if dtype is None else f"{operator} {pass_} {dtype}"
            there = listed(str(target) for target in self.targets)
            raise UsageError(
                f"no model of {wanted} of another card can be scaled to {self._spec.name}; there are: {there}"
            )
        if len(found) > 1:
            types = listed(str(model.target.dtype) for model in found)
            raise Ambiguous(f"{operator} was fitted for several element types; name one (--dtype): {types}")
        return found[0]

    def exact(self, operator: str, pass_: str, dtype: str | None) -> OtherModel | None:
        """Return the model of exactly this target; None if there is none."""
        return self._found.get((operator, pass_, dtype))

    def predict(
        self, gpu: str | None, operator: str, pass_: str, dtype: str | None, shape: Mapping[str, int]
    ) -> tuple[float, float, float]:
        """Return predicted, low and high time in ns of one shape."""
        (found,) = self.predict_many(gpu, operator, pass_, dtype, [shape])
        return found.predicted_ns, found.low_ns, found.high_ns

    def predict_many(
        self, gpu: str | None, operator: str, pass_: str, dtype: str | None, shapes: Sequence[Mapping[str, int]]
    ) -> list[Prediction]:
        """Return the prediction at each shape. Raises ``UsageError`` for an unknown target or parameter."""
        model = self.find(gpu, operator, pass_, dtype)
        shapes = [filled(model, shape) for shape in shapes]
        for shape in shapes:
            for key, value in shape.items():
                if value < 1:
                    raise UsageError(f"{self._spec.name}: {key}={value} is not a size; it must be at least 1")
        return model.predict(shapes) if shapes else []


def _adapted(model: Model, shape: Mapping[str, int]) -> dict[str, int]:
    """Return a shape with the parameters of a model: sweeps that leave out dim have heads of a fixed width."""
    found = dict(shape)
    if "dim" in model.parameters and "dim" not in found and "h" in found:
        found["dim"] = found["h"] * HEAD_WIDTH
    if "dim" in found and "dim" not in model.parameters and found["dim"] == found.get("h", 0) * HEAD_WIDTH:
        del found["dim"]
    return found


def _beyond(sources: Sequence[tuple[Model, Spec]], shape: Mapping[str, int]) -> list[str]:
    """Return the parameters of a shape that lie beyond the samples of every card."""
    found = [set(model.outside(_adapted(model, shape))) for model, _ in sources]
    return sorted(set.intersection(*found) & set(shape))


def _extrapolated(sources: Sequence[tuple[Model, Spec]], shape: Mapping[str, int]) -> float:
    """Return the half width of the sampled cards' own intervals at a shape, on a log scale: their mean."""
    found = [model.predict([_adapted(model, shape)])[0] for model, _ in sources]
    return sum(math.log(item.high_ns / item.predicted_ns) for item in found) / len(found)


def _scaled(model: Model, spec: Spec, to: Spec, shapes: Sequence[Mapping[str, int]]) -> Array:
    """Return the times of a sampled card at some shapes, scaled to another card, in ns."""
    adapted = [_adapted(model, shape) for shape in shapes]
    times = np.array([found.predicted_ns for found in model.predict(adapted)])
    target = model.target
    work = problem(
        target.operator, target.pass_, [{name: shape[name] for name in model.parameters} for shape in adapted]
    )
    moved = work.elements * ELEMENT_BYTES.get(target.dtype or "", 2)
    return on_other_card(times, work.flops if work.matrices else None, moved, target.dtype, spec, to)


def on_other_card(
    times: Array, flops: Array | None, moved: Array | None, dtype: str | None, spec: Spec, to: Spec
) -> Array:
    """Return times of operators, in ns, scaled from one card to another.

    After a constant part, by the ratio of the rates of products as far as the FLOPs bound an operator, and by that of
    the memory bandwidths as far as the moved bytes do: wholly where it has no FLOPs.
    """
    memory = spec.memory_gbps / to.memory_gbps
    here, there = spec.tflops(dtype), to.tflops(dtype)
    share, compute = np.zeros(len(times)), 1.0
    if flops is not None and here and there:
        by_flops = flops / here / 1e3
        by_bytes = np.zeros(len(times)) if moved is None else moved / spec.memory_gbps
        share = by_flops**SHARPNESS / (by_flops**SHARPNESS + by_bytes**SHARPNESS)
        compute = here / there
    clock = 1.0 if not (spec.sm_clock_mhz and to.sm_clock_mhz) else spec.sm_clock_mhz / to.sm_clock_mhz
    constant = np.minimum(CONSTANT_NS, 0.5 * times)
    ratio = np.exp(share * math.log(compute) + (1 - share) * math.log(memory))
    return np.asarray(constant * clock + (times - constant) * ratio)


def _distance(one: Spec, other: Spec, dtype: str | None) -> float:
    """Return how far apart two cards are: the mean log ratio of their rates."""
    here, there = one.tflops(dtype), other.tflops(dtype)
    parts = [math.log(one.memory_gbps / other.memory_gbps)] + ([math.log(here / there)] if here and there else [])
    return sum(map(abs, parts)) / len(parts)


def _misses(model: Model, spec: Spec, other: Model, card: Spec) -> list[float]:
    """Return by how much a sampled card predicts another one wrongly, on a log scale, at shapes that both know."""
    own, others = model.facts.get("ranges", {}), other.facts.get("ranges", {})
    shared = {
        name: (max(own[name][0], others[name][0]), min(own[name][1], others[name][1])) for name in own if name in others
    }
    if not shared or any(low > high for low, high in shared.values()):
        return []
    random = np.random.default_rng(0)
    shapes = [
        {name: round(math.exp(random.uniform(math.log(low), math.log(high)))) for name, (low, high) in shared.items()}
        for _ in range(PROBES)
    ]
    shapes = [shape for shape in shapes if set(_adapted(model, shape)) == set(model.parameters)]
    shapes = [shape for shape in shapes if set(_adapted(other, shape)) == set(other.parameters)]
    if not shapes:
        return []
    wanted = np.array([found.predicted_ns for found in other.predict([_adapted(other, shape) for shape in shapes])])
    return [float(value) for value in np.log(_scaled(model, spec, card, shapes) / wanted)]
