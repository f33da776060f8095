"""The public views in other engines: equal rows and seconds of one query, or the construct that prevents it.

    python benchmarks/views_by_engine.py [--engines clickhouse spark] [--views NAME …]

The traces are those of tests/dialect. Seconds are CPU time: of this process with one thread for DuckDB, of this process
for ClickHouse, of the JVM for Spark (``local[2]``), whose time includes the planning of the view's whole stack. Prints
the lines of the table in docs/engines.md; stops with an assertion if rows differ.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import measure

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support import engine_tables, spark_cluster  # noqa: E402
from tracedb.dialect import clickhouse, script  # noqa: E402
from tracedb.storage.connection import plan_quickly  # noqa: E402
from tracedb.storage.views import shipped  # noqa: E402

Rows = list[tuple[Any, ...]]
Query = Callable[[str, list[str]], tuple[Rows, float]]
JSON_SETTINGS = "output_format_json_quote_64bit_integers = 0, output_format_json_quote_denormals = 1"


def in_clickhouse(source: duckdb.DuckDBPyConnection, folder: Path) -> Query:
    """Return a function that runs a view in ClickHouse: rows and CPU seconds."""
    session = import_module("chdb.session").Session()
    for statement in script.tables("clickhouse"):
        session.query(statement)
    engine_tables.fill_clickhouse(session, source, folder)
    session.query(f"SET {', '.join(f'{name} = {value}' for name, value in clickhouse.SETTINGS.items())}")
    for statement in script.statements("clickhouse"):
        session.query(statement)

    def asked(view: str, columns: list[str]) -> tuple[Rows, float]:
        names = ", ".join(f"`{column}`" for column in columns)
        begun = time.process_time()
        answer = str(session.query(f"SELECT {names} FROM v1.{view} SETTINGS {JSON_SETTINGS}", "JSONCompact"))
        used = time.process_time() - begun
        return [tuple(row) for row in json.loads(answer)["data"]], used

    return asked


def in_spark(source: duckdb.DuckDBPyConnection, folder: Path) -> Query:
    """Return a function that runs a view in Spark: rows and CPU seconds of the JVM."""
    from pyspark.sql import SparkSession

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    settings = {**spark_cluster.SETTINGS, "spark.sql.warehouse.dir": str(folder / "warehouse")}
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sql("CREATE DATABASE main")
    for table, file in engine_tables.exported(source, folder):
        session.sql(f"CREATE TABLE main.{table} USING parquet OPTIONS (path '{file}')")
    for statement in script.statements("spark"):
        session.sql(statement)
    jvm = session.sparkContext._gateway.proc.pid

    def asked(view: str, columns: list[str]) -> tuple[Rows, float]:
        names = ", ".join(f"`{column}`" for column in columns)
        begun = _cpu(jvm)
        rows = [tuple(row) for row in session.sql(f"SELECT {names} FROM v1.{view}").collect()]
        return rows, _cpu(jvm) - begun

    return asked


def _cpu(process: int) -> float:
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


ENGINES: dict[str, Callable[[duckdb.DuckDBPyConnection, Path], Query]] = {
    "clickhouse": in_clickhouse,
    "spark": in_spark,
}


def lines(source: duckdb.DuckDBPyConnection, folder: Path, engines: list[str], views: list[str]) -> Iterator[str]:
    """Yield a line for each of the views."""
    queries: dict[str, Query] = {}
    for engine in engines:
        (folder / engine).mkdir()
        queries[engine] = ENGINES[engine](source, folder / engine)
    for view in views:
        columns = [column for column, *_ in source.execute(f"DESCRIBE file.v1.{view}").fetchall()]
        begun = time.process_time()
        wanted = source.execute(f"FROM file.v1.{view}").fetchall()
        cells = [f"{time.process_time() - begun:.2f}"]
        for engine, asked in queries.items():
            if view not in script.declared(engine):
                cells.append(f"no: {script.reason(engine, view)}")
                continue
            found, used = asked(view, columns)
            engine_tables.assert_same(found, wanted)
            cells.append(f"{used:.2f}")
        yield f"| `{view}` | {len(wanted):,} | {' | '.join(cells)} |"


def main() -> None:
    """Make the traces' tables, run the declared views, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    public = sorted(view.name for view in shipped() if not view.is_private)
    parser.add_argument("--views", nargs="+", choices=public, default=public, metavar="NAME")
    given = parser.parse_args()
    print(f"{measure.machine()}\n\n| view | rows | DuckDB | {' | '.join(given.engines)} |")
    print(f"|---|---|---|{'---|' * len(given.engines)}")
    with tempfile.TemporaryDirectory(prefix="tracedb-bench-") as name, duckdb.connect() as source:
        folder = Path(name)
        plan_quickly(source)
        source.execute("SET threads = 1")
        source.execute(f"ATTACH '{engine_tables.filled(folder / 'db')}' AS file (READ_ONLY)")
        for line in lines(source, folder, given.engines, given.views):
            print(line, flush=True)


if __name__ == "__main__":
    main()
