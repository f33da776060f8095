"""A task of a divided report: open the captures of a lake in DuckDB, run one query."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.distribute.plan import Task

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY_LIMIT = "2GB"


def answer(task: Task, memory_limit: str = MEMORY_LIMIT, threads: int = 1) -> pa.Table:
    """Return the rows of a task's query. Columns of 128-bit integers become BIGINT or fail.

    A DuckDB file of some megabytes, with views instead of tables, is made in a temporary folder. Raises
    ``TracedbError`` if the lake is damaged.
    """
    from tracedb.storage import lake_catalog, lake_manifest
    from tracedb.storage.connection import ALIAS, SMALL, attach, in_memory, plan_quickly

    lake = lake_manifest.opened(Path(task.lake))
    with tempfile.TemporaryDirectory(prefix="tracedb-task-") as folder:
        path = Path(folder) / "lake.duckdb"
        is_small = lake_catalog.build(lake, path, task.captures).size_bytes < SMALL
        with in_memory({"memory_limit": memory_limit, "threads": threads, "temp_directory": folder}) as found:
            if is_small:
                plan_quickly(found)
            lake.register(found)
            attach(found, path, ALIAS)
            found.execute(f"USE {ALIAS}")
            for statement in task.before:
                found.execute(statement)
            columns = found.execute(f"DESCRIBE {task.query}").fetchall()
            listed = ", ".join(
                f'"{name}"::BIGINT AS "{name}"' if kind in ("HUGEINT", "UBIGINT") else f'"{name}"'
                for name, kind, *_ in columns
            )
            return found.sql(f"SELECT {listed} FROM ({task.query})").to_arrow_table()
