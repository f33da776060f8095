"""What a replay says of its capture as a whole: passes, rules with their errors, tiers, the longest operators."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tracedb.storage import resources, statements

if TYPE_CHECKING:
    import duckdb


def of(connection: duckdb.DuckDBPyConnection, replay_id: int) -> dict[str, Any]:
    """Return the comparison of a stored replay as JSON can hold it."""
    statements.set_variables(connection, replay_id=replay_id)
    row = connection.execute(resources.text("sql", "replay", "comparison.sql")).fetchone()
    names = [column[0] for column in connection.description or ()]
    assert row is not None
    return {name: json.loads(text) if text else None for name, text in zip(names, row, strict=True)}
