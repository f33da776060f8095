"""Range names, and ranges of a chosen name as steps, instead of those marked ProfilerStep#N (``v1._step``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracedb.storage.connection import quoted

if TYPE_CHECKING:
    import duckdb

MOST_NAMES = 8
_MOST_LETTERS = 60


def statement(pattern: str) -> str:
    """Return the statement that makes ranges with matching names the steps for all views of a connection."""
    return f"SET VARIABLE step_range = {quoted(pattern)}"


def choose(connection: duckdb.DuckDBPyConnection, pattern: str | None) -> None:
    """Make ranges with matching names the steps; with None, those marked ProfilerStep#N."""
    connection.execute("RESET VARIABLE step_range" if pattern is None else statement(pattern))


def names(connection: duckdb.DuckDBPyConnection, views: str, captures: str) -> list[str]:
    """Return the most frequent range names among the captures of a table, shortened.

    ``views``: the schema of the views, with its catalog unless that is the current one.
    """
    rows = connection.execute(
        f"""SELECT concat_ws(':', r.domain, r.name) AS name
            FROM {views}._range AS r SEMI JOIN {captures} AS s ON s.capture_id = r.capture_id
            WHERE r.style <> 'mark' GROUP BY ALL ORDER BY count(*) DESC, name LIMIT {MOST_NAMES}"""
    ).fetchall()
    texts = [" ".join(str(name).split()) for (name,) in rows]
    return [text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…" for text in texts]


def absent(asked: str, there: Sequence[str]) -> str:
    """Say that no range matches, and which there are."""
    if not there:
        return f"no range matches {asked}: no ranges (NVTX, roctx, record_function) were captured"
    return f"no range matches {asked}; existing ones include: {', '.join(there)}"
