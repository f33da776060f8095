"""The SQL of a report: one view, filtered and grouped in its own text, ordered, limited. ``run`` executes it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracedb.errors import UsageError
from tracedb.report import captures, filter_sql, selection, shared_work, step_ranges, view_template
from tracedb.report.definition import Report
from tracedb.report.filters import BY_BUILT_IN, Filters, Scope, named, natural
from tracedb.report.needs import Needs
from tracedb.storage import schema, views
from tracedb.storage.connection import identifier, quoted

if TYPE_CHECKING:
    import duckdb

BY_NUMBERS = ("capture", "rank", "device", "step")
DERIVED = frozenset({"short_name", "signature", "signature_key"})
"""Columns that follow from others of their row: long texts, of which there may be tens of thousands.

They break no ties, and a table that does not show them does not read them.
"""
_FOR_REMARKS = frozenset({"capture_id", "labels", "rank", "source", "cycle", "gpus", "step", "steps", "calls_per_step"})
"""Columns by which notes and the place of a row are chosen."""
ROWS_OF_PART = "rows_of_part"
"""Column of ``Query.first``: the number of a part's rows in its first row, 0 in the others."""


@dataclass
class Query:
    """The parts of a report's SQL."""

    report: Report
    scope: Scope
    source: str
    """The FROM source: the view, or its text with the hooks filled in."""
    columns: list[str]
    by: list[str]
    order: list[str]
    where: str = ""
    keys: dict[str, list[str]] = field(default_factory=dict)
    """Map columns that are shown as a column for each key, with the keys."""
    edits: view_template.Edits | None = None
    """What the hooks of the view's text were filled with; None where the view is read as it is."""
    unread: list[str] = field(default_factory=list)
    """Columns of the view that a table of the answer does without."""

    @property
    def shown(self) -> dict[str, str]:
        """Columns of the answer by name, as SQL over the view's: with ``--wide``, counters are a column each."""
        taken = {key.lower() for keys in self.keys.values() for key in keys}
        found: dict[str, str] = {}
        for column in self.columns:
            if column in self.keys:
                ending = self.report.wide[column]
                found |= {key + ending: f"{_bare(column)}[{quoted(key)}]" for key in self.keys[column]}
            elif column.lower() not in taken:  # a counter that the view has a column for
                found[column] = _bare(column)
        return found

    def select(self, source: str, where: str, top: int) -> str:
        """Return the final SELECT over a source."""
        listed = ", ".join(
            sql if sql == _bare(name) else f"{sql} AS {identifier(name)}" for name, sql in self.shown.items()
        )
        lines = [f"SELECT {listed}", f"FROM {source}"]
        if where:
            lines.append(f"WHERE {where}")
        ordered = ", ".join(self.order)
        if top and self.by:
            lines.append(f"QUALIFY row_number() OVER (PARTITION BY {self._groups} ORDER BY {ordered}) <= {top}")
        lines.append(f"ORDER BY {ordered}")
        if top and not self.by:
            lines.append(f"LIMIT {top}")
        return "\n".join(lines)

    def for_table(self) -> Query:
        """Return the query without columns that neither the table of the report nor its order and summary have.

        Of a report whose rows have no declared key, only derived columns are left out.
        """
        report = self.report
        needed = {name for show in report.shows for name in show.columns} | set(self.by) | _FOR_REMARKS
        needed |= {_column_of(item) for item in self.order}
        needed |= set(re.findall(r"\b[a-z]\.(\w+)", f"{report.summary} {report.summary_by} {report.answers}"))
        can_go = set(self.columns) if report.key else DERIVED
        unread = [name for name in self.columns if name in can_go - needed]
        return replace(self, columns=[name for name in self.columns if name not in unread], unread=unread)

    @property
    def can_be_cut(self) -> bool:
        """Whether the first rows of each part are enough: nothing in the answer is worked out from all rows."""
        return self.report.answers == Report.answers and self.report.summary is None and not self.keys

    def first(self, top: int) -> str:
        """Return the query of a part of the captures: its first rows (within each group), and ``ROWS_OF_PART``."""
        condition = f" WHERE {self.where}" if self.where else ""
        place = f"row_number() OVER (PARTITION BY {self._groups} ORDER BY place_in_part)"
        kept = f"QUALIFY {place} <= {top}" if self.by else f"WHERE place_in_part <= {top}"
        rows = f"if(place_in_part = 1, all_of_part, 0) AS {ROWS_OF_PART}"
        return f"""SELECT * EXCLUDE (place_in_part, all_of_part), {rows}
FROM (
    SELECT *, row_number() OVER (ORDER BY {", ".join(self.order)}) AS place_in_part, count(*) OVER () AS all_of_part
    FROM {self.source}{condition}
)
{kept}"""

    @property
    def _groups(self) -> str:
        return ", ".join(identifier(name) for name in self.by)

    @property
    def before(self) -> list[str]:
        """Statements that set the variables which the views read: the chosen steps and captures, if any."""
        filters = self.scope.filters
        found = [] if filters.step_range is None else [step_ranges.statement(filters.step_range)]
        if self.report.spans_ranks and filters.captures:
            found.append(captures.statement(filters.captures))
        return found

    def text(self, top: int) -> str:
        """Return the complete statement, runnable on the file, preceded by those that set variables."""
        return "".join(f"{text};\n" for text in self.before) + self.select(self.source, self.where, top)

    def counts(self, source: str, where: str, top: int) -> str:
        """Return the query for whether the rows are an answer, for their number, and for how many ``top`` keeps."""
        counted = self.report.counted
        if counted and source == f"{self.scope.version}.{self.report.view}" and not where:
            source = f"({counted.replace('{version}', self.scope.version)})"
        rows = f"{source} WHERE {where}" if where else source
        kept = f"least(count(*), {top})" if top else "count(*)"
        if top and self.by:
            kept = f"(SELECT sum(g.kept) FROM (SELECT {kept} AS kept FROM {rows} GROUP BY {self._groups}) AS g)"
        return f"SELECT {self.report.answers}, count(*), {kept} FROM {rows}"


