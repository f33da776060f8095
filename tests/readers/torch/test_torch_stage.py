"""Staged rows are the same in Arrow and in temporary tables, with 32 and with 64 bits."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tracedb_torch import staging as stage
from tracedb_torch.int_columns import joined, moved, narrowed, word
from tracedb_torch.staging_columns import COLUMNS

LARGE = 1 << 40
NAMES = tuple(COLUMNS["launch"])
ROWS: list[list[tuple[int | None, ...]]] = [
    [(0, 7, 8, 1, 5, 10, None, 3, None, None), (1, 7, LARGE, 2, 6, 11, 4, None, 5, None)],
    [(2, 7, 8, 1, LARGE, 12, 9, -(1 << 31), None, 6)],
    [(3, 7, 8, 1, 8, 13, None, (1 << 31), None, None)],
]


def batch(rows: list[tuple[int | None, ...]]) -> pa.RecordBatch:
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=NAMES)


@pytest.mark.parametrize(("limit", "kind"), [(1 << 20, "VIEW"), (100, "TABLE")])
def test_rows_are_found_wherever_they_are_held(limit: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "HELD_BYTES", limit)
    monkeypatch.setattr(stage, "FLUSH_ROWS", 2)
    with duckdb.connect(":memory:") as connection:
        with stage.Stage(connection) as staging:
            for rows in ROWS:
                staging.add("launch", batch(rows))
            staging.finish()
            staging.show()
        found = connection.execute("FROM staged_launch ORDER BY launch_id")
        assert {str(column[1]) for column in found.description or ()} == {"BIGINT"}
        assert found.fetchall() == [row for rows in ROWS for row in rows]
        assert connection.execute("SELECT count(*) FROM staged_gpu").fetchone() == (0,)
        views = connection.execute("SELECT count(*) FROM duckdb_views() WHERE view_name = 'staged_launch'").fetchone()
        assert views == (int(kind == "VIEW"),)
        stage.drop_rows(connection, "launch", "correlation_id = 3")
        assert connection.execute("SELECT launch_id FROM staged_launch ORDER BY 1").fetchall() == [(1,), (2,), (3,)]


def test_words_are_text_to_queries() -> None:
    """Of the compiled reader's codes and of the other reader's words alike."""
    with duckdb.connect(":memory:") as connection:
        with stage.Stage(connection) as staging:
            for style, first in (("user", 0), ("gpu_projection", 2)):
                numbers = {name: pa.array([first, first + 1], pa.int64()) for name in ("annotation_id", "pid", "tid")}
                rest = {name: pa.array([1, None], pa.int64()) for name in ("duration_ns", "device_id")}
                columns = {
                    **numbers,
                    "name": numbers["pid"],
                    "style": word("style", style, 2),
                    "start_ns": numbers["pid"],
                    **rest,
                    "stream_id": rest["device_id"],
                }
                staging.add("annotation", pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))
            staging.finish()
            staging.show()
        assert connection.execute("SELECT style, annotation_id FROM staged_annotation ORDER BY 2").fetchall() == [
            ("user", 0),
            ("user", 1),
            ("gpu_projection", 2),
            ("gpu_projection", 3),
        ]


def test_columns_are_narrow_where_all_values_are_small() -> None:
    small, large = narrowed(batch(ROWS[0])), narrowed(batch(ROWS[2]))
    assert [str(kind) for kind in small.schema.types] == [
        *("int32", "int32", "int64", "int32", "int64", "int64", "int32", "int32", "int32", "int32")
    ]
    table = joined([small, large])
    assert [str(kind) for kind in table.schema.types] == [
        *("int32", "int32", "int64", "int32", "int64", "int64", "int32", "int64", "int32", "int32")
    ]
    assert list(zip(*table.to_pydict().values(), strict=True)) == ROWS[0] + ROWS[2]


def test_event_numbers_leave_32_bits_when_they_must() -> None:
    numbers = pa.array(np.array([5, 3], np.int32))
    assert str(moved(numbers, 10).type) == "int32"
    assert moved(numbers, (1 << 31) - 6).to_pylist() == [(1 << 31) - 1, (1 << 31) - 3]
    beyond = moved(numbers, (1 << 31) - 5)
    assert str(beyond.type) == "int64"
    assert beyond.to_pylist() == [1 << 31, (1 << 31) - 2]
