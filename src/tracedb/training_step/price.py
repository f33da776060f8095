"""The price of a part of a step, and what a list of prices and its models must offer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tracedb.regress.conditions import Conditions
from tracedb.training_step.composition import Part


class Sampled(Protocol):
    """A model that knows the shape parameters of its samples, and the state of the device that it is for."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the shape parameters."""

    @property
    def conditions(self) -> Conditions:
        """The state of the device."""

    def outside(self, shape: Mapping[str, int]) -> list[str]:
        """Return the parameters of a shape that are beyond the samples."""


class Predictor(Protocol):
    """Predicts an operator's time: ``tracedb.regress.load(folder)`` returns one."""

    def find(self, gpu: str | None, operator: str, pass_: str, dtype: str | None) -> Sampled:
        """Return the model of an operator. Raises ``UsageError`` if there is none."""

    def predict(
        self, gpu: str | None, operator: str, pass_: str, dtype: str | None, shape: Mapping[str, int]
    ) -> tuple[float, float, float]:
        """Return predicted, low and high time in ns."""


@dataclass(frozen=True)
class Price:
    """A time in ns with its interval, and its basis."""

    ns: float
    low: float
    high: float
    basis: str
    """"model", or a description of the estimate."""

    def times(self, factor: float) -> Price:
        """Return the price of this many."""
        return Price(self.ns * factor, self.low * factor, self.high * factor, self.basis)

    def plus(self, other: Price) -> Price:
        """Return the price of both."""
        return Price(self.ns + other.ns, self.low + other.low, self.high + other.high, self.basis)


class PriceList(Protocol):
    """The prices of the parts of one step."""

    def part(self, part: Part) -> Price:
        """Return the price of one run of a part."""

    def optimizer(self, weights: int, layer_weights: int, layers: int) -> Price:
        """Return the price of an optimizer's step over a stage's weights."""

    def collective(self, what: str, elements: int) -> Price:
        """Return the price of a collective over a number of elements per rank."""

    def moved(self, elements: float) -> Price:
        """Return the price of reading or writing a number of elements in order."""
