"""A view in the SQL of Trino. No Trino server was at hand: the text is parsed, not executed."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from tracedb.dialect.joins import without_asof, without_named_windows
from tracedb.dialect.portable import portable


def rewritten(tree: exp.Expr) -> str:
    """Return the SELECT of a view for Trino.

    Raises ``sqlglot.errors.ParseError`` if the result is not SQL that Trino's grammar has.
    """
    text: str = without_named_windows(without_asof(portable(tree))).transform(_node).sql("trino")
    sqlglot.parse_one(text, read="trino")
    return text


def _node(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.DataType) and node.this == exp.DataType.Type.INT128:
        return exp.DataType.build("DECIMAL(38, 0)")
    return node
