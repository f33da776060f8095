"""``v1.stragglers``: which rank is late to collectives, and how much waiting it causes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]
Cases = Callable[..., list[dict[str, list[Any]]]]
Rows = list[dict[str, Any]]

PARTS = """rank, calls, late_ns, times_last, times_last_percent, margin_ns, wait_caused_ns, wait_caused_percent,
           collective_ns, wait_ns, wait_percent, undecided_calls, is_straggler"""


def run(
    insert: Insert,
    calls: Sequence[Sequence[int]],
    transfer: int = 10,
    **shared: Any,
) -> None:
    """Collectives of as many ranks as starts are given for each; all end together, ``transfer`` after the last."""
    ranks = range(len(calls[0]))
    insert("capture", "capture_id rank", *[(rank, rank) for rank in ranks], source="torch")
    rows = []
    for number, starts in enumerate(calls):
        first = 100_000 * number
        rows += [(rank, number, first + starts[rank], max(starts) + transfer - starts[rank]) for rank in ranks]
    insert("kernel_event", "capture_id event_id start_ns duration_ns", *rows, kind="kernel", name="nccl",
           collective="allreduce", group_name="0", group_size=len(ranks), device_id=0, **shared)  # fmt: skip


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.stragglers") == []


def test_two_calls_of_three_ranks(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    run(insert, [(0, 20, 50), (0, 0, 40)])
    right = [
        (0, 2, 0, 0, 0.0, 0, 0, 0.0, 60 + 50, 90, 100 * 90 / 110, 0, False),
        (1, 2, 20, 0, 0.0, 0, 0, 0.0, 40 + 50, 70, 100 * 70 / 90, 0, False),
        (2, 2, 90, 2, 100.0, 30 + 40, 160, 100.0, 20, 0, 0.0, 0, False),  # two calls are too few to be named
    ]
    assert ask(f"SELECT {PARTS} FROM v1.stragglers ORDER BY rank") == right
    shuffled()
    assert ask(f"SELECT {PARTS} FROM v1.stragglers ORDER BY rank") == right


STANDING_OUT: list[tuple[list[tuple[int, int, int]], list[int]]] = [
    ([(0, 5, 90)] * 10, [2]),
    ([(0, 5, 90)] * 6, [2]),
    ([(0, 5, 90)] * 5, []),  # 3 * (1/3)^5 = 0.012: chance may explain it
    ([(0, 5, 90)] * 4 + [(90, 5, 0)] * 4 + [(0, 90, 5)] * 4, []),  # they take turns
    ([(0, 5, 90)] * 9 + [(0, 90, 5)], [2]),  # once another
    ([(0, 5, 500)] * 48 + [(0, 10, 0)] * 52, [2]),  # last in all calls with long waiting, which are under half
    ([(0, 5, 900)] * 3 + [(1, 5, 2), (2, 1, 5), (5, 2, 1)] * 20, []),  # three long waits: chance may explain them
    ([(0, 5, 900)] * 6 + [(1, 5, 2), (2, 1, 5), (5, 2, 1)] * 20, [2]),
    ([(0, 5, 900), (0, 90, 5), (0, 5, 900), (90, 0, 5), (0, 90, 5)] * 120, []),  # beyond chance, but last in 40 %
    ([(0, 5, 900)] + [(0, 1, 2)] * 20, []),  # begins recording late, once
    ([(0, 5, 500)] * 52 + [(0, 10, 0)] * 48, [2]),
    ([(0, 1, 2)] * 20, []),  # always last, and nobody waits to speak of
    ([(0, 5, 5)] * 20, []),  # two start last together
]


def write_standing_out(insert: Insert, calls: Sequence[Sequence[int]]) -> None:
    run(insert, calls, 10 if max(calls[0]) > 2 else 100)


def marked(insert: Insert, calls: Sequence[Sequence[int]], in_step: int, transfer: int = 10) -> None:
    """Calls of two ranks, so many in each marked step."""
    run(insert, calls, transfer)
    steps = range(-(-len(calls) // in_step))
    for capture in (0, 1):
        insert("annotation", "annotation_id name", *[(step, f"ProfilerStep#{step}") for step in steps],
               capture_id=capture, style="user", start_ns=0, duration_ns=9)  # fmt: skip
        insert("annotation_kernel", "annotation_id event_id", *[(n // in_step, n) for n in range(len(calls))],
               capture_id=capture, rule="process")  # fmt: skip


def late_in(late_steps: Sequence[int]) -> list[tuple[int, int]]:
    """Eight calls in each of three steps: rank 1 is last in all of some steps, elsewhere the ranks take turns."""
    return [(0, 90) if step in late_steps else ((0, 40), (40, 0))[n % 2] for step in range(3) for n in range(8)]


def late_by(late: Sequence[int]) -> list[tuple[int, int]]:
    """Two calls in each step: to one rank 1 is late by so much (below 0: rank 0), to the other it is not."""
    return [starts for by in late for starts in ((max(-by, 0), max(by, 0)), (2, 0))]


def pairs(insert: Insert) -> None:
    """Two pairs; in one of them the second rank is late. The other pair does not dilute that."""
    insert("capture", "capture_id rank", *[(rank, rank) for rank in range(4)], source="torch")
    for rank in range(4):
        late = 80 if rank == 1 else 0
        insert("kernel_event", "event_id start_ns", *[(n, 1_000 * n + late) for n in range(12)], capture_id=rank,
               duration_ns=100 - late, kind="kernel", name="nccl", collective="allreduce", device_id=0,
               group_name="1", group_ranks="[0, 1]" if rank < 2 else "[2, 3]", group_size=2)  # fmt: skip


LATE_STEPS: list[tuple[tuple[int, ...], int | None]] = [((0,), None), ((0, 1), None), ((1, 2), None), ((0, 1, 2), 1)]
LATE_BY: list[tuple[tuple[int, ...], int | None, float | None]] = [
    ((850, 790, 870), 1, 0.000829),  # t = 34.73 with 2 degrees of freedom, for two ranks
    ((850, -790, 870), None, 0.632),
    ((850, 30, 20), None, 0.3918),  # once, perhaps because it began recording late
    ((850, 860), None, None),
]
WRITERS: dict[str, Callable[[Insert], None]] = {
    **{f"standing out {n}": partial(write_standing_out, calls=calls) for n, (calls, _) in enumerate(STANDING_OUT)},
    **{f"late steps {late}": partial(marked, calls=late_in(late), in_step=8) for late, _ in LATE_STEPS},
    **{f"late by {late}": partial(marked, calls=late_by(late), in_step=2, transfer=100) for late, *_ in LATE_BY},
    "evidence": partial(run, calls=[(0, 90)] * 9 + [(90, 0)]),
    "eight of four ranks": partial(run, calls=[(0, 5, 900, 3)] + [(0, 5, 90, 3)] * 7),
    "agreement": partial(marked, calls=[(0, 90)] * 4 + [(90, 0)] * 9 + [(0, 90)] * 26, in_step=13),
    "late from some moment on": partial(run, calls=[(90, 0)] * 8 + [(0, 90)] * 32),
    "late throughout": partial(run, calls=[(0, 90), (0, 90), (90, 0), (0, 90), (0, 90)] * 8),
    "always late": partial(run, calls=[(0, 90)] * 8),
    "pairs": pairs,
}


@pytest.fixture(scope="module")
def judged(cases: Cases) -> dict[str, Rows]:
    """The ranks of each case, by step."""
    (found,) = cases(WRITERS, "SELECT labels['case'], s FROM v1.stragglers AS s ORDER BY step, rank")
    return found


def columns(rows: Rows, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


@pytest.mark.parametrize("case", range(len(STANDING_OUT)))
def test_who_stands_out(case: int, judged: dict[str, Rows]) -> None:
    rows, named = judged[f"standing out {case}"], STANDING_OUT[case][1]
    assert [row["rank"] for row in rows] == [0, 1, 2]
    assert [row["rank"] for row in rows if row["is_straggler"]] == named
    waits, caused = (sum(row[name] for row in rows) for name in ("wait_ns", "wait_caused_ns"))
    assert max(row["undecided_calls"] for row in rows) > 0 or waits == caused


def test_evidence(judged: dict[str, Rows]) -> None:
    """Rank 1 of two is last in 9 of 10 calls, rank 0 in one: twice the binomial tail of a fair coin."""
    assert columns(judged["evidence"], "rank", "is_straggler", "straggler_rank", "p_value") == [
        (0, False, None, pytest.approx(1.0)),
        (1, False, None, pytest.approx(2 * 11 / 1024, abs=1e-9)),
    ]


def test_eight_of_eight_calls_of_four_ranks(judged: dict[str, Rows]) -> None:
    """1 in 65,536 for a given rank, and one of four ranks could have been it."""
    names = ("rank", "is_straggler", "straggler_rank", "p_value", "recordings", "straggler_recordings")
    found = columns(judged["eight of four ranks"], *names)
    assert found[2] == (2, True, 2, pytest.approx(4 / 65_536), 1, 1)


@pytest.mark.parametrize(("late_steps", "named"), LATE_STEPS)
def test_calls_of_one_step_are_no_independent_evidence(
    judged: dict[str, Rows], late_steps: tuple[int, ...], named: int | None
) -> None:
    """Two of three steps are no evidence, though 16 of 24 calls would be beyond chance if they were independent."""
    assert {row["straggler_rank"] for row in judged[f"late steps {late_steps}"]} == {named}


def test_agreement_within_steps_by_hand(judged: dict[str, Rows]) -> None:
    """Rank 1 is last in 4, 13 and 13 of 13 calls a step: a correlation of 0.67, and 3 of 4 independent calls."""
    between = ((16 + 169 + 169) / 13 - 30 * 30 / 39) / 2
    within = (30 - (16 + 169 + 169) / 13) / 36
    effect = 1 + 12 * (between - within) / (between + 12 * within)
    assert (30 // effect, 39 // effect) == (3, 4)
    found = {(row["straggler_rank"], round(row["p_value"], 9)) for row in judged["agreement"] if row["rank"] == 1}
    assert found == {(None, 2 * (4 + 1) / 16)}


@pytest.mark.parametrize(("case", "named"), [("late from some moment on", None), ("late throughout", 1)])
def test_without_steps_consecutive_calls_are_no_independent_evidence(
    judged: dict[str, Rows], case: str, named: int | None
) -> None:
    """Both are 32 of 40 calls, 1 in 5,000 if all were independent; of the second, four of every five."""
    assert {row["straggler_rank"] for row in judged[case]} == {named}


@pytest.mark.parametrize(("late", "named", "chance"), LATE_BY)
def test_waits_of_steps_with_few_calls(
    judged: dict[str, Rows], late: tuple[int, ...], named: int | None, chance: float | None
) -> None:
    """Each step has one call to which rank 1 is late by so much (below 0: rank 0), and one to which it is not."""
    found = columns([row for row in judged[f"late by {late}"] if row["rank"] == 1], "straggler_rank", "step_p_value")
    assert found == [(named, None if chance is None else pytest.approx(chance, rel=0.01))] * len(late)


@pytest.mark.parametrize(
    ("t", "freedom", "tail"),
    [(0, 1, 0.5), (1, 1, 0.25), (9.925, 2, 0.005), (5.841, 3, 0.005), (3.169, 10, 0.005), (1.679, 45, 0.05)],
)
def test_tail_of_t_distribution(ask: Ask, t: float, freedom: int, tail: float) -> None:
    assert ask(f"SELECT v1._student_tail({t}::DOUBLE, {freedom}::BIGINT)") == [(pytest.approx(tail, rel=2e-3),)]


def test_runs_with_different_stragglers_are_not_pooled(insert: Insert, ask: Ask, report: Report) -> None:
    """Two configurations of two ranks: rank 1 is late in the first and rank 0 in the second."""
    for capture, (label, rank, is_late) in enumerate([("a", 0, 0), ("a", 1, 1), ("b", 0, 1), ("b", 1, 0)]):
        insert("capture", "capture_id rank", (capture, rank), source="torch", labels={"run": label})
        insert("kernel_event", "event_id start_ns", *[(n, 1_000 * n + 90 * is_late) for n in range(9)],
               capture_id=capture, duration_ns=100 - 90 * is_late, kind="kernel", name="nccl", collective="allreduce",
               device_id=0, group_name="0", group_size=2)  # fmt: skip
    columns = '"rank", calls, times_last, is_straggler, straggler_rank, p_value, recordings, straggler_recordings'
    assert report("stragglers", columns, by={"rank": "{base}.rank"}) == [
        (0, 18, 9, None, None, None, 2, 1),
        (1, 18, 9, None, None, None, 2, 1),
    ]
    columns = '"run", is_straggler, straggler_rank, round(p_value, 9)'
    chance = round(2 / 512, 9)
    assert report("stragglers", columns, by={"run": "{base}.labels['run']"}) == [
        ("a", True, 1, chance),
        ("b", True, 0, chance),
    ]


def test_a_row_whose_recordings_differ_has_no_straggler(insert: Insert, report: Report) -> None:
    """Rank 1 is late in run a; in run b ranks take turns. A row of both has neither that rank nor its shares."""
    for capture, (label, rank) in enumerate([("a", 0), ("a", 1), ("b", 0), ("b", 1)]):
        insert("capture", "capture_id rank", (capture, rank), source="torch", labels={"run": label})
        late = [90 * rank if label == "a" else 90 * (n % 2 == rank) for n in range(16)]
        insert("kernel_event", "event_id start_ns duration_ns",
               *[(n, 1_000 * n + by, 100 - by) for n, by in enumerate(late)], capture_id=capture, kind="kernel",
               name="nccl", collective="allreduce", device_id=0, group_name="0", group_size=2)  # fmt: skip
    columns = "is_straggler, straggler_rank, times_last_percent, wait_caused_percent, recordings, straggler_recordings"
    assert report("stragglers", columns, by={"source": "'all'"}) == [(None, None, None, None, 2, 1)]
    columns = '"run", straggler_rank, wait_caused_percent, others_wait_ns'
    assert report("stragglers", columns, by={"run": "{base}.labels['run']"}) == [
        ("a", 1, 100.0, 16 * 90),
        ("b", None, None, 16 * 90),
    ]


def test_named_for_every_rank(judged: dict[str, Rows]) -> None:
    assert columns(judged["always late"], "rank", "is_straggler", "straggler_rank", "p_value") == [
        (0, False, 1, pytest.approx(1.0)),
        (1, True, 1, pytest.approx(2 / 256, abs=1e-9)),
    ]


def test_no_evidence_where_clocks_cannot_be_compared(insert: Insert, ask: Ask) -> None:
    run(insert, [(0, 90)] * 20)
    ask("UPDATE main.capture SET clock_zero_unix_ns = 7 WHERE capture_id = 1")
    assert ask("SELECT DISTINCT is_straggler, straggler_rank, p_value FROM v1.stragglers") == [(False, None, None)]


def test_subgroups_are_judged_by_their_own_calls(judged: dict[str, Rows]) -> None:
    assert columns(judged["pairs"], "rank", "calls", "times_last", "wait_ns", "is_straggler") == [
        (0, 12, 0, 960, False),
        (1, 12, 12, 0, True),
        (2, 12, 0, 0, False),
        (3, 12, 0, 0, False),
    ]


def test_by_step_and_filters(insert: Insert, ask: Ask, report: Report) -> None:
    run(insert, [(0, 20), (40, 0)])
    for capture in (0, 1):
        for number in (0, 1):
            insert("annotation", "annotation_id name", (number, f"ProfilerStep#{number + 4}"), capture_id=capture,
                   style="user", start_ns=0, duration_ns=9)  # fmt: skip
            insert("annotation_kernel", "annotation_id event_id", (number, number), capture_id=capture, rule="process")
    found = ask("SELECT step, rank, times_last, wait_caused_ns FROM v1.stragglers ORDER BY step, rank")
    assert found == [(4, 0, 0, 0), (4, 1, 1, 20), (5, 0, 1, 40), (5, 1, 0, 0)]
    by = {"rank": "{base}.rank"}
    assert report("stragglers", '"rank", calls, wait_caused_ns', by=by) == [(0, 2, 40), (1, 2, 20)]
    found = report("stragglers", "rank, wait_caused_ns", where={"part": "part.rank = 1 AND part.step_index > 1"})
    assert found == [(1, 0)]
    assert report("stragglers", "late_ns", where={"part": "part.rank = 1"}) == [(0,), (20,)]


def test_a_row_of_several_ranks_has_the_share_of_the_straggler(insert: Insert, report: Report) -> None:
    """Rank 2 of four is late to 15 of 16 calls, rank 0 to one; a mean over the ranks would be 25 % whoever is late."""
    run(insert, [(0, 0, 90, 0)] * 15 + [(30, 0, 0, 0)])
    insert(
        "capture", "capture_id rank labels", *[(10 + rank, rank, {"run": "even"}) for rank in (0, 1)], source="torch"
    )
    insert("kernel_event", "capture_id event_id start_ns duration_ns",
           *[(10 + rank, n, 1_000 * n + (50 if n % 2 == rank else 0), 100) for n in range(8) for rank in (0, 1)],
           kind="kernel", name="nccl", collective="allreduce", group_name="0", group_size=2, device_id=0)  # fmt: skip
    columns = '"run", straggler_rank, round(times_last_percent, 4), round(wait_caused_percent, 4)'
    found = report("stragglers", columns, by={"run": "{base}.labels['run']"})
    assert found == [("even", None, None, None), (None, 2, 93.75, round(100 * 15 * 270 / (15 * 270 + 90), 4))]
