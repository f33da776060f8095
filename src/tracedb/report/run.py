"""Run a report: its answer, its warnings and notes, and its columns for terminals. Does no arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from tracedb.errors import NotCaptured, TracedbError, UsageError
from tracedb.output import Answer, from_sql
from tracedb.output.display import MISSING
from tracedb.output.shorten import middle
from tracedb.report import (
    caveats,
    configuration_words,
    next_commands,
    no_answer,
    rank_checks,
    shared_work,
    shown_columns,
)
from tracedb.report.definition import CYCLE, GPUS, RECORDINGS, Report
from tracedb.report.filters import Scope
from tracedb.report.needs import NAMES, TABLES
from tracedb.report.query import BY_NUMBERS, ROWS_OF_PART, Query, in_order
from tracedb.report.shown_columns import KERNEL_COLUMNS
from tracedb.storage import schema, views
from tracedb.storage.connection import identifier, quoted
from tracedb.storage.database_file import is_damage
from tracedb.storage.error_lines import engine_words
from tracedb.storage.lake_store import is_lake, shown

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST_WORD = 120
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")
"""A name that would make a conclusion unreadable."""
_BY_TEXTS = {
    "capture": "Number of the capture (capture_id).",
    "rank": "Rank of the captures.",
    "device": "Device number within the capture.",
    "source": "Which ingester read the captures.",
    "vendor": "Maker of the device.",
    "range": "Range around the launches.",
    "step": "Step number.",
}


@dataclass
class Found:
    """A report's answer, and its messages for stderr."""

    answer: Answer
    gist: list[str] = field(default_factory=list)
    """The notes that sum up the rows, which stand before the other notes."""

    @property
    def notes(self) -> list[str]:
        """Notes on the answer, and how many rows are left out."""
        return [text for kind, text in self.answer.remarks if kind == "note"]


@contextmanager
def explained(connection: duckdb.DuckDBPyConnection, path: Path) -> Iterator[None]:
    """Turn expected failures of a valid query into one line; anything else is a bug of tracedb."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise TracedbError(
            f"{path}: not enough memory ({engine_words(error).partition(' Possible solutions')[0]}); ask about "
            "fewer captures at a time (--capture), raise --memory-limit if it was given, or use a larger machine"
        ) from error
    except duckdb.IOException as error:
        if is_damage(error):
            raise
        what = f"; `tracedb lake verify {shown(path)}` lists what is missing or damaged" if is_lake(path) else ""
        raise TracedbError(f"{shown(path)}: cannot be read: {engine_words(error)}{what}") from error
    except (duckdb.BinderException, duckdb.CatalogException) as error:
        outdated = views.outdated(connection)
        if not outdated:
            raise
        raise _other_views(path, outdated) from error


def require_views(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Raise ``TracedbError`` if the file's views are of another tracedb, before anything is worked out with them."""
    outdated = views.outdated(connection)
    if outdated:
        raise _other_views(path, outdated)


def _other_views(path: Path, outdated: Sequence[str]) -> TracedbError:
    return TracedbError(
        f"{path}: its views are of another tracedb ({len(outdated)} differ, such as {outdated[0]}); "
        "the next `tracedb ingest` into it brings them up to date"
    )


def run(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    query: Query,
    top: int,
    is_wide: bool = False,
    rows: pa.Table | None = None,
) -> Found:
    """Run a report. ``is_wide``: a table shows every column. ``rows``: its rows, if they were worked out elsewhere.

    Such rows may be only the first of each part, with the column ``ROWS_OF_PART``.

    Raises ``NotCaptured`` if there is no answer.
    """
    try:
        # its rows and its warnings both need the collectives of all ranks matched
        is_shared = query.report.spans_ranks and _keeps_rows(query.report)
        with shared_work.within_report(connection) if is_shared else nullcontext():
            found = _run(connection, path, query, top, rows)
    except NotCaptured as error:
        undone = caveats.unfinished(connection)  # pending facts may explain the lack of an answer
        if undone:
            raise NotCaptured("; ".join([str(error), *undone])) from error
        raise
    if is_wide:
        found.answer.is_wide, found.answer.shows = True, shown_columns.of_all(query)
    return found


def _may_answer(connection: duckdb.DuckDBPyConnection, report: Report, version: str) -> bool:
    """Return whether the file has the rows or names that the report cannot do without."""
    table, names = TABLES.get(report.needs), NAMES.get(report.needs)
    looks = [f"FROM main.{identifier(table)} LIMIT 1"] if table else []
    looks += [f"{names.replace('{version}', version)} LIMIT 1"] if names else []
    return all(shared_work.ask(connection, look) for look in looks)


