"""Small rows for the views that the recorded traces of ``engine_tables`` leave empty."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import duckdb

from support import rows
from support.loading import ingest
from support.pipelines import Pipeline, document

OPERATOR, COLLECTIVE = "fwd|mm|b=2|dim=64", "comm|allreduce|elements=1000"
RANKS = 2


def add_pipeline(folder: Path, db: Path) -> None:
    """Two steps of a pipeline of two stages: point-to-point messages and bubbles."""
    pipeline = Pipeline([100, 120], [200, 210], 2, transfer=7, steps=2).run()
    for stage in range(pipeline.stages):
        path = folder / "pipeline" / f"rank{stage}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(document(pipeline, stage))
    assert ingest(folder / "pipeline", db=db).exit_code == 0


def add(writer: duckdb.DuckDBPyConnection) -> None:
    """Put rows into the tables, in captures of their own or beside those of capture 1."""
    for put in (_samples, _experts, _ncu, _measured, _expected, _replayed, _whatif, _frames):
        put(writer)


def _captures(writer: duckdb.DuckDBPyConnection, count: int, source: str, **labels: str) -> list[int]:
    """Make a capture for each rank, with a device; returns their numbers."""
    (last,) = writer.execute("SELECT max(capture_id) FROM capture").fetchall()[0]
    numbers = [last + 1 + rank for rank in range(count)]
    made = [(number, rank, labels) for rank, number in enumerate(numbers)]
    rows.insert(writer, "capture", "capture_id rank labels", *made, source=source)
    rows.insert(writer, "device", "capture_id", *[(number,) for number in numbers], device_id=0, name="H100")
    return numbers


def _samples(writer: duckdb.DuckDBPyConnection) -> None:
    """Iterations of an operator and of a collective on two ranks, their conditions, and samples without events."""
    for rank, capture in enumerate(_captures(writer, RANKS, "torch", dtype="fp16", run="x")):
        insert = partial(rows.insert, writer, capture_id=capture)
        times = [(n, COLLECTIVE if n % 2 else OPERATOR, 1000 * n, 50 + 10 * rank + n) for n in range(8)]
        insert("annotation", "annotation_id name start_ns", *[time[:3] for time in times], style="user",
               duration_ns=900, process_id=1, thread_id=1)  # fmt: skip
        insert("kernel_event", "event_id name start_ns duration_ns",
               *[(n, "nccl" if n % 2 else "k", start + 5, busy) for n, _, start, busy in times],
               kind="kernel", device_id=0)  # fmt: skip
        insert("annotation_kernel", "annotation_id event_id", *[(n, n) for n in range(8)], rule="process")
        insert("device_condition", "time_ns sm_clock_mhz power_w", (0, 1980.0, 400.0), (4000, 1755.0, 690.0),
               device_id=0, throttle="none")  # fmt: skip
    (alone,) = _captures(writer, 1, "samples")
    rows.insert(writer, "operator_sample", "sample_id operator pass time_ns shape",
                (0, "linear1", "fwd", 4_000, {"b": 2, "dim": 64}), (1, "gelu", "bwd", 5_001, {"b": 4, "dim": 32}),
                capture_id=alone, gpu="H100", dtype="bf16", statistic="span_trimmed_mean")  # fmt: skip
    rows.insert(writer, "operator_burst", "operator pass host_ns shape", ("linear1", "fwd", 900, {"b": 2, "dim": 64}),
                capture_id=alone, dtype="bf16", calls=10, duration_ns=50_000, power_w=600.0)  # fmt: skip


def _experts(writer: duckdb.DuckDBPyConnection) -> None:
    """Two all-to-all calls of two ranks, of which one gets more."""
    splits = [[16, 48], [24, 40]]
    for rank, capture in enumerate(_captures(writer, RANKS, "torch", config="experts")):
        insert = partial(rows.insert, writer, capture_id=capture, collective="all_to_allv")
        received = [row[rank] for row in splits]
        insert("kernel_event", "event_id call_id start_ns duration_ns",
               *[(n, n, 1000 * n + 30 * rank, 100 - 30 * rank) for n in (1, 2)],
               kind="kernel", name="ncclDevKernel_SendRecv", dtype="BFloat16", device_id=0, group_name="7",
               group_size=RANKS, group_ranks="[0, 1]", message_in_elements=sum(splits[rank]),
               message_out_elements=sum(received), message_in_splits=str(splits[rank]))  # fmt: skip
        insert("collective_call", "call_id", (1,), (2,), message_out_splits=str(received))


def _ncu(writer: duckdb.DuckDBPyConnection) -> None:
    """Nsight Compute's counters of the first kernels of capture 1, spelt differently, and of one that is not there."""
    (capture,) = _captures(writer, 1, "ncu")
    writer.execute("UPDATE capture SET labels = c.labels FROM capture AS c WHERE c.capture_id = 1 AND "
                   "capture.capture_id = ?", [capture])  # fmt: skip
    columns = "name, stream_id, grid_x, grid_y, grid_z, block_x, block_y, block_z"
    writer.execute(
        f"""INSERT INTO kernel_event (
            capture_id, event_id, kind, device_id, is_counted, start_ns, duration_ns, {columns}
        ) SELECT $capture, event_id, kind, 0, true, 0, 2 * duration_ns, if(event_id % 2 = 0, 'other', name),
            {columns.removeprefix("name, ")}
        FROM kernel_event WHERE capture_id = 1 AND kind = 'kernel' ORDER BY event_id LIMIT 20""",
        {"capture": capture},
    )
    writer.execute(
        """INSERT INTO counter (capture_id, event_id, name, value)
        SELECT capture_id, event_id, 'dram__bytes.sum', 64.0 * event_id FROM kernel_event WHERE capture_id = ?""",
        [capture],
    )


