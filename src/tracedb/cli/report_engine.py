"""``tracedb report --engine``: the rows of a report from DuckDB in the tasks of Spark or Ray, over a lake."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.cli.options import counted, detail
from tracedb.distribute import plan as division
from tracedb.distribute.engines import ENGINES
from tracedb.errors import TracedbError, UsageError
from tracedb.report import view_template
from tracedb.report.filters import BY_BUILT_IN, label
from tracedb.storage.lake_store import is_lake

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tracedb.report.query import Query

_OF_CAPTURES = {"capture": "s.capture_id", "rank": "s.rank", "source": "s.source"}


def rows_by(engine: str, lake: Path, query: Query, connection: duckdb.DuckDBPyConnection, top: int) -> pa.Table:
    """Return the unordered rows of a report: with ``top``, where that is enough, the first of each task.

    Raises ``UsageError`` if the report cannot be divided, ``TracedbError`` if the engine is not installed or fails.
    """
    planned = _divided(lake, query, connection, top)
    gather: Callable[[division.Plan], list[pa.Table]] = import_module(f"tracedb.{engine}").gather
    sent = gather(planned)
    rows, size = sum(table.num_rows for table in sent), sum(table.nbytes for table in sent)
    detail(f"{engine}: {counted(len(planned.tasks), 'task')} sent {rows} rows, {size} bytes")
    return planned.put_together(sent)


def check(engine: str, lake: Path) -> None:
    """Raise ``UsageError`` if the captures are not in a lake, ``TracedbError`` if the engine is not installed."""
    if not is_lake(lake):
        raise UsageError("--engine reads a lake: name it with --lake DIR (tracedb export lake DIR makes one)")
    try:
        import_module(ENGINES[engine])
    except ImportError as error:
        raise TracedbError(
            f"--engine {engine} needs the package {ENGINES[engine]}, which is not installed: "
            f"pip install 'tracedb-gpu[{engine}]'"
        ) from error


def _divided(lake: Path, query: Query, connection: duckdb.DuckDBPyConnection, top: int) -> division.Plan:
    report = query.report
    unit = division.unit_of(report.view)
    if unit == "whole":
        raise UsageError(
            f"report {report.name} cannot be divided: its rows pool captures of several runs; run it without --engine"
        )
    if query.scope.filters.chooses_span(report.is_by_span):
        raise UsageError(
            f"report {report.name} takes only the paths found at load with --engine: no range, window or --across-ranks"
        )
    chosen = {
        int(number) for (number,) in connection.execute("SELECT capture_id FROM temp.selected_capture").fetchall()
    }
    if unit == "merged":
        edited = partial(view_template.resolve, edits=query.edits or view_template.Edits())
        sent, merge = map(edited, division.merged_texts(report.view))
        return division.divided(lake, report.view, (sent, merge), query.before, chosen, ())
    condition = f" WHERE {query.where}" if query.where else ""
    text = query.first(top) if top and query.can_be_cut else f"SELECT * FROM {query.source}{condition}"
    pooled = _pooled(connection, query) if query.edits and query.edits.by else []
    return division.divided(lake, report.view, (text, ""), query.before, chosen, pooled)


def _pooled(connection: duckdb.DuckDBPyConnection, query: Query) -> list[list[int]]:
    """Return the sets of captures that ``--by`` may put into one row: those with equal values."""
    keys = [name for name in query.scope.filters.by if name in _OF_CAPTURES or name not in BY_BUILT_IN]
    values = ", ".join(_OF_CAPTURES.get(key) or label("s", key) for key in keys)
    rows = connection.execute(
        f"SELECT list(s.capture_id) FROM temp.selected_capture AS s {f'GROUP BY {values}' if keys else ''}"
    )
    return [captures for (captures,) in rows.fetchall()]
