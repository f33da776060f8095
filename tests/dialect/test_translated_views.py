"""The views in other engines' SQL: the same rows as DuckDB, or a refusal."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot

from support import engine_tables
from support.command import run
from support.engine_tables import assert_same, exported, fill_clickhouse
from tracedb.dialect import script, view_tree
from tracedb.dialect.engines import ENGINES
from tracedb.dialect.joins import without_asof, without_named_windows
from tracedb.dialect.portable import portable
from tracedb.storage.connection import plan_quickly
from tracedb.storage.views import CURRENT, View, shipped


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of every kind, and rows by hand."""
    return engine_tables.filled(tmp_path_factory.mktemp("dialect") / "db")


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
    assert_same(found, rewritten.execute(f"FROM file.v1.{name}").fetchall())


@pytest.fixture(scope="module")
def clickhouse(source: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A ClickHouse with the tables of the database, and the declared views over them."""
    sessions = pytest.importorskip("chdb.session", reason="chdb, ClickHouse as a library, is not installed")
    folder = tmp_path_factory.mktemp("clickhouse")
    session = sessions.Session()
    made = script.script("clickhouse").split(";\n")
    for statement in filter(str.strip, made):
        if "CREATE DATABASE IF NOT EXISTS v1" in statement:
            fill_clickhouse(session, source, folder)
        session.query(statement)
    return session


@pytest.fixture(scope="module")
def spark(cluster: Any, source: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A Spark with the tables of the database, and the declared views over them.

    Private views that several others read are tables that Spark fills from its own rows: planning them in each view
    takes most of the time.
    """
    folder = tmp_path_factory.mktemp("spark")
    cluster.sql("CREATE DATABASE main")
    for table, file in exported(source, folder):
        cluster.sql(f"CREATE TABLE main.{table} USING parquet OPTIONS (path '{file}')")
    for statement in script.statements("spark"):
        created = re.match(r"CREATE OR REPLACE VIEW v1\.(_\w+) AS\n", statement)
        if created and _readers()[created[1]] > 1:
            statement = f"CREATE TABLE v1.{created[1]} USING parquet AS {statement[created.end() :]}"
        cluster.sql(statement)
    return cluster


@cache
def _readers() -> Counter[str]:
    """How many of the views that Spark needs read each view."""
    views = view_tree.in_order(*script.declared("spark"))
    return Counter(read for name in views if name != view_tree.CLASSES for read in View(CURRENT, name).needs)


@pytest.mark.engine
@pytest.mark.parametrize("name", script.declared("spark"))
def test_spark_gives_the_same_rows(name: str, spark: Any, source: duckdb.DuckDBPyConnection) -> None:
    wanted = source.execute(f"FROM file.v1.{name}").fetchall()
    columns = ", ".join(f"`{column}`" for column, *_ in source.execute(f"DESCRIBE file.v1.{name}").fetchall())
    assert wanted
    assert_same([tuple(row) for row in spark.sql(f"SELECT {columns} FROM v1.{name}").collect()], wanted)


@pytest.mark.parametrize("name", script.declared("clickhouse"))
def test_clickhouse_gives_the_same_rows(name: str, clickhouse: Any, source: duckdb.DuckDBPyConnection) -> None:
    described = source.execute(f"DESCRIBE file.v1.{name}").fetchall()
    wanted = source.execute(f"FROM file.v1.{name}").fetchall()
    columns = ", ".join(f"`{column}`" for column, *_ in described)
    settings = "output_format_json_quote_64bit_integers = 0, output_format_json_quote_denormals = 1"
    answer = str(clickhouse.query(f"SELECT {columns} FROM v1.{name} SETTINGS {settings}", "JSONCompact"))
    assert wanted
    assert_same([tuple(row) for row in json.loads(answer)["data"]], wanted)


def test_an_undeclared_view_is_refused_with_the_construct() -> None:
    done = run("sql-dialect", "clickhouse", "--view", "kernel-source")
    assert done.exit_code == 2
    assert "kernel_source is not declared for clickhouse (joins on a pattern from a table)" in done.stderr
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
def test_a_script_parses_and_names_what_it_needs(engine: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "views.sql"
    assert run("sql-dialect", engine, "-o", path).exit_code == 0
    assert not caplog.records, "sqlglot's warnings reach the user"
    text = path.read_text()
    assert "main.kernel_class" in text
    assert ("parsed, not executed" in text) == (engine == "trino")
    if engine != "clickhouse":
        assert len(sqlglot.parse(text, read=engine)) > len(script.declared(engine))


PUBLIC = sorted(view.name for view in shipped() if not view.is_private)


@pytest.mark.parametrize("name", PUBLIC)
def test_the_tables_give_every_view_rows(name: str, source: duckdb.DuckDBPyConnection) -> None:
    """An empty view would be equal in any engine, and prove nothing."""
    assert source.execute(f"FROM file.v1.{name} LIMIT 1").fetchall()


def test_every_declared_view_is_a_view() -> None:
    for engine in ENGINES:
        assert set(script.declared(engine)) <= set(PUBLIC)


@pytest.mark.parametrize("engine", ["clickhouse", "spark"])
def test_every_view_is_declared_or_explained(engine: str) -> None:
    explained = {view for view in PUBLIC if script.reason(engine, view)}
    assert sorted({*script.declared(engine), *explained}) == PUBLIC
    assert not explained & set(script.declared(engine))


def test_the_page_has_a_line_for_every_view() -> None:
    """Lines of the table in docs/engines.md, whose seconds come from benchmarks/views_by_engine.py."""
    page = (engine_tables.ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| `")]
    assert [view for view, *_ in lines] == [f"`{view}`" for view in PUBLIC]
    for (_, _, _, *cells), view in zip(lines, PUBLIC, strict=True):
        for engine, cell in zip(("clickhouse", "spark"), cells, strict=True):
            why = script.reason(engine, view)
            assert cell == f"no: {why}" if why else not cell.startswith("no"), (view, engine)
