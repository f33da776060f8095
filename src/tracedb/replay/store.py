"""Store a finished replay in the database: the tables replay_run, replay_pass and replay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracedb.pipeline import writable_database
from tracedb.pipeline.task import MEMORY_LIMIT
from tracedb.replay import recorded_passes
from tracedb.storage import resources, statements
from tracedb.storage.connection import attached, transaction, workbench

if TYPE_CHECKING:
    import duckdb

    from tracedb.replay.runner import Replayed


def write(database: Path, done: Replayed) -> int:
    """Add a replay to the database and return its number.

    The capture is looked at anew in the same transaction, so that what is stored belongs to what it holds.
    """
    with (
        workbench(MEMORY_LIMIT, 1, database) as connection,
        attached(connection, database),
        transaction(connection),
    ):
        writable_database.prepare(connection, database)
        recorded_passes.prepare(connection, done.recorded.selection)
        ((number,),) = connection.execute("SELECT coalesce(max(replay_id), 0) + 1 FROM main.replay_run").fetchall()
        statements.set_variables(connection, replay_id=int(number))
        _results(connection, done)
        _run(connection, int(number), done)
        statements.run(connection, resources.text("sql", "replay", "results.sql"))
    return int(number)


def _results(connection: duckdb.DuckDBPyConnection, done: Replayed) -> None:
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE replay_result (
               signature_id INTEGER, status VARCHAR, detail VARCHAR, timing VARCHAR, kernels VARCHAR,
               kernel_ns DOUBLE, joules DOUBLE, joules_seconds DOUBLE)"""
    )
    connection.execute("CREATE OR REPLACE TEMP TABLE replay_sample (signature_id INTEGER, time_ns DOUBLE)")
    for result in done.results:
        times, outcome = result.times, result.outcome
        energy = times.energy if times else None
        connection.execute(
            "INSERT INTO replay_result VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                result.signature_id,
                result.status,
                result.detail,
                times.method or None if times else None,
                outcome.kernels if outcome else None,
                outcome.kernel_ns if outcome else None,
                energy.joules if energy else None,
                energy.seconds if energy else None,
            ],
        )
        if times and times.samples:
            connection.execute(
                "INSERT INTO replay_sample SELECT ?, unnest(?::DOUBLE[])", [result.signature_id, times.samples]
            )


def _run(connection: duckdb.DuckDBPyConnection, number: int, done: Replayed) -> None:
    import torch

    request, whole = done.request, done.whole
    intervals = [item.times.energy.interval_ns for item in done.results if item.times and item.times.energy]
    replayed = {result.signature_id for result in done.results if result.status == "replayed"}
    values: dict[str, Any] = {
        "replay_id": number,
        "capture_id": done.recorded.selection.capture_id,
        "mode": request.mode,
        "activity": "gpu" if done.recorded.is_gpu else "cpu",
        "step": request.step,
        "range_glob": request.range_glob,
        "device": done.device,
        "torch_version": str(torch.__version__),
        "cache": request.cache,
        "clock": request.clock,
        "sequence_calls": whole.calls if whole and whole.eager else None,
        "sequence_joules": whole.joules if whole else None,
        "sequence_detail": whole.detail if whole else None,
        "idle_watts": done.idle_watts,
        "energy_interval_ns": max(intervals, default=None),
        "measured_ns": request.measured.nanoseconds if request.measured else None,
        "measured_joules": request.measured.joules if request.measured else None,
        "measured_source": request.measured.source if request.measured else None,
    }
    names = ", ".join(values)
    places = ", ".join(f"${name}" for name in values)
    connection.execute(
        f"""INSERT INTO main.replay_run
                ({names}, sequence_eager_ns, sequence_graph_ns, passes, sequence_share_percent, replayed_at)
            SELECT {places},
                list_aggregate($eager::DOUBLE[], 'median'), list_aggregate($graph::DOUBLE[], 'median'),
                (SELECT count(*) FROM temp.replay_bound),
                CASE WHEN $sequence_calls IS NOT NULL THEN (
                    SELECT 100.0 * sum(o.recorded_ns) FILTER (list_contains($replayed::INTEGER[], o.signature_id))
                        / nullif(sum(o.recorded_ns), 0)
                    FROM temp.replay_order AS o WHERE o.pass = 1
                ) END,
                current_timestamp::TIMESTAMP""",
        {
            **values,
            "replayed": sorted(replayed),
            "eager": list(whole.eager) if whole else [],
            "graph": list(whole.graph) if whole else [],
        },
    )
