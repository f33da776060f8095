"""The bursts of a sweep, in ``main.operator_burst``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tracedb.pipeline import writable_database
from tracedb.pipeline.task import MEMORY_LIMIT
from tracedb.sampling.burst import Burst
from tracedb.sampling.sweep_status import Series
from tracedb.storage.connection import transaction, workbench


def write(database: Path, capture_id: int, series: Series, bursts: Sequence[Burst]) -> None:
    """Add the bursts of shapes that were sampled in a capture."""
    if not bursts:
        return
    with (
        workbench(MEMORY_LIMIT, 1, database) as connection,
        writable_database.opened(connection, database),
        transaction(connection),
    ):
        writable_database.prepare(connection, database)
        connection.executemany(
            """INSERT INTO main.operator_burst BY NAME
            SELECT
                $capture AS capture_id,
                $operator AS operator,
                $pass AS pass,
                $dtype AS dtype,
                map($names::VARCHAR[], $values::BIGINT[]) AS shape,
                $calls::BIGINT AS calls,
                $duration_ns::BIGINT AS duration_ns,
                $spin_ns::BIGINT AS spin_ns,
                $sm_clock_mhz::DOUBLE AS sm_clock_mhz,
                $memory_clock_mhz::DOUBLE AS memory_clock_mhz,
                $power_w::DOUBLE AS power_w,
                $spin_power_w::DOUBLE AS spin_power_w,
                $power_limit_w::DOUBLE AS power_limit_w,
                $sm_clock_limit_mhz::DOUBLE AS sm_clock_limit_mhz,
                $host_ns::BIGINT AS host_ns,
                $is_synchronous::BOOLEAN AS is_synchronous""",
            [
                {
                    "capture": capture_id,
                    "operator": series.operator,
                    "pass": burst.pass_,
                    "dtype": series.dtype,
                    "names": list(burst.shape),
                    "values": list(burst.shape.values()),
                    "calls": burst.calls,
                    "duration_ns": burst.duration_ns,
                    "spin_ns": burst.spin_ns,
                    "sm_clock_mhz": burst.sm_clock_mhz,
                    "memory_clock_mhz": burst.memory_clock_mhz,
                    "power_w": burst.power_w,
                    "spin_power_w": burst.spin_power_w,
                    "power_limit_w": burst.power_limit_w,
                    "sm_clock_limit_mhz": burst.sm_clock_limit_mhz,
                    "host_ns": burst.host_ns,
                    "is_synchronous": burst.is_synchronous,
                }
                for burst in bursts
            ],
        )