def _measured(writer: duckdb.DuckDBPyConnection) -> None:
    """Times that a program took of ranges: for all captures, for one configuration, for none."""
    (capture,) = _captures(writer, 1, "measure")
    rows.insert(writer, "measure", "measure_id name statistic time_ns n settings",
                (0, "forward", "mean", 21_837_000, 10, {}), (1, "forward", "stddev", 57_000, 10, {}),
                *[(2 + n, "nccl:_all_gather_base", "single", 40_000 + 999 * n, None, {"channels": "16"})
                  for n in range(3)],
                (5, "nccl:_all_gather_base", "median", 40_000, 3, {"channels": "64"}),
                capture_id=capture)  # fmt: skip


def _expected(writer: duckdb.DuckDBPyConnection) -> None:
    """Predicted times of operators of two captures: a tenth less than the first of them took, or far less."""
    writer.execute(
        """INSERT INTO expected_time (capture_id, gpu, name, input_dims, input_types, math_dtype, pass, predicted_ns,
            low_ns, high_ns, basis, samples)
        SELECT o.capture_id, 'H100', o.name, o.input_dims, o.input_types, 'bf16', 'fwd', 0.9 * o.gpu_ns, 0.8 * o.gpu_ns,
            if(o.place % 2 = 0, 0.5, 1.1) * o.gpu_ns, 'recorded', 7
        FROM (
            SELECT p.capture_id, p.name, p.input_dims, p.input_types, min(e.duration_ns) AS gpu_ns,
                row_number() OVER (PARTITION BY p.capture_id ORDER BY p.name, p.input_dims, p.input_types) AS place
            FROM op AS p INNER JOIN kernel_event AS e ON e.capture_id = p.capture_id AND e.op_id = p.op_id
            WHERE p.capture_id IN (1, 2) AND p.input_dims IS NOT NULL AND p.name <> 'record_param_comms'
            GROUP BY p.capture_id, p.name, p.input_dims, p.input_types
        ) AS o WHERE o.place <= 10"""
    )


def _replayed(writer: duckdb.DuckDBPyConnection) -> None:
    """Two replays of capture 1, of which the later counts."""
    for number in (1, 2):
        insert = partial(rows.insert, writer, capture_id=1, replay_id=number)
        insert("replay_run", "mode activity passes replayed_at sequence_share_percent sequence_eager_ns idle_watts",
               ("compare", "gpu", 2, "2026-01-01", 80.0, 900.0, 70.0), device="H100", measured_joules=4e-7)  # fmt: skip
        insert("replay_pass", "pass name step events kernel_sum_ns union_ns span_ns idle_ns launch_gap_ns wall_ns",
               (1, "train_step", 1, 9, 800, 700, 900, 200, 150, 1000),
               (2, "train_step", 2, 9, 810, 700, 901, 201, None, 1001))  # fmt: skip
        insert("replay", "signature_id name calls calls_per_pass recorded_total_ns share_percent recorded_median_ns"
               " replayed_median_ns replayed_kernel_median_ns joules status",
               (1, "aten::mm", 6, 3.0, 600, 75.0, 100.0, 110.0, 105.0, 2e-7, "replayed"),
               (2, "nccl", 2, 1.0, 200, 25.0, 100.0, None, None, None, "collective"),
               (3, "aten::add", 1, 0.5, 0, 0.0, 1.0, None, None, None, "left_out"), recorded_mad_ns=0)  # fmt: skip


def _whatif(writer: duckdb.DuckDBPyConnection) -> None:
    """The recording itself, three single changes of which two gain as much, and two together."""
    rows.insert(writer, "whatif", "scenario changes predicted_ns gain_percent limit_ns limit_percent",
                ("no change", 0, 1000, 0.0, 1000, 0.0), ("--speed matmul=2", 1, 800, 20.0, 700, 30.0),
                ("--speed copy=2", 1, 900, 10.0, 850, 15.0), ("--no-launches", 1, 900, 10.0, 900, 10.0),
                ("--speed matmul=2 --speed copy=2", 2, 700, 30.0, 600, 40.0),
                capture_id=1, span="steps", ranks=4, rank=2, steps=3, measured_ns=1000, bound_by="matmul",
                predicted_at="2026-01-01")  # fmt: skip


def _frames(writer: duckdb.DuckDBPyConnection) -> None:
    """Python frames around the launches of capture 1: a program, a module in its first half, and its forward."""
    (lane,) = writer.execute(
        """SELECT process_id, thread_id, min(start_ns), max(start_ns) - min(start_ns) FROM launch
        WHERE capture_id = 1 GROUP BY process_id, thread_id ORDER BY count(*) DESC LIMIT 1"""
    ).fetchall()
    process, thread, start, duration = lane
    rows.insert(writer, "frame", "frame_id kind name parent_id start_ns duration_ns module_path file line",
                (1, "function", "train.py(5): main", None, start - 9, duration + 99, None, "train.py", 5),
                (2, "module", "nn.Module: Block_0", 1, start - 8, duration // 2, "Block_0", None, None),
                (3, "function", "torch/nn/modules/linear.py(9): forward", 2, start - 7, duration // 4, "Block_0",
                 "torch/nn/modules/linear.py", 9),
                capture_id=1, process_id=process, thread_id=thread)  # fmt: skip
    writer.execute("UPDATE memory_event SET frame_id = 1 + memory_event_id % 3 WHERE capture_id = 1")
