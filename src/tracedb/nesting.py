"""Which range contains which, and which range encloses a call: SQL over temporary tables, near linear.

Used at load for framework operators, annotations and calls alike. The statements are ``sql/derive/nesting*.sql`` and
``enclosing.sql``; these functions only run them.
"""

from __future__ import annotations

from functools import cache

import duckdb

from tracedb import rooms


def nest(connection: duckdb.DuckDBPyConnection, items: str, slack_ns: int = 0) -> bool:
    """Fill temp table ``nest_out`` with parent and depth of every range of the query ``items``.

    ``items`` selects item_id, lane_a, lane_b (process and thread, not NULL), start_ns, end_ns, tie. Returns whether any
    two ranges of a thread cross.
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE nest_in AS {items}")
    run(connection, "nesting", slack_ns)
    ((odd,),) = connection.execute("SELECT count(*) FROM nest_out WHERE is_odd").fetchall()
    if odd:
        run(connection, "nesting_odd", slack_ns)
    ((crossing,),) = connection.execute("SELECT count(*) FROM nest_out WHERE is_crossing").fetchall()
    return bool(crossing)


def enclose(connection: duckdb.DuckDBPyConnection, calls: str, slack_ns: int = 0, crossing: bool = False) -> None:
    """Fill temp table ``call_out`` with the innermost range of ``nest_out`` around every call of the query ``calls``.

    ``calls`` selects call_id, lane_a, lane_b, start_ns, end_ns; a call may stand once per lane. Ranges that cross an
    earlier one are passed over, unless ``crossing``: then a call has a row for every chain of parents around it.
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE call_in AS {calls}")
    run(connection, "enclosing", slack_ns)
    if crossing:
        run(connection, "leaves", slack_ns)


def drop(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop the temporary tables."""
    for table in (
        "nest_in",
        "nest_walk",
        "nest_out",
        "nest_corrected",
        "nest_segment",
        "call_in",
        "call_candidate",
        "call_out",
    ):
        connection.execute(f"DROP TABLE IF EXISTS temp.{table}")


def run(connection: duckdb.DuckDBPyConnection, name: str, slack_ns: int) -> None:
    """Run the statements of ``sql/derive/NAME.sql`` with the parameter ``slack``."""
    for statement, takes_slack in _statements(name):
        connection.execute(statement, {"slack": slack_ns} if takes_slack else None)


@cache  # with every file that is loaded
def _statements(name: str) -> list[tuple[str, bool]]:
    """Return the statements of a file, and which take the parameter ``slack``."""
    with duckdb.connect(":memory:") as parser:
        found = parser.extract_statements(rooms.text("sql", "derive", f"{name}.sql"))
        return [(statement.query, bool(statement.named_parameters)) for statement in found]
