"""Declaration of a picture, and its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Picture:
    """A picture: a SELECT over the rows of a report, and the function that draws the result."""

    name: str
    title: str
    """A one-line description."""
    report: str
    """The report whose rows it draws."""
    select: str
    """Name of the SELECT in ``sql/plot``."""
    draws: str
    """``module:function`` in this package, from a ``Table`` to a ``Drawing``."""
    by: str = ""
    """Effect of --by: ``group`` groups the report, ``factors`` chooses the settings to draw; empty if --by is not
    accepted."""
    factors: tuple[str, ...] = ()
    """Fixed settings to draw; --by is not accepted then."""
    keeps_files_apart: bool = False
    """Whether files of unknown rank are grouped by capture, unless --by says otherwise."""
    is_by_run: bool = False
    """Whether rows are named by their run only, since rank is an axis."""
    most_by: int = 0
    """Maximum number of --by columns; 0 for any number."""
    takes: tuple[str, ...] = ()
    """The options among kernel, step and window that it accepts."""


@dataclass(frozen=True)
class Choice:
    """Options of pictures only: a kernel, a step, a time window in ns after the first event of a run."""

    kernel: str | None = None
    step: int | None = None
    window: tuple[int, int] | None = None


@dataclass
class Table:
    """The rows of a picture, as SQL gave them. ``places``: the origin of each row, as text for display."""

    rows: list[dict[str, Any]]
    places: list[str]
    place_header: str
    common: str = ""
    """Labels with one value for all rows, which the places omit."""
    by: Sequence[str] = ()
    factors: Sequence[str] = ()
    choice: Choice = field(default_factory=Choice)

    @property
    def first(self) -> Mapping[str, Any]:
        """The first row, for values that SQL repeats in every row."""
        return self.rows[0]

    def column(self, name: str) -> list[Any]:
        """Return the values of a column."""
        return [row[name] for row in self.rows]


@dataclass
class Drawing:
    """An Altair chart without title, its title, and the lines under the title."""

    chart: Any
    title: str
    lines: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Sentences about what the picture does not show; printed in the picture and on stderr."""
    labels: Sequence[str] = ()
    """Texts left of the picture, which need more room in fonts wider than the one it is laid out with."""
