"""The views as a library: rules of ``sql/README.md``, comments, types, order, aliases, documentation."""

from __future__ import annotations

import hashlib
import math
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import pytest

import sql_lint
from support import declarations
from support.rows import insert
from tracedb.catalog import describe
from tracedb.storage import template_database, views
from tracedb.storage.connection import plan_quickly

ROOT = Path(__file__).resolve().parents[2]
VIEW_FILES = sql_lint.view_files()
PUBLIC = [view for view in VIEW_FILES if not view.is_private]

INTEGER_NAMES = re.compile(
    r".*_ns$|.*_calls$|calls$|.*instances$|gpu_ops$|.*bytes$|.*_id$|(grid|block)_[xyz]$|rank$|step$"
)
DOUBLE_NAMES = re.compile(r".*(percent|_mean_ns|_avg_ns|_median_ns|_stddev_ns|gbps|_per_step)$|slowdown$|p_value$")
DOUBLE_TIMES = re.compile(r"(.*_)?(mean|avg|median|mad|stddev|p05|p25|p50|p75|p95|p99|target)_ns$")


def test_sql_files_keep_the_rules() -> None:
    faults = sql_lint.faults()
    assert not faults, "\n".join(faults)


GOOD = """-- Which kernels? Grain: kernel.
CREATE VIEW v1.good AS
WITH kernels AS (SELECT e.name FROM main.kernel_event AS e WHERE true /* filter e */)
SELECT k.name FROM kernels AS k;
COMMENT ON VIEW v1.good IS 'Kernels. Grain: kernel.';
COMMENT ON COLUMN v1.good.name IS 'Name.';
"""


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("-- Which", "Which", "does not begin with a -- header"),
        ("SELECT k.name", "select k.name", "keyword 'select' is not in upper case"),
        ("SELECT k.name", "SELECT  k.name FROM (", "does not parse"),
        ("v1.good AS", "v1.other AS", "creates v1.other, not v1.good"),
        ("CREATE VIEW", "CREATE TABLE", "something other than one CREATE VIEW"),
        ("COMMENT ON COLUMN", "DROP VIEW v1.good; COMMENT ON COLUMN", "something other than one CREATE VIEW"),
        ("FROM main.kernel_event", "FROM kernel_event", "kernel_event is not qualified"),
        ("FROM main.kernel_event", "FROM main.kernels", "main.kernels is no table"),
        ("FROM main.kernel_event", "FROM v2.kernels", "v2.kernels is of another version"),
        ("FROM main.kernel_event", "FROM read_csv('x')", "reads from the function"),
        ("SELECT k.name", "SELECT *", "selects *; name the columns"),
        ("SELECT k.name", "SELECT k.*", "selects k.*; name the columns"),
        ("SELECT k.name", "SELECT stddev_samp(k.name) AS name", "stddev_samp depends on the row order"),
        ("kernels AS (", "kernels AS NOT MATERIALIZED (", "says whether kernels is materialized"),
        ("kernels AS k;", "kernels AS k ORDER BY k.name;", "orders or limits at the top"),
        ("kernels AS k;", "kernels AS k LIMIT 3;", "orders or limits at the top"),
        ("SELECT k.name", "SELECT k.name AS kernelName", "'kernelName' is not in lower snake case"),
        ("/* filter e */", "/* all of them */", "is no hook"),
        ("/* filter e */", "/* grain */", "do not come in pairs"),
        ("COMMENT ON VIEW v1.good IS 'Kernels. Grain: kernel.';", "", "has no COMMENT ON VIEW"),
        ("'Kernels. Grain: kernel.'", "'Kernels.'", "is not `Sentence. Grain: …`"),
        ("COMMENT ON COLUMN v1.good.name", "COMMENT ON COLUMN v1.goods.name", "comments on v1.goods.name"),
        ("'Name.'", "'Name. [furlongs]'", "name declares [furlongs], which is no unit"),
        ("good.name IS 'Name.'", "good.total_ns IS 'Time, in ns.'", "total_ns declares no unit"),
        ("true /*", "true\t/*", "holds a tab"),
        ("FROM main.kernel_event AS e", "FROM v1.good AS e", "views read each other in a circle"),
    ],
)
def test_the_lint_finds(tmp_path: Path, old: str, new: str, fault: str) -> None:
    folder = tmp_path / "sql" / "v1" / "kernels"
    folder.mkdir(parents=True)
    shutil.copytree(ROOT / "schemas" / "v1", tmp_path / "schemas" / "v1")
    (folder / "good.sql").write_text(GOOD)
    assert sql_lint.faults(tmp_path / "sql") == []
    assert old in GOOD
    (folder / "good.sql").write_text(GOOD.replace(old, new, 1))
    assert any(fault in line for line in sql_lint.faults(tmp_path / "sql"))


