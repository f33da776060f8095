"""Impossible times: detected at load and marked in ``time_fault``, so that views leave them out.

The rules are ``sql/derive/time_faults.sql``, their bounds the table ``main.time_bound``. For nearly every capture the
first and last start and the longest duration show that no rule can match, and the rules are not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from tracedb.derive import graph_launches
from tracedb.derive.time_extent import Extent
from tracedb.ingester.name_patterns import GRAPH_LAUNCH
from tracedb.storage import pending_facts, resources, statements

if TYPE_CHECKING:
    import duckdb

    from tracedb.derive.annotation_buffer import Annotations
    from tracedb.derive.event_buffer import Events

Issue = tuple[str, str, int, str]
REASONS = ("far_from_others", "too_long", "before_launch", "after_launch")
CODES = (*(f"time_{reason}" for reason in REASONS), "clocks_apart", graph_launches.CODE)
"""Codes of the issues written here; all are warnings."""
INSERT_ISSUE = "INSERT INTO main.ingest_issue VALUES (?, ?, ?, ?, 0, ?)"


class _Ranges(NamedTuple):
    """The ranges of a capture: the table, and the condition on its rows ``a``."""

    table: str
    condition: str


def mark(
    connection: duckdb.DuckDBPyConnection,
    capture_id: int,
    annotations: Annotations,
    events: Events,
    limits: Mapping[str, int],
) -> list[Issue]:
    """Mark impossible times of a capture whose annotations are not written yet; returns the issues written.

    Runs in the capture's transaction, after all its other rows. ``events`` has the statistics of the events and calls;
    ``limits`` are the bounds.
    """
    found = events.extents() or _extents(connection, capture_id)
    extents = (*found[:2], annotations.extent())
    issues: list[Issue] = []
    if _is_long(limits, *extents) or _is_early(connection, capture_id, limits, *extents[:2], events):
        annotations.into_table()
        issues += _judge(connection, capture_id, _Ranges("temp.annotation_in", "true"))
    events.graph_launches = found[2]
    if found[2]:
        issues += graph_launches.without_kernels(connection, capture_id)
    _write(connection, capture_id, issues)
    return issues


def renew(connection: duckdb.DuckDBPyConnection, even_if_unchanged: bool = False) -> None:
    """Judge all captures of the file again if the bounds have changed, and derive what follows from that.

    Call inside a transaction.
    """
    if not even_if_unchanged and not are_changed(connection):
        return
    from tracedb.derive import critical_segment, overlapping_kernel  # import numpy, which reports do without

    captures = connection.execute("SELECT capture_id FROM main.capture ORDER BY capture_id").fetchall()
    reasons = ", ".join(f"'{reason}'" for reason in REASONS)
    for table in ("kernel_event", "launch", "annotation"):
        connection.execute(f"UPDATE main.{table} SET time_fault = NULL WHERE time_fault IN ({reasons})")
    connection.execute("DELETE FROM main.clock_fault")
    connection.execute("DELETE FROM main.unrecorded_span")
    codes = ", ".join(f"'{code}'" for code in CODES)
    connection.execute(f"DELETE FROM main.ingest_issue WHERE code IN ({codes})")
    limits = bounds(connection)
    for (capture_id,) in captures:
        _mark_again(connection, capture_id, limits)
    overlapping_kernel.renew(connection)
    critical_segment.renew(connection)
    pending_facts.owe(connection, pending_facts.CLOCK_ALIGNMENT, [capture_id for (capture_id,) in captures])
    connection.execute("UPDATE main.time_bound SET applied_ns = limit_ns")


def _mark_again(connection: duckdb.DuckDBPyConnection, capture_id: int, limits: Mapping[str, int]) -> None:
    """Mark impossible times of a written capture that has no such marks and issues yet."""
    events, calls, graphs = _extents(connection, capture_id)
    (row,) = connection.execute(
        "SELECT count(*), min(start_ns), max(start_ns), max(duration_ns) FROM main.annotation WHERE capture_id = ?",
        [capture_id],
    ).fetchall()
    issues: list[Issue] = []
    if _is_long(limits, events, calls, Extent(*row)) or _is_early(connection, capture_id, limits, events, calls):
        issues += _judge(connection, capture_id, _Ranges("main.annotation", f"a.capture_id = {int(capture_id)}"))
    if graphs:
        issues += graph_launches.without_kernels(connection, capture_id)
    _write(connection, capture_id, issues)


def are_changed(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the facts in the file were derived with bounds other than the current ones."""
    ((count,),) = connection.execute("SELECT count(*) FROM main.time_bound WHERE limit_ns <> applied_ns").fetchall()
    return bool(count)


