"""The rows of a picture: those of its report, filtered, then chosen and bounded by the SELECT of the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.errors import NotCaptured, UsageError
from tracedb.output import Answer, Show, from_sql
from tracedb.output.display import MISSING, strips
from tracedb.output.shorten import shorten, visible
from tracedb.plot.definition import Choice, Picture, Table
from tracedb.report import pooled_rows, selection, shared_work
from tracedb.report import query as queries
from tracedb.report import registry as reports
from tracedb.report import run as engine
from tracedb.report.definition import CONFIGURATION, PLACE
from tracedb.report.filters import Filters, natural
from tracedb.storage import resources
from tracedb.storage.connection import identifier, quoted

if TYPE_CHECKING:
    import duckdb


_ANY = "1 = 1"
"""A constant order; DuckDB rejects a plain constant."""


def check(picture: Picture, filters: Filters, choice: Choice) -> None:
    """Raise ``UsageError`` if a picture does not accept an option."""
    given = {"kernel": choice.kernel, "step": choice.step, "window": choice.window}
    for option, value in given.items():
        if value is not None and option not in picture.takes:
            raise UsageError(f"picture {picture.name} has no use for --{option}")
    if filters.by and not picture.by:
        raise UsageError(f"picture {picture.name} cannot be grouped by {filters.by[0]}")
    if picture.most_by and len(filters.by) > picture.most_by:
        raise UsageError(f"picture {picture.name} takes --by {picture.most_by} times at most")


def plan(
    connection: duckdb.DuckDBPyConnection, picture: Picture, filters: Filters, choice: Choice, version: str
) -> tuple[queries.Query, str]:
    """Return the query of the picture's report, and the SELECT over its rows, which it calls ``answer``.

    Raises ``UsageError`` or ``NotCaptured`` where the filters do not fit the picture or the database.
    """
    check(picture, filters, choice)
    factors = filters.by if picture.by == "factors" else picture.factors
    if picture.by == "factors":
        filters = replace(filters, by=())
    if choice.step is not None:
        filters = replace(filters, by=("step",))
    report = reports.find(picture.report)
    query = queries.plan(connection, report, filters, version)
    if picture.keeps_files_apart and not filters.by and pooled_rows.are_separate_files(connection):
        query = queries.plan(connection, report, replace(filters, by=("capture",)), version)
    if picture.by == "factors":
        _check_factors(connection, factors)
    window = choice.window or (None, None)
    places = {
        "kernel": "NULL" if choice.kernel is None else quoted(choice.kernel),
        "in_step": "true" if choice.step is None else f"a.step = {choice.step}",
        "from_ns": _number(window[0]),
        "to_ns": _number(window[1]),
        "version": version,
        "factors": f"([{', '.join(map(quoted, factors))}]::VARCHAR[])",
        "place": _place(query, ("rank",)),
        "configuration": _place(query, ()),
        "groups": ", ".join(map(identifier, _groups(query))) or _grain(query),
    }
    text = resources.text("sql", "plot", f"{picture.select}.sql")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    for place, sql in places.items():
        text = text.replace("{" + place + "}", sql)
    return query, text


def _number(value: int | None) -> str:
    return "NULL::BIGINT" if value is None else str(value)


def _check_factors(connection: duckdb.DuckDBPyConnection, factors: Sequence[str]) -> None:
    keys = [*selection.label_keys(connection), "rank"]
    for factor in factors:
        if factor not in keys:
            raise UsageError(f"no capture has a label {factor!r}; settings here: {', '.join(keys)}")


def _place(query: queries.Query, others: Sequence[str]) -> str:
    """Return the ORDER BY of captures or configurations: --by columns, labels that vary, other columns."""
    order = [item for name in _groups(query) for item in natural(identifier(name)).split(", ")]
    if "labels" in query.columns:
        order += [item for key in query.scope.varying for item in natural(f"labels[{quoted(key)}]").split(", ")]
    return ", ".join(order + [f"{name} NULLS LAST" for name in others if name in query.columns]) or _ANY


def _groups(query: queries.Query) -> list[str]:
    """Return the --by columns; none for row reports, where --by only adds the step to choose by."""
    return [] if query.report.is_by_row else query.by


def _grain(query: queries.Query) -> str:
    return ", ".join(name for name in ("labels", "source", "cycle") if name in query.columns) or _ANY


def statement(query: queries.Query, select: str) -> str:
    """Return the full statement, runnable on the file; the report's rows are its CTE ``answer``."""
    where = f" WHERE {query.where}" if query.where else ""
    steps = query.text(0).removesuffix(query.select(query.source, query.where, 0))
    rows = f"WITH answer AS (SELECT * FROM {query.source}{where})"
    return steps + (f"{rows},\n{select[5:]}" if select.startswith("WITH ") else f"{rows}\n{select}")


def read(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    picture: Picture,
    query: queries.Query,
    select: str,
    choice: Choice,
    filters: Filters,
) -> tuple[Table, engine.Found]:
    """Run the report and the SELECT over its rows. Raises ``NotCaptured`` if there is nothing to draw."""
    found = engine.run(connection, path, query, 0)
    return chosen(connection, picture, query, select, choice, filters), found


