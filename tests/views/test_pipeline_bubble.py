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
Together = Callable[[Callable[[Insert], None], str], list[tuple[Any, ...]]]
Rows = list[dict[str, Any]]

GEMM, SEND_RECV = "sm90_xmma_gemm_bf16", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
EQUAL = ([100] * 4, [200] * 4)
TIMES = "step, stage, window_ns, compute_ns, transfer_ns, bubble_ns"
PHASES = ("stage", "warmup_bubble_ns", "steady_bubble_ns", "cooldown_bubble_ns")


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


EQUAL_STAGES = {("1f1b", 8): 300 / 11, ("1f1b", 16): 300 / 19, ("gpipe", 16): 300 / 19}
CHUNKS = [(2, 8), (4, 8), (2, 16)]
SLOW = [(0, True), (2, False), (3, True)]
SLOW_ONE = [150 if stage == 1 else 100 for stage in range(4)]
SIMULATED: dict[str, list[Pipeline]] = {
    **{f"{name} {count}": [Pipeline(*EQUAL, count, name)] for name, count in EQUAL_STAGES},
    **{f"{chunks} chunks {count}": [Pipeline(*EQUAL, count, "interleaved", chunks)] for chunks, count in CHUNKS},
    "slow gpipe": [Pipeline(SLOW_ONE, EQUAL[1], 8, "gpipe")],
    "slow interleaved": [Pipeline(SLOW_ONE, EQUAL[1], 8, "interleaved", 2)],
    **{
        f"slow {slow}": [
            Pipeline([150 if stage == slow else 100 for stage in range(4)], EQUAL[1], 8, transfer=5, steps=2,
                     is_batched=is_batched, group=[0, 2, 4, 6]),
            Pipeline(*EQUAL, 8, transfer=5, steps=2, is_batched=is_batched, group=[1, 3, 5, 7]),
        ]
        for slow, is_batched in SLOW
    },
    "gpipe 8": [Pipeline(*EQUAL, 8, "gpipe")],
    "two stages": [Pipeline([10, 20], [30, 40], 3, transfer=5, optimizer=50, steps=2)],
}  # fmt: skip
"""Pipelines that are recorded together, by the name of their run."""


@pytest.fixture(scope="module")
def simulated(together: Together) -> dict[str, Rows]:
    """The rows of each run, by step, pipeline and stage."""

    def write(insert: Insert) -> None:
        for place, (name, pipelines) in enumerate(SIMULATED.items()):
            for pipeline in pipelines:
                insert_pipeline(insert, pipeline, 10 * place, run=name)

    found: dict[str, Rows] = {name: [] for name in SIMULATED}
    rows = together(write, "SELECT labels['run'], pb FROM v1.pipeline_bubble AS pb ORDER BY step, pipeline, stage")
    for name, row in rows:
        found[name].append(row)
    return found


def test_no_rows(ask: Ask) -> None:
    assert ask(f"SELECT {TIMES} FROM v1.pipeline_bubble") == []


def ideal(rows: Rows, micro_batches: int, percent: float) -> bool:
    """Whether the bubbles of all four stages are as short as the schedule allows."""
    names = ("stage", "rank", "stages", "micro_batches", "bubble_percent", "ideal_percent", "is_bottleneck")
    found = [tuple(row[name] for name in names) for row in rows]
    return found == [(stage, stage, 4, micro_batches, percent, percent, False) for stage in range(4)]


@pytest.mark.parametrize(("schedule", "micro_batches"), EQUAL_STAGES)
def test_equal_stages_have_the_ideal_bubble(simulated: dict[str, Rows], schedule: str, micro_batches: int) -> None:
    """27.27 % and 15.79 % of the time."""
    rows = simulated[f"{schedule} {micro_batches}"]
    assert ideal(rows, micro_batches, EQUAL_STAGES[schedule, micro_batches]), rows


@pytest.mark.parametrize(("chunks", "micro_batches"), CHUNKS)
def test_interleaved_chunks_have_the_ideal_bubble(simulated: dict[str, Rows], chunks: int, micro_batches: int) -> None:
    """With several chunks of layers on each rank, the bubble is that of as many times more micro-batches."""
    rows = simulated[f"{chunks} chunks {micro_batches}"]
    assert ideal(rows, micro_batches, 300 / (chunks * micro_batches + 3)), rows


@pytest.mark.parametrize("schedule", ["gpipe", "interleaved"])
def test_the_slow_stage_of_other_schedules(simulated: dict[str, Rows], schedule: str) -> None:
    found = [(row["stage"], row["micro_batches"]) for row in simulated[f"slow {schedule}"] if row["is_bottleneck"]]
    assert found == [(1, 8)]


def phases(rows: Rows) -> list[tuple[int, ...]]:
    return [tuple(row[name] for name in PHASES) for row in rows]


def test_phases_of_1f1b(simulated: dict[str, Rows]) -> None:
    """Each stage waits for the ones before it in the warm-up, and for the ones behind it in the cool-down."""
    right = [(0, 600, 0, 300), (1, 500, 0, 400), (2, 400, 0, 500), (3, 300, 0, 600)]
    assert phases(simulated["1f1b 8"]) == right


def test_phases_of_gpipe(simulated: dict[str, Rows]) -> None:
    right = [(0, 900, 0, 0), (1, 700, 0, 200), (2, 500, 0, 400), (3, 300, 0, 600)]
    assert phases(simulated["gpipe 8"]) == right


@pytest.mark.parametrize("slow", [slow for slow, _ in SLOW])
def test_the_slow_stage_is_the_bottleneck(simulated: dict[str, Rows], slow: int) -> None:
    """The stages of two pipelines stand interleaved on the ranks; in one of them a stage is slow."""
    rows = simulated[f"slow {slow}"]
    found = [tuple(row[name] for name in ("step", "stage", "rank")) for row in rows if row["is_bottleneck"]]
    assert found == [(3, slow, 2 * slow), (4, slow, 2 * slow)]
    assert len(rows) == 16
    assert [len({row["pipeline"] for row in rows if row["rank"] % 2 == odd}) for odd in (0, 1)] == [1, 1]
    assert len({row["pipeline"] for row in rows}) == 2


def test_a_stage_with_a_slow_cpu_is_the_bottleneck(insert: Insert, ask: Ask, db: duckdb.DuckDBPyConnection) -> None:
    """The GPU of stage 1 computes no longer than the others, but stands idle before the next kernel."""
    insert_pipeline(insert, Pipeline([100, 150, 100, 100], [200] * 4, 8))
    db.execute("UPDATE main.kernel_event SET duration_ns = 100 WHERE duration_ns = 150")
    assert ask("SELECT stage, compute_ns FROM v1.pipeline_bubble WHERE is_bottleneck") == [(1, 2400)]


def test_computation_transfer_and_bubble_are_the_window(simulated: dict[str, Rows]) -> None:
    rows = simulated["two stages"]
    assert len(rows) == 4
    for row in rows:
        assert row["window_ns"] == row["compute_ns"] + row["transfer_ns"] + row["bubble_ns"]
        assert row["bubble_ns"] == sum(row[f"{phase}_bubble_ns"] for phase in ("warmup", "steady", "cooldown"))
        assert row["compute_ns"] == 50 + 3 * (40 if row["stage"] == 0 else 60)


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
