"""``v1.collectives``: kernels of different ranks matched to calls; waiting, skew, who is last, bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from views.collective_rows import WORLD, Insert, calls, captures

Ask = Callable[[str], list[tuple[Any, ...]]]
Rows = list[dict[str, Any]]
Found = dict[str, Rows]
Cases = Callable[..., list[dict[str, list[Any]]]]
Report = Callable[..., list[tuple[Any, ...]]]

QUERY = "SELECT labels['case'], c FROM v1.collectives AS c ORDER BY start_ns, collective_id"


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


def four_ranks(insert: Insert) -> None:
    captures(insert, [0, 1, 2, 3], threads="8", rank="x")
    calls(insert, (0, 1, 100, 50), (1, 1, 110, 42), (2, 1, 140, 10), (3, 1, 130, 20), group="g")


def sequence_numbers(insert: Insert) -> None:
    captures(insert, [0, 1])
    for capture, numbers in ((0, (7, 8, 9)), (1, (8, 9, 10))):  # the second rank's window began one call later
        calls(insert, *[(capture, n, 100 * n, 10 + capture, "allreduce", 5, "0", "[0, 1]", 2, n) for n in numbers])


def groups(insert: Insert) -> None:
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


def sizes(insert: Insert) -> None:
    captures(insert, [0, 1])
    calls(insert, (0, 1, 0, 9, "allreduce", 5), (0, 2, 20, 9, "allreduce", 6), (0, 3, 40, 9, "_allgather_base", 5),
          (1, 1, 0, 9, "allreduce", 6), (1, 2, 20, 9, "_allgather_base", 5), (1, 3, 40, 9, "allreduce", 5),
          size=2)  # fmt: skip


def unequal_sizes(insert: Insert) -> None:
    captures(insert, [0, 1])
    calls(insert, (0, 1, 0, 9, "all_to_allv", 5), (1, 1, 0, 9, "all_to_allv", 7), size=2)


def missing_rank(insert: Insert) -> None:
    captures(insert, [0, 1, 3])
    calls(insert, (0, 1, 0, 30), (1, 1, 10, 20), (2, 1, 20, 10))


def capture_without_events(insert: Insert) -> None:
    captures(insert, [0, 1, 2])
    calls(insert, (0, 1, 0, 30), (1, 1, 10, 20), size=2)


def fewer_steps(insert: Insert, dropped: int) -> None:
    captures(insert, [0, 1])
    for capture in (0, 1):
        kept = [step for step in range(3) if capture == 0 or step != dropped]
        events = {step: [10 * step, 10 * step + 1] for step in kept}
        calls(insert, *[(capture, event, event * 100, 10 + event) for step in kept for event in events[step]],
              size=2)  # fmt: skip
        steps(insert, capture, *[(step + 5, events[step]) for step in kept])


def fewer_calls(insert: Insert, kept: Sequence[int], late: int = 5, **shared: Any) -> None:
    captures(insert, [0, 1])
    calls(insert, *[(0, n, n * 100, 50) for n in range(3)], *[(1, n, n * 100 + late, 50) for n in kept], **shared)


def rank_twice(insert: Insert) -> None:
    captures(insert, [0, 1, 1])
    calls(insert, (0, 1, 0, 30), (1, 1, 0, 30), (2, 1, 0, 30))


def profilers(insert: Insert) -> None:
    insert("capture", "capture_id rank source labels", (0, 0, "torch", {"t": "8"}), (1, 1, "torch", {"t": "8"}),
           (2, 0, "torch", {"t": "9"}), (3, 0, "nsys", {"t": "8"}), (4, 1, "nsys", {"t": "8"}))  # fmt: skip
    calls(insert, *[(number, 1, 0, 30) for number in range(5)], size=2)


def ties(insert: Insert) -> None:
    captures(insert, [0, 1, 2])
    calls(insert, (0, 1, 0, 30), (1, 1, 10, 20), (2, 1, 10, 20), (0, 2, 100, 7), (1, 2, 100, 7), (2, 2, 100, 7),
          size=3)  # fmt: skip


def plain(insert: Insert, *rows: tuple[int, int, str]) -> None:
    """Kernels without recorded arguments: capture, start, name."""
    insert("kernel_event", "capture_id event_id start_ns name",
           *[(capture, number, start, name) for number, (capture, start, name) in enumerate(rows)],
           kind="kernel", duration_ns=10)  # fmt: skip


GATHER, REDUCE = "ncclDevKernel_AllGather_RING_LL(args)", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(args)"


def same_kernels(insert: Insert) -> None:
    captures(insert, [0, 1])
    plain(insert, (0, 0, GATHER), (0, 50, REDUCE), (0, 60, GATHER), (1, 1, GATHER), (1, 2, GATHER), (1, 3, REDUCE))


def other_kernels(insert: Insert) -> None:
    captures(insert, [0, 1, 2])
    plain(insert, *[(capture, 0, GATHER) for capture in (0, 1, 2)], (2, 50, GATHER), (0, 90, REDUCE), (1, 90, REDUCE))


def unknown_ranks(insert: Insert) -> None:
    captures(insert, [None, None, 4])
    calls(insert, (0, 1, 0, 30), (1, 1, 0, 30), (2, 1, 0, 30))


def devices(insert: Insert) -> None:
    captures(insert, [None])
    for device in (3, 5):
        calls(insert, (0, device, device, 30 - device, "allreduce", 1, None, None, None, None), device_id=device)


def sends_among_many(insert: Insert) -> None:
    captures(insert, [0, 1, 2])
    calls(insert, (0, 1, 0, 9, "send"), (1, 1, 0, 9, "recv"), (0, 2, 50, 9, "send", 3, "p", "[0, 1]", 2),
          (1, 2, 50, 9, "recv", 3, "p", "[0, 1]", 2), size=4)  # fmt: skip


def sends_of_a_pair(insert: Insert) -> None:
    captures(insert, [0, 1])
    calls(insert, (0, 2, 50, 9, "send"), (1, 2, 50, 9, "recv"), size=2)


def aligned(insert: Insert) -> None:
    """Rank 1 is 1000 ns ahead and gains 10 %; recorded, it would start last."""
    captures(insert, [0, 1])
    insert("clock_alignment", "capture_id offset_ns drift_ppm uses_drift residual_median_ns", (0, 0, 0.0, False, 0),
           (1, 1_000, 100_000.0, True, 5), reference_capture_id=0, at_ns=0, calls=9, span_ns=9)  # fmt: skip
    calls(insert, (0, 1, 2_000, 100), (1, 1, 1_000 + 2_090, 200), (0, 2, 5_000, 100), (1, 2, 6_504, 90), size=2)


def zeros(insert: Insert, first: int | None, second: int | None) -> None:
    insert("capture", "capture_id rank clock_zero_unix_ns", (0, 0, first), (1, 1, second), source="torch")
    calls(insert, (0, 1, 50, 20), (1, 1, 50, 30), size=2)


FEWER = [((0, 1), [2, 2, 1]), ((1, 2), [1, 2, 2])]
ZEROS: dict[str, tuple[int | None, int | None, int | None]] = {
    "known": (7, 9, 2), "unknown": (None, None, 0), "one of them": (7, None, None)
}  # fmt: skip
"""The zeros of two clocks, and by how much they differ at the start of a call."""
WRITERS: dict[str, Callable[[Insert], None]] = {
    **{
        write.__name__: write
        for write in (
            four_ranks, sequence_numbers, groups, sizes, unequal_sizes, missing_rank, capture_without_events,
            rank_twice, profilers, ties, same_kernels, other_kernels, unknown_ranks, devices, sends_among_many,
            sends_of_a_pair, aligned,
        )
    },
    **{f"fewer steps {dropped}": partial(fewer_steps, dropped=dropped) for dropped in (0, 2)},
    **{f"fewer calls {kept}": partial(fewer_calls, kept=kept, size=2) for kept, _ in FEWER},
    "fewer calls, late": partial(fewer_calls, kept=(0, 1), late=99_000),
    **{f"zeros {name}": partial(zeros, first=first, second=second) for name, (first, second, _) in ZEROS.items()},
}  # fmt: skip


@pytest.fixture(scope="module")
def found(cases: Cases) -> Found:
    """The calls of each case."""
    (rows,) = cases(WRITERS, QUERY)
    return rows


def columns(rows: Rows, names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name.strip()] for name in names.split(",")) for row in rows]


MATCHED = "ranks, match_rule, latency_ns, wait_ns, last_rank"


def test_the_order_of_rows_does_not_matter(found: Found, cases: Cases) -> None:
    (turned,) = cases(WRITERS, QUERY, is_turned=True)
    compared = f"{MATCHED}, collective, group_ranks, step, start_ns, end_ns"
    for case in WRITERS:
        assert sorted(map(repr, columns(turned[case], compared))) == sorted(map(repr, columns(found[case], compared)))


def test_a_call_of_four_ranks(found: Found) -> None:
    names = """collective, recorded_as, message_bytes, dtype, group_name, group_size, ranks, match_rule, latency_ns,
               wait_ns, total_wait_ns, start_ns, end_ns, skew_start_ns, skew_end_ns, last_rank, algorithm_gbps,
               bus_gbps"""
    assert columns(found["four_ranks"], names) == [
        ("allreduce", "allreduce", 400, "Float", "g", 4, 4, "order", 10, {0: 40, 1: 32, 2: 0, 3: 10},
         82, 100, 152, 40, 2, 2, 40.0, 60.0)
    ]  # fmt: skip
    assert [row["labels"] for row in found["four_ranks"]] == [{"case": "four_ranks", "threads": "8"}]


def test_sequence_numbers_decide_where_there_are_any(found: Found) -> None:
    assert columns(found["sequence_numbers"], MATCHED) == [
        (1, "unmatched", 10, None, None),
        (2, "sequence", 10, {0: 0, 1: 1}, None),
        (2, "sequence", 10, {0: 0, 1: 1}, None),
        (1, "unmatched", 11, None, None),
    ]


def test_groups_of_one_name_are_told_apart_by_their_ranks(found: Found) -> None:
    rows = [
        (row["collective"], row["group_name"], row["group_ranks"], row["ranks"], list(row["wait_ns"]), row["last_rank"])
        for row in sorted(found["groups"], key=lambda row: (row["group_name"], row["group_ranks"], row["collective"]))
    ]
    assert rows == [
        ("allreduce", "0", WORLD, 4, [0, 1, 2, 3], None),
        ("allgather", "1", "[0, 1]", 2, [0, 1], None),
        ("allreduce", "1", "[0, 1]", 2, [0, 1], 1),
        ("allgather", "1", "[2, 3]", 2, [2, 3], None),
        ("allreduce", "1", "[2, 3]", 2, [2, 3], 3),
        ("allreduce", "2", "[0, 2]", 2, [0, 2], 2),
        ("allreduce", "2", "[1, 3]", 2, [1, 3], 3),
    ]


def test_order_is_that_of_one_collective_and_size(found: Found) -> None:
    rows = sorted(columns(found["sizes"], "collective, message_bytes, ranks, match_rule"))
    assert rows == [("allgather", 40, 2, "order"), ("allreduce", 20, 2, "order"), ("allreduce", 24, 2, "order")]


def test_sizes_that_ranks_may_disagree_on_do_not_part_them(found: Found) -> None:
    assert columns(found["unequal_sizes"], "collective, message_bytes, ranks") == [("alltoall", 28, 2)]


def test_a_missing_rank_is_seen_by_the_number(found: Found) -> None:
    rows = columns(found["missing_rank"], "ranks, group_size, wait_ns, last_rank")
    assert rows == [(3, 4, {0: 20, 1: 10, 3: 0}, 3)]


def test_a_capture_without_events_changes_nothing(found: Found) -> None:
    assert columns(found["capture_without_events"], MATCHED) == [(2, "order", 20, {0: 10, 1: 0}, 1)]


@pytest.mark.parametrize("dropped", [0, 2])
def test_a_rank_with_fewer_steps(found: Found, dropped: int) -> None:
    """Steps tell where it fits, also if it is the first that is missing."""
    rows = sorted(columns(found[f"fewer steps {dropped}"], "step, ranks, latency_ns"), key=lambda row: int(row[2]))
    assert rows == [
        (step + 5, 1 if step == dropped else 2, 10 + 10 * step + number) for step in range(3) for number in range(2)
    ]


@pytest.mark.parametrize(("kept", "ranks"), FEWER)
def test_fewer_calls_without_steps_are_placed_by_time(found: Found, kept: Sequence[int], ranks: list[int]) -> None:
    assert [row["ranks"] for row in found[f"fewer calls {kept}"]] == ranks


def test_fewer_calls_that_no_time_places_are_unmatched(found: Found) -> None:
    assert columns(found["fewer calls, late"], "ranks, match_rule") == [(1, "unmatched")] * 5


def test_a_rank_twice_is_not_matched(found: Found) -> None:
    assert columns(found["rank_twice"], MATCHED) == [(1, "duplicate rank", 30, None, None)] * 3


def test_configurations_and_profilers_are_apart(found: Found) -> None:
    rows = sorted((row["source"], row["labels"]["t"], row["ranks"]) for row in found["profilers"])
    assert rows == [("nsys", "8", 2), ("torch", "8", 2), ("torch", "9", 1)]


def test_nobody_is_last_in_a_tie(found: Found) -> None:
    assert columns(found["ties"], "wait_ns, last_rank") == [({0: 10, 1: 0, 2: 0}, None), ({0: 0, 1: 0, 2: 0}, None)]


def test_order_alone_where_all_ranks_have_the_same_kernels(found: Found) -> None:
    rows = sorted(columns(found["same_kernels"], "collective, dtype, message_bytes, ranks, match_rule"), key=str)
    assert rows == [
        ("allgather", None, None, 2, "order alone"),
        ("allgather", None, None, 2, "order alone"),
        ("reduce_scatter", "bf16", None, 2, "order alone"),
    ]


def test_order_alone_is_not_used_where_numbers_differ(found: Found) -> None:
    assert columns(found["other_kernels"], "ranks, match_rule") == [(1, "unmatched")] * 6


def test_devices_or_numbers_stand_for_unknown_ranks(found: Found) -> None:
    assert [sorted(row["wait_ns"]) for row in found["unknown_ranks"]] == [[0, 1, 2]]


def test_devices_of_one_process_are_members(found: Found) -> None:
    rows = columns(found["devices"], "ranks, match_rule, wait_ns, last_rank")
    assert rows == [(2, "order alone", {3: 2, 5: 0}, 5)]


def test_send_and_receive_among_many_ranks_match_nothing(found: Found) -> None:
    rows = [(row["start_ns"], row["collective"], row["ranks"]) for row in found["sends_among_many"]]
    assert sorted(rows) == [(0, "sendrecv", 1), (0, "sendrecv", 1), (50, "sendrecv", 2)]


def test_send_and_receive_of_a_pair(found: Found) -> None:
    (row,) = found["sends_of_a_pair"]
    assert (row["collective"], row["ranks"], row["bus_gbps"] == row["algorithm_gbps"]) == ("sendrecv", 2, True)


def test_clocks_are_put_onto_one(found: Found) -> None:
    assert columns(found["aligned"], "start_ns, skew_start_ns, skew_end_ns, last_rank, clock_residual_ns") == [
        (1_900, 100, 0, 0, 5),
        (5_000, 4, 6, None, 5),  # closer than the residual: nobody is last
    ]


@pytest.mark.parametrize("name", ZEROS)
def test_clocks_that_were_not_aligned(found: Found, name: str) -> None:
    rows = columns(found[f"zeros {name}"], "skew_start_ns, wait_ns, clock_residual_ns")
    assert rows == [(ZEROS[name][2], {0: 0, 1: 10}, None)]


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
