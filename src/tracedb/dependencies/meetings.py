"""Kernels in which ranks meet, collectives and messages, on the common clock of their recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import duckdb
import numpy as np

MESSAGE = "m "
"""How the name of a call begins that is a message."""


class Member(NamedTuple):
    """A rank's kernel of a call."""

    call: str
    """The call, which several ranks have part in: a collective, or a message with its send and receive."""
    capture_id: int
    event_id: int
    start: int
    """Start of the kernel on the common clock, in ns."""


class Met(NamedTuple):
    """Where the ranks of a recording meet."""

    members: list[Member]
    shift: dict[int, int]
    """What to add to each capture's times, in ns, to get the common clock."""


def read(connection: duckdb.DuckDBPyConnection, captures: Sequence[int]) -> Met | None:
    """Return where captures meet; None if one of them meets no other, or if there is no common clock."""
    rows = connection.execute(MET, [list(captures)]).fetchall()
    shifts: dict[int, list[int]] = {capture: [] for capture in captures}
    for _, capture, _, start, common in rows:
        shifts[capture].append(common - start)
    if not all(shifts.values()):
        return None
    # Clocks drift by less than their alignment is off, so that one shift for all times keeps durations exact.
    shift = {capture: int(np.median(found)) for capture, found in shifts.items()}
    return Met([Member(call, capture, event, start + shift[capture]) for call, capture, event, start, _ in rows], shift)


MET = """
WITH parts AS (
    SELECT 'c' || p.collective_id AS call, p.capture_id, p.event_id, p.start_ns
    FROM v1._collective_instance AS p
    UNION ALL
    SELECT concat_ws(' ', 'm', p.send_capture_id, p.send_call_id, p.recv_capture_id, p.recv_call_id) AS call,
        p.send_capture_id AS capture_id, p.send_event_id AS event_id, p.send_start_ns AS start_ns
    FROM v1.point_to_point AS p
    UNION ALL
    SELECT concat_ws(' ', 'm', p.send_capture_id, p.send_call_id, p.recv_capture_id, p.recv_call_id) AS call,
        p.recv_capture_id AS capture_id, p.recv_event_id AS event_id, p.recv_start_ns AS start_ns
    FROM v1.point_to_point AS p
)
SELECT p.call, p.capture_id, p.event_id, e.start_ns, p.start_ns AS common_ns
FROM parts AS p
INNER JOIN main.kernel_event AS e ON e.capture_id = p.capture_id AND e.event_id = p.event_id
WHERE list_contains(?::BIGINT[], p.capture_id) AND p.start_ns IS NOT NULL AND e.time_fault IS NULL
ORDER BY p.call, p.capture_id, p.event_id
"""
"""Kernels in which ranks meet, with their start on the capture's clock and on the common one."""
