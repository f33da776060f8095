"""The innermost range around each GPU event, into ``annotation_kernel``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb.derive.event_buffer import Calls, Events
from tracedb.intervals import nesting
from tracedb.intervals.native_nesting import Column, Nested

RULES = ("process", "thread", "time")
CALLS = 500_000
"""Approximate number of calls processed at a time: with the results they take about 50 MB."""
BATCH = 1 << 17
ROWS = 200_000
"""Rows written at a time."""
LAUNCHED = """
SELECT
    k.event_id, l.start_ns, l.start_ns + l.duration_ns AS end_ns, coalesce(l.thread_id, 0) AS thread_id,
    l.thread_id IS NOT NULL AS has_thread
FROM (SELECT event_id, launch_id FROM main.kernel_event WHERE capture_id = {capture}{some}) AS k
INNER JOIN (
    SELECT launch_id, start_ns, duration_ns, thread_id FROM main.launch WHERE capture_id = {capture}{some}
) AS l ON k.launch_id = l.launch_id
"""
STARTED = """
SELECT event_id, start_ns, start_ns AS end_ns FROM main.kernel_event WHERE capture_id = {capture}{some}
"""


def by_arrays(connection: duckdb.DuckDBPyConnection, capture_id: int, nested: Nested, events: Events) -> None:
    """Write the innermost range around each launch, by thread and by process; without launches, around each start."""
    rows = _Rows(connection, capture_id)
    for calls in _calls(connection, capture_id, events):
        for lane, places, inner in nested.around(calls["start_ns"], calls["end_ns"]):
            numbers = calls["event_id"][places]
            if events.launches:
                is_own = (calls["thread_id"][places] == lane) & calls["has_thread"][places]
                rows.add("process", inner, numbers)
                rows.add("thread", inner[is_own], numbers[is_own])
            else:
                rows.add("time", inner, numbers)
    rows.write()


def _calls(connection: duckdb.DuckDBPyConnection, capture_id: int, events: Events) -> Iterator[Calls]:
    """Yield the calls in portions. Other statements may run in between."""
    held = events.calls()
    if held is not None:
        yield held
        return
    query, key = (LAUNCHED, "launch_id") if events.launches else (STARTED, "event_id")
    for some in _portions(connection, capture_id, key, events.count):
        found = connection.sql(query.format(capture=int(capture_id), some=some))
        read = found.to_arrow_reader if hasattr(found, "to_arrow_reader") else found.fetch_arrow_reader  # in DuckDB 1.4
        for batch in list(read(BATCH)):  # all of them, since the next statement ends the reading
            yield {name: batch[name].to_numpy(zero_copy_only=False) for name in batch.schema.names}


def _portions(connection: duckdb.DuckDBPyConnection, capture_id: int, key: str, count: int) -> Iterator[str]:
    """Yield conditions that split the events by a number. Tables are roughly in its order, so little is read twice.

    Several events may share a number, and some have none.
    """
    portions = -(-count // CALLS)
    if portions < 2:
        yield ""
        return
    ((low, high),) = connection.execute(
        f"SELECT min({key}), max({key}) FROM main.kernel_event WHERE capture_id = ?", [capture_id]
    ).fetchall()
    if low is None:
        return
    bounds = [low + (high + 1 - low) * portion // portions for portion in range(portions + 1)]
    for first, following in pairwise(bounds):
        yield f" AND {key} >= {first} AND {key} < {following}"


class _Rows:
    """Collects rows for ``annotation_kernel``."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, capture_id: int) -> None:
        self._connection = connection
        self._capture_id = capture_id
        self._count = 0
        self._annotations: list[Column] = []
        self._events: list[Column] = []
        self._rules: list[npt.NDArray[np.int8]] = []

    def add(self, rule: str, annotations: Column, events: Column) -> None:
        """Add rows, and write the collected ones when there are many."""
        self._count += len(events)
        self._annotations.append(annotations)
        self._events.append(events)
        self._rules.append(np.full(len(events), RULES.index(rule), np.int8))
        if self._count >= ROWS:
            self.write()

    def write(self) -> None:
        """Write the collected rows."""
        if self._count:
            rules = pa.DictionaryArray.from_arrays(_column(self._rules), pa.array(RULES, pa.string()))
            rows = pa.table(  # noqa: F841 - DuckDB finds it by name
                [_column(self._annotations), _column(self._events), rules], ["annotation_id", "event_id", "rule"]
            )
            self._connection.execute(
                f"""INSERT INTO main.annotation_kernel BY NAME
                SELECT {int(self._capture_id)}::INTEGER AS capture_id, * FROM rows"""
            )
        self._count, self._annotations, self._events, self._rules = 0, [], [], []


