"""All-to-all among ranks that send different sizes: bandwidth from the bytes actually sent to other ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from views.collective_rows import Insert, captures

Ask = Callable[[str], list[tuple[Any, ...]]]
Together = Callable[[Callable[[Insert], None], str], list[tuple[Any, ...]]]

COLUMNS = (
    "capture_id event_id start_ns duration_ns collective message_in_elements message_out_elements message_in_splits"
)
BANDWIDTH = "SELECT message_bytes, sent_bytes, round(algorithm_gbps, 9), round(bus_gbps, 9) FROM v1.collectives"
SUMMARY = "SELECT calls, round(algorithm_gbps, 9), round(bus_gbps, 9) FROM v1.collective_summary"


def exchange(
    insert: Insert,
    *rows: tuple[int, int, str | None],
    name: str = "all_to_allv",
    size: int = 2,
    event: int = 1,
    first: int = 0,
) -> None:
    """One call: what each rank puts in, gets out and sends to each, in elements of 2 bytes; 50 µs on the last rank.

    ``first``: capture of rank 0; the others follow.
    """
    calls = [(first + rank, event, 50_000 * event, 50_000, name, *row) for rank, row in enumerate(rows)]
    insert("kernel_event", COLUMNS, *calls, kind="kernel", name="ncclDevKernel_SendRecv", dtype="BFloat16", device_id=0,
           group_name="0", group_size=size, group_ranks=str(list(range(size))))  # fmt: skip


def test_uneven_splits(insert: Insert, ask: Ask) -> None:
    """The first rank sends 3,000 of its 4,000 elements to the other: 6,000 bytes in 50 µs."""
    captures(insert, [0, 1])
    exchange(insert, (4_000, 1_500, "[1000, 3000]"), (1_000, 3_500, "[500, 500]"))
    assert ask(BANDWIDTH) == [(8_000, 6_000, 0.16, 0.12)]
    assert ask(SUMMARY) == [(1, 0.16, 0.12)]


def test_equal_sizes_of_uneven_splits(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1])
    exchange(insert, (4_000, 4_000, "[1000, 3000]"), (4_000, 4_000, "[3000, 1000]"))
    assert ask(BANDWIDTH) == [(8_000, 6_000, 0.16, 0.12)]


def test_splits_in_rows_of_a_matrix(insert: Insert, ask: Ask) -> None:
    """Split sizes count rows of 10 elements here."""
    captures(insert, [0, 1])
    exchange(insert, (40_000, 15_000, "[1000, 3000]"), (10_000, 35_000, "[500, 500]"))
    assert ask(BANDWIDTH) == [(80_000, 60_000, 1.6, 1.2)]


NO_WHOLE_SPLITS = [
    (name, splits)
    for name in ("all_to_all", "all_to_allv")
    for splits in (None, "[1000, 3000, ...]", "[1000]", "[-1, 4001]")
]


@pytest.fixture(scope="module")
def without_whole_splits(together: Together) -> list[list[tuple[Any, ...]]]:
    """Calls and sums of each case, a run of its own."""

    def write(insert: Insert) -> None:
        for case, (name, splits) in enumerate(NO_WHOLE_SPLITS):
            first = 2 * case
            insert("capture", "capture_id rank", (first, 0), (first + 1, 1), source="torch", labels={"case": str(case)})
            exchange(insert, (4_000, 1_500, splits), (1_000, 3_500, "[500, 500]"), name=name, first=first)

    found = [
        together(write, query.replace("SELECT", "SELECT labels['case']::INTEGER,", 1)) for query in (BANDWIDTH, SUMMARY)
    ]
    return [[row[1:] for rows in found for row in rows if row[0] == case] for case in range(len(NO_WHOLE_SPLITS))]


@pytest.mark.parametrize("case", range(len(NO_WHOLE_SPLITS)), ids=map(str, NO_WHOLE_SPLITS))
def test_sizes_that_differ_without_whole_splits(case: int, without_whole_splits: list[list[tuple[Any, ...]]]) -> None:
    assert without_whole_splits[case] == [(8_000, None, None, None), (1, None, None)]


def test_equal_sizes(insert: Insert, ask: Ask) -> None:
    """Without split sizes they are even; under the name that stands for uneven ones nothing is known."""
    captures(insert, [0, 1])
    exchange(insert, (4_000, 4_000, None), (4_000, 4_000, None), name="all_to_all")
    exchange(insert, (4_000, 4_000, None), (4_000, 4_000, None), event=2)
    exchange(insert, (4_000, 4_000, "[2000, 2000]"), (4_000, 4_000, "[2000, 2000]"), event=3)
    even = (8_000, 4_000, 0.16, 0.08)
    assert ask(f"{BANDWIDTH} ORDER BY start_ns") == [even, (8_000, None, None, None), even]
    assert ask(SUMMARY) == [(3, None, None)]


def test_a_rank_whose_capture_is_missing(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1])
    exchange(insert, (3_000, 3_000, "[500, 500, 2000]"), (3_000, 3_000, "[1500, 1000, 500]"), size=3)
    assert ask(BANDWIDTH) == [(6_000, None, None, None)]


def test_nothing_sent(insert: Insert, ask: Ask) -> None:
    captures(insert, [0, 1])
    exchange(insert, (0, 0, "[0, 0]"), (0, 0, "[0, 0]"))
    assert ask(BANDWIDTH) == [(0, 0, 0.0, 0.0)]
