"""Several recordings of one rank: which belong together, so that collectives of different ones never match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from views.collective_rows import Insert, calls

Ask = Callable[[str], list[tuple[Any, ...]]]

CYCLES = "SELECT cycle FROM v1._capture_set ORDER BY capture_id"
MATCHED = (
    "SELECT cycle, match_rule, ranks, latency_ns, wait_ns, last_rank FROM v1.collectives ORDER BY cycle, latency_ns"
)


def recorded(insert: Insert, *recordings: tuple[int, int, int], paths: Sequence[str] = (), **shared: Any) -> None:
    """Captures 0, 1, … of (rank, start, duration), with one all-reduce of two ranks each."""
    for number, (rank, start, duration) in enumerate(recordings):
        path = paths[number] if paths else f"trace.{start}.{number}.json"
        insert("capture", "capture_id rank path", (number, rank, path), labels={}, source="torch")
        sequence = shared.get("sequence")
        calls(insert, (number, 1, start, duration, "allreduce", 100, "0", "[0, 1]", 2, sequence), size=2)


def steps(insert: Insert, *numbers: Sequence[int]) -> None:
    """Steps of captures 0, 1, …"""
    for capture, marked in enumerate(numbers):
        for step in marked:
            insert("annotation", "annotation_id name", (step, f"ProfilerStep#{step}"), capture_id=capture, style="user",
                   start_ns=0, duration_ns=9)  # fmt: skip


def cycles(ask: Ask) -> list[Any]:
    return [cycle for (cycle,) in ask(CYCLES)]


@pytest.mark.parametrize("sequence", [None, 1])
def test_two_cycles_of_two_ranks(insert: Insert, ask: Ask, shuffled: Callable[[], None], sequence: int | None) -> None:
    """Sequence numbers that begin anew in the second cycle do not match it with the first."""
    recorded(insert, (0, 1_000, 100), (0, 90_000, 100), (1, 1_010, 90), (1, 90_020, 80), sequence=sequence)
    rule = "order" if sequence is None else "sequence"
    right = [(1, rule, 2, 90, {0: 10, 1: 0}, 1), (2, rule, 2, 80, {0: 20, 1: 0}, 1)]
    assert ask(MATCHED) == right
    shuffled()
    assert ask(MATCHED) == right
    columns = "cycle, rank, times_last, wait_caused_ns"
    assert ask(f"SELECT {columns} FROM v1.stragglers ORDER BY cycle, rank") == [
        (1, 0, 0, 0), (1, 1, 1, 10), (2, 0, 0, 0), (2, 1, 1, 20),
    ]  # fmt: skip
    assert ask("SELECT cycle, calls, latency_total_ns FROM v1.collective_summary ORDER BY cycle") == [
        (1, 1, 90),
        (2, 1, 80),
    ]
    average = "SELECT cycle, ranks, mean_ns FROM v1.gpu_timeline_average WHERE part = 'busy' ORDER BY cycle"
    assert ask(average) == [(1, 2, 95.0), (2, 2, 90.0)]


def test_one_recording_of_each_rank_has_no_cycle(insert: Insert, ask: Ask) -> None:
    recorded(insert, (0, 0, 100), (1, 90_000, 100))
    assert cycles(ask) == [None, None]


def test_a_rank_that_lacks_a_cycle(insert: Insert, ask: Ask) -> None:
    recorded(insert, (0, 0, 100), (0, 9_000, 100), (0, 20_000, 100), (1, 9_010, 90), (1, 20_010, 90))
    assert cycles(ask) == [1, 2, 3, 2, 3]


@pytest.mark.parametrize("apart", [60, 5_000, 3_600_000_000_000])
def test_clocks_that_are_apart(insert: Insert, ask: Ask, apart: int) -> None:
    """Cycles follow each other closely, and the second rank's clock is ahead by half of one or by far more."""
    recorded(insert, (0, 0, 100), (0, 110, 100), (1, apart, 100), (1, 110 + apart, 100))
    assert cycles(ask) == [1, 2, 1, 2]


def test_steps_tell_where_times_do_not(insert: Insert, ask: Ask) -> None:
    """Each recording's clock begins at zero; the second rank has only the second cycle and a third one."""
    recorded(insert, (0, 0, 100), (0, 0, 100), (1, 0, 100), (1, 0, 100))
    steps(insert, (2, 3), (8, 9), (14, 15), (8, 9))
    assert cycles(ask)[1] == cycles(ask)[3]
    assert len(set(cycles(ask))) == 3


def test_equal_steps_of_two_runs_are_told_by_time(insert: Insert, ask: Ask) -> None:
    recorded(insert, (0, 0, 100), (0, 9_000, 100), (1, 10, 100), (1, 9_010, 100))
    steps(insert, (2, 3), (2, 3), (2, 3), (2, 3))
    assert cycles(ask) == [1, 2, 1, 2]


def test_folders_tell_runs_at_the_same_time(insert: Insert, ask: Ask) -> None:
    paths = ("b/rank0.json", "a/rank0.json", "a/rank1.json", "b/rank1.json")
    recorded(insert, (0, 0, 100), (0, 10, 90), (1, 10, 90), (1, 0, 100), paths=paths)
    assert cycles(ask) == [1, 2, 2, 1]


def test_nothing_tells(insert: Insert, ask: Ask) -> None:
    """Two jobs side by side, their traces named by time and number alone."""
    recorded(insert, (0, 0, 100), (0, 50, 100), (1, 0, 100), (1, 50, 100))
    assert cycles(ask) == [None] * 4
    assert {row[1] for row in ask(MATCHED)} == {"duplicate rank"}


def test_captures_without_gpu_work_are_no_cycle(insert: Insert, ask: Ask) -> None:
    recorded(insert, (0, 0, 100), (1, 0, 100))
    insert("capture", "capture_id rank", (2, 0), labels={}, source="torch", status="no_gpu_activity")
    assert cycles(ask) == [None] * 3
    assert [row[:3] for row in ask(MATCHED)] == [(None, "order", 2)]
