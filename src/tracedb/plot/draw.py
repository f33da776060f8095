"""Turn the rows of a picture into its chart, with title, filters and warnings as text."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tracedb.output import Answer
from tracedb.output.shorten import visible
from tracedb.plot import datasets
from tracedb.plot.definition import Drawing, Picture, Table
from tracedb.plot.render import specification


@dataclass
class Drawn:
    """A picture ready to be rendered."""

    specification: dict[str, Any]
    """In Vega-Lite."""
    title: str
    left_out: list[str]


def draw(picture: Picture, table: Table, answer: Answer, database: Path) -> Drawn:
    """Draw the rows of a picture. ``answer``: that of its report, for the filters and warnings."""
    module, _, function = picture.draws.partition(":")
    with datasets.collected() as rows:
        drawing: Drawing = getattr(import_module(f"tracedb.plot.{module}"), function)(table)
    filters = dict(answer.filters or {})
    if table.choice.step is not None:
        filters.pop("by", None)
    chosen = " ".join(_said(filters, table))
    said = [" · ".join(part for part in (visible(database.name), table.common, chosen) if part)]
    drawing.lines += [f"Note: {text}." for text in answer.warnings]
    return Drawn(specification(drawing, said, rows), drawing.title, drawing.left_out)


def _said(filters: dict[str, object], table: Table) -> list[str]:
    """Return the filters as command-line options."""
    said = []
    for key, value in filters.items():
        option = f"--{key.replace('_', '-')}"
        if isinstance(value, dict):
            said += [f"{option} {label}={one}" for label, values in value.items() for one in values]
        elif isinstance(value, list):
            said += [f"{option} {one}" for one in value]
        else:
            said.append(option if value is True else f"{option} {value}")
    if table.choice.window is not None:
        said.append("--window " + ":".join(_time(end, table.choice.window[1]) for end in table.choice.window))
    return said


def _time(value: int, largest: int) -> str:
    """Return nanoseconds exactly, in the largest unit of which ``largest`` holds at least one."""
    digits, unit = next(
        (digits, unit) for digits, unit in ((9, "s"), (6, "ms"), (3, "µs"), (0, "ns")) if largest >= 10**digits
    )
    whole, part = divmod(value, 10**digits)
    return f"{whole}.{part:0{digits}d}".rstrip("0").removesuffix(".") + unit if part else f"{whole}{unit}"
