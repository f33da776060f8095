"""``tracedb.report()``: a report for scripts and notebooks, as a DuckDB relation with its warnings beside it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from tracedb.output import Answer, Show, about, from_rows
from tracedb.report import keyword_filters, registry
from tracedb.report import run as engine
from tracedb.report.filters import BY_BUILT_IN
from tracedb.report.query import Query, plan
from tracedb.storage.connection import connect, identifier, quoted

if TYPE_CHECKING:
    import pyarrow

SHOWN = 10
"""Number of rows in the display of a report."""


@dataclass(frozen=True)
class ReportRelation:
    """A report's rows as a DuckDB relation, with all its methods (``pl``, ``df``, ``arrow``, …).

    Its display shows the first rows as ``tracedb report`` prints them. polars, pyarrow and DuckDB itself read it
    directly (``connection.sql("FROM rows")``).
    """

    relation: duckdb.DuckDBPyRelation
    warnings: tuple[str, ...]
    """What one must know to read the rows correctly."""
    notes: tuple[str, ...]
    """Further notes that ``tracedb report`` prints."""
    sql: str
    """The SELECT, runnable on the file."""
    answer: Answer
    """Name, view version, filters and columns with their units; the rows come from ``relation``."""
    _connection: duckdb.DuckDBPyConnection

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "relation":  # also during unpickling, when there is no relation yet
            raise AttributeError(name)
        return getattr(self.relation, name)

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *(name for name in dir(self.relation) if not name.startswith("_"))]

    def __len__(self) -> int:
        return len(self.relation)

    def arrow(self, batch_size: int = 1_000_000) -> pyarrow.RecordBatchReader:
        """Return the rows as a reader over rows already in memory.

        DuckDB's own reader would keep the connection busy, and the next display of the report would fail.
        """
        return self.relation.to_arrow_table().to_reader(batch_size)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.relation.to_arrow_table().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        from tracedb.output.terminal import write_table

        shown, beside = self._shown()
        text = io.StringIO()
        write_table(shown, text)
        return "\n".join([text.getvalue().rstrip("\n"), *beside])

    def _repr_markdown_(self) -> str:
        from tracedb.output.markdown_html import write_markdown

        shown, beside = self._shown()
        text = io.StringIO()
        write_markdown(shown, text)
        return "\n\n".join([text.getvalue(), *beside])

    def _shown(self) -> tuple[Answer, list[str]]:
        """Return the first rows, and the lines printed below them."""
        rows = self.relation.limit(SHOWN + 1).fetchall()
        shown = from_rows(self.answer.columns, rows[:SHOWN])
        shown.shows = self.answer.shows
        more = [f"… the first {SHOWN} rows"] if len(rows) > SHOWN else []
        return shown, more + [f"warning: {text}" for text in self.warnings]


def report(
    name: str,
    db: str | Path | duckdb.DuckDBPyConnection | None = None,
    *,
    by: str | Sequence[str] = (),
    top: int = 0,
    version: str = "v1",
    label_columns: bool = False,
    **filters: Any,
) -> ReportRelation:
    """Return a report as a DuckDB relation: ``.pl()``, ``.df()``, ``.arrow()``, ``.fetchall()``.

    ``db``: a file or an open connection to one; else ``$TRACEDB``, else ``trace.duckdb``. ``top``: the first N rows
    (within each group, with ``by``); 0 is all. ``label_columns``: also a column of text for each label of the captures,
    named as the label (``label_NAME`` where the report has such a column). ``filters`` are those of ``tracedb report``:
    ``rank``, ``device``, ``source``, ``capture`` and ``classes`` take one value or several, ``where`` a mapping of
    label to value or values; ``path``, ``range``, ``sort``, ``rule``, ``skip_warmup``, ``step_range``, ``window``
    (start and end in ns), ``across_ranks``, ``counted``, ``attention_as_matmul``.

    Raises ``NotCaptured`` if the database cannot answer, ``UsageError`` if report or filter do not apply to it, both
    ``TracedbError``; ``TypeError`` for a filter that does not exist or a value of the wrong type, ``ValueError`` for a
    value out of range.
    """
    chosen = keyword_filters.filters({"by": by, **filters})
    top = keyword_filters.number_from_zero("top", top)
    definition = registry.find(name)
    connection, path = _own_cursor(db)
    with engine.explained(connection, path):
        query = plan(connection, definition, chosen, version)
        found = engine.run(connection, path, query, top)
        is_kept = definition.is_by_row  # other answers are already in a temporary table of this cursor
        text = query.select(query.source, query.where, top) if is_kept else query.select("temp.answer", "", top)
        labels = _label_columns(connection, query) if label_columns else {}
        relation = connection.sql(_readable(text, found.answer, labels))
    answer = _with_labels(found.answer, query, labels)
    if label_columns and "labels" not in query.columns and not set(query.by) - set(BY_BUILT_IN):
        answer.warnings.append(
            f"label_columns has no effect: rows of {name} have no labels; by=LABEL groups them by one"
        )
    return ReportRelation(relation, tuple(answer.warnings), tuple(found.notes), query.text(top), answer, connection)


def _own_cursor(db: str | Path | duckdb.DuckDBPyConnection | None) -> tuple[duckdb.DuckDBPyConnection, Path]:
    """Return the file, and a connection with its own temporary tables and variables, so that reports do not collide."""
    if not isinstance(db, duckdb.DuckDBPyConnection):
        path = Path(db or os.environ.get("TRACEDB") or "trace.duckdb")
        return connect(path), path
    ((catalog, file),) = db.execute(
        """SELECT d.database_name, d.path FROM duckdb_databases() AS d WHERE d.database_name = current_database()"""
    ).fetchall()
    cursor = db.cursor()
    cursor.execute(f"USE {identifier(catalog)}")
    return cursor, Path(file or catalog)


def _label_columns(connection: duckdb.DuckDBPyConnection, query: Query) -> dict[str, str]:
    """Return the columns of labels by name, each with its label."""
    if "labels" not in query.columns:
        return {}
    keys = connection.execute(
        "SELECT DISTINCT unnest(map_keys(s.labels)) AS key FROM temp.selected_capture AS s ORDER BY key"
    ).fetchall()
    return {f"label_{key}" if key in query.columns else key: key for (key,) in islice(keys, 100)}


def _readable(text: str, answer: Answer, labels: Mapping[str, str]) -> str:
    """Return the query with 128-bit integers as 64-bit ones, which Arrow and pandas keep exact, and label columns."""
    huge = [identifier(column.name) for column in answer.columns if column.type in ("HUGEINT", "UHUGEINT")]
    casts = ", ".join(f"{name}::BIGINT AS {name}" for name in huge)
    star = f"* REPLACE ({casts})" if huge else "*"
    listed = [f"labels[{quoted(key)}] AS {identifier(name)}" for name, key in labels.items()]
    return f"SELECT {', '.join([*listed, star])} FROM ({text})"


def _with_labels(answer: Answer, query: Query, labels: Mapping[str, str]) -> Answer:
    """Return an answer with columns of labels before its own, which the display then does not repeat."""
    if not labels:
        return answer
    words = query.scope.label_words
    shows = [Show((name,), name, "text", words=words.get(key, {})) for name, key in labels.items()]
    for show in answer.shows or ():
        if show.kind != "place":
            shows.append(show)
        elif "rank" in show.columns:
            shows.append(Show(("rank",), "rank", "raw"))
    columns = [about(name, "VARCHAR", f"Label {key}.") for name, key in labels.items()]
    return replace(answer, columns=[*columns, *answer.columns], shows=shows)
