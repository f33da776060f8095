"""Pending work of a database: derived facts to be computed once its captures are committed.

A capture is committed together with its pending facts, so that a process that ends in between leaves a file that says
what is missing. Whoever derives a fact marks it done in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable

import duckdb

CLOCK_ALIGNMENT = "clock_alignment"
GRAPH_LINKS = "graph_links"
ACROSS_CAPTURES = (CLOCK_ALIGNMENT, GRAPH_LINKS)
"""Facts about several captures, which every new one may change."""


def owe(connection: duckdb.DuckDBPyConnection, fact: str, captures: Iterable[int]) -> None:
    """Mark a fact as pending for captures. Call inside a transaction."""
    for capture in captures:
        connection.execute("INSERT INTO meta.owed VALUES (?, ?)", [fact, capture])


def owe_all(connection: duckdb.DuckDBPyConnection, captures: Iterable[int]) -> None:
    """Mark every fact about several captures as pending. Call inside a transaction."""
    captures = list(captures)
    for fact in ACROSS_CAPTURES:
        owe(connection, fact, captures)


def owed(connection: duckdb.DuckDBPyConnection) -> dict[str, list[int]]:
    """Return fact → captures of the current catalog for which it is pending; empty if nothing is."""
    try:
        rows = connection.execute(
            "SELECT fact, list(DISTINCT capture_id ORDER BY capture_id) FROM meta.owed GROUP BY fact ORDER BY fact"
        ).fetchall()
    except duckdb.CatalogException:  # made by a tracedb without this table
        return {}
    return dict(rows)


def is_noted(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the current catalog has the table; files of earlier versions do not."""
    ((count,),) = connection.execute(
        """SELECT count(*) FROM duckdb_tables()
           WHERE database_name = current_database() AND schema_name = 'meta' AND table_name = 'owed'"""
    ).fetchall()
    return bool(count)


def settle(connection: duckdb.DuckDBPyConnection, fact: str) -> None:
    """Mark a fact as done for all captures. Call inside the transaction that derives it."""
    connection.execute("DELETE FROM meta.owed WHERE fact = ?", [fact])
