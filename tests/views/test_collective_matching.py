"""``v1.collectives``: matching if ranks name groups differently, recorded other iterations, or lost a call."""

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
MS = 1_000_000
RANKS = "SELECT ranks, match_rule FROM v1.collectives ORDER BY start_ns, collective_id"
LAYOUT = """SELECT group_ranks, collective, ranks, match_rule, count(*)
            FROM v1.collectives GROUP BY ALL ORDER BY ALL"""


def captures(insert: Insert, *ranks: int) -> None:
    """A capture of each rank, numbered like it, on clocks that are placed in the world."""
    insert("capture", "capture_id rank", *[(rank, rank) for rank in ranks], source="torch", clock_zero_unix_ns=ZERO)


def calls(insert: Insert, rank: int, *spans: tuple[int, int], first: int = 0, **values: Any) -> None:
    """Kernels of one rank from start to end, with numbers from ``first``."""
    given = {"kind": "kernel", "name": "nccl", "device_id": 0, "collective": "allreduce", "message_in_elements": 64}
    rows = [(first + number, start, end - start) for number, (start, end) in enumerate(spans)]
    insert("kernel_event", "event_id start_ns duration_ns", *rows, capture_id=rank, **{**given, **values})


def ends(count: int, gap: int = 3 * MS, wobble: int = MS) -> list[int]:
    """When all ranks end a call together, at uneven distances."""
    dice = random.Random(count)
    return [gap * number + (dice.randrange(wobble) if wobble else 0) for number in range(1, count + 1)]


