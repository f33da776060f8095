"""``Query.for_table`` leaves out columns that a table does not show: never one that the summary or the order reads."""

from __future__ import annotations

import re

import pytest
import sqlglot
from sqlglot import exp

from support.loading import empty_connection
from tracedb.report import registry
from tracedb.report.definition import Report
from tracedb.report.filters import Filters, Scope
from tracedb.report.query import Query


@pytest.fixture(scope="module")
def columns() -> dict[str, list[str]]:
    """The columns of each view."""
    with empty_connection() as connection:
        rows = connection.execute(
            """SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns()
               WHERE schema_name = 'v1' GROUP BY table_name"""
        ).fetchall()
    return dict(rows)


def read(sql: str) -> set[str]:
    """Return the columns that a SELECT names, by a parser; ``*`` if it reads all."""
    filled = re.sub(r"\{(by|order)\}", "", sql)
    (statement,) = sqlglot.parse(re.sub(r"\{\w+\}", "''", filled), read="duckdb")
    assert statement is not None
    stars = {"*" for star in statement.find_all(exp.Star) if not isinstance(star.parent, exp.Count)}
    return {column.name for column in statement.find_all(exp.Column)} | stars


@pytest.mark.parametrize("report", registry.every(), ids=lambda report: report.name)
def test_what_a_summary_reads_is_kept(report: Report, columns: dict[str, list[str]]) -> None:
    own = columns[report.view]
    unread = Query(report, Scope(Filters(), "v1", "", (), 0, {}), report.view, own, [], []).for_table().unread
    texts = [report.summary, report.summary_by, f"SELECT {report.answers} FROM temp.answer AS a"]
    needed = set[str]().union(*(read(text) for text in texts if text))
    assert needed.isdisjoint(unread)
    assert "*" not in needed or not unread
