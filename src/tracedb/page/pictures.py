"""The pictures of a page: those of ``tracedb plot`` that draw the rows of a report."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.errors import NotCaptured, TracedbError, UsageError
from tracedb.page.contents import Figure
from tracedb.plot import draw, registry, render, rows
from tracedb.plot.definition import Choice, Picture
from tracedb.report import run as engine

if TYPE_CHECKING:
    import duckdb

    from tracedb.output import Answer
    from tracedb.report.filters import Filters
    from tracedb.report.query import Query

_LONG_NUMBER = re.compile(rb"(?<=[\d\s,(\"-])(\d+\.\d\d)\d+(?=[\s,)\"a-zA-Z-])")
"""A coordinate with digits beyond the hundredth of a pixel."""
_SIZE = re.compile(rb'<svg[^>]*?\swidth="([\d.]+)"[^>]*?\sheight="([\d.]+)"')
_NARROW = 672
"""Pixels of the minimum width of ``.picture img`` in page.css, 42rem."""


@dataclass
class Ran:
    """The report whose rows the connection holds as ``temp.answer``, and its answer."""

    query: Query
    answer: Answer


def absent() -> str:
    """Return why no picture can be drawn; empty if they can."""
    try:
        render.require()
    except TracedbError as error:
        return str(error)
    return ""


def of_report(name: str) -> list[Picture]:
    """Return the pictures that draw the rows of a report."""
    return [picture for picture in registry.PICTURES if picture.report == name]


def figure(
    connection: duckdb.DuckDBPyConnection, path: Path, picture: Picture, ran: Ran, filters: Filters, options: str
) -> Figure | str:
    """Draw a picture of a report that has just been run, or return why it has nothing to show.

    ``filters``: those of the picture; if they differ from the report's, the report is run again.
    """
    choice = Choice()
    try:
        query, select = rows.plan(connection, picture, filters, choice, ran.query.scope.version)
        if query.text(0) != ran.query.text(0):
            ran.query, ran.answer = query, engine.run(connection, path, query, 0).answer
        table = rows.chosen(connection, picture, query, select, choice, filters)
    except (NotCaptured, UsageError) as error:
        return str(error)
    said = {key: value for key, value in (ran.answer.filters or {}).items() if key != "top"}
    drawn = draw.draw(picture, table, replace(ran.answer, warnings=[], filters=said), path)
    content = _svg(drawn)
    found = _SIZE.search(content)
    size = (round(float(found[1])), round(float(found[2]))) if found else None
    return Figure(
        drawn.title,
        f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}",
        f"tracedb plot {picture.name}{options} -o {picture.name}.svg",
        rows.statement(query, select).rstrip() + ";",
        drawn.left_out,
        size is not None and size[0] < _NARROW,
        size,
    )


def _svg(drawn: draw.Drawn) -> bytes:
    """Return a picture. Descriptions of single marks are omitted: screen readers do not look into an image."""
    plain = {**drawn.specification, "config": {**drawn.specification.get("config", {}), "aria": False}}
    return _LONG_NUMBER.sub(rb"\1", render.as_bytes(plain, "svg", drawn.title, ""))
