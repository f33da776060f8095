"""``v1.collectives``: matching if ranks name groups differently, recorded other iterations, or lost a call."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from tracedb.derive import clock_alignment

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Rows = list[dict[str, Any]]
Cases = Callable[..., list[dict[str, list[Any]]]]
Found = dict[str, Rows]

ZERO = 1_790_857_026 * 10**9
MS = 1_000_000
QUERY = "SELECT labels['case'], c FROM v1.collectives AS c ORDER BY start_ns, collective_id"


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


def named_by_each_rank(insert: Insert) -> None:
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


def shared_names(insert: Insert, listed: str) -> None:
    """Rank 1 lacks the first group; and of a list that was cut short nothing is concluded."""
    captures(insert, 0, 1)
    for place, name in enumerate(("2", "3")):
        calls(
            insert, 0, (100 * place, 100 * place + 10), first=place, group_name=name, group_size=2, group_ranks=listed
        )
    shared = "3" if listed == "[0, 1]" else "4"
    calls(insert, 1, (100, 120), group_name=shared, group_size=2, group_ranks=listed)


def two_ranks(insert: Insert, first: Sequence[int], second: Sequence[int], shift: int = 0) -> None:
    """The parts of two ranks in calls that end at such times."""
    captures(insert, 0, 1)
    run(insert, 0, first)
    run(insert, 1, second, shift=shift)


def out_of_place(insert: Insert, has_more: bool) -> None:
    """Four ranks in a call, and two of them in another one."""
    captures(insert, 0, 1, 2, 3)
    insert("clock_alignment", "capture_id", *[(rank,) for rank in range(4)], reference_capture_id=0, at_ns=ZERO,
           offset_ns=0, drift_ppm=0.0, uses_drift=False, calls=9, span_ns=9, residual_median_ns=1_000)  # fmt: skip
    shared: dict[str, Any] = {"group_name": "0", "group_size": 4, "group_ranks": "[0, 1, 2, 3]", "sequence": 1}
    calls(insert, 0, (0, MS), **shared)
    calls(insert, 1, (10, 6 * MS), **shared)
    for rank in (2, 3):
        calls(insert, rank, (5 * MS, 6 * MS), **shared)
    if has_more:
        second = {**shared, "sequence": 2}
        calls(insert, 0, (10 * MS, 11 * MS), first=9, **second)
        calls(insert, 1, (11 * MS + 109_999, 12 * MS), first=9, **second)  # within what clocks may be off


EVEN = ends(12, wobble=0)
LISTS = ("[0, 1]", "[0, ...]")
WRITERS: dict[str, Callable[[Insert], None]] = {
    "named by each rank": named_by_each_rank,
    **{f"shared names {listed}": partial(shared_names, listed=listed) for listed in LISTS},
    "even": partial(two_ranks, first=EVEN[:10], second=EVEN[2:]),
    "far apart": partial(two_ranks, first=ends(20), second=ends(20), shift=10**12),
    "none in both": partial(two_ranks, first=ends(40)[:20], second=ends(40)[20:]),
    "fewer calls": partial(two_ranks, first=ends(20), second=ends(20)[3:18], shift=10**12),
    "out of place": partial(out_of_place, has_more=False),
    "out of place, two calls": partial(out_of_place, has_more=True),
}


@pytest.fixture(scope="module")
def recorded(cases: Cases) -> Found:
    """The calls of each case, on the clocks as recorded."""
    (found,) = cases(WRITERS, QUERY)
    return found


def columns(rows: Rows, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def ranks(rows: Rows) -> list[tuple[Any, ...]]:
    return columns(rows, "ranks", "match_rule")


def test_groups_that_each_rank_names_its_own_way(recorded: Found) -> None:
    """Equal lists of ranks, no name in common: first with first, second with second, by number or by first use."""
    assert sorted(columns(recorded["named by each rank"], "group_ranks", "latency_ns", "ranks", "match_rule")) == [
        ("[0, 1]", 10, 2, "sequence"),
        ("[0, 1]", 11, 2, "sequence"),
        ("[2, 3]", 20, 2, "order"),
        ("[2, 3]", 21, 2, "order"),
    ]


@pytest.mark.parametrize(
    ("listed", "right"), [("[0, 1]", [(1, "unmatched"), (2, "order")]), ("[0, ...]", [(1, "unmatched")] * 3)]
)
def test_names_that_some_ranks_share_part_the_groups_of_a_list(
    recorded: Found, listed: str, right: list[tuple[int, str]]
) -> None:
    assert ranks(recorded[f"shared names {listed}"]) == right


def test_even_iterations_are_told_by_the_clock(recorded: Found) -> None:
    assert [row["ranks"] for row in recorded["even"]] == [1, 1, *[2] * 8, 1, 1]


def test_clocks_far_apart_with_as_many_calls(recorded: Found) -> None:
    assert ranks(recorded["far apart"]) == [(2, "order")] * 20


def test_iterations_of_which_none_is_in_both(recorded: Found) -> None:
    assert ranks(recorded["none in both"]) == [(1, "unmatched")] * 40


def test_fewer_calls_on_a_clock_that_is_off(recorded: Found) -> None:
    assert sorted(ranks(recorded["fewer calls"])) == [(1, "unmatched")] * 5 + [(2, "order")] * 15


def test_one_of_four_ranks_is_out_of_place(recorded: Found) -> None:
    """The others stay together, and a rank that comes early and waits belongs to them."""
    alone, others = sorted(recorded["out of place"], key=lambda row: int(row["ranks"]))
    assert columns([alone, others], "ranks", "match_rule", "wait_ns") == [
        (1, "unmatched", None),
        (3, "sequence", {1: 5 * MS - 10, 2: 0, 3: 0}),
    ]
    assert [row["ranks"] for row in recorded["out of place, two calls"] if row["sequence"] == 2] == [2]


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


OFF = [0, 50 * MS, -7 * 10**15]
LOST = [5, 15]
ALIGNED: dict[str, Callable[[Insert], None]] = {
    **{
        f"later by two, off {off}": partial(two_ranks, first=ends(22)[:20], second=ends(22)[2:], shift=off)
        for off in OFF
    },
    **{f"lost {n}": partial(two_ranks, first=ends(20), second=ends(20)[:n] + ends(20)[n + 1 :]) for n in LOST},
    "groups": tensor_and_data,
    "late in groups": partial(tensor_and_data, late=5),
}
STRAGGLERS = """SELECT labels['case'], rank, calls, times_last, wait_caused_ns FROM v1.stragglers
                WHERE is_straggler AND labels['case'] LIKE '%groups' ORDER BY ALL"""
QUERIES = (
    QUERY,
    STRAGGLERS,
    """SELECT c.labels['case'], c.rank, a.offset_ns, a.calls FROM main.clock_alignment AS a
       INNER JOIN main.capture AS c ON c.capture_id = a.capture_id ORDER BY ALL""",
    """SELECT labels['case'], collective, group_size, calls, unmatched_calls FROM v1.collective_summary ORDER BY ALL""",
)


@pytest.fixture(scope="module")
def aligned(cases: Cases) -> list[dict[str, list[Any]]]:
    """The calls, stragglers, alignment and summary of each case, with aligned clocks."""
    return cases(ALIGNED, *QUERIES, prepare=clock_alignment.align)


@pytest.mark.parametrize("off", OFF)
def test_a_rank_that_recorded_later_iterations(aligned: list[dict[str, list[Any]]], off: int) -> None:
    """As many calls each, but rank 1 began two calls later; its clock is right, or off by more than a call."""
    found, _, alignment, _ = (answer[f"later by two, off {off}"] for answer in aligned)
    right = [(1, "unmatched")] * 2 + [(2, "order")] * 18 + [(1, "unmatched")] * 2
    assert sorted(ranks(found)) == sorted(right)
    assert max(row["skew_end_ns"] for row in found if row["skew_end_ns"] is not None) < 20_000
    ((offset, matched),) = [row[1:] for row in alignment if row[0] == 1]
    assert abs(offset - off) < 10_000 and matched == 18


def test_the_order_of_rows_does_not_matter(aligned: list[dict[str, list[Any]]], cases: Cases) -> None:
    turned = cases(ALIGNED, QUERY, STRAGGLERS, prepare=clock_alignment.align, is_turned=True)
    for case in ALIGNED:
        assert sorted(ranks(turned[0][case])) == sorted(ranks(aligned[0][case]))
    assert turned[1] == aligned[1]


@pytest.mark.parametrize("lost", LOST)
def test_a_lost_call_in_the_middle(aligned: list[dict[str, list[Any]]], lost: int) -> None:
    """Beyond it the order is one off; on aligned clocks no such pair is one call, so none is said to be."""
    found = columns(aligned[0][f"lost {lost}"], "ranks", "skew_end_ns", "match_rule")
    kept = max(lost, 19 - lost)
    assert [ranks for ranks, *_ in found].count(2) == kept
    assert all(skew < 20_000 for ranks, skew, _ in found if ranks == 2)
    assert {rule for ranks, _, rule in found if ranks == 1} == {"unmatched"}


def test_a_layout_of_several_groups(aligned: list[dict[str, list[Any]]]) -> None:
    """Groups are named by each rank on its own; nothing of one group is taken for another's."""
    found, late, alignment, summary = (answer["groups"] for answer in aligned)
    pairs = [(f"[{n}, {n + 1}]", "allreduce", 2, "order", 20) for n in (0, 2, 4, 6)]
    stages = [(f"[{n}, {n + 4}]", "sendrecv", 2, "order", 10) for n in range(4)]
    fours = [
        (str(list(range(n, 8, 2))), name, 4, "order", 10) for n in (0, 1) for name in ("allgather", "reduce_scatter")
    ]
    counted = Counter(columns(found, "group_ranks", "collective", "ranks", "match_rule"))
    right = [*pairs, *stages, *fours, (str(list(range(8))), "allreduce", 8, "order", 10)]
    assert sorted((*call, count) for call, count in counted.items()) == sorted(right)
    assert [row[:2] for row in alignment] == [(rank, 0) for rank in range(8)]
    assert late == []
    assert summary == [("allgather", 4, 20, 0), ("allreduce", 2, 80, 0), ("allreduce", 8, 10, 0),
                       ("reduce_scatter", 4, 20, 0), ("sendrecv", 2, 40, 0)]  # fmt: skip


def test_the_straggler_of_such_a_layout(aligned: list[dict[str, list[Any]]]) -> None:
    waiting = 10 * 600_000 * (2 * 1 + 1 + 2 * 3 + 7)
    assert aligned[1]["late in groups"] == [(5, 60, 60, waiting)]


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