def plan(
    connection: duckdb.DuckDBPyConnection, report: Report, filters: Filters, version: str, is_wide: bool = False
) -> Query:
    """Check the filters and write the SQL. Raises ``UsageError`` or ``NotCaptured`` if they do not apply.

    ``is_wide``: maps of the report become a column for each key that occurs (``Report.wide``).
    """
    if report.is_by_span and filters.range:
        filters = _of_range(report, filters)
    _check_span(report, filters)
    view = views.find(report.view, version)
    has_rule = report.has_rule or view_template.has_rule(view.select)
    rule = "thread" if report.is_by_thread else None
    scope = selection.select(connection, filters, version, has_rule, rule, _among(report, version))
    own = [column.name for column in schema.columns(connection, version, view.name)]
    inner, where = _around(report, scope, own)
    if report.is_by_span and filters.on_captures and not filters.across_ranks:
        rows = connection.execute("SELECT s.capture_id FROM temp.selected_capture AS s ORDER BY s.capture_id")
        where = f"capture_id IN ({', '.join(str(number) for (number,) in rows.fetchall())})"
    source = f"{version}.{view.name}"
    edits: view_template.Edits | None = None
    if not inner.filters.is_bare or scope.in_frames or view_template.has_rule(view.select):
        text = (report.text or view.select).replace("{version}", version)
        op = [column.name for column in schema.columns(connection, "main", "op")]  # some texts join it
        edits = filter_sql.edits(inner, text, report.name, [*own, *op])
        source = f"(\n{view_template.resolve(text, edits)}\n) AS answer"
    if filters.chooses_span(report.is_by_span):
        from tracedb.derive import chosen_segment  # imports numpy

        chosen_segment.find(connection, filters.window, filters.across_ranks)
        text = view.select.replace("main.critical_segment", "temp.chosen_segment").replace("{version}", version)
        text = text.replace("s.capture_id AS path_id", "s.path_id")
        source = f"(\n{text}\n) AS answer"
    columns = own if edits is None and source == f"{version}.{view.name}" else _columns(connection, scope, source)
    by = [item.name for item in edits.by] if edits else []
    groups = by + [name for name in filters.by if name not in inner.filters.by]
    keys = {name: _keys(connection, name, source, where) for name in report.wide if name in columns} if is_wide else {}
    order = _order(report, scope, columns, groups)
    return Query(report, scope, source, columns, groups, order, where, keys, edits)


def _columns(connection: duckdb.DuckDBPyConnection, scope: Scope, source: str) -> list[str]:
    """Return the columns of a text. It is planned for that, which takes as long as a tenth of a report."""
    described = shared_work.reading(connection, scope, f"DESCRIBE FROM {source}")
    return [str(row[0]) for row in shared_work.ask(connection, described)]


def _among(report: Report, version: str) -> selection.Among:
    """Return which captures and ranges can give rows of a report."""
    captures = "SELECT h.capture_id FROM main.counter AS h" if report.needs is Needs.COUNTERS else ""
    ranges = f"{version}._attention_part(r.name) IS NOT NULL" if report.needs is Needs.ATTENTION else "true"
    return selection.Among(captures, ranges, not report.spans_ranks)


def _of_range(report: Report, filters: Filters) -> Filters:
    """Return filters under which each instance of the range takes the place of a step. Raises ``UsageError``."""
    if len(filters.range) > 1:
        raise UsageError(f"report {report.name} takes one --range, whose instances it treats as steps")
    if filters.step_range is not None:
        raise UsageError(f"report {report.name} takes --range or --step-range, not both: either chooses its steps")
    return replace(filters, range=(), step_range=filters.range[0])


