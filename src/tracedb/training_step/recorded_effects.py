"""Effects of a step on its operators that were measured once, as data with their source: ``recorded_effects.toml``.

They serve sweeps that were recorded without conditions, and cards on which ``tracedb sample`` did not measure them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, NamedTuple

from tracedb.regress import beside
from tracedb.regress.model_folder import plain
from tracedb.regress.work_model import PRODUCTS
from tracedb.training_step.composition import Part
from tracedb.training_step.configuration import Step

PRODUCT, ON_NAN, BESIDE = "product_in_a_step", "product_on_nan", "product_beside_allreduce"


@dataclass(frozen=True)
class Effect:
    """A factor, the GPU that it was measured on, and how."""

    name: str
    device: str
    value: float
    source: str

    def is_of(self, gpu: str) -> bool:
        """Whether it was measured on this kind of GPU."""
        return self.device in plain(gpu)


@cache
def effects() -> tuple[Effect, ...]:
    """Return all of them."""
    text = resources.files(__package__).joinpath("recorded_effects.toml").read_text(encoding="utf-8")
    return tuple(Effect(**item) for item in tomllib.loads(text)["effect"])


def recorded(name: str, gpu: str) -> Effect | None:
    """Return an effect as measured on this kind of GPU; None if it was not."""
    return next((effect for effect in effects() if effect.name == name and effect.is_of(gpu)), None)


def speedup(step: Step, operator: str, sampled: Sequence[str] = ()) -> float:
    """Return how many times as fast an operator is in the step as in a sweep without a regime; 1 if not measured.

    Only of products, on a GPU whose power limit they reach. ``sampled``: the GPUs whose times are scaled to the step's;
    one on which it was not measured leaves them as they are.
    """
    if operator not in PRODUCTS:
        return 1.0
    return min(_speedup(gpu, step.operands) for gpu in sampled or (step.gpu,))


def of_sweeps() -> str:
    """Say how products of a step differ from those of a sweep without a regime, which a trace is compared with."""
    effect = next(effect for effect in effects() if effect.name == PRODUCT)
    nan = next(effect for effect in effects() if effect.name == ON_NAN)
    return (
        f"matrix products were sampled without a regime: in a step an {effect.device.upper()}'s are {effect.value} "
        f"times as fast, and {nan.value} times more on NaN, which weights in fp16 alone become under AdamW; --step "
        "prices them so, --trace does not"
    )


def most_speedup(step: Step) -> float:
    """Return the largest speedup of products that was measured on any GPU."""
    return max(_speedup(effect.device, step.operands) for effect in effects())


def _speedup(gpu: str, operands: str) -> float:
    factor = 1.0
    for name in (PRODUCT, *((ON_NAN,) if operands == "nan" else ())):
        found = recorded(name, gpu)
        factor *= 1.0 if found is None else found.value
    return factor


class Beside(NamedTuple):
    """What computation and an all-reduce beside it do to each other."""

    slowdown: float = 1.0
    """How many times as long a product takes."""
    elsewhere: str | None = None
    """The other GPU that this was measured on; None if on this kind."""
    elements: int | None = None
    """Size of an all-reduce that was measured beside computation; None if none was."""
    transfer_ns: float = 0.0
    """Its time there."""
    operators: Mapping[tuple[str, str], float] = MappingProxyType({})
    """How many times as long each operator and pass takes, of those that were measured."""

    def slowdown_of(self, times: Mapping[Part, float]) -> float:
        """Return how many times as long these parts take, whose times alone are given in ns.

        A part that was not measured is slowed down as a product.
        """
        total = sum(times.values())
        if not self.operators or total <= 0:
            return self.slowdown
        slowed = sum(ns * self.operators.get((part.operator, part.pass_), self.slowdown) for part, ns in times.items())
        return slowed / total


def beside_allreduce(gpu: str, facts: Mapping[str, Any]) -> Beside:
    """Return what an all-reduce beside computation does on a GPU.

    ``facts``: of the models, which have the user's own measurement if there is one.
    """
    own = beside.of(facts, gpu, "allreduce")
    if own is not None:
        operators = {(row["operator"], row["pass"]): row["slowdown"] for row in own.get("operators", ())}
        return Beside(own["slowdown"], None, own.get("elements"), own.get("transfer_ns", 0.0), operators)
    found = recorded(BESIDE, gpu)
    if found is not None:
        return Beside(found.value)
    other = next(effect for effect in effects() if effect.name == BESIDE)
    return Beside(other.value, other.device.upper())
