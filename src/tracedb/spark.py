"""Reports inside Spark: DuckDB runs the views in Spark's tasks, over a lake that all executors can read.

>>> import tracedb.spark
>>> tracedb.spark.run(spark, "/data/lake", "gemm-variance").show()  # doctest: +SKIP
>>> tracedb.spark.register(spark, "/data/lake")  # doctest: +SKIP
>>> spark.sql("FROM top_kernels").show()  # doctest: +SKIP
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.dialect import spark_tables
from tracedb.distribute.plan import Plan, plan
from tracedb.distribute.task import answer
from tracedb.errors import TracedbError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_UNLESS_SAID = {
    "spark.app.name": "tracedb",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings of a Spark that a report starts, unless its configuration has others."""


def run(spark: SparkSession, lake: str | Path, report: str) -> DataFrame:
    """Return the rows of a view as a data frame.

    A view that is exact per run of the lake stays distributed; for merged views, counts of values reach the driver;
    a global view is one task. tracedb must be installed on the executors. Raises ``UsageError`` and ``TracedbError``.
    """
    planned = plan(lake, report)
    frame = _frame(spark, planned)
    if planned.unit != "merged":
        return frame
    return spark.createDataFrame(planned.put_together([frame.toArrow()]))


def register(spark: SparkSession, lake: str | Path, *views: str) -> list[str]:
    """Create temporary views of tracedb's views over a lake's Parquet files; Spark itself runs them.

    ``views``: names; all that are declared for Spark by default. Their names are those of DuckDB without the schema:
    ``spark.sql("FROM top_kernels")``. Returns the names. Captures that are added later are not seen until it is called
    again. Raises ``UsageError`` for a view that is not declared for Spark, ``TracedbError`` if there is no lake.
    """
    return spark_tables.register(spark, Path(lake), views)


def gather(planned: Plan) -> list[pa.Table]:
    """Return the tasks' answers, put together; Spark is started as its own configuration says, if it is not running.

    Raises ``TracedbError`` if Spark cannot be started or a task fails.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    try:
        spark = running or _started()
        try:
            return [_frame(spark, planned).toArrow()]
        finally:
            if running is None:
                spark.stop()
    except (PySparkException, Py4JError) as error:
        raise TracedbError(f"Spark could not run the report: {_reason(str(error))}") from error


def _started() -> SparkSession:
    """Start Spark as its configuration says; where that says nothing of it, with this Python and without messages."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    conf = SparkConf()
    for name, value in _UNLESS_SAID.items():
        conf.setIfMissing(name, value)
    with tempfile.TemporaryFile() as said, _stderr_into(said.fileno()):
        try:
            return SparkSession.builder.config(conf=conf).getOrCreate()
        except (PySparkException, Py4JError, OSError) as error:
            said.seek(0)
            printed = said.read().decode(errors="replace")
            raise TracedbError(f"Spark could not be started: {_reason(printed or str(error))}") from error


@contextmanager
def _stderr_into(target: int) -> Iterator[None]:
    """Let what this process and those that it starts write on stderr go into a file: Spark's JVM greets there."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(target, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _frame(spark: SparkSession, planned: Plan) -> DataFrame:
    """Return the answers of all tasks."""
    from pyspark.sql.pandas.types import from_arrow_schema

    tasks = planned.tasks
    empty = answer(replace(tasks[0], query=f"SELECT * FROM ({tasks[0].query}) LIMIT 0"))
    numbers = spark.range(len(tasks), numPartitions=len(tasks))

    def answered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from answer(tasks[number]).cast(empty.schema).to_batches()

    return numbers.mapInArrow(answered, from_arrow_schema(empty.schema))


def _reason(text: str) -> str:
    """Return the line of an error that says what happened: the first with an exception, else the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if re.search(r"(Error|Exception|Captured|Busy): ", line)]
    return re.sub(r"^tracedb[.\w]*: ", "", (said or lines[-1:] or ["no reason given"])[0])