@pytest.mark.parametrize(
    ("source", "columns", "is_right"),
    [
        ("v1._inner", "e.* EXCLUDE (kind)", True),
        ("v1._inner", "e.*, e.name AS again", True),
        ("v1._inner", "*", False),
        ("main.kernel_event", "e.*", False),
        ("v1.kernels", "e.*", False),
    ],
)
def test_a_private_view_passes_on_the_columns_of_a_private_view_only(
    tmp_path: Path, source: str, columns: str, is_right: bool
) -> None:
    folder = tmp_path / "v1" / "kernels"
    folder.mkdir(parents=True)
    text = f"-- Grain: event.\nCREATE VIEW v1._outer AS\nSELECT {columns}\nFROM {source} AS e;\n"
    (folder / "_outer.sql").write_text(text)
    faults = [line for line in sql_lint.faults(tmp_path) if "name the columns" in line]
    assert (faults == []) is is_right


def test_the_lint_finds_a_view_in_two_topics_and_one_in_none(tmp_path: Path) -> None:
    for folder in ("kernels", "ranges"):
        (tmp_path / "v1" / folder).mkdir(parents=True)
        (tmp_path / "v1" / folder / "good.sql").write_text(GOOD)
    (tmp_path / "v1" / "good.sql").write_text(GOOD)
    found = sql_lint.faults(tmp_path)
    assert "v1: good stands in several topics" in found
    assert "v1/good.sql: stands in no topic's folder" in found


def test_views_are_created_after_those_that_they_read() -> None:
    """The order is computed by names in the text; sqlglot, which parses it, must find the same needs."""
    for version in views.VERSIONS:
        order = [view.name for view in views.by_dependency(version)]
        files = [view for view in VIEW_FILES if view.version == version]
        assert sorted(order) == sorted(view.name for view in files)
        for view in files:
            needs = sql_lint.needs(view)
            assert needs <= set(order[: order.index(view.name)])
            assert views.View(version, view.name).needs == needs


