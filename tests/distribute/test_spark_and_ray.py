"""Spark with two executors, and Ray: reports over a lake are those of DuckDB in one process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.command import run
from tracedb.errors import UsageError

pytestmark = pytest.mark.engine
REPORTS = ["top-kernels --by channels --format csv", "gemm-variance --format csv", "stragglers --top 5"]


@pytest.fixture(scope="module")
def spark(cluster: Any) -> Any:
    """Spark with two executors, as the running session."""
    return cluster


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    found = pytest.importorskip("ray", reason="Ray is not installed")
    found.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
    yield found
    found.shutdown()


@pytest.mark.parametrize("words", REPORTS)
@pytest.mark.parametrize("engine", ["spark", "ray"])
def test_a_report_is_the_same(engine: str, words: str, lake: Path, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(engine)
    wanted = run("report", *words.split(), "--lake", lake)
    found = run("report", *words.split(), "--lake", lake, "--engine", engine)
    assert (found.exit_code, found.stdout, found.stderr) == (wanted.exit_code, wanted.stdout, wanted.stderr)


def test_both_executors_work(spark: Any) -> None:
    """Their Python workers have different parents."""

    def parent(batches: Any) -> Any:
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"id": [os.getppid()]})

    assert spark.range(8, numPartitions=8).mapInArrow(parent, "id BIGINT").distinct().count() >= 2


def test_registered_views_are_spark_sql(spark: Any, lake: Path) -> None:
    import tracedb.spark

    assert tracedb.spark.register(spark, lake, "top-kernels", "matmul_fraction") == ["top_kernels", "matmul_fraction"]
    with tracedb.connect(lake) as connection:
        for view, columns in {
            "top_kernels": "name, calls, total_ns, min_ns",
            "matmul_fraction": "class, calls",
        }.items():
            wanted = connection.execute(f"SELECT {columns} FROM v1.{view}").fetchall()
            assert sorted(map(tuple, spark.sql(f"SELECT {columns} FROM {view}").collect())) == sorted(wanted)


def test_an_undeclared_view_is_not_registered(spark: Any, lake: Path) -> None:
    import tracedb.spark

    with pytest.raises(UsageError, match="kernel_histogram is not declared for spark"):
        tracedb.spark.register(spark, lake, "kernel-histogram")