def run(insert: Insert, rank: int, at: Sequence[int], shift: int = 0, **values: Any) -> None:
    """A rank's part in calls that end at such times: it comes up to 0.5 ms before, and ends 5 µs about that."""
    dice = random.Random(rank)
    spans = [(end - 100_000 - dice.randrange(MS // 2) + shift, end + dice.randint(-5_000, 5_000) + shift) for end in at]
    calls(insert, rank, *spans, **{"group_name": "0", "group_size": 2, "group_ranks": "[0, 1]", **values})


def test_groups_that_each_rank_names_its_own_way(insert: Insert, ask: Ask) -> None:
    """Equal lists of ranks, no name in common: first with first, second with second, by number or by first use."""
    captures(insert, 0, 1, 2, 3)
    for rank in (0, 1):
        names = ("9", "10") if rank else ("2", "3")
        for place, name in enumerate(names):
            calls(insert, rank, (100 * place, 100 * place + 10 + place), first=place, group_name=name, group_size=2,
                  group_ranks="[0, 1]", sequence=1)  # fmt: skip
    for rank in (2, 3):
        for place, name in enumerate("ba"):
            calls(insert, rank, (500 + 100 * place, 520 + 101 * place), first=5 + place, group_name=f"{name}{rank}",
                  group_size=2, group_ranks="[2, 3]")  # fmt: skip
    assert ask("SELECT group_ranks, latency_ns, ranks, match_rule FROM v1.collectives ORDER BY ALL") == [
        ("[0, 1]", 10, 2, "sequence"),
        ("[0, 1]", 11, 2, "sequence"),
        ("[2, 3]", 20, 2, "order"),
        ("[2, 3]", 21, 2, "order"),
    ]


@pytest.mark.parametrize("listed", ["[0, 1]", "[0, ...]"])
def test_names_that_some_ranks_share_part_the_groups_of_a_list(insert: Insert, ask: Ask, listed: str) -> None:
    """Rank 1 lacks the first group; and of a list that was cut short nothing is concluded."""
    captures(insert, 0, 1)
    for place, name in enumerate(("2", "3")):
        calls(
            insert, 0, (100 * place, 100 * place + 10), first=place, group_name=name, group_size=2, group_ranks=listed
        )
    shared = "3" if listed == "[0, 1]" else "4"
    calls(insert, 1, (100, 120), group_name=shared, group_size=2, group_ranks=listed)
    right = [(1, "unmatched"), (2, "order")] if shared == "3" else [(1, "unmatched")] * 3
    assert ask(RANKS) == right


@pytest.mark.parametrize("off", [0, 50 * MS, -7 * 10**15])
def test_a_rank_that_recorded_later_iterations(
    db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask, shuffled: Callable[[], None], off: int
) -> None:
    """As many calls each, but rank 1 began two calls later; its clock is right, or off by more than a call."""
    captures(insert, 0, 1)
    at = ends(22)
    run(insert, 0, at[:20])
    run(insert, 1, at[2:], shift=off)
    clock_alignment.align(db)
    right = [(1, "unmatched")] * 2 + [(2, "order")] * 18 + [(1, "unmatched")] * 2
    assert sorted(ask(RANKS)) == sorted(right)
    assert ask("SELECT max(skew_end_ns) < 20000 FROM v1.collectives") == [(True,)]
    ((offset, matched),) = ask("SELECT offset_ns, calls FROM main.clock_alignment WHERE capture_id = 1")
    assert abs(offset - off) < 10_000 and matched == 18
    shuffled()
    assert sorted(ask(RANKS)) == sorted(right)


def test_even_iterations_are_told_by_the_clock(insert: Insert, ask: Ask) -> None:
    captures(insert, 0, 1)
    at = ends(12, wobble=0)
    run(insert, 0, at[:10])
    run(insert, 1, at[2:])
    assert [ranks for ranks, _ in ask(RANKS)] == [1, 1, *[2] * 8, 1, 1]


def test_clocks_far_apart_with_as_many_calls(insert: Insert, ask: Ask) -> None:
    captures(insert, 0, 1)
    run(insert, 0, ends(20))
    run(insert, 1, ends(20), shift=10**12)
    assert ask(RANKS) == [(2, "order")] * 20


def test_iterations_of_which_none_is_in_both(insert: Insert, ask: Ask) -> None:
    captures(insert, 0, 1)
    at = ends(40)
    run(insert, 0, at[:20])
    run(insert, 1, at[20:])
    assert ask(RANKS) == [(1, "unmatched")] * 40


def test_fewer_calls_on_a_clock_that_is_off(insert: Insert, ask: Ask) -> None:
    captures(insert, 0, 1)
    at = ends(20)
    run(insert, 0, at)
    run(insert, 1, at[3:18], shift=10**12)
    assert sorted(ask(RANKS)) == [(1, "unmatched")] * 5 + [(2, "order")] * 15


@pytest.mark.parametrize("lost", [5, 15])
def test_a_lost_call_in_the_middle(db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask, lost: int) -> None:
    """Beyond it the order is one off; on aligned clocks no such pair is one call, so none is said to be."""
    captures(insert, 0, 1)
    at = ends(20)
    run(insert, 0, at)
    run(insert, 1, at[:lost] + at[lost + 1 :])
    clock_alignment.align(db)
    found = ask("SELECT ranks, skew_end_ns, match_rule FROM v1.collectives ORDER BY start_ns")
    kept = max(lost, 19 - lost)
    assert [ranks for ranks, *_ in found].count(2) == kept
    assert all(skew < 20_000 for ranks, skew, _ in found if ranks == 2)
    assert {rule for ranks, _, rule in found if ranks == 1} == {"unmatched"}


def test_one_of_four_ranks_is_out_of_place(insert: Insert, ask: Ask) -> None:
    """The others stay together, and a rank that comes early and waits belongs to them."""
    captures(insert, 0, 1, 2, 3)
    insert("clock_alignment", "capture_id", *[(rank,) for rank in range(4)], reference_capture_id=0, at_ns=ZERO,
           offset_ns=0, drift_ppm=0.0, uses_drift=False, calls=9, span_ns=9, residual_median_ns=1_000)  # fmt: skip
    shared: dict[str, Any] = {"group_name": "0", "group_size": 4, "group_ranks": "[0, 1, 2, 3]", "sequence": 1}
    calls(insert, 0, (0, MS), **shared)
    calls(insert, 1, (10, 6 * MS), **shared)
    for rank in (2, 3):
        calls(insert, rank, (5 * MS, 6 * MS), **shared)
    waits = ask("SELECT ranks, match_rule, wait_ns FROM v1.collectives ORDER BY ranks")
    assert waits == [(1, "unmatched", None), (3, "sequence", {1: 5 * MS - 10, 2: 0, 3: 0})]
    calls(insert, 0, (10 * MS, 11 * MS), first=9, **{**shared, "sequence": 2})
    calls(
        insert, 1, (11 * MS + 109_999, 12 * MS), first=9, **{**shared, "sequence": 2}
    )  # within what clocks may be off
    assert ask("SELECT ranks FROM v1.collectives WHERE sequence = 2") == [(2,)]


def tensor_and_data(insert: Insert, late: int | None = None, iterations: int = 10) -> None:
    """Eight ranks: pairs of tensor parallelism, fours of data parallelism, a pipeline of two, and all together.

    Each iteration: two all-reduces in the pair, a send to the other stage, a reduce-scatter and an all-gather in the
    four, an all-reduce of all. Rank ``late`` comes 0.6 ms late to every one.
    """
    captures(insert, *range(8))
    for rank in range(8):
        pair = [rank // 2 * 2, rank // 2 * 2 + 1]
        four = list(range(rank % 2, 8, 2))
        stages = sorted((rank, (rank + 4) % 8))
        plan = [("allreduce", pair), ("allreduce", pair), ("send" if rank < 4 else "recv", stages),
                ("reduce_scatter", four), ("allgather", four), ("allreduce", list(range(8)))]  # fmt: skip
        spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for number in range(iterations):
            for place, (name, group) in enumerate(plan):
                end = (number * len(plan) + place + 1) * MS
                start = end - (100_000 if rank == late else 700_000 if late in group else 100_000 + 1_000 * rank)
                spans.setdefault((name, str(group)), []).append((start, end))
        for place, ((name, listed), parts) in enumerate(spans.items()):
            calls(insert, rank, *parts, first=100 * place, collective=name, group_ranks=listed,
                  group_size=len(listed.split(",")), group_name=str(place + rank))  # fmt: skip


def test_a_layout_of_several_groups(db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask) -> None:
    """Groups are named by each rank on its own; nothing of one group is taken for another's."""
    tensor_and_data(insert)
    clock_alignment.align(db)
    pairs = [(f"[{n}, {n + 1}]", "allreduce", 2, "order", 20) for n in (0, 2, 4, 6)]
    stages = [(f"[{n}, {n + 4}]", "sendrecv", 2, "order", 10) for n in range(4)]
    fours = [
        (str(list(range(n, 8, 2))), name, 4, "order", 10) for n in (0, 1) for name in ("allgather", "reduce_scatter")
    ]
    assert ask(LAYOUT) == sorted([*pairs, *stages, *fours, (str(list(range(8))), "allreduce", 8, "order", 10)])
    assert ask("SELECT count(*), max(abs(offset_ns)) FROM main.clock_alignment") == [(8, 0)]
    assert ask("SELECT rank FROM v1.stragglers WHERE is_straggler") == []
    summary = ask("SELECT collective, group_size, calls, unmatched_calls FROM v1.collective_summary ORDER BY ALL")
    assert summary == [("allgather", 4, 20, 0), ("allreduce", 2, 80, 0), ("allreduce", 8, 10, 0),
                       ("reduce_scatter", 4, 20, 0), ("sendrecv", 2, 40, 0)]  # fmt: skip


def test_the_straggler_of_such_a_layout(
    db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask, shuffled: Callable[[], None]
) -> None:
    tensor_and_data(insert, late=5)
    clock_alignment.align(db)
    query = "SELECT rank, calls, times_last, wait_caused_ns FROM v1.stragglers WHERE is_straggler"
    waiting = 10 * 600_000 * (2 * 1 + 1 + 2 * 3 + 7)
    assert ask(query) == [(5, 60, 60, waiting)]
    shuffled()
    assert ask(query) == [(5, 60, 60, waiting)]


def test_lists_of_ranks_are_numbered_once_and_kernels_carry_the_number(insert: Insert, ask: Ask) -> None:
    """A list of 1,000 ranks has 5,000 characters: no step of the matching repeats it for every kernel."""
    captures(insert, 0, 1, 2, 3)
    lists = ("[2, 3]", "[10, 20, ...]", "[0, 1]")
    for rank in range(4):
        for place, listed in enumerate((lists[rank < 2 and 2], lists[1])):
            at = 100 * place + 10_000 * (rank // 2)
            calls(insert, rank, (at, at + 20), first=place, group_name="7", group_size=2, group_ranks=listed)
    assert ask("SELECT list_id, group_ranks, is_shortened FROM v1._group_list ORDER BY ALL") == [
        (1, "[0, 1]", False), (2, "[10, 20, ...]", True), (3, "[2, 3]", False),
    ]  # fmt: skip
    for view in ("_collective_kernel", "_collective_match", "_collective_member"):
        columns = {name for name, *_ in ask(f"DESCRIBE v1.{view}")}
        assert "list_id" in columns and "group_ranks" not in columns
    found = ask("SELECT group_ranks, count(*), sum(ranks) FROM v1.collectives GROUP BY ALL ORDER BY ALL")
    assert [(listed, ranks) for listed, _, ranks in found] == [("[0, 1]", 2), ("[10, 20, ...]", 4), ("[2, 3]", 2)]
