"""``v1.expert_load``: what all-to-all calls bring to each rank, and who waits for the rank with most to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from views.collective_rows import Insert, captures

Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

COLUMNS = """capture_id event_id call_id start_ns duration_ns message_in_elements message_out_elements
    message_in_splits"""
WIDTH = 8
"""Elements of a token, of 2 bytes."""
LOAD = "rank, in_bytes, out_bytes, in_tokens, out_tokens, imbalance, hot_rank, wait_caused_ns"
SHARES = (25, 25, 40, 10)


def exchange(
    insert: Insert,
    number: int,
    splits: list[list[int]],
    starts: list[int],
    end: int,
    ranks: int | None = None,
) -> None:
    """One call: ``splits`` by sender and receiver, in tokens; all ranks end together."""
    size = len(splits)
    for rank in range(ranks or size):
        out = [row[rank] for row in splits]
        insert("kernel_event", COLUMNS,
               (rank, number, 100 + number, starts[rank], end - starts[rank], WIDTH * sum(splits[rank]),
                WIDTH * sum(out), str(splits[rank])), kind="kernel", name="ncclDevKernel_SendRecv",
               collective="all_to_allv", dtype="BFloat16", device_id=0, group_name="7", group_size=size,
               group_ranks=str(list(range(size))))  # fmt: skip
        insert("collective_call", "capture_id call_id message_out_splits", (rank, 100 + number, str(out)),
               collective="all_to_allv")  # fmt: skip


def test_experts_with_25_25_40_and_10_percent(insert: Insert, ask: Ask, report: Report) -> None:
    """Rank 2 gets 40 % of the tokens, and comes last to the call that sends them back."""
    captures(insert, [0, 1, 2, 3])
    there = [list(SHARES) for _ in range(4)]
    back = [[share] * 4 for share in SHARES]
    exchange(insert, 1, there, [0, 0, 0, 0], 10)
    exchange(insert, 2, back, [110, 110, 170, 50], 180)
    sent = 100 * WIDTH * 2
    dispatch, combine = (
        ask(f"SELECT {LOAD} FROM v1.expert_load WHERE event_id = {number} ORDER BY rank") for number in (1, 2)
    )
    assert dispatch == [
        (rank, 4 * share * WIDTH * 2, sent, 4 * share, 100, 1.6, 2, 0) for rank, share in enumerate(SHARES)
    ]
    waits = 60 + 60 + 120
    assert combine == [
        (rank, sent, 4 * share * WIDTH * 2, 100, 4 * share, 1.0, 2, waits if rank == 2 else 0)
        for rank, share in enumerate(SHARES)
    ]
    more = ask("SELECT rank, in_percent, out_imbalance, wait_ns FROM v1.expert_load WHERE event_id = 2 ORDER BY rank")
    assert more == [(0, 25.0, 1.6, 60), (1, 25.0, 1.6, 60), (2, 25.0, 1.6, 0), (3, 25.0, 1.6, 120)]
    assert report("expert_load", "rank, imbalance", where={"load": "load.rank = 2"}) == [(2, 1.0), (2, 1.6)]


def test_even_load_has_no_hot_rank(insert: Insert, ask: Ask) -> None:
    assert ask(f"SELECT {LOAD} FROM v1.expert_load") == []
    captures(insert, [0, 1])
    exchange(insert, 1, [[5, 5], [5, 5]], [0, 4], 10)
    sent = 10 * WIDTH * 2
    assert ask(f"SELECT {LOAD} FROM v1.expert_load ORDER BY rank") == [
        (0, sent, sent, 10, 10, 1.0, None, 0),
        (1, sent, sent, 10, 10, 1.0, None, 4),
    ]


def test_a_missing_rank_leaves_the_imbalance_open(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1])
    exchange(insert, 1, [[5, 9, 1]] * 3, [0, 0, 0], 10, ranks=2)
    assert ask("SELECT rank, in_tokens, imbalance, hot_rank FROM v1.expert_load ORDER BY rank") == [
        (0, 15, None, None),
        (1, 27, None, None),
    ]


@pytest.mark.parametrize("is_parent", [True, False])
def test_tokens_from_the_shapes_of_the_operator(insert: Insert, ask: Ask, is_parent: bool) -> None:
    """Lists of more than 30 split sizes are shortened; the first dimensions of output and input are their sums."""
    captures(insert, [0])
    insert("op", "op_id name input_dims parent_op_id",
           (1, "c10d::alltoall_base_", "[[15, 8], [40, 8], [], [], [], [], []]", None),
           (2, "record_param_comms", "[[[40, 8]]]", 1), capture_id=0, start_ns=0, duration_ns=1)  # fmt: skip
    insert("kernel_event", "event_id op_id message_in_splits message_in_elements message_out_elements",
           (1, 2 if is_parent else 1, "[10, 30, ...]", 320, 120), capture_id=0, kind="kernel", start_ns=0,
           duration_ns=1, name="ncclDevKernel_SendRecv", collective="all_to_allv", dtype="Float",
           group_size=64)  # fmt: skip
    assert ask("SELECT in_tokens, out_tokens, in_bytes, wait_caused_ns FROM v1.expert_load") == [(15, 40, 480, None)]


@pytest.mark.parametrize(("dtype", "width"), [("float", 4), ("long int", 8), ("c10::BFloat16", 2)])
def test_sizes_from_the_shapes_of_the_operator(insert: Insert, ask: Ask, dtype: str, width: int) -> None:
    """Traces of 2022 say nothing of the message."""
    captures(insert, [0, 1])
    for rank, (out, given) in enumerate(((30, 20), (10, 20))):
        types = f'["{dtype}","{dtype}",""]'
        insert("op", "op_id input_dims input_types", (1, f"[[{out}, 2], [{given}, 2], []]", types), capture_id=rank,
               name="c10d::alltoall_base_", start_ns=0, duration_ns=1)  # fmt: skip
        insert("kernel_event", "event_id op_id", (1, 1), capture_id=rank, kind="kernel", start_ns=rank,
               duration_ns=10, name="ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t")  # fmt: skip
    assert ask(
        "SELECT rank, in_bytes, out_bytes, in_tokens, imbalance, hot_rank FROM v1.expert_load ORDER BY rank"
    ) == [
        (0, 60 * width, 40 * width, 30, 1.5, 0),
        (1, 20 * width, 40 * width, 10, 1.5, 0),
    ]
