"""The readings of a sweep, in ``main.device_condition``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tracedb.conditions.reading import Reading
from tracedb.pipeline import writable_database
from tracedb.pipeline.task import MEMORY_LIMIT
from tracedb.storage.connection import transaction, workbench


def write(database: Path, capture_id: int, readings: Sequence[Reading]) -> None:
    """Add the readings made while a capture was recorded, on its clock and for its device.

    Nothing is added if the capture's clock has no place in the world, or if it has no device or several.
    """
    if not readings:
        return
    with (
        workbench(MEMORY_LIMIT, 1, database) as connection,
        writable_database.opened(connection, database),
        transaction(connection),
    ):
        connection.executemany(
            """INSERT INTO main.device_condition BY NAME
            SELECT
                c.capture_id,
                d.device_id,
                $unix_ns - c.clock_zero_unix_ns AS time_ns,
                $sm_clock_mhz::DOUBLE AS sm_clock_mhz,
                $memory_clock_mhz::DOUBLE AS memory_clock_mhz,
                $power_w::DOUBLE AS power_w,
                $temperature_c::DOUBLE AS temperature_c,
                $throttle AS throttle
            FROM main.capture AS c
            INNER JOIN (
                SELECT e.capture_id, min(e.device_id) AS device_id
                FROM main.kernel_event AS e
                WHERE e.capture_id = $capture
                GROUP BY e.capture_id
                HAVING count(DISTINCT e.device_id) = 1
            ) AS d ON d.capture_id = c.capture_id
            WHERE c.clock_zero_unix_ns IS NOT NULL""",
            [
                {
                    "capture": capture_id,
                    "unix_ns": reading.unix_ns,
                    "sm_clock_mhz": reading.sm_clock_mhz,
                    "memory_clock_mhz": reading.memory_clock_mhz,
                    "power_w": reading.power_w,
                    "temperature_c": reading.temperature_c,
                    "throttle": reading.throttle,
                }
                for reading in readings
            ],
        )
