"""Nest ranges and find the range around each call with SQL over temporary tables, in near-linear time.

Used at load for framework operators, annotations and calls alike. The statements are ``sql/derive/nesting*.sql``,
``enclosing.sql`` and ``leaves.sql``; these functions run them. For crossing ranges, ``crossing_ranges`` finds parents.
"""

from __future__ import annotations

from functools import cache

import duckdb
import numpy as np
import pyarrow as pa

from tracedb.intervals.crossing_ranges import NOWHERE, Numbers, Opened, link
from tracedb.storage import resources
from tracedb.storage.connection import in_memory

ODD = "SELECT lane, start_ns, end_ns, item_id, coalesce(parent_id, item_id) AS parent_id, is_odd FROM nest_odd"


def nest(connection: duckdb.DuckDBPyConnection, items: str, slack_ns: int = 0) -> bool:
    """Fill temp table ``nest_out`` with parent and depth of every range of the query ``items``.

    ``items`` selects item_id, lane_a, lane_b (process and thread, not NULL), start_ns, end_ns, tie. Returns whether any
    two ranges of a thread cross.
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE nest_in AS {items}")
    run(connection, "nesting", slack_ns)
    ((odd,),) = connection.execute("SELECT count(*) FROM nest_out WHERE is_odd").fetchall()
    if odd:
        _link_crossing(connection, slack_ns)
    ((crossing,),) = connection.execute("SELECT count(*) FROM nest_out WHERE is_crossing").fetchall()
    return bool(crossing)


def enclose(connection: duckdb.DuckDBPyConnection, calls: str, slack_ns: int = 0, crossing: bool = False) -> None:
    """Fill temp table ``call_out`` with the innermost range of ``nest_out`` around every call of the query ``calls``.

    ``calls`` selects call_id, lane_a, lane_b, start_ns, end_ns; a call may occur once per lane. Ranges that cross an
    earlier one are ignored, unless ``crossing``: then a call has a row for every chain of parents around it.
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
        "nest_odd",
        "nest_linked",
        "nest_segment",
        "call_in",
        "call_place",
        "call_candidate",
        "call_out",
    ):
        connection.execute(f"DROP TABLE IF EXISTS temp.{table}")


def _link_crossing(connection: duckdb.DuckDBPyConnection, slack_ns: int) -> None:
    """Correct ``nest_out`` where ranges cross. Takes about 200 bytes per range of the threads on which any cross."""
    run(connection, "nesting_odd", slack_ns)
    rows = connection.sql(f"{ODD} ORDER BY lane, place").to_arrow_table()
    lane, start, end, item, parent, is_odd = (column.to_numpy() for column in rows.columns)
    by_item = np.argsort(item)
    above = by_item[np.searchsorted(item, parent, sorter=by_item)]
    above[parent == item] = NOWHERE
    linked = link(Opened(lane, start, end, above, is_odd.astype(bool)), slack_ns)

    def items(places: Numbers) -> pa.Array:
        return pa.array(item[places], pa.int64(), mask=places == NOWHERE)

    found = {"parent_id": linked.parent, "crossing_id": linked.crossing, "nested_id": linked.nested}
    corrected = pa.table(
        {
            "item_id": item,
            "depth": linked.depth.astype(np.int32),
            "is_crossing": linked.is_crossing,
            **{name: items(places) for name, places in found.items()},
        }
    )
    connection.register("corrected", corrected)
    connection.execute("CREATE OR REPLACE TEMP TABLE nest_linked AS FROM corrected")
    connection.unregister("corrected")
    run(connection, "nesting_linked", slack_ns)


def run(connection: duckdb.DuckDBPyConnection, name: str, slack_ns: int) -> None:
    """Run the statements of ``sql/derive/NAME.sql`` with the parameter ``slack``."""
    for statement, takes_slack in _statements(name):
        connection.execute(statement, {"slack": slack_ns} if takes_slack else None)


@cache  # used for every file that is loaded
def _statements(name: str) -> list[tuple[str, bool]]:
    """Return the statements of a file, and whether each takes the parameter ``slack``."""
    with in_memory() as parser:
        found = parser.extract_statements(resources.text("sql", "derive", f"{name}.sql"))
        return [(statement.query, bool(statement.named_parameters)) for statement in found]