def _column(parts: list[npt.NDArray[np.signedinteger]]) -> pa.Array:
    """Return numbers as a column; ``pa.array`` would import numpy's masked arrays to see that these are none."""
    values = np.concatenate(parts)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def by_statements(connection: duckdb.DuckDBPyConnection, capture_id: int, events: Events, crossing: bool) -> None:
    """Do the same from ``nest_out``, for any number of ranges; ``crossing``: some ranges cross."""
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE lane_span AS
        SELECT lane_b, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM nest_out GROUP BY lane_b"""
    )
    if events.launches:
        _by_launch(connection, capture_id, crossing)
    else:
        _by_time(connection, capture_id, crossing)
    connection.execute("DROP TABLE temp.lane_span")


def _by_launch(connection: duckdb.DuckDBPyConnection, capture_id: int, crossing: bool) -> None:
    """Rules process and thread: the launch call lies inside the range, on any thread or on the launching one."""
    nesting.enclose(
        connection,
        f"""SELECT l.launch_id AS call_id, 0 AS lane_a, s.lane_b, l.start_ns, l.start_ns + l.duration_ns AS end_ns
        FROM main.launch AS l
        INNER JOIN lane_span AS s ON l.start_ns >= s.start_ns AND l.start_ns <= s.end_ns
        WHERE l.capture_id = {int(capture_id)} AND l.launch_id IN (
            SELECT launch_id FROM main.kernel_event WHERE capture_id = {int(capture_id)} AND launch_id IS NOT NULL
        )""",
        crossing=crossing,
    )
    connection.execute(
        """
        INSERT INTO main.annotation_kernel BY NAME
        WITH found AS (
            SELECT k.event_id, c.item_id AS annotation_id, coalesce(c.lane_b = l.thread_id, false) AS is_own_thread
            FROM call_out AS c
            INNER JOIN main.launch AS l ON l.capture_id = $capture AND c.call_id = l.launch_id
            INNER JOIN main.kernel_event AS k ON k.capture_id = $capture AND l.launch_id = k.launch_id
        )

        SELECT $capture AS capture_id, annotation_id, event_id, 'process' AS rule FROM found
        UNION ALL
        SELECT $capture AS capture_id, annotation_id, event_id, 'thread' AS rule FROM found WHERE is_own_thread
        """,
        {"capture": capture_id},
    )


def _by_time(connection: duckdb.DuckDBPyConnection, capture_id: int, crossing: bool) -> None:
    """Rule time: the GPU event starts inside the range."""
    nesting.enclose(
        connection,
        f"""SELECT k.event_id AS call_id, 0 AS lane_a, s.lane_b, k.start_ns, k.start_ns AS end_ns
        FROM main.kernel_event AS k
        INNER JOIN lane_span AS s ON k.start_ns >= s.start_ns AND k.start_ns <= s.end_ns
        WHERE k.capture_id = {int(capture_id)}""",
        crossing=crossing,
    )
    connection.execute(
        """INSERT INTO main.annotation_kernel BY NAME
        SELECT ? AS capture_id, item_id AS annotation_id, call_id AS event_id, 'time' AS rule FROM call_out""",
        [capture_id],
    )
