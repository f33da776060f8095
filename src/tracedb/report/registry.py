"""The reports. Each is declared next to its view: ``sql/v1/TOPIC/NAME.toml`` says how ``NAME.sql`` is printed."""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import fields
from functools import cache
from typing import Any

from tracedb.errors import UsageError
from tracedb.output import Answer, Column, Show, from_rows
from tracedb.report.definition import CONFIGURATION, PLACE, Report
from tracedb.report.needs import Needs
from tracedb.storage import views
from tracedb.storage.views import CURRENT, View

_PLACES = {"capture": PLACE, "configuration": CONFIGURATION}
_FIELDS = {item.name for item in fields(Report)} - {"view", "shows"}
_SHOW_FIELDS = {item.name for item in fields(Show)} - {"columns"}


def find(name: str) -> Report:
    """Return the report of that name, written with dashes or underscores. Raises ``UsageError``.

    Only its own sidecar is read.
    """
    wanted = name.replace("-", "_")
    names = [view.name for view in _printed()]
    if wanted in names:
        return _read(wanted)
    for report in every():
        if name in report.also:
            return report
    own, _, argument = wanted.partition(":")
    if own in names and argument:
        raise UsageError(
            f"report {name.partition(':')[0]} takes no argument :{argument}; it has whole names, and short_name in the "
            "view kernels has short ones"
        )
    close = _meant(wanted.lower(), names)
    meant = f"did you mean {' or '.join(each.replace('_', '-') for each in close)}? " if close else ""
    raise UsageError(f"there is no report {name!r}; {meant}`tracedb report --list` lists them")


def _meant(wanted: str, names: list[str], most: int = 3) -> list[str]:
    """Return the reports that someone means by a name: that of another tool's report, a part of a name, or a typo."""
    named = [
        report.view
        for report in every()
        if any(wanted == peer.lower() for peers in report.peers.values() for peer in peers)
    ]
    part = [
        name for name in names if len(wanted) > 2 and re.search(rf"(^|_){re.escape(wanted.removesuffix('s'))}", name)
    ]
    return (named or part)[:most] or difflib.get_close_matches(wanted, names, 1)


@cache
def every() -> tuple[Report, ...]:
    """Return all reports in listing order."""
    return tuple(sorted((_read(view.name) for view in _printed()), key=lambda report: (report.place, report.name)))


def listing() -> Answer:
    """Return the reports with one line each."""
    columns = [
        Column("report", "VARCHAR", None, "Name of the report."),
        Column("view", "VARCHAR", None, "View that it prints."),
        Column("title", "VARCHAR", None, "What it answers."),
    ]
    answer = from_rows(columns, [(report.name, f"{CURRENT}.{report.view}", report.title) for report in every()])
    answer.report = "report --list"
    answer.shows = [Show(("report",), floor=24), Show(("title",), kind="fold", floor=24)]
    return answer


def _printed() -> list[View]:
    return [view for view in views.shipped(CURRENT) if view.has_sidecar]


@cache
def _read(name: str) -> Report:
    view = View(CURRENT, name)
    try:
        return declared(name, tomllib.loads(view.sidecar))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise AssertionError(f"the sidecar of {CURRENT}.{name} does not define a report: {error}") from error


def declared(view: str, given: dict[str, Any]) -> Report:
    """Return the report that a sidecar's content declares. Raises KeyError, TypeError or ValueError."""
    values = dict(given)
    shows = tuple(_show(column) for column in values.pop("columns"))
    unknown = set(values) - _FIELDS
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    needs = Needs(values.pop("needs"))
    lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return Report(view=view, shows=shows, needs=needs, **{**values, **lists})


def _show(column: dict[str, Any]) -> Show:
    """Return how a column is shown: ``{place = "capture"}``, or ``{of = "name", header = "GEMM", kind = "name"}``."""
    if "place" in column:
        return _PLACES[column["place"]]
    values = dict(column)
    of = values.pop("of")
    unknown = set(values) - _SHOW_FIELDS
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)} of a column")
    lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return Show(columns=(of,) if isinstance(of, str) else tuple(of), **{**values, **lists})
