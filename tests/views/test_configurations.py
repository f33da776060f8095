"""``v1.configurations``: step times of each setting, which is best, and whether the difference exceeds noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

TIMES = "labels, ranks, steps, step_mean_ns, step_min_ns, step_max_ns, is_best, beyond_noise"
ROWS = f"SELECT {TIMES} FROM v1.configurations ORDER BY step_mean_ns"
FAST, SLOW = {"channels": "4"}, {"channels": "8"}


def steps(
    insert: Insert, capture: int, durations: Sequence[int], labels: Mapping[str, str], rank: int | None = 0,
    work: int = 10, **shared: Any,
) -> None:  # fmt: skip
    """A capture with a range for each step, and in each a kernel of ``work`` ns that starts with it."""
    values = {"source": "torch", "status": "complete", "path": f"{capture}.json", **shared}
    insert("capture", "capture_id rank labels", (capture, rank, dict(labels)), **values)
    for number, duration in enumerate(durations):
        start = 1_000 * number
        insert("annotation", "annotation_id name start_ns duration_ns",
               (number, f"ProfilerStep#{number}", start, duration), capture_id=capture, style="user")  # fmt: skip
        insert("kernel_event", "event_id start_ns duration_ns", (number, start, work), capture_id=capture,
               kind="kernel", name="add", device_id=0)  # fmt: skip
        insert("annotation_kernel", "annotation_id event_id", (number, number), capture_id=capture, rule="process")


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.configurations") == []


def test_the_slowest_rank_makes_a_step(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    steps(insert, 0, (100, 120), FAST)
    steps(insert, 1, (110, 90), FAST, rank=1)
    steps(insert, 2, (130, 150), SLOW)
    steps(insert, 3, (140, 200), SLOW, rank=1)
    right = [(FAST, 2, 2, 115.0, 110, 120, True, None), (SLOW, 2, 2, 170.0, 140, 200, False, None)]
    assert ask(ROWS) == right
    shuffled()
    assert ask(ROWS) == right
    ((deviation, ratio, p_value),) = ask(
        "SELECT step_stddev_ns, ratio_to_best, p_value FROM v1.configurations WHERE NOT is_best"
    )
    assert (deviation, ratio, p_value) == (pytest.approx(30 * 2**0.5), 170 / 115, None)


def test_a_host_that_runs_ahead(insert: Insert, ask: Ask) -> None:
    """The ranges end after 20 ns, and the GPU works for 300."""
    steps(insert, 0, (20, 20), FAST, work=300)
    assert ask(ROWS) == [(FAST, 1, 2, 300.0, 300, 300, True, None)]


@pytest.mark.parametrize(
    ("fast", "slow", "best", "other"),
    [
        ((100, 101, 102), (200, 201, 202), None, None),  # 3 steps can tell nothing
        ((100, 101, 102, 103), (200, 201, 202, 203), True, True),
        ((100, 180, 102, 190), (103, 181, 101, 195), False, False),
    ],
)
def test_noise(
    insert: Insert, ask: Ask, fast: Sequence[int], slow: Sequence[int], best: bool | None, other: bool | None
) -> None:
    steps(insert, 0, fast, FAST)
    steps(insert, 1, slow, SLOW)
    assert ask("SELECT is_best, beyond_noise FROM v1.configurations ORDER BY step_mean_ns") == [
        (True, best),
        (False, other),
    ]


def test_p_value(insert: Insert, ask: Ask) -> None:
    """Four against four, all apart: U is 16, 8 from its middle; z = 7.5 / sqrt(12), two-sided."""
    steps(insert, 0, (100, 101, 102, 103), FAST)
    steps(insert, 1, (200, 201, 202, 203), SLOW)
    assert ask("SELECT p_value FROM v1.configurations") == [(pytest.approx(0.030383, abs=1e-6),)] * 2


def test_steps_of_one_run_are_not_independent(insert: Insert, ask: Ask, report: Report) -> None:
    """Two runs a setting: twelve steps against twelve, all apart, are two values against two."""
    for capture, base in enumerate((100, 110, 120, 130)):
        labels = {"channels": "4" if capture < 2 else "8", "run": str(capture)}
        steps(insert, capture, [base + number for number in range(6)], labels)
    columns = "labels['run'], runs, steps, beyond_noise, p_value, tested_over, verdict"
    found = ask(f"SELECT {columns} FROM v1.configurations ORDER BY step_mean_ns")
    assert found[0][:4] == ("0", 1, 6, True) and found[0][5:] == ("steps", "beyond noise")
    by = {"channels": "{base}.labels['channels']"}
    assert report("configurations", columns.replace("labels['run']", "channels"), by=by) == [
        ("4", 2, 12, None, None, "runs", "too few runs to tell"),
        ("8", 2, 12, None, None, "runs", "too few runs to tell"),
    ]


def test_four_runs_a_setting_are_tested_by_their_means(insert: Insert, report: Report) -> None:
    """Steps of both settings overlap; the means of the runs do not. One run against four is too few again."""
    for capture in range(8):
        base = 100 + capture + (10 if capture > 3 else 0)
        steps(insert, capture, (base, base + 800), {"channels": "4" if capture < 4 else "8", "run": str(capture)})
    by = {"channels": "{base}.labels['channels']"}
    found = report("configurations", "channels, runs, steps, p_value, tested_over, verdict", by=by)
    right = (4, 8, pytest.approx(0.030383, abs=1e-6), "runs", "beyond noise")
    assert found == [("4", *right), ("8", *right)]
    found = report("configurations", "runs, verdict", by=by, where={"e": "e.capture_id IN (0, 4, 5, 6, 7)"})
    assert sorted(found) == [(1, "too few runs to tell"), (4, "too few runs to tell")]


def test_the_best_is_tested_against_the_second(insert: Insert, ask: Ask) -> None:
    steps(insert, 0, (100, 180, 102, 190), FAST)
    steps(insert, 1, (103, 181, 101, 195), SLOW)
    steps(insert, 2, (900, 901, 902, 903), {"channels": "16"})
    found = ask("SELECT labels['channels'], is_best, beyond_noise FROM v1.configurations ORDER BY step_mean_ns")
    assert found == [("4", True, False), ("8", False, False), ("16", False, True)]


def test_equal_settings(insert: Insert, ask: Ask) -> None:
    steps(insert, 0, (100,) * 4, FAST)
    steps(insert, 1, (100,) * 4, SLOW)
    assert ask("SELECT is_best, beyond_noise, p_value FROM v1.configurations") == [(True, False, 1.0)] * 2


def test_shares_and_straggler(insert: Insert, ask: Ask) -> None:
    """Eight steps of two ranks: 10 ns of computation, then an all-reduce to which rank 1 is 50 ns late."""
    for rank in (0, 1):
        steps(insert, rank, (400,) * 8, FAST, rank=rank)
        late = 50 * rank
        insert("kernel_event", "event_id start_ns duration_ns",
               *[(100 + n, 1_000 * n + 10 + late, 100 - late) for n in range(8)],
               capture_id=rank, kind="kernel", name="nccl", collective="allreduce", group_name="0", group_size=2,
               device_id=0)  # fmt: skip
        insert("annotation_kernel", "annotation_id event_id", *[(n, 100 + n) for n in range(8)], capture_id=rank,
               rule="process")  # fmt: skip
    columns = (
        "gpus, computation_percent, exposed_collective_percent, exposed_copy_percent, idle_percent, straggler_rank"
    )
    total = 2 * 7_110
    computing, exposed = 2 * 8 * 10, 8 * 100 + 8 * 50
    right = (2, 100 * computing / total, 100 * exposed / total, 0.0, 100 * (total - computing - exposed) / total, 1)
    assert ask(f"SELECT {columns} FROM v1.configurations") == [pytest.approx(right)]
    of_a_step = exposed / (2 * 8)  # of one of 2 GPUs in one of 8 steps
    assert ask("SELECT exposed_collective_mean_ns FROM v1.configurations") == [(of_a_step,)]


def test_files_of_unknown_rank_are_runs_of_their_own(insert: Insert, ask: Ask) -> None:
    steps(insert, 0, (100, 120), {}, rank=None)
    steps(insert, 1, (200, 220), {}, rank=None)
    assert ask(ROWS) == [({}, 1, 4, 160.0, 100, 220, True, None)]


def test_captures_without_steps_are_no_row(insert: Insert, ask: Ask) -> None:
    steps(insert, 0, (), SLOW)
    insert("kernel_event", "event_id start_ns duration_ns", (0, 0, 10), capture_id=0, kind="kernel", name="add")
    assert ask(ROWS) == []


def test_filters_and_by(insert: Insert, report: Report) -> None:
    steps(insert, 0, (100, 120), FAST)
    steps(insert, 1, (110, 90), FAST, rank=1)
    columns = "ranks, steps, step_mean_ns, gpus"
    assert report("configurations", columns, where={"e": "e.rank = 1"}) == [(1, 2, 100.0, 1)]
    by = {"rank": "{base}.rank"}
    assert report("configurations", f'"rank", {columns}, is_best', by=by) == [
        (0, 1, 2, 110.0, 1, False),
        (1, 1, 2, 100.0, 1, True),
    ]