def _check_span(report: Report, filters: Filters) -> None:
    """Raise ``UsageError`` if the options of critical paths do not apply."""
    options = [("--window", filters.window is not None), ("--across-ranks", filters.across_ranks)]
    for option, is_given in options:
        if is_given and not report.is_by_span:
            raise UsageError(f"{option} goes with report critical-path, not with {report.name}")
    if filters.window is not None and filters.step_range is not None:
        raise UsageError(f"report {report.name} takes a window or ranges as steps, not both")


def _keys(connection: duckdb.DuckDBPyConnection, column: str, source: str, where: str) -> list[str]:
    condition = f" WHERE {where}" if where else ""
    rows = connection.execute(
        f"SELECT DISTINCT unnest(map_keys({identifier(column)})) AS key FROM {source}{condition} ORDER BY key"
    )
    return [str(key) for (key,) in rows.fetchall()]


def _around(report: Report, scope: Scope, own: Sequence[str]) -> tuple[Scope, str]:
    """Return the scope for the view's own text, and the condition on its rows.

    The condition covers columns that its rows already have, and rule and range if a row is of one rule and range.
    """
    filters = scope.filters
    has_already = set(own) & set(BY_BUILT_IN)
    where = [f"rule = {quoted(scope.rule)}"] if report.has_rule else []
    if report.is_by_span:
        filters = replace(
            filters,
            ranks=(),
            sources=(),
            captures=(),
            paths=(),
            where={},
            step_range=None,
            window=None,
            across_ranks=False,
        )
    if report.is_by_row or report.has_rule or report.is_by_span:
        filters = replace(filters, by=tuple(name for name in filters.by if name not in has_already))
    if report.range_column is not None and filters.range and not scope.in_frames:
        where.append(_named(report, scope, filters.range))
        filters = replace(filters, range=())
    return replace(scope, filters=filters), " AND ".join(where)


def _named(report: Report, scope: Scope, patterns: Sequence[str]) -> str:
    """Return the condition that a row's range has a matching name."""
    column = identifier(report.range_column or "")
    if not report.has_domain:
        return named(column, '"domain"', patterns)
    matches = named("q.name", "q.domain", patterns)
    return f"{column} IN (SELECT q.nsys_name FROM {scope.version}._nsys_range AS q WHERE {matches})"


def _order(report: Report, scope: Scope, columns: Sequence[str], by: Sequence[str]) -> list[str]:
    """Return a total order: --by columns, the report's own, names, then the report's key, else every other column."""
    order = [item for text in scope.filters.sort for item in _sorted_by(text, report.name, columns, by)]
    sorted_by = {_column_of(item) for item in order}
    order += [item for name in by if name not in sorted_by for item in in_order(identifier(name), name in BY_NUMBERS)]
    for item in report.order:
        if item == "{place}":
            order += _place_order(scope, columns)
        elif _column_of(item) in columns and _column_of(item) not in sorted_by:
            order.append(item)
    said = {_column_of(item) for item in order} | set(by)
    rest = [name for name in dict.fromkeys((*report.names, *(report.key or columns))) if name in columns]
    return order + [_bare(name) for name in rest if name not in said | DERIVED]


def _sorted_by(text: str, report: str, columns: Sequence[str], by: Sequence[str]) -> list[str]:
    """Return an ORDER BY list for an item of ``--sort``. Raises ``UsageError`` if it is not a column of the answer."""
    found = re.fullmatch(r"(-?)\s*(.*?)(?:\s+(asc|desc))?\s*", text, re.IGNORECASE | re.DOTALL)
    assert found is not None
    direction = " DESC" if (found[1] == "-") != ((found[3] or "").lower() == "desc") else ""
    wanted = found[2].replace("-", "_")
    name = next((column for column in columns if column.lower() in (found[2].lower(), wanted.lower())), None)
    if name is None:
        close = difflib.get_close_matches(wanted, columns, 1) or [one for one in columns if wanted and wanted in one]
        meant = f"did you mean {close[0]}? " if close else ""
        raise UsageError(
            f"report {report} has no column {found[2]!r} to sort by; {meant}there are: {', '.join(columns)}"
        )
    items = in_order(identifier(name), name not in by or name in BY_NUMBERS)
    return [item.replace(" NULLS LAST", f"{direction} NULLS LAST") for item in items]


def _column_of(item: str) -> str:
    """Return the column of an ORDER BY item: the quoted name, else its first word."""
    quoted_name = re.match(r'"([^"]+)"', item)
    return quoted_name[1] if quoted_name else str(re.findall(r"\w+", item)[0])


def in_order(column: str, is_number: bool) -> list[str]:
    """Return an ORDER BY list for a --by column."""
    return [f"{column} NULLS LAST"] if is_number else natural(column).split(", ")


def _place_order(scope: Scope, columns: Sequence[str]) -> list[str]:
    order = []
    if "labels" in columns:
        for key in scope.varying:
            order += in_order(f"labels[{quoted(key)}]", False)
    names = ("source",) if scope.filters.across_ranks else ("rank", "source")
    return order + [f"{name} NULLS LAST" for name in names if name in columns]


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in BY_BUILT_IN else identifier(name)
