"""nsys's tables over any capture, so that queries written for its SQLite exports run (``--as nsys``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracedb.errors import TracedbError
from tracedb.storage import resources

if TYPE_CHECKING:
    import duckdb
    from sqlglot import Expr

    from tracedb.storage.connection import Settings

SETTINGS: Settings = {"integer_division": True}
"""What must be set when the database is opened: ``/`` of whole numbers is whole in SQLite."""


def statements(captures: Sequence[int] = ()) -> str:
    """Return the SQL that makes nsys's tables as temporary views, of all captures or of some."""
    chosen = f" WHERE c.capture_id IN ({', '.join(map(str, captures))})" if captures else ""
    return resources.text("sql", "nsys", "tables.sql").replace("{captures}", chosen)


def has(name: str) -> bool:
    """Whether nsys's exports have a table of this name, in any case of letters, and tracedb provides it."""
    return re.search(rf"\bVIEW\s+(?:\w+\.)?{re.escape(name)}\b", statements(), re.IGNORECASE) is not None


def install(connection: duckdb.DuckDBPyConnection, captures: Sequence[int] = ()) -> None:
    """Make nsys's tables as temporary views of a connection, of all captures or of some."""
    connection.execute(statements(captures))


def pooled(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the number of captures that the tables hold; times measured outside of traces are in none of them."""
    ((count,),) = connection.execute(
        """SELECT count(*) FROM nsys_capture AS n
           INNER JOIN main.capture AS c ON c.capture_id = n.capture_id AND c.source <> 'measure'"""
    ).fetchall()
    return int(count)


def pooled_warning(count: int) -> str:
    """Return what to tell people whose tables hold several captures: most queries written for nsys expect one."""
    return f"nsys's tables hold {count} captures, whose clocks may differ; choose one with --capture, or use captureId"


def translated(query: str) -> str:
    """Translate a query from SQLite's dialect to DuckDB's; its columns keep the names that SQLite gives them.

    Raises ``TracedbError`` if it is not SQL.
    """
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        statements = [statement for statement in sqlglot.parse(query, read="sqlite") if statement is not None]
        if len(statements) == 1:
            _name_columns(statements[0], query)
        return ";\n".join(statement.sql("duckdb") for statement in statements)
    except SqlglotError as error:
        raise TracedbError(f"this is not SQLite's SQL: {str(error).splitlines()[0]}") from error


def _name_columns(statement: Expr, query: str) -> None:
    """Name each expression of the outermost SELECT by its text, as SQLite does."""
    from sqlglot import exp

    outermost = statement
    while isinstance(outermost, exp.SetOperation):
        outermost = outermost.this
    if not isinstance(outermost, exp.Select):
        return
    written = _selected(query)
    if len(written) != len(outermost.expressions):
        return
    for item, text in zip(list(outermost.expressions), written, strict=True):
        if not isinstance(item, exp.Alias | exp.Column | exp.Star):
            item.replace(exp.alias_(item.copy(), text, quoted=True))


def _selected(query: str) -> list[str]:
    """Return the texts between the commas of the first SELECT that is in no parentheses."""
    from sqlglot import TokenType, tokenize

    ends = {TokenType.FROM, TokenType.WHERE, TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT}
    ends |= {TokenType.ORDER_BY, TokenType.GROUP_BY, TokenType.LIMIT, TokenType.SEMICOLON}
    depth, found = 0, []
    start, end = -1, -1
    is_in = False
    for token in tokenize(query, read="sqlite"):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if not is_in:
            is_in = depth == 0 and token.token_type == TokenType.SELECT
        elif depth == 0 and token.token_type in ends:
            break
        elif depth == 0 and token.token_type == TokenType.COMMA:
            found.append(query[start : end + 1])
            start = -1
        elif not (start < 0 and token.token_type in (TokenType.DISTINCT, TokenType.ALL)):
            start, end = (token.start if start < 0 else start), token.end
    return [*found, query[start : end + 1]] if start >= 0 else found
