"""Write a large SQLite export like those of nsys: kernels with 20 columns, in start order."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

COLUMNS = (
    "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "demangledName", "shortName",
    "registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory",
    "dynamicSharedMemory", "localMemoryTotal", "gridId",
)  # fmt: skip
NAMES = 40
PID = 4242
KERNELS = f"""
WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?)
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL
SELECT
    5000000000 + n * 12000, 5000000000 + n * 12000 + 3000 + n * 7919 % 8000, 0, 1, 7 + n % 3, n + 1,
    {1 << 48 | PID << 24}, 1 + n * 31 % {NAMES}, 1 + n * 31 % {NAMES}, 32 + n % 128, 1 + n % 4096, 1 + n % 7, 1,
    128, 1, 1, 0, n % 5 * 16384, 131072, n
FROM numbers
"""


def make(path: Path, rows: int) -> None:
    """Write an export of ``rows`` kernels."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        columns = ", ".join(f"{name} INTEGER" for name in COLUMNS)
        connection.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({columns})")
        connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        connection.execute("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
        names = [(number + 1, f"void kernel_{number}<float, (int){number}>(T1 *, T2)") for number in range(NAMES)]
        connection.executemany("INSERT INTO StringIds VALUES (?, ?)", names)
        connection.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2025.3.2.0')")
        connection.execute(KERNELS, [rows])
        connection.commit()


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(float(sys.argv[2])))
