"""``v1._step`` and the views that use it: marked steps, and ranges of a selected name as steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Choose = Callable[[str], None]

STEPS = "SELECT capture_id, annotation_id, step, step_index, marked_step FROM v1._step ORDER BY ALL"
RANGE = "annotation_id name thread_id start_ns duration_ns"


@pytest.fixture
def choose(db: duckdb.DuckDBPyConnection) -> Iterator[Choose]:
    """``choose(pattern)``: what a person types in the DuckDB shell."""

    def set_variable(pattern: str) -> None:
        db.execute(f"SET VARIABLE step_range = '{pattern}'")

    yield set_variable
    db.execute("RESET VARIABLE step_range")


def test_marked_steps(insert: Insert, ask: Ask) -> None:
    insert("annotation", RANGE, (1, "ProfilerStep#7", 1, 0, 10), (2, "ProfilerStep#9", 1, 20, 10),
           (3, "ProfilerStep#9", 2, 20, 10), (4, "ProfilerStep#x", 1, 40, 10), (5, "iter", 1, 0, 90),
           capture_id=1, style="user")  # fmt: skip
    insert("annotation", RANGE, (6, "ProfilerStep#8", 1, 0, 10), capture_id=1, style="gpu_projection")
    assert ask(STEPS) == [(1, 1, 7, 1, 7), (1, 2, 9, 2, 9), (1, 3, 9, 2, 9)]


def test_chosen_ranges_are_numbered_by_thread_in_the_order_of_their_starts(
    insert: Insert, ask: Ask, choose: Choose, shuffled: Callable[[], None]
) -> None:
    choose("iter*")
    insert("annotation", RANGE, (1, "iter b", 1, 100, 10), (2, "iter a", 1, 0, 10), (3, "Iter", 1, 20, 10),
           (4, "an iter", 1, 40, 10), (5, "iter", 2, 5, 10), (6, "ProfilerStep#9", 1, 0, 200),
           capture_id=1, style="push_pop")  # fmt: skip
    insert("annotation", RANGE, (7, "iter", 1, 70, None), (8, "iter", 1, 71, 1), capture_id=1, style="mark")
    insert("annotation", RANGE, (1, "iter", 1, 900, 1), capture_id=2, style="start_end")
    right = [(1, 1, 1, 2, None), (1, 2, 0, 1, None), (1, 5, 0, 1, None), (1, 6, None, None, 9), (2, 1, 0, 1, None)]
    assert ask(STEPS) == right
    shuffled()
    assert ask(STEPS) == right


def test_only_the_outermost_of_a_thread_counts(insert: Insert, ask: Ask, choose: Choose) -> None:
    """Inner ones, also of the same times, and also below others; on another thread they are steps of their own."""
    choose("*step*")
    insert("annotation", f"{RANGE} depth parent_id", (1, "step", 1, 0, 100, 0, None), (2, "forward", 1, 10, 50, 1, 1),
           (3, "substep", 1, 20, 10, 2, 2), (4, "substep", 1, 40, 60, 1, 1), (5, "step", 1, 200, 50, 0, None),
           (6, "substep", 1, 200, 50, 1, 5), (7, "substep", 2, 20, 10, 0, None), (8, "step", 1, 240, 60, 0, None),
           capture_id=1, style="push_pop")  # fmt: skip
    insert("annotation", f"{RANGE} is_open", (9, "step", 1, 400, None, True), (10, "step", 1, 500, 10, False),
           capture_id=1, style="push_pop")  # fmt: skip
    outer = [(1, 1, 0, 1, None), (1, 5, 1, 2, None), (1, 7, 0, 1, None), (1, 8, 2, 3, None), (1, 9, 3, 4, None)]
    assert ask(STEPS) == outer
    below = ask("SELECT annotation_id, step FROM v1._step_range ORDER BY annotation_id")
    assert below == [(1, 0), (2, 0), (3, 0), (4, 0), (5, 1), (6, 1), (7, 0), (8, 2), (9, 3)]


def two_threads(insert: Insert) -> None:
    """Kernels launched by two threads, and one of a thread without ranges, in steps that are not at the same time."""
    insert("capture", "capture_id rank", (1, 0), source="nsys")
    insert("annotation", RANGE, (1, "iter", 1, 0, 100), (2, "iter", 1, 100, 100), (3, "iter", 2, 50, 100),
           (4, "iter", 2, 150, 100), capture_id=1, style="push_pop")  # fmt: skip
    insert("kernel_event", "event_id start_ns", *[(number, 10 * number) for number in range(4)], capture_id=1,
           kind="kernel", name="k", duration_ns=5, device_id=0)  # fmt: skip
    inside = [(1, 0, "thread"), (1, 0, "process"), (3, 0, "process"),  # thread 1, while thread 2 is in its first one
              (2, 1, "process"), (3, 1, "process"), (3, 1, "thread"),  # thread 2, while thread 1 is in its second one
              (2, 2, "process"), (3, 2, "process")]  # fmt: skip
    insert("annotation_kernel", "annotation_id event_id rule", *inside, capture_id=1)


def test_the_launching_thread_comes_first(insert: Insert, ask: Ask, choose: Choose) -> None:
    two_threads(insert)
    choose("iter")
    assert ask("SELECT event_id, step, step_index FROM v1._step_kernel ORDER BY event_id") == [
        (0, 0, 1), (1, 0, 1), (2, 1, 2)]  # fmt: skip
    choose("none")
    assert ask("FROM v1._step_kernel") == []


def test_views_follow_the_variable(insert: Insert, ask: Ask, choose: Choose) -> None:
    two_threads(insert)
    kernels = "SELECT event_id, step FROM v1.kernels ORDER BY event_id"
    per_step = "SELECT calls, calls_per_step FROM v1.unique_kernels"
    assert ask(kernels) == [(number, None) for number in range(4)]
    assert ask(per_step) == [(4, None)]
    choose("it*")
    assert ask(kernels) == [(0, 0), (1, 0), (2, 1), (3, None)]
    assert ask(per_step) == [(4, 1.5)]


def test_ranks_are_matched_by_marked_steps_whatever_is_chosen(insert: Insert, ask: Ask, choose: Choose) -> None:
    """Rank 1 recorded one step later: its first range is the second one of rank 0."""
    insert("capture", "capture_id rank", (1, 0), (2, 1), source="torch")
    for capture, first in ((1, 4), (2, 5)):
        for number in (0, 1):
            step = first + number
            insert("annotation", RANGE, (10 * number, f"ProfilerStep#{step}", 1, 100 * step, 90),
                   (10 * number + 1, "iter", 1, 100 * step, 80), capture_id=capture, style="user")  # fmt: skip
            insert("kernel_event", "event_id start_ns", (number, 100 * step), capture_id=capture, kind="kernel",
                   name="nccl", duration_ns=5, device_id=0, collective="allreduce", group_name="0",
                   group_size=2)  # fmt: skip
            insert("annotation_kernel", "annotation_id", (10 * number,), (10 * number + 1,), event_id=number,
                   capture_id=capture, rule="process")  # fmt: skip
    matches = "SELECT ranks, match_rule FROM v1.collectives ORDER BY ALL"
    right = [(1, "unmatched"), (1, "unmatched"), (2, "order")]
    assert ask(matches) == right
    choose("iter")
    assert ask(matches) == right
    assert ask("SELECT rank, step FROM v1.kernels ORDER BY ALL") == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_chosen_ranges_inside_a_warmup_are_no_steps(insert: Insert, ask: Ask, choose: Choose) -> None:
    """Unless the capture has no others, or the warm-up itself is chosen; another thread's warm-up does not count."""
    choose("iter*")
    insert("annotation", RANGE, (1, "warm-up", 1, 0, 100), (2, "iter", 1, 10, 20), (3, "iter", 1, 40, 20),
           (4, "iter", 1, 110, 20), (5, "iter", 2, 10, 20), capture_id=1, style="push_pop")  # fmt: skip
    insert("annotation", RANGE, (1, "warmup", 1, 0, 100), (2, "iter", 1, 10, 20), capture_id=2, style="push_pop")
    insert(
        "annotation", RANGE, (1, "iter of warmup", 1, 0, 100), (2, "iter", 1, 110, 20), capture_id=3, style="push_pop"
    )
    assert [row[:3] for row in ask(STEPS)] == [(1, 4, 0), (1, 5, 0), (2, 2, 0), (3, 1, 0), (3, 2, 1)]
    assert ask("SELECT capture_id, annotation_id FROM v1._chosen_step WHERE is_warmup ORDER BY ALL") == [(1, 2), (1, 3)]
