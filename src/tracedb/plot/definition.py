"""What a picture is, and what its rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Picture:
    """A picture: the SELECT ``sql/plot/SELECT.sql`` over the rows of a report, and the function that draws them."""

    name: str
    title: str
    """What it shows, in one line."""
    report: str
    """The report whose rows it draws, with its filters."""
    select: str
    """The file in ``sql/plot`` that chooses from these rows."""
    draws: str
    """``module:function`` in this package, from a ``Table`` to a ``Drawing``."""
    by: str = ""
    """What --by does: ``group`` groups the report, ``factors`` chooses the settings that are drawn; nothing takes it if
    empty."""
    factors: tuple[str, ...] = ()
    """Settings that are drawn unless --by says others; where they are given --by is not taken."""
    is_by_run: bool = False
    """Whether its rows are told apart by their run alone, the ranks being an axis."""
    most_by: int = 0
    """How many --by columns it can show; 0 is any number."""
    takes: tuple[str, ...] = ()
    """Which of the options kernel, step and window it takes."""


@dataclass(frozen=True)
class Choice:
    """What only pictures are asked: one kernel, one step, a window of time in ns from the first event of a run."""

    kernel: str | None = None
    step: int | None = None
    window: tuple[int, int] | None = None


@dataclass
class Table:
    """The rows of a picture, as SQL gave them. ``places`` says for each where it comes from, for eyes."""

    rows: list[dict[str, Any]]
    places: list[str]
    place_header: str
    common: str = ""
    """Labels that the places leave out since all rows have the same."""
    by: Sequence[str] = ()
    factors: Sequence[str] = ()
    choice: Choice = field(default_factory=Choice)

    @property
    def first(self) -> Mapping[str, Any]:
        """The first row, for what SQL says of all rows in each of them."""
        return self.rows[0]

    def column(self, name: str) -> list[Any]:
        """Return the values of a column."""
        return [row[name] for row in self.rows]


@dataclass
class Drawing:
    """An Altair chart without title, the title, and what is said of it below that: lines under the title."""

    chart: Any
    title: str
    lines: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """What the picture does not show, a sentence each; stands in the picture and on stderr."""