def _keeps_rows(report: Report) -> bool:
    """Return whether the rows of a report go into ``temp.answer``."""
    return not report.is_by_row or report.summary is not None


def _run(
    connection: duckdb.DuckDBPyConnection, path: Path, query: Query, top: int, rows_given: pa.Table | None
) -> Found:
    report, scope = query.report, query.scope
    if rows_given is None and not _may_answer(connection, report, scope.version):
        raise NotCaptured(no_answer.reason(connection, report, scope, path))
    source, where = shared_work.reading(connection, scope, query.source), query.where
    if report.spans_ranks:
        rank_checks.check(connection, scope)
    if rows_given is not None:
        _keep(connection, source, rows_given)
        source, where = "temp.answer", ""
    elif _keeps_rows(report):
        condition = f" WHERE {where}" if where else ""
        listed = ", ".join(map(identifier, query.columns)) or "*"  # of a view that is missing, which DuckDB then names
        connection.execute(f"CREATE OR REPLACE TEMP TABLE answer AS SELECT {listed} FROM {source}{condition}")
        source, where = "temp.answer", ""
    ((is_answer, rows, shown),) = connection.execute(query.counts(source, where, top)).fetchall()
    if rows_given is not None and ROWS_OF_PART in rows_given.column_names:
        rows = sum(rows_given.column(ROWS_OF_PART).to_pylist())
    if not is_answer:
        raise NotCaptured(no_answer.reason(connection, report, scope, path))
    comments = {column.name: column.description for column in schema.columns(connection, scope.version, report.view)}
    comments |= {name: _BY_TEXTS.get(name, f"Label {name}.") for name in query.by}
    for column, keys in query.keys.items():
        comments |= {key + report.wide[column]: f"{key} of {column}: {comments[column]}" for key in keys}
    answer = from_sql(connection, query.select(source, where, top), comments)
    answer.report, answer.version, answer.database = report.name, scope.version, str(path)
    answer.filters = _filters(query, top)
    answer.warnings = caveats.warnings(connection, report, scope, [*query.columns, *query.unread])
    answer.shows = [
        replace(show, short=shown_columns.short_names(connection)) if show.kind == "kernel" else show
        for show in shown_columns.of_report(query)
    ]
    if not query.scope.varying and "capture" in (show.header for show in answer.shows) and not _has_ranks(connection):
        answer.shows = [show for show in answer.shows if show.kind != "place"]  # a rank that no capture has
    if CYCLE in answer.shows and not _has_cycles(connection, query):
        answer.shows.remove(CYCLE)
    if not query.by:
        answer.shows = [show for show in answer.shows if show not in (GPUS, RECORDINGS)]
    gist: list[str] = []
    summary = report.summary if set(report.summary_needs) <= set(query.columns) else report.summary_by
    if summary:
        said = connection.execute(_gist(connection, query, summary)).fetchall()
        gist = [_LONG_WORD.sub(lambda found: middle(found[0], _LONGEST_WORD), str(line)) for (line,) in said]
        answer.notes += gist
    if scope.filters.rule and not scope.rule:
        answer.notes.append("--rule has no effect here: it goes with --range, --by range and reports over ranges")
    if scope.filters.step_range is not None and not _uses_steps(query):
        answer.notes.append(
            "--step-range has no effect here: it goes with --by step, --skip-warmup and reports with a step column"
        )
    if scope.rule == "time":
        answer.notes.append("ranges hold a kernel by rule time")
    answer.notes += next_commands.copies_as_kernels(connection, report, scope)
    if shown is not None and shown < rows:
        answer.left_out = f"{shown} of {rows} rows; --top 0 shows all"
    return Found(answer, gist)


def _keep(connection: duckdb.DuckDBPyConnection, source: str, rows: pa.Table) -> None:
    """Put a report's rows into ``temp.answer``, with the types that ``source`` has."""
    columns = connection.execute(f"DESCRIBE FROM {source}").fetchall()
    listed = ", ".join(f"g.{identifier(name)}::{kind} AS {identifier(name)}" for name, kind, *_ in columns)
    connection.register("given_rows", rows)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE answer AS SELECT {listed} FROM given_rows AS g")
    connection.unregister("given_rows")


def _has_ranks(connection: duckdb.DuckDBPyConnection) -> bool:
    ((count,),) = connection.execute("SELECT count(s.rank) FROM temp.selected_capture AS s").fetchall()
    return bool(count)


def _has_cycles(connection: duckdb.DuckDBPyConnection, query: Query) -> bool:
    if "cycle" not in query.columns:
        return False
    ((count,),) = connection.execute("SELECT count(a.cycle) FROM temp.answer AS a").fetchall()
    return bool(count)


