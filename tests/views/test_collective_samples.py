"""``v1.collective_samples``: calls matched over the ranks of a run, with transfer and waiting separated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

RANGE = "annotation_id name start_ns duration_ns"
TIMES = "collective, ranks, clock, n, latency_median_ns, latency_min_ns, latency_max_ns, wait_median_ns, wait_max_ns"
COUNTED = ("allgather", "alltoall", "broadcast", "gather", "gossip", "p2p", "reducescatter", "scatter")
NAME = "comm|allreduce|elements=1000|nodes=1|gpus_per_node=2"


def rank(insert: Insert, number: int, *calls: tuple[int, int], name: str = NAME, run: str | None = "x") -> None:
    """Put in a rank's calls as (start, GPU time); without GPU time the call launched nothing."""
    labels = {"dtype": "fp16", **({"run": run} if run else {})}
    insert("capture", "capture_id rank labels", (number, number, labels), source="torch")
    insert("device", "device_id name", (number, "GPU X"), capture_id=number)
    for place, (start, busy) in enumerate(calls):
        insert("annotation", RANGE, (place, name, start, 100 + place), capture_id=number, style="user")
        if busy:
            event = (place, "kernel", start + 5, busy, number, "nccl")
            insert("kernel_event", "event_id kind start_ns duration_ns device_id name", event, capture_id=number)
            insert("annotation_kernel", "annotation_id event_id rule", (place, place, "process"), capture_id=number)


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.collective_samples") == []


def test_the_shortest_rank_is_the_transfer(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    """Calls of 40, 50 and 60 ns, in which one rank or the other waits 10, 5 and 0 ns."""
    rank(insert, 0, (1000, 50), (2000, 50), (3000, 60))
    rank(insert, 1, (7000, 40), (8000, 55), (9000, 60))
    right = [("allreduce", 2, "gpu", 3, 50.0, 40, 60, 5.0, 10)]
    assert ask(f"SELECT {TIMES} FROM v1.collective_samples") == right
    shuffled()
    assert ask(f"SELECT {TIMES} FROM v1.collective_samples") == right
    (found,) = ask("SELECT gpu, dtype, run_label, message_bytes, algorithm_gbps, bus_gbps FROM v1.collective_samples")
    assert found == ("GPU X", "fp16", "x", 2000, 40.0, 40.0)


def test_sizes_are_counted_as_nccls_tests_do(insert: Insert, ask: Ask) -> None:
    names = {what: f"comm|{what}|elements=1000" for what in COUNTED}
    for place, (what, name) in enumerate(sorted(names.items())):
        for number in (0, 1):
            rank(insert, 2 * place + number, (0, 10), name=name, run=what)
    rows = ask("SELECT collective, message_bytes, algorithm_gbps, bus_gbps FROM v1.collective_samples ORDER BY ALL")
    assert rows == [
        ("allgather", 4000, 400.0, 200.0),
        ("alltoall", 2000, 200.0, 100.0),
        ("broadcast", 2000, 200.0, 200.0),
        ("gather", 4000, 400.0, 200.0),
        ("gossip", 2000, 200.0, None),
        ("p2p", 2000, 200.0, 200.0),
        ("reducescatter", 2000, 200.0, 100.0),
        ("scatter", 2000, 200.0, 100.0),
    ]


def test_a_rank_alone_knows_no_waiting(insert: Insert, ask: Ask) -> None:
    rank(insert, 0, (0, 10), run=None)
    rank(insert, 1, (0, 20), run=None)
    rows = ask("SELECT run_label, ranks, latency_median_ns, wait_median_ns FROM v1.collective_samples ORDER BY ALL")
    assert rows == [("capture 0", 1, 10.0, None), ("capture 1", 1, 20.0, None)]


def test_without_gpu_activity_the_ranges_count(insert: Insert, ask: Ask) -> None:
    rank(insert, 0, (0, 0), (1000, 0))
    rank(insert, 1, (0, 0), (1000, 0))
    assert ask(f"SELECT {TIMES}, gpu FROM v1.collective_samples") == [
        ("allreduce", 2, "host", 2, 100.5, 100, 101, 0.0, 0, None)
    ]


def test_filters_take_ranks_out(insert: Insert, report: Report) -> None:
    rank(insert, 0, (0, 30))
    rank(insert, 1, (0, 40))
    assert report("collective_samples", "ranks, latency_median_ns", where={"r": "r.rank = 1"}) == [(1, 40.0)]
    by_rank = report("collective_samples", "rank, latency_median_ns, wait_median_ns", by={"rank": "{base}.rank"})
    assert by_rank == [(0, 30.0, None), (1, 40.0, None)]
