"""Reports inside Spark: DuckDB runs the views in Spark's tasks, over a lake that all executors can read.

>>> import tracedb.spark
>>> tracedb.spark.run(spark, "/data/lake", "gemm-variance").show()  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.distribute.plan import plan
from tracedb.distribute.task import answer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def run(spark: SparkSession, lake: str | Path, report: str) -> DataFrame:
    """Return the rows of a view as a data frame.

    A view that is exact per run of the lake stays distributed; for merged views, counts of values reach the driver;
    a global view is one task. tracedb must be installed on the executors. Raises ``UsageError`` and ``TracedbError``.
    """
    planned = plan(lake, report)
    tasks = planned.tasks
    empty = answer(replace(tasks[0], query=f"SELECT * FROM ({tasks[0].query}) LIMIT 0"))
    numbers = spark.range(len(tasks), numPartitions=len(tasks))

    def answered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from answer(tasks[number]).cast(empty.schema).to_batches()

    from pyspark.sql.pandas.types import from_arrow_schema

    frame = numbers.mapInArrow(answered, from_arrow_schema(empty.schema))
    if planned.unit != "merged":
        return frame
    return spark.createDataFrame(planned.put_together([frame.toArrow()]))
