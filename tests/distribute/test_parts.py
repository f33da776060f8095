"""A view over a lake in parts gives the rows of the whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tracedb
from tracedb.distribute.plan import plan, unit_of
from tracedb.distribute.task import answer
from tracedb.errors import TracedbError, UsageError
from tracedb.storage import lake_catalog, lake_manifest
from tracedb.storage.views import shipped

PUBLIC = [view.name for view in shipped() if not view.is_private]
RUNS = [name for name in PUBLIC if unit_of(name) == "runs"]


@pytest.fixture(scope="module")
def whole(lake: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with tracedb.connect(lake) as connection:
        connection.execute("SET threads = 1")  # several cost more than they gain on a few rows
        yield connection


@pytest.fixture(scope="module")
def parts(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[duckdb.DuckDBPyConnection]]:
    """One run alone, and the others together: a view that mixes runs mixes these, too; planning them takes long."""
    folder, store = tmp_path_factory.mktemp("databases"), lake_manifest.opened(lake)
    opened: list[duckdb.DuckDBPyConnection] = []
    runs = sorted((task.captures or () for task in plan(lake, "kernels").tasks), key=len, reverse=True)
    assert [len(captures) for captures in runs] == [4, 4, 2]  # two settings of a sweep, and what nsys recorded
    for captures in (runs[0], runs[1] + runs[2]):
        path = folder / f"{len(opened)}.duckdb"
        lake_catalog.build(store, path, captures)
        opened.append(tracedb.connect(path))
        opened[-1].execute("SET threads = 1")
    yield opened
    for connection in opened:
        connection.close()


@pytest.mark.parametrize("name", RUNS)
def test_runs_give_the_rows_of_the_whole(
    name: str, whole: duckdb.DuckDBPyConnection, parts: list[duckdb.DuckDBPyConnection]
) -> None:
    found = [row for part in parts for row in part.execute(f"FROM v1.{name}").fetchall()]
    assert_same(found, whole.execute(f"FROM v1.{name}").fetchall())


@pytest.mark.parametrize("name", ["top_kernels", "matmul_fraction", "gpu_timeline", "range_time"])
def test_a_plan_gives_the_view(name: str, lake: Path, whole: duckdb.DuckDBPyConnection) -> None:
    planned = plan(lake, name.replace("_", "-"))
    assert (len(planned.tasks) == 1) == (planned.unit == "whole")
    table = planned.put_together([answer(task) for task in reversed(planned.tasks)])
    wanted = whole.execute(f"FROM v1.{name}")
    assert table.column_names == [column for column, *_ in wanted.description or ()]
    found = [tuple(row.values()) for row in table.to_pylist()]
    assert_same(found, wanted.fetchall())


def test_an_unknown_view_and_a_folder_that_is_no_lake_are_said(tmp_path: Path, lake: Path) -> None:
    with pytest.raises(UsageError, match="there is no view 'nothing'"):
        plan(lake, "nothing")
    with pytest.raises(TracedbError, match="not a lake"):
        plan(tmp_path, "kernels")


def assert_same(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(sorted(found, key=_key), sorted(wanted, key=_key), strict=True):
        assert all(_is_same(a, b) for a, b in zip(one, other, strict=True)), (one, other)


def _key(row: Any) -> list[tuple[bool, str]]:
    return [(value is None, _text(value)) for value in row]


def _text(value: Any) -> str:
    return f"{float(value):.6g}" if isinstance(value, int | float) else str(_plain(value))


def _plain(value: Any) -> Any:
    """Return a map in one form: Arrow gives pairs, DuckDB's cursor a dict."""
    if isinstance(value, list | tuple) and value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
        value = dict(value)
    return sorted(value.items()) if isinstance(value, dict) else value


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(_plain(one) == _plain(other))
