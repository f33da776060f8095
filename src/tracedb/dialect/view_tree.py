"""A view as a syntax tree that no longer needs DuckDB's own features: macros inlined, hooks and variables gone.

The definition of a view is DuckDB's; a tree is what the translation into another engine's SQL starts from.
"""

from __future__ import annotations

import re
import tempfile
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import sqlglot
from sqlglot import exp

from tracedb.dialect.constant_folding import without_variables
from tracedb.dialect.steps import without_stars
from tracedb.storage import template_database
from tracedb.storage.connection import open_read_only
from tracedb.storage.views import CURRENT, View, shipped

CLASSES = "_kernel_class"
"""The private view that matches names with patterns from a table. Engines want constant patterns, so its rows are made
by DuckDB, and become the table ``main.kernel_class``."""
CLASS_TABLE = "kernel_class"
SHORT_NAME = "_short_name"
_LEN = re.compile(r"\blen\(")
"""The length of a list in the views, which use ``length`` for texts: sqlglot takes both for that of a text."""
_CLASSES_TEXT = f"""SELECT k.name, k.class, k.rule_source, k.priority, k.shipped_class, k.short_name
    FROM main.{CLASS_TABLE} AS k"""


def tree(name: str) -> exp.Expr:
    """Return the SELECT of a view, which may be private; the caller may change it."""
    return _tree(name).copy()


@cache
def _tree(name: str) -> exp.Expr:
    """Return the same for every caller: parsing takes longer than copying."""
    text = _CLASSES_TEXT if name == CLASSES else View(CURRENT, name).select
    found = sqlglot.parse_one(_LEN.sub("array_length(", text), read="duckdb")
    for node in found.walk():
        node.comments = None
    return without_variables(_without_named_values(_inlined(without_stars(found, _columns_of))))


def _columns_of(table: exp.Table) -> list[str]:
    return _columns()[table.db, table.name]


@cache
def _columns() -> dict[tuple[str, str], list[str]]:
    """Return the columns of every table and view, in order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "views.duckdb"
        template_database.fill(path)
        with open_read_only(path) as connection:
            rows = connection.execute(
                """SELECT c.schema_name, c.table_name, list(c.column_name ORDER BY c.column_index)
                   FROM duckdb_columns() AS c GROUP BY c.schema_name, c.table_name"""
            ).fetchall()
    return {(schema, name): columns for schema, name, columns in rows}


def in_order(*names: str) -> list[str]:
    """Return the views and those that they read, in an order in which they can be created; macros are left out."""
    needs: dict[str, list[str]] = {}
    left = list(names)
    while left:
        name = left.pop()
        if name not in needs:
            needs[name] = [] if name == CLASSES else sorted(View(CURRENT, name).needs)
            left += needs[name]
    return [name for name in TopologicalSorter(needs).static_order() if name not in _macros()]


@cache
def _macros() -> frozenset[str]:
    return frozenset(view.name for view in shipped() if "\nCREATE MACRO " in view.text)


@cache
def _macro(name: str) -> tuple[list[str], exp.Expr]:
    """Return a macro's parameters and its body."""
    (create,) = (
        statement
        for statement in sqlglot.parse(_LEN.sub("array_length(", View(CURRENT, name).text), read="duckdb")
        if isinstance(statement, exp.Create)
    )
    return [parameter.name for parameter in create.this.expressions], create.expression


def _inlined(found: exp.Expr) -> exp.Expr:
    """Replace every call of a macro by its body."""

    def replaced(node: exp.Expr) -> exp.Expr:
        call = node.expression if isinstance(node, exp.Dot) else None
        if not isinstance(call, exp.Anonymous) or call.name not in _macros():
            return node
        if call.name == SHORT_NAME:
            return _looked_up(node, call.expressions[0])
        parameters, body = _macro(call.name)
        given = dict(zip(parameters, call.expressions, strict=True))

        def put(inner: exp.Expr) -> exp.Expr:
            is_parameter = isinstance(inner, exp.Column) and not inner.table and inner.name in given
            return exp.Paren(this=given[inner.name].copy()) if is_parameter else inner

        return exp.Paren(this=_inlined(body.copy().transform(put)))

    rewritten: exp.Expr = found.transform(replaced)
    return rewritten


def _without_named_values(found: exp.Expr) -> exp.Expr:
    """Put the value in the place of its name: ``list_transform([value], LAMBDA name: body)[1]`` names one in DuckDB.

    Other engines infer no type for that list.
    """

    def replaced(node: exp.Expr) -> exp.Expr:
        transform = node.this if isinstance(node, exp.Bracket) else None
        if not isinstance(transform, exp.Transform) or not isinstance(transform.this, exp.Array):
            return node
        (value,), named = transform.this.expressions, transform.expression
        (name,) = (parameter.name for parameter in named.expressions)
        body: exp.Expr = named.this.copy()

        def put(inner: exp.Expr) -> exp.Expr:
            is_name = isinstance(inner, exp.Identifier | exp.Column) and inner.name == name
            return exp.Paren(this=value.copy()) if is_name else inner

        return body.transform(put)

    rewritten: exp.Expr = found.transform(replaced)
    return rewritten


def _looked_up(node: exp.Expr, name: exp.Expr) -> exp.Expr:
    """Return the lookup of a short name among the classed names; a name that is no kernel's stays as it is."""
    name = name.copy()
    select = node.find_ancestor(exp.Select)
    if isinstance(name, exp.Column) and not name.table and select is not None:
        name.set("table", exp.to_identifier(select.args["from_"].this.alias_or_name))
    words = name.sql("duckdb")
    row = "short_name_of"
    found = f"SELECT max({row}.short_name) FROM main.{CLASS_TABLE} AS {row} WHERE {row}.name = {words}"
    return sqlglot.parse_one(f"coalesce(({found}), {words})", read="duckdb")
