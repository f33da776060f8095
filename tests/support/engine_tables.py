"""The traces that views of other engines are compared over, and how rows are compared."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from support import engine_rows
from support.loading import ingest
from tracedb.dialect import view_tree

ROOT = Path(__file__).resolve().parents[2]
Row = tuple[Any, ...]


def filled(path: Path) -> Path:
    """Make a database of traces of every kind and rows by hand, so that no public view is empty; returns its path."""
    engine_rows.add_pipeline(path.parent, traced(path))
    with duckdb.connect(path) as writer:
        engine_rows.add(writer)
    return path


def traced(path: Path) -> Path:
    """Make a database of traces of every kind; returns its path."""
    recorded = ROOT / "tests" / "data" / "recorded" / "data"
    folders = [ROOT / "examples" / "run", recorded / "nsys", recorded / "torch"]
    assert ingest(*folders, db=path).exit_code == 0
    with duckdb.connect(path) as writer:
        writer.execute("UPDATE kernel_event SET is_counted = true WHERE capture_id = 1 AND event_id % 9 = 0")
        writer.execute(
            "INSERT INTO counter (capture_id, event_id, name, value) "
            "SELECT capture_id, event_id, n, event_id + length(n) "
            "FROM kernel_event, (VALUES ('SQ_WAVES'), ('SQ_BUSY_CU_CYCLES')) AS v(n) WHERE is_counted"
        )
        writer.execute(
            "INSERT INTO memory_event (capture_id, memory_event_id, device_type, device_id, address, bytes, "
            "total_allocated_bytes, total_reserved_bytes, start_ns) "
            "SELECT 1, i, 1, 0, i // 2, if(i % 2 = 0, 64, -64), if(i % 2 = 0, 64, 0), 128, 1000 * i "
            "FROM range(10) AS t(i)"
        )
    return path


def fill_clickhouse(session: Any, source: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Copy the tables of the database ``file`` into ClickHouse."""
    for table, file in exported(source, folder):
        names = ", ".join(f'"{name}"' for name, *_ in source.execute(f"DESCRIBE FROM '{file}'").fetchall())
        session.query(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM file('{file}', Parquet)")


def exported(source: duckdb.DuckDBPyConnection, folder: Path) -> Iterator[tuple[str, Path]]:
    """Write each table as a Parquet file with the types of a lake."""
    tables = source.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'file' AND schema_name = 'main'"
    ).fetchall()
    for table, relation in [
        *((name, f"file.main.{name}") for (name,) in tables),
        (view_tree.CLASS_TABLE, "file.v1._kernel_class"),
    ]:
        columns = ", ".join(
            f'"{name}"::BIGINT AS "{name}"' if kind == "UBIGINT" else f'"{name}"'
            for name, kind, *_ in source.execute(f"DESCRIBE {relation}").fetchall()
        )
        file = folder / f"{table}.parquet"
        source.execute(f"COPY (SELECT {columns} FROM {relation}) TO '{file}'")
        yield table, file


def assert_same(found: list[Row], wanted: list[Row]) -> None:
    """Compare rows in any order: whole numbers are equal, others to 1e-9."""
    assert len(found) == len(wanted)
    for one, other in zip(_sorted(found), _sorted(wanted), strict=True):
        assert all(_is_same(a, b) for a, b in zip(one, other, strict=True)), (one, other)


def _sorted(rows: list[Row]) -> list[Row]:
    return sorted((tuple(map(_plain, row)) for row in rows), key=lambda row: [_key(value) for value in row])


def _plain(value: Any) -> Any:
    if isinstance(value, dict):  # ClickHouse has no map that is NULL
        return tuple(sorted((str(key), _plain(item)) for key, item in value.items())) or None
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    if isinstance(value, datetime):  # ClickHouse writes it as text
        return f"{value:%Y-%m-%d %H:%M:%S.%f}"
    return int(value) if isinstance(value, bool) else value


def _key(value: Any) -> tuple[bool, str]:
    if isinstance(value, float):  # an engine may return 2.0 as a whole number
        value = int(value) if value.is_integer() else f"{value:.6g}"
    return value is None, str(value)


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return (
            one is not None and other is not None and math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-9)
        )
    return bool(one == other)
