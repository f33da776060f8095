"""How the columns of an answer are shown in a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import duckdb

from tracedb.output import Show
from tracedb.output.shorten import without_common_ends
from tracedb.report.definition import CONFIGURATION, PLACE
from tracedb.report.filters import Scope
from tracedb.report.query import BY_NUMBERS, Query
from tracedb.storage.connection import identifier

KERNEL_COLUMNS = ("kernel", "name", "gemm_name", "Kernel Name", "Name")
"""Columns that name kernels; a report has at most one."""


def of_report(query: Query) -> list[Show]:
    """Return the columns for terminals: the report's, with those that identify a row inserted."""
    shows: list[Show] = []
    for show in query.report.shows:
        if show not in (PLACE, CONFIGURATION):
            shows.append(show)
        elif query.by:
            shows += [_show_by(name, query) for name in query.by]
        elif query.scope.captures > 1 and (show is PLACE or query.scope.varying):
            shows.append(replace(show, keys=query.scope.varying, words=_place_words(query.scope)))
            names = query.scope.names
            if show is PLACE and names and "capture_id" in query.columns:
                shows.append(Show(("capture_id",), "capture", "name", words=_words(names)))
    by = set(query.by)
    return [
        show
        for index, show in enumerate(shows)
        if index < len(by) or not (len(show.columns) == 1 and show.columns[0] in by)
    ]


def of_all(query: Query) -> list[Show]:
    """Return the display columns of all columns of an answer, --by columns first; those of the report keep its
    formats."""
    own = {show.columns[0]: show for show in query.report.shows if len(show.columns) == 1}
    kinds = {"capture": _show_by("capture", query), "input_dims": Show(("input_dims",), "input_dims", "dims")}
    return [kinds.get(name) or _unnamed(name, own.get(name), name in BY_NUMBERS) for name in query.shown]


def _unnamed(name: str, own: Show | None, is_number: bool) -> Show:
    """Return how a column is shown under its own name, without the words that a narrow table has for its values."""
    if name.startswith("start_"):  # a point in time, shown with all digits
        return Show((name,), name, "raw")
    kind = "name" if name in KERNEL_COLUMNS else own.kind if own and own.kind in ("raw", "dims", "labels") else None
    return Show((name,), re.sub(r"_(ns|percent)$", "", name), "raw" if is_number or name.endswith("_id") else kind)


def _show_by(name: str, query: Query) -> Show:
    """Return how a --by column is shown."""
    if name == "capture":
        return Show((name,), name, "name", words=_words(query.scope.names))
    words = query.scope.label_words.get(name.removeprefix("label "), {})
    return Show((name,), name, "raw" if name in BY_NUMBERS else "text", words=words)


def _place_words(scope: Scope) -> dict[str, str]:
    """Return what a table shows for the labels of a place, by KEY=VALUE."""
    return {f"{key}={value}": word for key, words in scope.label_words.items() for value, word in words.items()}


def _words(names: Mapping[int, str]) -> dict[str, str]:
    """Return what a table shows for the number of a capture: the number and what tells its path apart."""
    return {str(number): f"{number} {name}".rstrip() for number, name in without_common_ends(names).items()}


def short_names(connection: duckdb.DuckDBPyConnection) -> Callable[[Sequence[str]], Mapping[str, str]]:
    """Return the look-up of short forms of kernel names, which may be asked while the rows are read."""
    ((catalog,),) = connection.execute("SELECT current_database()").fetchall()
    beside = connection.cursor()
    beside.execute(f"USE {identifier(catalog)}")

    def short(names: Sequence[str]) -> Mapping[str, str]:
        try:
            rows = beside.execute("SELECT n.name, v1._short_name(n.name) FROM (SELECT unnest(?) AS name) AS n", [names])
        except duckdb.CatalogException:  # the views are of an older tracedb, which another message says
            return {}
        return dict(rows.fetchall())

    return short
