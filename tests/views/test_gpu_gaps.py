"""``v1.gpu_gaps`` and ``v1.launch_latency``: the time between calls and kernels, and between kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tracedb.report import registry

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

GAPS = """SELECT device_id, start_ns, idle_ns, before_event_id, before_name, after_event_id, after_class, was_pending,
    unlaunched_ns FROM v1.gpu_gaps ORDER BY ALL"""


@pytest.mark.parametrize("view", ["gpu_gaps", "launch_latency"])
def test_empty(ask: Ask, view: str) -> None:
    assert ask(f"FROM v1.{view}") == []


@pytest.fixture
def events(insert: Insert) -> None:
    """Device 0: 0-10, 2-20, gap, 30-40 touching 40-50, gap, 90-95; device 1: one kernel."""
    insert("capture", "capture_id rank", (0, 0), source="nsys")
    insert("launch", "launch_id start_ns duration_ns", (1, 0, 5), (2, 1, 5), (3, 21, 4), (4, 22, 4), (5, 38, 10),
           capture_id=0, process_id=1, thread_id=1, name="cudaLaunchKernel")  # fmt: skip
    insert("kernel_event", "event_id kind name start_ns duration_ns device_id launch_id",
           (1, "kernel", "sgemm", 0, 10, 0, 1), (2, "memcpy", "copy", 2, 18, 0, 2), (3, "kernel", "add", 30, 10, 0, 3),
           (4, "kernel", "mul", 40, 10, 0, 4), (5, "kernel", "sgemm", 90, 5, 0, 5),
           (6, "kernel", "add", 60, 5, 1, None),
           capture_id=0)  # fmt: skip


def test_gaps(events: None, ask: Ask, shuffled: Callable[[], None]) -> None:
    """Before the first nothing had been launched; before the second its kernel had been."""
    right = [
        (0, 20, 10, 2, "copy", 3, "elementwise", False, 5),
        (0, 50, 40, 4, "mul", 5, "matmul", True, 0),
    ]
    assert ask(GAPS) == right
    shuffled()
    assert ask(GAPS) == right


def test_the_event_before_a_gap_is_the_one_that_ended_last(insert: Insert, ask: Ask) -> None:
    """It need not be the previous one, and of several that end together it is the one with the highest number."""
    insert("capture", "capture_id rank", (0, 0), source="nsys")
    insert("kernel_event", "event_id kind name start_ns duration_ns collective",
           (1, "kernel", "long", 0, 20, None), (2, "kernel", "short", 5, 5, None),
           (9, "kernel", "tie", 30, 10, None), (3, "kernel", "tie", 35, 5, None),
           (4, "kernel", "tie", 50, 10, "allreduce"), (8, "kernel", "last", 55, 5, None),
           (5, "memset", "tie", 70, 5, None),
           capture_id=0, device_id=0)  # fmt: skip
    assert ask(
        """SELECT start_ns, before_event_id, before_name, before_class, after_event_id, after_name, after_class
           FROM v1.gpu_gaps ORDER BY start_ns"""
    ) == [
        (20, 1, "long", "other", 9, "tie", "other"),
        (40, 9, "tie", "other", 4, "tie", "collective"),
        (60, 8, "last", "other", 5, "tie", "copy"),
    ]


def test_gaps_are_what_the_timeline_calls_idle(events: None, ask: Ask) -> None:
    (found,) = ask("SELECT sum(idle_ns) FROM v1.gpu_gaps")
    assert [found] == ask("SELECT sum(idle_ns) FROM v1.gpu_timeline")


def test_another_events_launch_makes_work_pending(events: None, ask: Ask) -> None:
    """What comes after the next event was launched in time: the GPU waited for something else than the CPU."""
    ask("UPDATE main.launch SET start_ns = 12, duration_ns = 2 WHERE launch_id = 4")
    assert [row[7:] for row in ask(GAPS)] == [(True, 5), (True, 0)]


def test_the_launch_of_what_ends_a_gap_not_recorded(events: None, ask: Ask) -> None:
    """Work may have been pending, unless another recorded launch says that it was."""
    ask("DELETE FROM main.launch WHERE launch_id = 3")
    assert [row[7:] for row in ask(GAPS)] == [(None, None), (True, 0)]
    ask("UPDATE main.launch SET start_ns = 12, duration_ns = 2 WHERE launch_id = 4")
    assert [row[7:] for row in ask(GAPS)] == [(True, None), (True, 0)]


def test_launches_not_recorded(events: None, ask: Ask) -> None:
    ask("DELETE FROM main.launch")
    assert [row[7:] for row in ask(GAPS)] == [(None, None), (None, None)]


def test_hooks(events: None, report: Report) -> None:
    by, where = {"rank": "{base}.rank"}, {"e": "e.kind = 'kernel'"}
    assert report("gpu_gaps", "start_ns, idle_ns", where=where) == [(10, 20), (50, 40)]
    found = report("gpu_gaps", "before_name, after_name", by=by, where=where)
    assert found == [("mul", "sgemm"), ("sgemm", "add")]
    assert report("launch_latency", "event_id", where={"e": "e.device_id = 1"}) == []


def test_the_table_calls_the_events_as_the_columns_do() -> None:
    """before_name ran before the gap."""
    headers = {show.columns[0]: show.header for show in registry.find("gpu-gaps").shows}
    assert (headers["before_name"], headers["after_name"]) == ("ran before", "ran after")


def test_latency(events: None, ask: Ask) -> None:
    """The first kernel starts while its call still runs, so it has not queued; copies are no kernels."""
    assert ask(
        """SELECT event_id, launch_name, launch_start_ns, launch_ns, queue_ns, kernel_ns, latency_ns, total_ns
           FROM v1.launch_latency ORDER BY event_id"""
    ) == [
        (1, "cudaLaunchKernel", 0, 5, None, 10, 0, 10),
        (3, "cudaLaunchKernel", 21, 4, 5, 10, 9, 19),
        (4, "cudaLaunchKernel", 22, 4, 14, 10, 18, 28),
        (5, "cudaLaunchKernel", 38, 10, 42, 5, 52, 57),
    ]