def test_every_version_is_shipped_and_nothing_else() -> None:
    assert tuple(sorted({view.version for view in VIEW_FILES})) == views.VERSIONS
    for version in views.VERSIONS:
        assert {view.name for view in views.shipped(version)} == {
            view.name for view in VIEW_FILES if view.version == version
        }


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A new database, open for writing."""
    path = tmp_path_factory.mktemp("shipped") / "new.duckdb"
    assert template_database.place(path)
    with duckdb.connect(str(path)) as connection:
        plan_quickly(connection)
        connection.execute("SET threads = 1")
        yield connection


def described(connection: duckdb.DuckDBPyConnection, schema: str, name: str) -> list[tuple[str, str, str | None]]:
    return connection.execute(
        """SELECT column_name, data_type, comment FROM duckdb_columns()
           WHERE schema_name = ? AND table_name = ? ORDER BY column_index""",
        [schema, name],
    ).fetchall()


def test_every_public_column_is_described_with_its_unit(shipped: duckdb.DuckDBPyConnection) -> None:
    faults = []
    for view in PUBLIC:
        for name, type_, comment in described(shipped, view.version, view.name):
            fault = declarations.fault(name, type_, comment)
            faults += [f"{view.version}.{view.name}.{name}: {fault}"] if fault else []
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("name", "type_", "comment", "fault"),
    [
        ("total_ns", "BIGINT", "Sum of durations. [ns]", None),
        ("class", "VARCHAR", "Class.", None),
        ("rank", "INTEGER", "Rank. [-]", None),
        ("wait_ns", "MAP(INTEGER, BIGINT)", "Rank to its waiting. [ns]", None),
        ("total_ns", "BIGINT", "Sum of durations, in ns.", "is a number and declares no unit"),
        ("total_ns", "BIGINT", "Sum of durations. [hours]", "is a number and declares no unit"),
        ("total_ns", "BIGINT", "Sum of durations. [µs]", "is named as ns and declares µs"),
        ("Total (ns)", "BIGINT", "Sum of durations. [µs]", "is named as ns and declares µs"),
        ("wait_ns", "MAP(INTEGER, BIGINT)", "Rank to its waiting.", "is a number and declares no unit"),
        ("total_ns", "BIGINT", "[ns]", "its comment is no sentence"),
        ("total_ns", "BIGINT", None, "its comment is no sentence"),
    ],
)
def test_what_a_comment_must_declare(name: str, type_: str, comment: str | None, fault: str | None) -> None:
    found = declarations.fault(name, type_, comment)
    assert found == fault if fault is None else found is not None and found.startswith(fault)


def test_numbers_have_the_types_that_readers_expect(shipped: duckdb.DuckDBPyConnection) -> None:
    """Sums are 64-bit integers, not HUGEINT; shares, means and ratios DOUBLE, not DECIMAL."""
    faults = []
    for view in PUBLIC:
        for name, type_, _ in described(shipped, view.version, view.name):
            where = f"{view.version}.{view.name}.{name} is {type_}"
            if re.match("HUGEINT|UHUGEINT|DECIMAL|FLOAT", type_):
                faults.append(where)
            elif DOUBLE_TIMES.fullmatch(name) or DOUBLE_NAMES.fullmatch(name):
                if type_ != "DOUBLE":
                    faults.append(where)
            elif INTEGER_NAMES.fullmatch(name) and type_ not in (
                "BIGINT",
                "INTEGER",
                "BIGINT[]",
                "MAP(INTEGER, BIGINT)",
            ):
                faults.append(where)
    assert not faults, "\n".join(faults)


def outermost() -> list[sql_lint.ViewFile]:
    """Return the views that no other view reads: binding them binds every view, and takes a fraction of the time."""
    read = {(view.version, name) for view in VIEW_FILES for name in views.View(view.version, view.name).needs}
    return [view for view in VIEW_FILES if not view.is_macro and (view.version, view.name) not in read]


def test_an_empty_database_answers_every_view(shipped: duckdb.DuckDBPyConnection) -> None:
    """No rows, never an error."""
    for view in outermost():
        shipped.execute(f"SELECT count(*) FROM {view.version}.{view.name}").fetchall()


def test_no_table_of_the_installation_is_left(shipped: duckdb.DuckDBPyConnection) -> None:
    tables = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'v1'"
    created = "SELECT view_name FROM duckdb_views() WHERE schema_name = 'v1'"
    assert shipped.execute(tables).fetchall() == []
    wanted = {view.name for view in views.shipped("v1") if "CREATE VIEW" in view.text}
    assert {name for (name,) in shipped.execute(created).fetchall()} == wanted


def test_aliases_in_main_have_the_comments_of_their_views(shipped: duckdb.DuckDBPyConnection) -> None:
    """A name that a table has stays the table's."""
    tables = {name for (name,) in shipped.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    aliased = [view.name for view in PUBLIC if view.version == views.CURRENT and view.name not in tables]
    assert tables & {view.name for view in PUBLIC} == {"replay", "whatif"}
    for name in aliased:
        assert described(shipped, "main", name) == described(shipped, views.CURRENT, name)
    rows = shipped.execute(
        "SELECT view_name FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal"
    ).fetchall()
    assert sorted(name for (name,) in rows) == sorted(aliased)


def test_views_answer_under_another_name(tmp_path: Path) -> None:
    """A file ATTACHed by a stranger answers through qualified names."""
    path = tmp_path / "run.duckdb"
    assert template_database.place(path)
    with duckdb.connect(str(path)) as connection:
        insert(connection, "capture", "capture_id source", (1, "torch"))
        insert(connection, "kernel_event", "capture_id event_id kind name start_ns duration_ns",
               (1, 1, "kernel", "sgemm", 5, 7))  # fmt: skip
    with duckdb.connect(":memory:") as connection:
        connection.execute("CREATE TABLE kernel_event (nothing INTEGER)")
        connection.execute(f"ATTACH '{path}' AS other (READ_ONLY)")
        for view in outermost():  # names are looked up when a view is bound; planning and asking it would add nothing
            connection.sql(f"FROM other.{view.version}.{view.name}")
        found = connection.execute("SELECT name, class, total_ns FROM other.v1.top_kernels").fetchall()
        assert found == [("sgemm", "matmul", 7)]
        assert connection.execute("SELECT calls FROM other.top_kernels").fetchall() == [(1,)]


def unnamed(document: str, names: Iterable[str]) -> list[str]:
    """Return the views that a document does not name."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return [name for name in names if not re.search(rf"`(v1\.)?{name}`", text)]


def test_each_view_is_documented() -> None:
    assert unnamed("docs/views.md", [view.name for view in PUBLIC]) == []
    assert unnamed("docs/views.md", ["kernels", "no_such_view"]) == ["no_such_view"]


def test_each_released_view_is_in_the_changelog() -> None:
    """Before a release, a new view needs no line there: it is told of when its digest goes into ``RELEASED``."""
    path = ROOT / "sql" / "RELEASED"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    released = [Path(line.split(maxsplit=1)[1]).stem for line in lines]
    assert unnamed("CHANGELOG.md", [name for name in released if not name.startswith("_")]) == []


def test_released_files_are_frozen() -> None:
    """``RELEASED`` holds digests in sha256sum's form; what it lists never changes."""
    for room in ("sql", "schemas"):
        path = ROOT / room / "RELEASED"
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            digest, name = line.split(maxsplit=1)
            found = hashlib.sha256((ROOT / room / name).read_bytes()).hexdigest()
            assert found == digest, f"{room}/{name} was released and has been changed since"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("v1._sample_stddev(0, NULL::HUGEINT, NULL::HUGEINT)", None),
        ("v1._sample_stddev(1, 7::HUGEINT, 49::HUGEINT)", 0.0),
        ("v1._sample_stddev(4, 14::HUGEINT, 54::HUGEINT)", pytest.approx((5 / 3) ** 0.5, rel=1e-15)),
        # Large and close together: doubles would lose the difference.
        ("v1._sample_stddev(2, 2000000000000000001::HUGEINT, 2000000000000000002000000000000000001)", 0.5**0.5),
        ("v1._rounded_mean(0::HUGEINT, 0)", None),
        ("v1._rounded_mean(1::HUGEINT, 4)", 0.3),
        ("v1._rounded_mean(7::HUGEINT, 20)", 0.4),  # the double 7 / 20 is less than 0.35
        ("v1._erfc(0.0::DOUBLE)", pytest.approx(1.0, rel=1.2e-7)),
        ("v1._erfc(1.5::DOUBLE)", pytest.approx(math.erfc(1.5), rel=1.2e-7)),
        ("v1._mann_whitney_u(2, 2 * (1 + 3))", 1.0),
        ("v1._mann_whitney_stddev(4, 4, 0)", pytest.approx(12**0.5, rel=1e-15)),
        ("v1._mann_whitney_p(8.0, 4, 4, 0)", pytest.approx(1.0, rel=1.2e-7)),
        (
            "v1._mann_whitney_p(0.0, 4, 4, 0)",
            pytest.approx(math.erfc(7.5 / 12**0.5 / 2**0.5), rel=1.2e-7),
        ),
    ],
)
def test_macros_give(shipped: duckdb.DuckDBPyConnection, expression: str, value: float | None) -> None:
    assert shipped.execute(f"SELECT {expression}").fetchone() == (value,)


def test_macros_are_described_and_their_loss_is_noticed(shipped: duckdb.DuckDBPyConnection) -> None:
    macros = {view.name for view in VIEW_FILES if view.is_macro}
    rows = shipped.execute(
        """SELECT function_name, comment FROM duckdb_functions()
           WHERE schema_name = 'v1' AND function_type = 'macro'"""
    ).fetchall()
    assert {name for name, comment in rows if comment} == macros
    shipped.execute("DROP MACRO v1._erfc")
    states = {row[1]: row[2] for row in describe.verify(shipped).rows}
    assert states["_erfc"] == "missing"
    assert states["_sample_stddev"] == "ok"
