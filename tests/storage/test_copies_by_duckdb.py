"""Copies of a database made with DuckDB's own statements."""

from __future__ import annotations

from pathlib import Path

import duckdb

from support.command import report
from support.tiny import two_ranks
from tracedb.storage.connection import quoted


def test_copy_from_database_takes_tables_views_and_macros(tmp_path: Path) -> None:
    db, copy = two_ranks(tmp_path / "run.duckdb"), tmp_path / "copy.duckdb"
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH {quoted(str(db))} AS run (READ_ONLY)")
        connection.execute(f"ATTACH {quoted(str(copy))} AS copy")
        connection.execute("COPY FROM DATABASE run TO copy")
    for name in ("top-kernels", "gpu-timeline", "kernel-tiers"):
        assert report(copy, name) == report(db, name) != []
