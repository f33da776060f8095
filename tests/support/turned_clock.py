"""Clocks of recorded ranks: one is shifted and stretched, and both come out beside the estimate before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from tracedb.derive import clock_alignment
from tracedb.storage.connection import connect

SHIFT, PPM = 123_456_789, 20
FOUND = """SELECT a.capture_id, a.offset_ns, a.drift_ppm, a.at_ns, a.span_ns, a.calls
           FROM main.clock_alignment AS a ORDER BY a.capture_id"""
SKEWS = """SELECT set_id, collective, sequence, start_ns, skew_start_ns, last_member
           FROM v1._collective WHERE ranks > 1 ORDER BY start_ns, collective_id"""


def asked(path: Path, query: str) -> list[tuple[Any, ...]]:
    with connect(path) as connection:
        return connection.execute(query).fetchall()


def turn(path: Path, capture: int) -> int:
    """Shift the clock of a capture and let it gain, from its first event on; return when that is, in Unix time."""
    with duckdb.connect(str(path)) as connection:
        ((first, zero),) = connection.execute(
            """SELECT min(e.start_ns), any_value(c.clock_zero_unix_ns) FROM main.kernel_event AS e
               INNER JOIN main.capture AS c USING (capture_id) WHERE capture_id = ?""",
            [capture],
        ).fetchall()
        for name, column in (("kernel_event", "start_ns"), ("launch", "start_ns")):
            turned = f"{{}} + {SHIFT} + round(({{}} - {first}) * {PPM} / 1e6)::BIGINT"
            start, end = (turned.replace("{}", text) for text in (column, f"({column} + duration_ns)"))
            connection.execute(
                f"UPDATE main.{name} SET {column} = {start}, duration_ns = {end} - ({start}) WHERE capture_id = ?",
                [capture],
            )
    return int(first + zero)


def check(path: Path, capture: int) -> None:
    before = asked(path, FOUND)
    skews = asked(path, SKEWS)
    first = turn(path, capture)
    clock_alignment.align_file(path)
    after = asked(path, FOUND)
    assert [row[:3] for row in after if row[0] != capture] == [row[:3] for row in before if row[0] != capture]
    ((_, offset, drift, at, span, calls),) = [row for row in before if row[0] == capture]
    ((_, new_offset, new_drift, new_at, _, new_calls),) = [row for row in after if row[0] == capture]
    assert (new_at, new_calls) == (at, calls)
    gained = (at + offset - first) * PPM / 1e6
    assert abs(new_offset - offset - SHIFT - gained) < 100  # ns
    assert abs(new_drift - drift - PPM) * span / 2 / 1e6 < 100  # ns at the ends of the span
    turned = asked(path, SKEWS)
    assert [row[:3] for row in turned] == [row[:3] for row in skews]
    off = [abs(new[4] - old[4]) for new, old in zip(turned, skews, strict=True)]
    # The estimate is exact; a drift within the noise of the ends is not applied, and is left at the ends of the span.
    assert max(off) < 1_000 + PPM * span / 2 / 1e6
