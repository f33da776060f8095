"""``main.clock_alignment``: offsets and drifts of rank clocks, from collectives that all ranks end together."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import pytest

from tracedb.derive import clock_alignment

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]

ZERO = 1_790_857_026 * 10**9
FOUND = """SELECT capture_id, reference_capture_id, at_ns, offset_ns, drift_ppm, uses_drift, calls, span_ns,
                  residual_median_ns, residual_p99_ns FROM main.clock_alignment ORDER BY capture_id"""


def run(insert: Insert, *groups: tuple[str, Sequence[int]], calls: int = 40, noise: int = 4_000) -> None:
    """Collectives about 3 ms apart in each group, whose ends differ by noise, every ninth by ten times as much."""
    dice, gaps = random.Random(1), random.Random(2)
    ranks = sorted({rank for _, members in groups for rank in members})
    insert("capture", "capture_id rank", *[(rank, rank) for rank in ranks], source="torch", clock_zero_unix_ns=ZERO)
    for place, (name, members) in enumerate(groups):
        rows = []
        for number in range(calls):
            first = number * 3_000_000 + (gaps.randrange(900_000) if 0 < number < calls - 1 else 0)
            for rank in members:
                start = first + dice.randrange(500_000)
                jitter = dice.randint(-noise, noise) * (10 if number % 9 == 5 else 1)
                rows.append((rank, 1_000 * place + number, start, first + 700_000 + jitter - start))
        insert("kernel_event", "capture_id event_id start_ns duration_ns", *rows, kind="kernel", name="nccl",
               device_id=0, collective="allreduce", group_name=name, group_ranks=str(list(members)),
               group_size=len(members))  # fmt: skip


def turn_clock(db: duckdb.DuckDBPyConnection, rank: int, shift: int, ppm: int) -> None:
    """Let the clock of a rank be ahead by ``shift`` at 0 and gain ``ppm``."""
    stretched = f"({{}} + {shift} + round({{}} * {ppm} / 1e6)::BIGINT)"
    start, end = (stretched.replace("{}", text) for text in ("start_ns", "(start_ns + duration_ns)"))
    db.execute(
        f"UPDATE main.kernel_event SET start_ns = {start}, duration_ns = {end} - {start} WHERE capture_id = {rank}"
    )


WORLD = ("0", (0, 1, 2, 3))


@pytest.mark.parametrize(("shift", "ppm"), [(0, 0), (25_000_000, 0), (-7_777, 150), (3 * 10**12, -400)])
def test_a_shifted_and_stretched_clock_is_found(
    db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask, shift: int, ppm: int
) -> None:
    """Relative to the estimate before, to better than 1 µs, whatever the noise."""
    run(insert, WORLD)
    clock_alignment.align(db)
    before = {row[0]: row for row in ask(FOUND)}
    assert [row[:2] for row in before.values()] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert all(abs(row[3]) < 3_000 and not row[5] and row[6] == 40 for row in before.values())
    turn_clock(db, 2, shift, ppm)
    clock_alignment.align(db)
    after = {row[0]: row for row in ask(FOUND)}
    assert [after[rank][2:] for rank in (1, 3)] == [before[rank][2:] for rank in (1, 3)]
    middle = after[2][2] - ZERO
    assert abs(after[2][3] - before[2][3] - shift - middle * ppm / 1e6) < 50
    half = after[2][7] / 2
    assert abs(after[2][4] - before[2][4] - ppm) * 1e-6 * half < 50
    assert after[2][5] == (ppm != 0)
    assert after[2][8] < 6_000


def test_views_use_it(db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask) -> None:
    run(insert, WORLD)
    clock_alignment.align(db)
    query = "SELECT skew_start_ns, last_rank, clock_residual_ns FROM v1.collectives ORDER BY start_ns"
    before = ask(query)
    turn_clock(db, 1, 9_000_000, 300)
    clock_alignment.align(db)
    after = ask(query)
    assert len(after) == 40 and all(abs(a[0] - b[0]) < 6_000 for a, b in zip(before, after, strict=True))
    assert 0 < after[0][2] < 10_000


def test_clocks_are_joined_over_subgroups(db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask) -> None:
    """Pairs in rows and columns: rank 3 never meets rank 0."""
    run(insert, ("1", (0, 1)), ("1", (2, 3)), ("2", (0, 2)), ("2", (1, 3)), noise=100)
    for rank, shift, ppm in ((1, 5_000_000, 200), (2, -3_000, 0), (3, 70_000, -100)):
        turn_clock(db, rank, shift, ppm)
    clock_alignment.align(db)
    found = {row[0]: row for row in ask(FOUND)}
    assert {row[1] for row in found.values()} == {0}
    for rank, shift, ppm in ((0, 0, 0), (1, 5_000_000, 200), (2, -3_000, 0), (3, 70_000, -100)):
        middle = found[rank][2] - ZERO
        assert abs(found[rank][3] - shift - middle * ppm / 1e6) < 200, rank
        assert abs(found[rank][4] - ppm) < 5, rank


def test_groups_that_never_meet_have_references_of_their_own(
    db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask
) -> None:
    run(insert, ("1", (0, 1)), ("1", (2, 3)))
    clock_alignment.align(db)
    assert [row[:2] for row in ask(FOUND)] == [(0, 0), (1, 0), (2, 2), (3, 2)]


def test_few_calls_tell_an_offset_and_no_drift(db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask) -> None:
    run(insert, ("0", (0, 1)), calls=3, noise=0)
    turn_clock(db, 1, 500, 0)
    clock_alignment.align(db)
    ((*_, offset, drift, uses_drift, calls, span, median, p99),) = ask(FOUND)[1:]
    assert (offset, drift, uses_drift, calls, span, median, p99) == (500, None, False, 3, 6_000_000, 0, 0)


def test_of_many_calls_some_are_compared(db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask) -> None:
    run(insert, ("0", (0, 1)), calls=300, noise=1_000)
    turn_clock(db, 1, 0, 20)
    clock_alignment.align(db)
    ((*_, drift, uses_drift, calls, _, _, _),) = ask(FOUND)[1:]
    assert (abs(drift - 20) < 1, uses_drift, calls) == (True, True, 300)


def test_nothing_to_align(db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask) -> None:
    clock_alignment.align(db)
    run(insert, ("0", (0,)))
    insert("capture", "capture_id rank", (7, 7), source="torch")
    clock_alignment.align(db)
    assert ask(FOUND) == []
    tables = ask("SELECT table_name FROM duckdb_tables() WHERE temporary")
    assert tables == []