def bounds(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Return the current bounds, in ns."""
    return dict(connection.execute("SELECT name, limit_ns FROM main.time_bound").fetchall())


def _extents(connection: duckdb.DuckDBPyConnection, capture_id: int) -> tuple[Extent, Extent, int]:
    """Return the extents of GPU events and of calls, and the number of graph launches."""
    text = _text("time_extent", capture_id)
    found = {row[0]: row[1:] for row in connection.execute(text).fetchall()}
    return Extent(*found["event"][:4]), Extent(*found["call"][:4]), int(found["call"][4])


def _is_long(limits: Mapping[str, int], events: Extent, calls: Extent, ranges: Extent) -> bool:
    """Whether a time or duration exceeds a bound, starts of 0 may mean none, or clocks may be apart."""
    firsts = [found.first for found in (events, calls, ranges) if found.first is not None]
    lasts = [found.last for found in (events, calls, ranges) if found.last is not None]
    if not firsts or not lasts:
        return False
    shortest = min(limits["far"], limits["far_without_calls"])
    longest = max(found.longest or 0 for found in (events, calls, ranges))
    if max(lasts) - min(firsts) > shortest or longest > shortest:
        return True
    if min(firsts) <= 0 and max(lasts) > limits["near_zero"]:
        return True
    if events.first is None or calls.first is None:
        return False
    return events.first - calls.first > limits["after_launch"]


def _is_early(
    connection: duckdb.DuckDBPyConnection,
    capture_id: int,
    limits: Mapping[str, int],
    found: Extent,
    calls: Extent,
    events: Events | None = None,
) -> bool:
    """Whether some GPU event starts too long before its call; ``events`` may hold the answer."""
    if not found.rows or not calls.rows:
        return False
    if events is not None and events.extents() is not None:
        least = events.least_latency()
        return least is not None and least < -limits["before_launch"]
    text = _text("time_early", capture_id)
    ((is_early,),) = connection.execute(text).fetchall()
    return bool(is_early)


def _judge(connection: duckdb.DuckDBPyConnection, capture_id: int, ranges: _Ranges) -> list[Issue]:
    """Run the rules and return the issues."""
    statements.run(connection, _text("time_faults", capture_id, ranges))
    rows = connection.execute(_text("time_issues", capture_id, ranges)).fetchall()
    return [(code, "warning", int(count), detail) for code, count, detail in rows]


def _text(name: str, capture_id: int, ranges: _Ranges | None = None) -> str:
    """Return a query of ``sql/derive`` for a capture; ``ranges`` is for queries that read ranges."""
    places = {"{capture}": str(int(capture_id)), "{graph_launch}": GRAPH_LAUNCH}
    if ranges is not None:
        places |= {"{ranges}": ranges.table, "{of_capture}": ranges.condition}
    text = resources.text("sql", "derive", f"{name}.sql")
    for place, sql in places.items():
        text = text.replace(place, sql)
    return text


def _write(connection: duckdb.DuckDBPyConnection, capture_id: int, issues: list[Issue]) -> None:
    for code, severity, count, detail in issues:
        connection.execute(INSERT_ISSUE, [capture_id, code, severity, count, detail])
