"""The views in other engines' SQL: the same rows as DuckDB, or a refusal."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot

from support.command import run
from support.loading import ingest
from tracedb.dialect import script, view_tree
from tracedb.dialect.joins import without_asof, without_named_windows
from tracedb.dialect.portable import portable
from tracedb.storage.connection import plan_quickly
from tracedb.storage.views import shipped

ROOT = Path(__file__).resolve().parents[2]
Row = tuple[Any, ...]
CLASSES = view_tree.CLASS_TABLE


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of every kind, so that hardly any view is empty."""
    path = tmp_path_factory.mktemp("dialect") / "db"
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


@pytest.fixture(scope="module")
def source(db: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        plan_quickly(connection)
        connection.execute("SET threads = 1")
        connection.execute(f"ATTACH '{db}' AS file (READ_ONLY)")
        yield connection


DECLARED = sorted({*script.declared("clickhouse"), *script.declared("spark")})


@pytest.fixture(scope="module")
def rewritten(db: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The declared views after the rewrites that do not depend on an engine, over copies of the tables."""
    with duckdb.connect() as connection:
        plan_quickly(connection)
        connection.execute("SET threads = 1")
        connection.execute(f"ATTACH '{db}' AS file (READ_ONLY)")
        for (table,) in connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = 'file' AND schema_name = 'main'"
        ).fetchall():
            connection.execute(f"CREATE TABLE main.{table} AS FROM file.main.{table}")
        connection.execute("CREATE TABLE main.kernel_class AS FROM file.v1._kernel_class")
        connection.execute("CREATE SCHEMA v1")
        for name in view_tree.in_order(*DECLARED):
            tree = without_named_windows(without_asof(portable(view_tree.tree(name))))
            connection.execute(f"CREATE VIEW v1.{name} AS {tree.sql('duckdb')}")
        yield connection


@pytest.mark.parametrize("name", DECLARED)
def test_without_macros_and_variables_a_view_is_the_same(name: str, rewritten: duckdb.DuckDBPyConnection) -> None:
    found = rewritten.execute(f"FROM v1.{name}").fetchall()
    _assert_same(found, rewritten.execute(f"FROM file.v1.{name}").fetchall())


@pytest.fixture(scope="module")
def clickhouse(source: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A ClickHouse with the tables of the database, and the declared views over them."""
    sessions = pytest.importorskip("chdb.session", reason="chdb, ClickHouse as a library, is not installed")
    folder = tmp_path_factory.mktemp("clickhouse")
    session = sessions.Session()
    made = script.script("clickhouse").split(";\n")
    for statement in filter(str.strip, made):
        if "CREATE DATABASE IF NOT EXISTS v1" in statement:
            _fill_tables(session, source, folder)
        session.query(statement)
    return session


def _fill_tables(session: Any, source: duckdb.DuckDBPyConnection, folder: Path) -> None:
    for table, file in _exported(source, folder):
        names = ", ".join(f'"{name}"' for name, *_ in source.execute(f"DESCRIBE FROM '{file}'").fetchall())
        session.query(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM file('{file}', Parquet)")


def _exported(source: duckdb.DuckDBPyConnection, folder: Path) -> Iterator[tuple[str, Path]]:
    """Write each table as a Parquet file with the types of a lake."""
    tables = source.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'file' AND schema_name = 'main'"
    ).fetchall()
    for table, relation in [*((name, f"file.main.{name}") for (name,) in tables), (CLASSES, "file.v1._kernel_class")]:
        columns = ", ".join(
            f'"{name}"::BIGINT AS "{name}"' if kind == "UBIGINT" else f'"{name}"'
            for name, kind, *_ in source.execute(f"DESCRIBE {relation}").fetchall()
        )
        file = folder / f"{table}.parquet"
        source.execute(f"COPY (SELECT {columns} FROM {relation}) TO '{file}'")
        yield table, file


@pytest.fixture(scope="module")
def spark(source: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark with the tables of the database, and the declared views over them."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder),
    }
    session = sql.SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sql("CREATE DATABASE main")
    for table, file in _exported(source, folder):
        session.sql(f"CREATE TABLE main.{table} USING parquet OPTIONS (path '{file}')")
    for statement in script.statements("spark"):
        session.sql(statement)
    yield session
    session.stop()


@pytest.mark.engine
@pytest.mark.parametrize("name", script.declared("spark"))
def test_spark_gives_the_same_rows(name: str, spark: Any, source: duckdb.DuckDBPyConnection) -> None:
    wanted = source.execute(f"FROM file.v1.{name}").fetchall()
    columns = ", ".join(f"`{column}`" for column, *_ in source.execute(f"DESCRIBE file.v1.{name}").fetchall())
    assert wanted
    _assert_same([tuple(row) for row in spark.sql(f"SELECT {columns} FROM v1.{name}").collect()], wanted)


@pytest.mark.parametrize("name", script.declared("clickhouse"))
def test_clickhouse_gives_the_same_rows(name: str, clickhouse: Any, source: duckdb.DuckDBPyConnection) -> None:
    described = source.execute(f"DESCRIBE file.v1.{name}").fetchall()
    wanted = source.execute(f"FROM file.v1.{name}").fetchall()
    columns = ", ".join(f"`{column}`" for column, *_ in described)
    settings = "output_format_json_quote_64bit_integers = 0, output_format_json_quote_denormals = 1"
    answer = str(clickhouse.query(f"SELECT {columns} FROM v1.{name} SETTINGS {settings}", "JSONCompact"))
    assert wanted
    _assert_same([tuple(row) for row in json.loads(answer)["data"]], wanted)


def test_an_undeclared_view_is_refused_with_the_construct() -> None:
    done = run("sql-dialect", "spark", "--view", "stragglers")
    assert done.exit_code == 2
    assert "stragglers is not declared for spark (windows partitioned by a map)" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(("at", "joined"), [("<", [None, None, "a", "b"]), ("<=", [None, "a", "b", "b"])])
@pytest.mark.parametrize("kind", ["LEFT", "INNER"])
def test_an_asof_join_without_asof(kind: str, at: str, joined: list[str | None]) -> None:
    """Times on both sides of a bound, rows and calls without a time, a key that is NULL (which DuckDB 1.4 drops)."""
    text = f"""SELECT c.k, c.t, s.v
        FROM (VALUES (1, 0), (1, 5), (1, 6), (1, 9), (1, NULL), (2, 6), (NULL, 6)) AS c(k, t)
        ASOF {kind} JOIN (
            FROM (VALUES (1, 5, 'a'), (1, 6, 'b'), (1, NULL, 'c'), (2, 7, 'd'), (NULL, 6, 'e')) AS r(k, t, v)) AS s
        ON s.k IS NOT DISTINCT FROM c.k AND s.t {at} c.t ORDER BY ALL"""
    rewritten = without_asof(sqlglot.parse_one(text, read="duckdb")).sql("duckdb")
    assert "ASOF" not in rewritten
    last = "e" if at == "<=" else None
    wanted = [*zip([1] * 4, [0, 5, 6, 9], joined, strict=True), (1, None, None), (2, 6, None), (None, 6, last)]
    assert duckdb.execute(rewritten).fetchall() == [row for row in wanted if kind == "LEFT" or row[2]]


@pytest.mark.parametrize("engine", ["spark", "clickhouse", "trino"])
def test_a_script_parses_and_names_what_it_needs(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "views.sql"
    assert run("sql-dialect", engine, "-o", path).exit_code == 0
    text = path.read_text()
    assert "main.kernel_class" in text
    assert ("parsed, not executed" in text) == (engine == "trino")
    if engine != "clickhouse":
        assert len(sqlglot.parse(text, read=engine)) > len(script.declared(engine))


def test_every_declared_view_is_a_view() -> None:
    public = {view.name for view in shipped() if not view.is_private}
    for engine in script.ENGINES:
        assert set(script.declared(engine)) <= public


def _assert_same(found: list[Row], wanted: list[Row]) -> None:
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
    return int(value) if isinstance(value, bool) else value


def _key(value: Any) -> tuple[bool, str]:
    return value is None, f"{float(value):.6g}" if isinstance(value, int | float) else str(value)


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return (
            one is not None and other is not None and math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-9)
        )
    return bool(one == other)
