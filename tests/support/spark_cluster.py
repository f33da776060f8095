"""The Spark that the tests share: starting one takes as long as a dozen of them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

# For tables of a few thousand rows: planning, compiling and scheduling take all the time, so there is one partition, no
# generated code, no replanning, no text of a plan, and the JVMs compile little.
SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.log.level": "ERROR",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.debug.maxToStringFields": "1",
    "spark.sql.maxPlanStringLength": "0",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def started(warehouse: object) -> Iterator[Any]:
    """Start a cluster of two executors, each a JVM of its own; skips the test where Spark or Java is not installed."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not installed")
    settings = {**SETTINGS, "spark.sql.warehouse.dir": str(warehouse)}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patched.setenv("PYSPARK_PYTHON", sys.executable)
        session = sql.SparkSession.builder.master("local-cluster[2,1,1024]").config(map=settings).getOrCreate()
        yield session
        session.stop()
