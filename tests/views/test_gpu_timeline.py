"""``v1.gpu_timeline``: computation, exposed collectives, exposed copies, idle; they add up exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

EVENT = "event_id kind name start_ns duration_ns"
TIMES = "computation_ns, exposed_collective_ns, exposed_copy_ns, busy_ns, idle_ns, total_ns"
PERCENTS = "computation_percent, exposed_collective_percent, exposed_copy_percent, busy_percent, idle_percent"


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.gpu_timeline") == []


def test_layers(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    insert("kernel_event", EVENT,
           (1, "kernel", "add", 0, 10), (2, "kernel", "mul", 5, 5), (3, "graph", "graph", 10, 10),  # 0 to 20
           (4, "kernel", "ncclKernel", -20, 50), (5, "kernel", "ncclKernel", 30, 0),                # adds 20 and 10
           (6, "memcpy", "Memcpy", -30, 20), (7, "memset", "Memset", 25, 15), (8, "memcpy", "Memcpy", 30, 10),
           (9, "kernel", "copy_kernel", 60, 40),                                                   # computes
           capture_id=0)  # fmt: skip
    right = [(60, 30, 20, 110, 20, 130)]
    assert ask(f"SELECT {TIMES} FROM v1.gpu_timeline") == right
    assert ask(f"SELECT {PERCENTS} FROM v1.gpu_timeline") == [tuple(100 * ns / 130 for ns in right[0][:5])]
    shuffled()
    assert ask(f"SELECT {TIMES} FROM v1.gpu_timeline") == right


def test_events_of_no_length_take_no_time(insert: Insert, ask: Ask) -> None:
    insert("kernel_event", EVENT, (1, "kernel", "add", 5, 0), (2, "memcpy", "Memcpy", 5, 0), capture_id=0)
    assert ask(f"SELECT {TIMES}, {PERCENTS} FROM v1.gpu_timeline") == [(0,) * 6 + (None,) * 5]


def test_any_number_of_captures_of_any_length(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    century = 3_155_760_000_000_000_000  # four of them do not fit on one axis of 64-bit nanoseconds
    insert("kernel_event", "capture_id event_id kind name start_ns duration_ns",
           *((number, event, kind, name, number * 7 + start, duration)
             for number in range(9)
             for event, kind, name, start, duration in (
                 (1, "kernel", "add", 0, 10), (2, "memcpy", "Memcpy", 5, 10),
                 (3, "kernel", "ncclKernel", century, 5), (4, "kernel", "add", century + 2, 1))),
           device_id=0)  # fmt: skip
    right = [(number, 11, 4, 5, 20, century + 5 - 20, century + 5) for number in range(9)]
    assert ask(f"SELECT capture_id, {TIMES} FROM v1.gpu_timeline ORDER BY ALL") == right
    shuffled()
    assert ask(f"SELECT capture_id, {TIMES} FROM v1.gpu_timeline ORDER BY ALL") == right


def test_devices_and_captures_are_apart(insert: Insert, ask: Ask, report: Report) -> None:
    insert("capture", "capture_id rank labels", (0, 0, {"t": "8"}), (1, 1, {"t": "8"}), source="torch")
    insert("kernel_event", "capture_id device_id event_id kind name start_ns duration_ns",
           (0, 0, 1, "kernel", "add", 0, 10), (0, 1, 2, "memcpy", "Memcpy", 5, 10),
           (1, 0, 1, "kernel", "ncclKernel", 50, 5), (1, 0, 2, "kernel", "add", 60, 5),
           (1, None, 3, "memset", "Memset", 0, 3))  # fmt: skip
    query = f"SELECT capture_id, rank, labels['t'], device_id, {TIMES} FROM v1.gpu_timeline ORDER BY ALL"
    assert ask(query) == [
        (0, 0, "8", 0, 10, 0, 0, 10, 0, 10),
        (0, 0, "8", 1, 0, 0, 10, 10, 0, 10),
        (1, 1, "8", 0, 5, 5, 0, 10, 5, 15),
        (1, 1, "8", None, 0, 0, 3, 3, 0, 3),
    ]
    by = {"t": "{base}.labels['t']"}
    assert report("gpu_timeline", f'"t", {TIMES}, idle_percent', by=by) == [("8", 15, 5, 13, 33, 5, 38, 500 / 38)]
    found = report("gpu_timeline", f"capture_id, {TIMES}", where={"e": "e.rank = 1 AND e.device_id = 0"})
    assert found == [(1, 5, 5, 0, 10, 5, 15)]


class TestIdleTimeOfAPartOfTheEvents:
    """Kernels a and b take turns with pauses; what is not chosen, or in another group, is not idle time."""

    BUSY_IDLE_TOTAL = "busy_ns, idle_ns, total_ns"

    @pytest.fixture(autouse=True)
    def events(self, insert: Insert) -> None:
        insert("kernel_event", EVENT,
               (1, "kernel", "a", 0, 10), (2, "kernel", "b", 12, 100), (3, "kernel", "a", 113, 10),  # 2 and 1 idle
               (4, "kernel", "a", 127, 10), (5, "kernel", "b", 130, 20), (6, "kernel", "a", 155, 5),  # 4 and 5 idle
               capture_id=0, device_id=0)  # fmt: skip

    def test_of_the_chosen(self, report: Report) -> None:
        for name, right in (("a", (35, 1 + 4 + 5, 45)), ("b", (120, 0, 120))):
            where = {"e": f"e.name = '{name}'"}
            assert report("gpu_timeline", self.BUSY_IDLE_TOTAL, where=where, is_part=True) == [right]

    def test_groups_add_up_to_no_more_than_the_whole(self, ask: Ask, report: Report) -> None:
        by = {"which": "CASE WHEN {base}.event_id IN (3, 4, 5) THEN 'step' END"}
        found = report("gpu_timeline", f'"which", {self.BUSY_IDLE_TOTAL}', by=by, is_part=True)
        assert found == [("step", 10 + 23, 4, 37), (None, 115, 2 + 5, 122)]
        assert ask(f"SELECT {self.BUSY_IDLE_TOTAL} FROM v1.gpu_timeline") == [(148, 12, 160)]

    def test_all_events_are_the_whole(self, ask: Ask, insert: Insert, report: Report) -> None:
        insert("unrecorded_span", "capture_id device_id start_ns end_ns replays", (0, 0, 152, 155, 1))
        whole = ask("SELECT COLUMNS('.*_ns') FROM v1.gpu_timeline")
        assert whole[0][-1] == 3
        assert report("gpu_timeline", "COLUMNS('.*_ns')", is_part=True) == whole

    @pytest.mark.parametrize("view", ["idle_breakdown", "gpu_gaps"])
    def test_other_views_of_idle_time_agree(self, report: Report, view: str) -> None:
        found = report(view, "sum(idle_ns)::BIGINT", where={"e": "e.name = 'a'"}, is_part=True)
        assert found == [(10,)]

    def test_later_launches_of_others_count(self, insert: Insert, report: Report) -> None:
        """Kernel 6 is launched late, but kernel 7 of the others was pending before: the device is the cause."""
        insert("kernel_event", f"{EVENT} launch_id", (7, "kernel", "b", 161, 1, 1), (8, "kernel", "a", 170, 1, 2),
               (9, "kernel", "b", 180, 1, 3), capture_id=0, device_id=0)  # fmt: skip
        insert("launch", "launch_id start_ns", (1, 100), (2, 168), (3, 163), name="cudaLaunchKernel", duration_ns=1,
               capture_id=0, thread_id=1)  # fmt: skip
        found = report("idle_breakdown", "host_bound_ns, device_bound_ns", where={"e": "e.event_id IN (7, 8)"},
                       is_part=True)  # fmt: skip
        assert found == [(1, 7)]