def chosen(
    connection: duckdb.DuckDBPyConnection,
    picture: Picture,
    query: queries.Query,
    select: str,
    choice: Choice,
    filters: Filters,
) -> Table:
    """Run the SELECT over the rows of the report, which has just been run. Raises ``NotCaptured`` as ``read`` does."""
    if query.report.is_by_row:
        select = shared_work.reading(connection, query.scope, statement(query, select))
    answer = from_sql(connection, select)
    names = [column.name for column in answer.columns]
    rows = [tuple(row) for row in answer.rows]
    if not rows:
        raise NotCaptured(_nothing(connection, picture, query, choice, filters))
    header, places, common = _places(answer, rows, _shows(picture, query, answer, rows))
    factors = filters.by if picture.by == "factors" else picture.factors
    held = [dict(zip(names, row, strict=True)) for row in rows]
    return Table(held, places, header, common, _groups(query), factors, choice)


def _shows(picture: Picture, query: queries.Query, answer: Answer, rows: Sequence[Sequence[object]]) -> list[Show]:
    """Return the display columns for the origin of a row: --by columns, or varying labels with rank, profiler and
    capture."""
    groups = _groups(query)
    if groups:
        return [_by_column(name, query.scope.names) for name in groups]
    shows = [
        replace(CONFIGURATION if picture.is_by_run else show, keys=query.scope.varying)
        for show in query.report.shows
        if show in (PLACE, CONFIGURATION) and query.scope.captures > 1
    ]
    names = [column.name for column in answer.columns]
    if "source" in names and len({row[names.index("source")] for row in rows}) > 1:
        shows.append(Show(("source",), "profiler", "text"))
    if "cycle" in query.columns:
        shows.append(Show(("cycle",), "cycle", "raw"))
    if shows and query.scope.names and "capture_id" in query.columns:
        shows.append(Show(("capture_id",), "capture", "text", words=_words(query.scope.names, "capture ")))
    return shows


def _by_column(name: str, names: Mapping[int, str]) -> Show:
    """Return the display of a --by column; captures are shown by number and name."""
    return Show((name,), name, "text", words=_words(names) if name == "capture" else {})


def _words(names: Mapping[int, str], before: str = "") -> dict[str, str]:
    return {str(number): f"{before}{number} {name}".rstrip() for number, name in names.items()}


def _places(answer: Answer, rows: Sequence[Sequence[object]], kept: Sequence[Show]) -> tuple[str, list[str], str]:
    """Return a header, the origin of each row as tables display it, and the labels that all rows share.

    The origin consists of varying labels, rank, capture and --by columns.
    """
    common: dict[str, str] = {}
    names = [column.name for column in answer.columns]
    if "labels" in names:
        labels = [row[names.index("labels")] for row in rows]
        held = [item if isinstance(item, dict) else {} for item in labels]
        keys = [key for show in kept for key in show.keys]
        common = {
            key: str(held[0][key]) for key in keys if {item.get(key) for item in held} == {held[0].get(key)} - {None}
        }
    kept = [replace(show, keys=tuple(key for key in show.keys if key not in common)) for show in kept]
    made = strips(replace(answer, shows=[show for show in kept if show.keys or show.columns != ("labels",)]), rows)
    made = [strip for strip in made if set(strip.cells) != {MISSING}]
    header = " / ".join(strip.header.replace("/ ", " / ") for strip in made)
    texts = [" · ".join(parts) for parts in zip(*(strip.cells for strip in made), strict=True)]
    said = " ".join(f"{visible(key)}={visible(value)}" for key, value in common.items())
    return header, [visible(text) for text in texts] or [""] * len(rows), said


def _nothing(
    connection: duckdb.DuckDBPyConnection, picture: Picture, query: queries.Query, choice: Choice, filters: Filters
) -> str:
    """Return why a picture has no rows although its report has."""
    if choice.kernel is not None:
        where = f" WHERE {query.where}" if query.where else ""
        rows = "temp.answer" if not query.report.is_by_row else f"(SELECT * FROM {query.source}{where})"
        length = "total_ns" if picture.report == "kernel-histogram" else "duration_ns"
        there = connection.execute(
            f"SELECT name FROM {rows} GROUP BY name ORDER BY sum({length}) DESC, name LIMIT 3"
        ).fetchall()
        names = ", ".join(shorten([str(name) for (name,) in there], 60))
        return f"no kernel name equals, contains or matches {choice.kernel!r}; those with most time: {names}"
    if choice.step is not None:
        return f"no GPU activity in step {choice.step}{' in that window' if choice.window else ''}"
    if choice.window is not None:
        return "no GPU activity in that window, which starts at the first event of each run"
    if picture.select == "collectives":
        return (
            "no collective has both a known message size and a latency: sizes are recorded by torch.profiler with "
            "record_shapes and by nsys with --trace=nccl, and a latency needs all ranks of a call"
        )
    wanted = filters.by or picture.factors or ("threads", "channels")
    return (
        f"captures here do not differ in {' and '.join(wanted)}: ingest several runs, labelled by their folders or "
        "with --label"
    )
