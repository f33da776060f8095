"""``v1.pipeline_bubble`` on simulated pipelines, whose bubbles are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from support.pipelines import Pipeline
from tracedb.derive import clock_alignment
from views.collective_rows import Insert

Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

GEMM, SEND_RECV = "sm90_xmma_gemm_bf16", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
EQUAL = ([100] * 4, [200] * 4)
TIMES = "step, stage, window_ns, compute_ns, transfer_ns, bubble_ns"
PHASES = "stage, warmup_bubble_ns, steady_bubble_ns, cooldown_bubble_ns"


def insert_pipeline(insert: Insert, pipeline: Pipeline, first: int = 0, **labels: str) -> None:
    """The captures of a pipeline, in ns, with the calls of each kernel of sends and receives."""
    pipeline.run()
    for stage, rank in enumerate(pipeline.group):
        capture = first + rank
        insert("capture", "capture_id rank labels", (capture, rank, labels), source="torch", clock_zero_unix_ns=0)
        numbers = list(enumerate(pipeline.items[stage], 1))
        insert("kernel_event", "event_id name start_ns duration_ns launch_id",
               *[(10 * n, SEND_RECV if item.messages else GEMM, item.start, (item.end or 0) - (item.start or 0), 10 * n)
                 for n, (_, item) in numbers], capture_id=capture, kind="kernel", device_id=0)  # fmt: skip
        insert("launch", "launch_id start_ns", *[(10 * n, 10 * n + 9) for n, _ in numbers], capture_id=capture,
               name="cuLaunchKernelEx", thread_id=1, duration_ns=0)  # fmt: skip
        calls = [(10 * n + place, message) for n, (_, item) in numbers for place, message in enumerate(item.messages)]
        insert("op", "op_id start_ns", *[(number, number) for number, _ in calls], capture_id=capture, thread_id=1,
               name="record_param_comms", duration_ns=0)  # fmt: skip
        insert("collective_call", "call_id collective rank_in_group",
               *[(number, "send", m.destination) if m.source == stage else (number, "recv", m.source)
                 for number, m in calls],
               capture_id=capture, message_in_elements=64, dtype="BFloat16", group_name="1",
               group_ranks=str(list(pipeline.group)))  # fmt: skip
        steps = sorted({step for step, _ in pipeline.items[stage]})
        insert("annotation", "annotation_id name", *[(step, f"ProfilerStep#{step}") for step in steps],
               capture_id=capture, style="user", start_ns=0, duration_ns=1)  # fmt: skip
        insert("annotation_kernel", "annotation_id event_id",
               *[(step, 10 * n) for n, (step, _) in numbers], capture_id=capture, rule="process")  # fmt: skip


def test_no_rows(ask: Ask) -> None:
    assert ask(f"SELECT {TIMES} FROM v1.pipeline_bubble") == []


@pytest.mark.parametrize(
    ("schedule", "micro_batches", "percent"), [("1f1b", 8, 300 / 11), ("1f1b", 16, 300 / 19), ("gpipe", 16, 300 / 19)]
)
def test_equal_stages_have_the_ideal_bubble(
    insert: Insert, ask: Ask, schedule: str, micro_batches: int, percent: float
) -> None:
    """27.27 % and 15.79 % of the time."""
    insert_pipeline(insert, Pipeline(*EQUAL, micro_batches, schedule))
    assert ask("""SELECT stage, rank, stages, micro_batches, bubble_percent, ideal_percent, is_bottleneck
                  FROM v1.pipeline_bubble ORDER BY stage""") == [
        (stage, stage, 4, micro_batches, percent, percent, False) for stage in range(4)
    ]  # fmt: skip


@pytest.mark.parametrize(("chunks", "micro_batches"), [(2, 8), (4, 8), (2, 16)])
def test_interleaved_chunks_have_the_ideal_bubble(insert: Insert, ask: Ask, chunks: int, micro_batches: int) -> None:
    """With several chunks of layers on each rank, the bubble is that of as many times more micro-batches."""
    insert_pipeline(insert, Pipeline(*EQUAL, micro_batches, "interleaved", chunks))
    percent = 300 / (chunks * micro_batches + 3)
    assert ask("""SELECT stage, rank, stages, micro_batches, bubble_percent, ideal_percent, is_bottleneck
                  FROM v1.pipeline_bubble ORDER BY stage""") == [
        (stage, stage, 4, micro_batches, percent, percent, False) for stage in range(4)
    ]  # fmt: skip


@pytest.mark.parametrize("schedule", ["gpipe", "interleaved"])
def test_the_slow_stage_of_other_schedules(insert: Insert, ask: Ask, schedule: str) -> None:
    forward, backward = ([150 if stage == 1 else 100 for stage in range(4)], [200] * 4)
    chunks = 2 if schedule == "interleaved" else 1
    insert_pipeline(insert, Pipeline(forward, backward, 8, schedule, chunks))
    assert ask("SELECT stage, micro_batches FROM v1.pipeline_bubble WHERE is_bottleneck") == [(1, 8)]


def test_phases_of_1f1b(insert: Insert, ask: Ask) -> None:
    """Each stage waits for the ones before it in the warm-up, and for the ones behind it in the cool-down."""
    insert_pipeline(insert, Pipeline(*EQUAL, 8))
    rows = ask(f"SELECT {PHASES} FROM v1.pipeline_bubble ORDER BY stage")
    assert rows == [(0, 600, 0, 300), (1, 500, 0, 400), (2, 400, 0, 500), (3, 300, 0, 600)]


def test_phases_of_gpipe(insert: Insert, ask: Ask) -> None:
    insert_pipeline(insert, Pipeline(*EQUAL, 8, "gpipe"))
    rows = ask(f"SELECT {PHASES} FROM v1.pipeline_bubble ORDER BY stage")
    assert rows == [(0, 900, 0, 0), (1, 700, 0, 200), (2, 500, 0, 400), (3, 300, 0, 600)]


@pytest.mark.parametrize(("slow", "is_batched"), [(0, True), (2, False), (3, True)])
def test_the_slow_stage_is_the_bottleneck(insert: Insert, ask: Ask, slow: int, is_batched: bool) -> None:
    """The stages of two pipelines stand interleaved on the ranks; in one of them a stage is slow."""
    forward, backward = ([150 if stage == slow else 100 for stage in range(4)], [200] * 4)
    insert_pipeline(insert, Pipeline(forward, backward, 8, transfer=5, steps=2, is_batched=is_batched,
                                     group=[0, 2, 4, 6]))  # fmt: skip
    insert_pipeline(insert, Pipeline(*EQUAL, 8, transfer=5, steps=2, is_batched=is_batched, group=[1, 3, 5, 7]))
    rows = ask("SELECT step, pipeline, stage, rank FROM v1.pipeline_bubble WHERE is_bottleneck ORDER BY ALL")
    assert rows == [(3, 0, slow, 2 * slow), (4, 0, slow, 2 * slow)]
    assert ask("SELECT count(*), count(DISTINCT pipeline) FROM v1.pipeline_bubble") == [(16, 2)]


def test_a_stage_with_a_slow_cpu_is_the_bottleneck(insert: Insert, ask: Ask, db: duckdb.DuckDBPyConnection) -> None:
    """The GPU of stage 1 computes no longer than the others, but stands idle before the next kernel."""
    insert_pipeline(insert, Pipeline([100, 150, 100, 100], [200] * 4, 8))
    db.execute("UPDATE main.kernel_event SET duration_ns = 100 WHERE duration_ns = 150")
    assert ask("SELECT stage, compute_ns FROM v1.pipeline_bubble WHERE is_bottleneck") == [(1, 2400)]


def test_computation_transfer_and_bubble_are_the_window(insert: Insert, ask: Ask) -> None:
    insert_pipeline(insert, Pipeline([10, 20], [30, 40], 3, transfer=5, optimizer=50, steps=2))
    rows = ask("""SELECT window_ns - compute_ns - transfer_ns - bubble_ns,
        warmup_bubble_ns + steady_bubble_ns + cooldown_bubble_ns - bubble_ns,
        compute_ns - 50 - 3 * CASE stage WHEN 0 THEN 40 ELSE 60 END FROM v1.pipeline_bubble""")
    assert rows == [(0, 0, 0)] * 4


def test_waiting_inside_a_kernel_is_bubble(insert: Insert, ask: Ask) -> None:
    """Forward only: the transfers are 5 ns; the rest of the receiving kernel is waiting for stage 0."""
    times = ((0, 0, GEMM, 0, 100), (0, 1, SEND_RECV, 100, 5), (1, 1, SEND_RECV, 10, 95), (1, 2, GEMM, 105, 60))
    for rank, kind in ((0, "send"), (1, "recv")):
        insert("capture", "capture_id rank", (rank, rank), source="torch", clock_zero_unix_ns=0)
        insert("collective_call", "call_id collective rank_in_group", (1, kind, 1 - rank), capture_id=rank,
               group_ranks="[0, 1]")  # fmt: skip
        insert("kernel_event", "event_id name start_ns duration_ns call_id collective",
               *[(n, name, start, length, 1 if name == SEND_RECV else None, kind if name == SEND_RECV else None)
                 for of, n, name, start, length in times if of == rank],
               capture_id=rank, kind="kernel", device_id=0)  # fmt: skip
    assert ask(f"SELECT {TIMES}, wait_ns, micro_batches FROM v1.pipeline_bubble ORDER BY stage") == [
        (None, 0, 165, 100, 5, 60, 0, 1),
        (None, 1, 165, 60, 5, 100, 90, 1),
    ]


@pytest.mark.parametrize(("residual", "is_answered"), [(100, True), (400, False)])
def test_clocks_must_agree_better_than_the_shortest_bubble(
    insert: Insert, ask: Ask, residual: int, is_answered: bool
) -> None:
    """The shortest bubble is 300 ns."""
    insert_pipeline(insert, Pipeline([100] * 2, [200] * 2, 8))
    insert("clock_alignment", "capture_id residual_median_ns", (0, 0), (1, residual), reference_capture_id=0, at_ns=0,
           offset_ns=0, uses_drift=False, calls=9, span_ns=1)  # fmt: skip
    rows = ask("SELECT bubble_ns, bubble_percent IS NULL, compute_ns, clock_residual_ns FROM v1.pipeline_bubble")
    assert rows == [(300 if is_answered else None, not is_answered, 2400, residual)] * 2


def test_clocks_that_cannot_be_compared(insert: Insert, ask: Ask, db: duckdb.DuckDBPyConnection) -> None:
    insert_pipeline(insert, Pipeline([100] * 2, [200] * 2, 8))
    db.execute("UPDATE main.capture SET clock_zero_unix_ns = NULL WHERE capture_id = 1")
    assert ask(f"SELECT {TIMES}, wait_ns, own_ns, is_bottleneck FROM v1.pipeline_bubble ORDER BY stage") == [
        (3, 0, *[None] * 7),
        (3, 1, *[None] * 7),
    ]


@pytest.mark.parametrize("is_unknown", [True, False])
def test_clocks_that_are_apart_are_aligned_by_messages(
    insert: Insert, ask: Ask, db: duckdb.DuckDBPyConnection, is_unknown: bool
) -> None:
    """Stages share no collective. Gradients that arrive before they were sent show that a clock is off."""
    insert_pipeline(insert, Pipeline([100] * 3, [200] * 3, 4, transfer=5))
    expected = ask(f"SELECT {TIMES} FROM v1.pipeline_bubble ORDER BY stage")
    clock_alignment.align(db)
    assert ask("SELECT count(*) FROM main.clock_alignment") == [(0,)]  # the clock of a host is better evidence
    db.execute("UPDATE main.kernel_event SET start_ns = start_ns + 1000000000 WHERE capture_id = 1")
    if is_unknown:
        db.execute("UPDATE main.capture SET clock_zero_unix_ns = NULL WHERE capture_id = 1")
    clock_alignment.align(db)
    offsets = ask("SELECT capture_id, offset_ns, residual_median_ns FROM main.clock_alignment ORDER BY ALL")
    assert offsets == [(0, 0, 0), (1, 1_000_000_000, 0), (2, 0, 0)]
    assert ask(f"SELECT {TIMES} FROM v1.pipeline_bubble ORDER BY stage") == expected


def test_a_ring_is_no_pipeline(insert: Insert, ask: Ask) -> None:
    """Every rank begins by sending to the next one and receiving from the one before."""
    for rank in range(3):
        insert("capture", "capture_id rank", (rank, rank), source="torch")
        insert("op", "op_id start_ns", (1, 1), (2, 2), capture_id=rank, name="record_param_comms", duration_ns=0)
        insert("collective_call", "call_id collective rank_in_group", (1, "send", (rank + 1) % 3),
               (2, "recv", (rank + 2) % 3), capture_id=rank, group_ranks="[0, 1, 2]")  # fmt: skip
        insert("launch", "launch_id start_ns", (3, 3), capture_id=rank, name="cuLaunchKernelEx", duration_ns=0)
        insert("kernel_event", "event_id launch_id", (4, 3), capture_id=rank, kind="kernel", name=SEND_RECV,
               start_ns=5, duration_ns=5)  # fmt: skip
    assert ask("SELECT count(*) FROM v1.point_to_point") == [(3,)]
    assert ask(f"SELECT {TIMES} FROM v1.pipeline_bubble") == []


def test_filters(insert: Insert, report: Report) -> None:
    insert_pipeline(insert, Pipeline(*EQUAL, 4, steps=2))
    assert report("pipeline_bubble", "step, stage", where={"stage": "stage.rank = 2"}) == [(3, 2), (4, 2)]
    assert len(report("pipeline_bubble", "stage", where={"stage": "stage.step_index > 1"})) == 4
