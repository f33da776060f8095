"""Caveats of how sends were matched with receives. All in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.report import shared_work

if TYPE_CHECKING:
    import duckdb

    from tracedb.report.filters import Scope


def warnings(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    """Return what is missing or uncertain about the messages between ranks."""
    query = f"""WITH chosen AS (
            SELECT s.capture_id, s.set_id FROM {scope.version}._capture_set AS s
            SEMI JOIN temp.selected_capture AS t ON t.capture_id = s.capture_id
        ),
        pairs AS (
            SELECT p.is_unequal, p.clock, p.send_capture_id <> p.recv_capture_id AS is_across
            FROM {scope.version}._message_pair AS p WHERE p.set_id IN (SELECT c.set_id FROM chosen AS c)
        )
        SELECT
            (SELECT count(*) FROM {scope.version}._message_call AS m
             WHERE m.capture_id IN (SELECT c.capture_id FROM chosen AS c)) AS calls,
            (SELECT count(*) FROM pairs) AS pairs,
            (SELECT count(*) FROM pairs AS p WHERE p.is_unequal) AS unequal,
            (SELECT count(*) FROM pairs AS p WHERE p.is_across AND p.clock = 'recorded') AS unaligned,
            (SELECT count(*) FROM pairs AS p WHERE p.is_across AND p.clock = 'incomparable') AS incomparable"""
    (found,) = shared_work.ask(connection, shared_work.reading(connection, scope, query))
    return _said(*found)


def _said(calls: int, pairs: int, unequal: int, unaligned: int, incomparable: int) -> list[str]:
    said = []
    if calls > 2 * pairs:
        said.append(
            f"{calls - 2 * pairs:,} of {calls:,} send and receive calls have no counterpart on another rank: captures "
            "are missing, or recorded other steps"
        )
    if unequal:
        said.append(
            f"{unequal:,} messages have another size on the sender than on the receiver: calls may be matched wrongly"
        )
    if incomparable:
        said.append(f"clocks cannot be compared for {incomparable:,} messages: starts and bubbles are not known")
    elif unaligned:
        said.append(
            f"clocks are not aligned for {unaligned:,} messages: no collectives connect their ranks, so that times "
            "are compared as recorded"
        )
    return said
