"""The shapes of a sweep, in order, and their division into parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TypeVar

from tracedb.sampling.configuration import Axis

Shape = dict[str, int]
T = TypeVar("T")


def values(axis: Axis) -> list[int]:
    """Return the values of one parameter, including its end if a step reaches it.

    Steps are counted with integers; float logarithms lose the last value for some bases.
    """
    found = []
    value = axis.start
    while value <= axis.end:
        found.append(value)
        value = value + axis.step if axis.stepping == "add" else value * axis.step
    return found


def shapes(axes: Sequence[Axis]) -> Iterator[Shape]:
    """Yield every combination in odometer order: the last parameter changes fastest."""
    names = [axis.name for axis in axes]
    for combination in product(*(values(axis) for axis in axes)):
        yield dict(zip(names, combination, strict=True))


def share(everything: Sequence[T], parts: int, part: int) -> list[T]:
    """Return every ``parts``-th shape, beginning with the ``part``-th (from 1): round robin in sweep order.

    Part 1 has the 1st, (parts+1)-th … shape. In estimate-train-time part 1 has the multiples of ``parts``, part 2 the
    1st and so on: the same parts under other numbers.
    """
    return list(everything[part - 1 :: parts])


def text(operator: str, shape: Shape) -> str:
    """Return the spelling of a shape in annotations: ``linear1|mp=1|b=4|…``."""
    return "|".join([operator, *(f"{name}={value}" for name, value in shape.items())])