def _uses_steps(query: Query) -> bool:
    filters = query.scope.filters
    return bool(filters.skip_warmup or "step" in filters.by or {"step", "steps", "calls_per_step"} & set(query.columns))


def _gist(connection: duckdb.DuckDBPyConnection, query: Query, text: str) -> str:
    """Return the SELECT of a summary with the --by columns inserted (see ``Report.summary``)."""
    columns = [identifier(name) for name in query.by]
    words = " || ' ' || ".join(
        f"{quoted(name + '=')} || coalesce({column}::VARCHAR, {quoted(MISSING)})"
        for name, column in zip(query.by, columns, strict=True)
    )
    order = [
        item for name, column in zip(query.by, columns, strict=True) for item in in_order(column, name in BY_NUMBERS)
    ]
    filled = {
        "{by}": "".join(f"{column}, " for column in columns),
        "{group}": f"{words} || ': '" if words else "''",
        "{order}": "".join(f"{item}, " for item in order),
        "{setting}": words or configuration_words.setting(connection, query.scope),
        "{row}": words or configuration_words.row(query.scope),
        "{whole}": quoted(_whole(query.scope)),
    }
    for place, sql in filled.items():
        text = text.replace(place, sql)
    return text


def _whole(scope: Scope) -> str:
    """Return what the shares of step time are shares of, in words."""
    filters = scope.filters
    given = [f"--class {','.join(filters.classes)}"] if filters.classes else []
    given += [f"--range {pattern}" for pattern in filters.range]
    return f"the chosen work ({' '.join(given)}) and the idle time that ends with it" if given else "the step"


def renamed(connection: duckdb.DuckDBPyConnection, query: Query, top: int, answer: Answer) -> Answer:
    """Return an answer that was just worked out under the keys of its report's ``jsonl``."""
    ordered = ", ".join(query.order)
    placed = f"SELECT *, row_number() OVER (ORDER BY {ordered}) AS answer_place\nFROM temp.answer"
    within = f"PARTITION BY {', '.join(map(identifier, query.by))} " if query.by else ""
    cut = f"\nQUALIFY row_number() OVER ({within}ORDER BY {ordered}) <= {top}" if top else ""
    text = (query.report.jsonl or "").replace("{answer}", f"({placed}{cut})")
    groups = [identifier(name) for name in query.by if f" AS {name}," not in text]  # device may be a key already
    text = text.replace("{by}", "".join(f"a.{name}, " for name in groups))
    described = {column.name: column.description or "" for column in answer.columns}
    made = from_sql(connection, text, described)
    return replace(answer, columns=made.columns, rows=made.rows, arrow=made.arrow, keys=made.keys, shows=None)


def kernel_names(connection: duckdb.DuckDBPyConnection, query: Query, top: int) -> list[str]:
    """Return the kernels of a report's first rows, per capture if it has captures, each kernel once.

    Raises ``UsageError`` if its rows name no kernels.
    """
    column = next((name for name in KERNEL_COLUMNS if name in query.columns), None)
    is_other = query.report.needs in ("ranges", "calls", "samples") and column != "kernel"
    if column is None or is_other:
        raise UsageError(f"report {query.report.name} names no kernels")
    order = ", ".join(query.order)
    where = f"WHERE {query.where}" if query.where else ""
    captures = "PARTITION BY capture_id" if "capture_id" in query.columns else ""
    rows = connection.execute(
        f"""SELECT {identifier(column)} FROM {query.source} {where}
            QUALIFY row_number() OVER ({captures} ORDER BY {order}) <= {top} ORDER BY {order}"""
    ).fetchall()
    return list(dict.fromkeys(str(name) for (name,) in rows if name is not None))


def _filters(query: Query, top: int) -> dict[str, object]:
    filters = query.scope.filters
    said: dict[str, object] = {
        "rank": list(filters.ranks),
        "device": list(filters.devices),
        "source": list(filters.sources),
        "capture": [int(number) for number in filters.captures],
        "class": list(filters.classes),
        "where": {key: list(values) for key, values in filters.where.items()},
        "path": list(filters.paths),
        "range": filters.range[0] if len(filters.range) == 1 else list(filters.range),
        "rule": query.scope.rule or None,
        "skip_warmup": filters.skip_warmup,
        "step_range": filters.step_range,
        "window_ns": list(filters.window or ()),
        "across_ranks": filters.across_ranks or None,
        "counted": filters.counted or None,
        "attention_as_matmul": filters.attention_as_matmul or None,
        "by": query.by,
        "sort": list(filters.sort),
        "top": top,
    }
    return {key: value for key, value in said.items() if value not in (None, [], {}, 0)}
