"""``v1.collectives``: kernels of different ranks matched to calls; waiting, skew, who is last, bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from views.collective_rows import WORLD, Insert, calls, captures

Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

MATCHED = (
    "SELECT ranks, match_rule, latency_ns, wait_ns, last_rank FROM v1.collectives ORDER BY start_ns, collective_id"
)


def steps(insert: Insert, capture: int, *numbers: tuple[int, Sequence[int]]) -> None:
    """Steps of a capture, and the events that lie in each."""
    for place, (number, events) in enumerate(numbers):
        insert("annotation", "annotation_id name", (place, f"ProfilerStep#{number}"), capture_id=capture, style="user",
               start_ns=0, duration_ns=9)  # fmt: skip
        insert("annotation_kernel", "event_id", *[(event,) for event in events], capture_id=capture,
               annotation_id=place, rule="process")  # fmt: skip


def test_empty(insert: Insert, ask: Ask) -> None:
    assert ask("SELECT * FROM v1.collectives") == []
    captures(insert, [0, 1])
    insert("kernel_event", "event_id name start_ns duration_ns", (1, "add", 0, 5), capture_id=0, kind="kernel")
    assert ask("SELECT * FROM v1.collectives") == []


def test_a_call_of_four_ranks(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    captures(insert, [0, 1, 2, 3], threads="8", rank="x")
    calls(insert, (0, 1, 100, 50), (1, 1, 110, 42), (2, 1, 140, 10), (3, 1, 130, 20), group="g")
    query = """SELECT labels['threads'], labels['rank'], collective, recorded_as, message_bytes, dtype, group_name,
                      group_size, ranks, match_rule, latency_ns, wait_ns, total_wait_ns, start_ns, end_ns,
                      skew_start_ns, skew_end_ns, last_rank, algorithm_gbps, bus_gbps FROM v1.collectives"""
    right = [("8", None, "allreduce", "allreduce", 400, "Float", "g", 4, 4, "order", 10, {0: 40, 1: 32, 2: 0, 3: 10},
              82, 100, 152, 40, 2, 2, 40.0, 60.0)]  # fmt: skip
    assert ask(query) == right
    shuffled()
    assert ask(query) == right


def test_sequence_numbers_decide_where_there_are_any(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    captures(insert, [0, 1])
    for capture, numbers in ((0, (7, 8, 9)), (1, (8, 9, 10))):  # the second rank's window began one call later
        calls(insert, *[(capture, n, 100 * n, 10 + capture, "allreduce", 5, "0", "[0, 1]", 2, n) for n in numbers])
    right = [
        (1, "unmatched", 10, None, None),
        (2, "sequence", 10, {0: 0, 1: 1}, None),
        (2, "sequence", 10, {0: 0, 1: 1}, None),
        (1, "unmatched", 11, None, None),
    ]
    assert ask(MATCHED) == right
    shuffled()
    assert ask(MATCHED) == right


def test_groups_of_one_name_are_told_apart_by_their_ranks(insert: Insert, ask: Ask) -> None:
    """Two tensor-parallel pairs, two data-parallel pairs and the world, whose calls interleave differently."""
    captures(insert, [0, 1, 2, 3])
    for rank in range(4):
        tp, dp = (f"[{rank // 2 * 2}, {rank // 2 * 2 + 1}]", f"[{rank % 2}, {rank % 2 + 2}]")
        calls(
            insert,
            (rank, 1, 1_000 + rank, 50 - rank, "allreduce", 100, "1", tp, 2, None),
            (rank, 2, 1_010 + rank, 50 - rank, "allreduce", 100, "2", dp, 2, None),
            (rank, 3, 2_000, 9, "allreduce", 100, "0", WORLD, 4, None),
            (rank, 4, 900 + 5_000 * (rank // 2), 30 + rank, "_allgather_base", 100, "1", tp, 2, None),
        )
    found = ask(
        """SELECT collective, group_name, group_ranks, ranks, map_keys(wait_ns), last_rank FROM v1.collectives
           ORDER BY group_name, group_ranks, collective"""
    )
    assert found == [
        ("allreduce", "0", WORLD, 4, [0, 1, 2, 3], None),
        ("allgather", "1", "[0, 1]", 2, [0, 1], None),
        ("allreduce", "1", "[0, 1]", 2, [0, 1], 1),
        ("allgather", "1", "[2, 3]", 2, [2, 3], None),
        ("allreduce", "1", "[2, 3]", 2, [2, 3], 3),
        ("allreduce", "2", "[0, 2]", 2, [0, 2], 2),
        ("allreduce", "2", "[1, 3]", 2, [1, 3], 3),
    ]


def test_order_is_that_of_one_collective_and_size(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1])
    calls(insert, (0, 1, 0, 9, "allreduce", 5), (0, 2, 20, 9, "allreduce", 6), (0, 3, 40, 9, "_allgather_base", 5),
          (1, 1, 0, 9, "allreduce", 6), (1, 2, 20, 9, "_allgather_base", 5), (1, 3, 40, 9, "allreduce", 5),
          size=2)  # fmt: skip
    found = ask("SELECT collective, message_bytes, ranks, match_rule FROM v1.collectives ORDER BY ALL")
    assert found == [("allgather", 40, 2, "order"), ("allreduce", 20, 2, "order"), ("allreduce", 24, 2, "order")]


def test_sizes_that_ranks_may_disagree_on_do_not_part_them(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1])
    calls(insert, (0, 1, 0, 9, "all_to_allv", 5), (1, 1, 0, 9, "all_to_allv", 7), size=2)
    assert ask("SELECT collective, message_bytes, ranks FROM v1.collectives") == [("alltoall", 28, 2)]


def test_a_missing_rank_is_seen_by_the_number(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1, 3])
    calls(insert, (0, 1, 0, 30), (1, 1, 10, 20), (2, 1, 20, 10))
    assert ask("SELECT ranks, group_size, wait_ns, last_rank FROM v1.collectives") == [(3, 4, {0: 20, 1: 10, 3: 0}, 3)]


def test_a_capture_without_events_changes_nothing(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1, 2])
    calls(insert, (0, 1, 0, 30), (1, 1, 10, 20), size=2)
    assert ask(MATCHED) == [(2, "order", 20, {0: 10, 1: 0}, 1)]


@pytest.mark.parametrize("dropped", [0, 2])
def test_a_rank_with_fewer_steps(insert: Insert, ask: Ask, dropped: int) -> None:
    """Steps tell where it fits, also if it is the first that is missing."""
    captures(insert, [0, 1])
    for capture in (0, 1):
        kept = [step for step in range(3) if capture == 0 or step != dropped]
        events = {step: [10 * step, 10 * step + 1] for step in kept}
        calls(insert, *[(capture, event, event * 100, 10 + event) for step in kept for event in events[step]],
              size=2)  # fmt: skip
        steps(insert, capture, *[(step + 5, events[step]) for step in kept])
    found = ask("SELECT step, ranks, latency_ns FROM v1.collectives ORDER BY latency_ns")
    assert found == [
        (step + 5, 1 if step == dropped else 2, 10 + 10 * step + number) for step in range(3) for number in range(2)
    ]


@pytest.mark.parametrize(("kept", "ranks"), [((0, 1), [2, 2, 1]), ((1, 2), [1, 2, 2])])
def test_fewer_calls_without_steps_are_placed_by_time(
    insert: Insert, ask: Ask, kept: Sequence[int], ranks: list[int]
) -> None:
    captures(insert, [0, 1])
    calls(insert, *[(0, n, n * 100, 50) for n in range(3)], *[(1, n, n * 100 + 5, 50) for n in kept], size=2)
    assert ask("SELECT ranks FROM v1.collectives ORDER BY start_ns") == [(number,) for number in ranks]


def test_fewer_calls_that_no_time_places_are_unmatched(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1])
    calls(insert, *[(0, n, n * 100, 50) for n in range(3)], *[(1, n, n * 100 + 99_000, 50) for n in range(2)])
    assert [row[:2] for row in ask(MATCHED)] == [(1, "unmatched")] * 5


def test_a_rank_twice_is_not_matched(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1, 1])
    calls(insert, (0, 1, 0, 30), (1, 1, 0, 30), (2, 1, 0, 30))
    assert ask(MATCHED) == [(1, "duplicate rank", 30, None, None)] * 3


def test_configurations_and_profilers_are_apart(insert: Insert, ask: Ask) -> None:
    insert("capture", "capture_id rank source labels", (0, 0, "torch", {"t": "8"}), (1, 1, "torch", {"t": "8"}),
           (2, 0, "torch", {"t": "9"}), (3, 0, "nsys", {"t": "8"}), (4, 1, "nsys", {"t": "8"}))  # fmt: skip
    calls(insert, *[(number, 1, 0, 30) for number in range(5)], size=2)
    found = ask("SELECT source, labels['t'], ranks FROM v1.collectives ORDER BY ALL")
    assert found == [("nsys", "8", 2), ("torch", "8", 2), ("torch", "9", 1)]


def test_nobody_is_last_in_a_tie(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1, 2])
    calls(insert, (0, 1, 0, 30), (1, 1, 10, 20), (2, 1, 10, 20), (0, 2, 100, 7), (1, 2, 100, 7), (2, 2, 100, 7),
          size=3)  # fmt: skip
    assert [row[3:] for row in ask(MATCHED)] == [({0: 10, 1: 0, 2: 0}, None), ({0: 0, 1: 0, 2: 0}, None)]


def plain(insert: Insert, *rows: tuple[int, int, str]) -> None:
    """Kernels without recorded arguments: capture, start, name."""
    insert("kernel_event", "capture_id event_id start_ns name",
           *[(capture, number, start, name) for number, (capture, start, name) in enumerate(rows)],
           kind="kernel", duration_ns=10)  # fmt: skip


GATHER, REDUCE = "ncclDevKernel_AllGather_RING_LL(args)", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(args)"


def test_order_alone_where_all_ranks_have_the_same_kernels(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1])
    plain(insert, (0, 0, GATHER), (0, 50, REDUCE), (0, 60, GATHER), (1, 1, GATHER), (1, 2, GATHER), (1, 3, REDUCE))
    found = ask("SELECT collective, dtype, message_bytes, ranks, match_rule FROM v1.collectives ORDER BY ALL")
    assert found == [
        ("allgather", None, None, 2, "order alone"),
        ("allgather", None, None, 2, "order alone"),
        ("reduce_scatter", "bf16", None, 2, "order alone"),
    ]


def test_order_alone_is_not_used_where_numbers_differ(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1, 2])
    plain(insert, *[(capture, 0, GATHER) for capture in (0, 1, 2)], (2, 50, GATHER), (0, 90, REDUCE), (1, 90, REDUCE))
    assert [row[:2] for row in ask(MATCHED)] == [(1, "unmatched")] * 6


def test_devices_or_numbers_stand_for_unknown_ranks(insert: Insert, ask: Ask) -> None:
    captures(insert, [None, None, 4])
    calls(insert, (0, 1, 0, 30), (1, 1, 0, 30), (2, 1, 0, 30))
    assert ask("SELECT map_keys(wait_ns) FROM v1.collectives") == [([0, 1, 2],)]


def test_devices_of_one_process_are_members(insert: Insert, ask: Ask) -> None:
    captures(insert, [None])
    for device in (3, 5):
        calls(insert, (0, device, device, 30 - device, "allreduce", 1, None, None, None, None), device_id=device)
    assert ask("SELECT ranks, match_rule, wait_ns, last_rank FROM v1.collectives") == [
        (2, "order alone", {3: 2, 5: 0}, 5)
    ]


def test_send_and_receive_among_many_ranks_match_nothing(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1, 2])
    calls(insert, (0, 1, 0, 9, "send"), (1, 1, 0, 9, "recv"), (0, 2, 50, 9, "send", 3, "p", "[0, 1]", 2),
          (1, 2, 50, 9, "recv", 3, "p", "[0, 1]", 2), size=4)  # fmt: skip
    assert ask("SELECT collective, ranks FROM v1.collectives ORDER BY start_ns, ranks") == [
        ("sendrecv", 1),
        ("sendrecv", 1),
        ("sendrecv", 2),
    ]


def test_send_and_receive_of_a_pair(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1])
    calls(insert, (0, 2, 50, 9, "send"), (1, 2, 50, 9, "recv"), size=2)
    assert ask("SELECT collective, ranks, bus_gbps = algorithm_gbps FROM v1.collectives") == [("sendrecv", 2, True)]


def test_clocks_are_put_onto_one(insert: Insert, ask: Ask) -> None:
    """Rank 1 is 1000 ns ahead and gains 10 %; recorded, it would start last."""
    captures(insert, [0, 1])
    insert("clock_alignment", "capture_id offset_ns drift_ppm uses_drift residual_median_ns", (0, 0, 0.0, False, 0),
           (1, 1_000, 100_000.0, True, 5), reference_capture_id=0, at_ns=0, calls=9, span_ns=9)  # fmt: skip
    calls(insert, (0, 1, 2_000, 100), (1, 1, 1_000 + 2_090, 200), (0, 2, 5_000, 100), (1, 2, 6_504, 90), size=2)
    query = """SELECT start_ns, skew_start_ns, skew_end_ns, last_rank, clock_residual_ns
               FROM v1.collectives ORDER BY start_ns"""
    assert ask(query) == [
        (1_900, 100, 0, 0, 5),
        (5_000, 4, 6, None, 5),  # closer than the residual: nobody is last
    ]


@pytest.mark.parametrize(
    ("zeros", "skew"), [((7, 9), 2), ((None, None), 0), ((7, None), None)], ids=["known", "unknown", "one of them"]
)
def test_clocks_that_were_not_aligned(
    insert: Insert, ask: Ask, zeros: tuple[int | None, int | None], skew: int | None
) -> None:
    insert("capture", "capture_id rank clock_zero_unix_ns", (0, 0, zeros[0]), (1, 1, zeros[1]), source="torch")
    calls(insert, (0, 1, 50, 20), (1, 1, 50, 30), size=2)
    assert ask("SELECT skew_start_ns, wait_ns, clock_residual_ns FROM v1.collectives") == [(skew, {0: 0, 1: 10}, None)]


def test_filters_and_by(insert: Insert, report: Report) -> None:
    insert("capture", "capture_id rank labels", (0, 0, {"t": "8"}), (1, 1, {"t": "8"}), (2, 0, {"t": "9"}),
           source="torch")  # fmt: skip
    calls(insert, (0, 1, 0, 9), (1, 1, 0, 9), (2, 1, 0, 9), size=2)
    by = {"t": "{base}.labels['t']"}
    assert report("collectives", '"t", ranks', by=by) == [("8", 2), ("9", 1)]
    assert report("collectives", "ranks", where={"whole": "whole.labels['t'] = '8'"}) == [(2,)]
    found = report("collective_summary", '"t", calls, unmatched_calls, latency_mean_ns', by=by)
    assert found == [("8", 1, 0, 9.0), ("9", 0, 1, None)]


def test_summary(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1])
    calls(insert, (0, 1, 0, 30), (1, 1, 20, 10), (0, 2, 100, 30), (1, 2, 110, 20), (0, 3, 200, 9, "allreduce", 7),
          size=2)  # fmt: skip
    found = ask(
        """SELECT collective, message_bytes, group_size, calls, unmatched_calls, min_ranks, latency_mean_ns,
                  latency_median_ns, latency_min_ns, latency_max_ns, latency_total_ns, total_wait_ns, wait_percent,
                  skew_start_median_ns, skew_end_max_ns, algorithm_gbps, bus_gbps
           FROM v1.collective_summary ORDER BY message_bytes"""
    )
    assert found == [
        ("allreduce", 28, 2, 0, 1, None, None, None, None, None, None, None, None, None, None, None, None),
        ("allreduce", 400, 2, 2, 0, 2, 15.0, 15.0, 10, 20, 30, 30, 100 * 30 / 90, 15.0, 0, 800 / 30, 800 / 30),
    ]
