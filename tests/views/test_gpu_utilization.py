"""``v1.gpu_utilization``: the windows add up to the times of gpu_timeline."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def test_windows_are_divided_as_the_whole(insert: Insert, ask: Ask) -> None:
    """Two windows' worth of time: a GEMM, a collective half beside it, a copy; the end lies in the last window."""
    insert("capture", "capture_id", (1,), path="a", source="torch", status="complete", labels={})
    insert(
        "kernel_event",
        "event_id kind name start_ns duration_ns",
        (1, "kernel", "ampere_sgemm_128x64_tn", 1_000, 60),
        (2, "kernel", NCCL, 1_050, 40),
        (3, "memcpy", "Memcpy HtoD", 1_150, 50),
        capture_id=1,
        device_id=0,
    )
    assert ask("SELECT count(*), max(window_ns), sum(window_ns) FROM v1.gpu_utilization") == [(100, 2, 200)]
    assert ask(
        """SELECT window_index, since_ns, computation_percent, exposed_collective_percent, exposed_copy_percent
           FROM v1.gpu_utilization WHERE window_index IN (1, 30, 31, 45, 46, 75, 76, 100) ORDER BY 1"""
    ) == [
        (1, 0, 100, 0, 0),
        (30, 58, 100, 0, 0),
        (31, 60, 0, 100, 0),
        (45, 88, 0, 100, 0),
        (46, 90, 0, 0, 0),
        (75, 148, 0, 0, 0),
        (76, 150, 0, 0, 100),
        (100, 198, 0, 0, 100),
    ]


def test_windows_sum_to_the_timeline(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    draw = random.Random(7)
    insert("capture", "capture_id", (1,), path="a", source="torch", status="complete", labels={})
    kinds = [("kernel", "ampere_sgemm_128x64_tn"), ("kernel", NCCL), ("memcpy", "Memcpy HtoD")]
    insert(
        "kernel_event",
        "event_id kind name start_ns duration_ns device_id",
        *(
            (number, *draw.choice(kinds), draw.randrange(100_000), draw.choice((0, 1, 30, 3_000)), number % 2)
            for number in range(300)
        ),
        capture_id=1,
    )
    parts = ["computation_ns", "exposed_collective_ns", "exposed_copy_ns", "busy_ns"]
    sums = ", ".join(f"sum({part})::BIGINT" for part in parts)
    windows = f"SELECT device_id, {sums}, sum(window_ns)::BIGINT FROM v1.gpu_utilization GROUP BY ALL ORDER BY 1"
    whole = ask(f"SELECT device_id, {', '.join(parts)}, total_ns FROM v1.gpu_timeline ORDER BY 1")
    assert len(whole) == 2
    assert ask(windows) == whole
    shuffled()
    assert ask(windows) == whole


def test_a_device_whose_only_event_has_no_length_has_one_window_without_shares(insert: Insert, ask: Ask) -> None:
    insert("capture", "capture_id", (1,), path="a", source="torch", status="complete", labels={})
    insert(
        "kernel_event", "event_id", (1,), capture_id=1, kind="kernel", name="k", start_ns=5, duration_ns=0, device_id=0
    )
    assert ask("SELECT window_index, window_ns, busy_ns, busy_percent FROM v1.gpu_utilization") == [(1, 0, 0, None)]


def test_left_out_work_is_not_idle_time(insert: Insert, ask: Ask, report: Report) -> None:
    """Of a: 3 windows of 100 ns in 300, from its first start; b runs beside it, alone, and after its end."""
    insert("capture", "capture_id", (1,), path="a", source="torch", status="complete", labels={})
    insert("kernel_event", "event_id name start_ns duration_ns",
           (1, "b", 0, 1_100), (2, "a", 1_000, 100), (3, "b", 1_150, 100), (4, "a", 1_200, 40),
           (5, "a", 1_290, 10), (6, "b", 1_295, 500), capture_id=1, kind="kernel", device_id=0)  # fmt: skip
    insert("unrecorded_span", "capture_id device_id start_ns end_ns replays", (1, 0, 1_100, 1_120, 1))
    parts = ("window_ns", "busy_ns", "other_ns", "idle_ns")
    sums = ", ".join(f"sum({part})::BIGINT" for part in parts)
    chosen = report("gpu_utilization", sums, where={"e": "e.name = 'a'"}, is_part=True)
    assert chosen == [(300, 150, 50 + 10, 50 - 20 + 40)]
    windows = report("gpu_utilization", f"since_ns, {', '.join(parts)}", where={"e": "e.name = 'a'"}, is_part=True)
    assert [row for row in windows if row[0] in (99, 102, 120, 150, 240, 270)] == [
        (99, 3, 1, 0, 0), (102, 3, 0, 0, 0), (120, 3, 0, 0, 3), (150, 3, 0, 3, 0), (240, 3, 0, 3, 0),
        (270, 3, 0, 0, 3)]  # fmt: skip
    assert ask(f"SELECT {sums} FROM v1.gpu_utilization") == [(1_795, 1_705, 0, 70)]
    everything = report("gpu_utilization", "COLUMNS('.*_ns')", is_part=True)
    assert everything == ask("SELECT COLUMNS('.*_ns') FROM v1.gpu_utilization ORDER BY ALL")
