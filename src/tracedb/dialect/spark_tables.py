"""The declared views over a lake as temporary views of a Spark session, which Spark itself runs.

Small tables come from DuckDB, as does ``kernel_class``; the others are the Parquet files that the manifest
names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tracedb.dialect import script, spark, view_tree
from tracedb.storage import lake_catalog, lake_manifest, lake_tables
from tracedb.storage.connection import open_read_only
from tracedb.storage.lake_catalog import Source
from tracedb.storage.views import CURRENT

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

PREFIX = "tracedb"
"""Temporary views have no schema: ``main.launch`` is ``tracedb_main_launch``, a name that no CTE of a view has."""
_TYPES = {
    "VARCHAR": "STRING",
    "BIGINT": "BIGINT",
    "INTEGER": "INT",
    "DOUBLE": "DOUBLE",
    "BOOLEAN": "BOOLEAN",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "MAP(VARCHAR, VARCHAR)": "MAP<STRING, STRING>",
    "MAP(VARCHAR, BIGINT)": "MAP<STRING, BIGINT>",
}
"""Type of a stored column -> its type in Spark."""


def register(session: SparkSession, lake: Path, names: Sequence[str]) -> list[str]:
    """Create the temporary views; see ``tracedb.spark.register``."""
    wanted = script.wanted("spark", names)
    ordered = view_tree.in_order(*wanted)
    trees = {name: view_tree.tree(name) for name in ordered}
    read = {table.name for tree in trees.values() for table in tree.find_all(exp.Table) if table.db == "main"}
    _tables(session, lake, read)
    for name in ordered:
        _create(session, f"{PREFIX}_{CURRENT}_{name}", spark.rewritten(trees[name].transform(_renamed)))
    for name in wanted:
        _create(session, name, f"SELECT * FROM {PREFIX}_{CURRENT}_{name}")
    return wanted


def _create(session: SparkSession, name: str, select: str) -> None:
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW `{name}` AS\n{select}")


def _renamed(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Table) or node.db not in ("main", CURRENT):
        return node
    renamed = exp.to_table(f"{PREFIX}_{node.db}_{node.name}")
    renamed.set("alias", node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name)))
    return renamed


def _tables(session: SparkSession, lake: Path, wanted: set[str]) -> None:
    """Create a temporary view of each table that the views read."""
    store = lake_manifest.opened(lake)
    sources = lake_catalog.sources_of(store, lake_manifest.read(store), None, True)
    with open_read_only(lake) as connection:
        for table in sorted(wanted):
            view = f"{PREFIX}_main_{table}"
            columns = lake_tables.declared().get(table)
            if columns is None or table in (*lake_tables.SETTINGS, "capture"):
                relation = f"{CURRENT}.{view_tree.CLASSES}" if columns is None else f"main.{table}"
                rows: pa.Table = connection.sql(f"FROM {relation}").to_arrow_table()
                session.createDataFrame(rows).createOrReplaceTempView(view)
                continue
            stored = {name: lake_tables.stored_type(name, kind) for name, kind in columns.items()}
            schema = ", ".join(f"`{name}` {_TYPES[kind]}" for name, kind in stored.items())
            frames = [_frame(session, schema, source) for source in sources.get(table, [])]
            frame = frames[0] if frames else session.createDataFrame([], schema)
            for other in frames[1:]:
                frame = frame.unionAll(other)
            frame.createOrReplaceTempView(view)


def _frame(session: SparkSession, schema: str, source: Source) -> DataFrame:
    """Return the rows of files of one layout; columns that they lack are NULL."""
    frame: Any = session.read.schema(schema).parquet(*source.paths)
    return frame if source.ids is None else frame.where(frame.capture_id.isin(sorted(source.ids)))
