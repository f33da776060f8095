"""``tracedb.connect`` and ``tracedb.report``, as used in scripts and notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import tracedb
from tracedb.errors import NotCaptured, UsageError
from tracedb.output import Answer


@pytest.fixture
def file(sample: Path) -> Path:
    return sample


@pytest.fixture
def connection(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with tracedb.connect(file) as opened:
        yield opened


def test_a_connection_reads_and_writes_other_files(
    connection: duckdb.DuckDBPyConnection, file: Path, tmp_path: Path
) -> None:
    connection.execute(f"COPY (SELECT rank, path FROM capture) TO '{tmp_path}/captures.csv'")
    assert connection.sql(f"SELECT count(*) FROM read_csv('{tmp_path}/captures.csv')").fetchall() == [(8,)]
    connection.execute(f"ATTACH '{tmp_path}/other.duckdb' AS other; CREATE TABLE other.x AS FROM top_kernels LIMIT 3")
    assert connection.sql("SELECT count(*) FROM other.x").fetchall() == [(3,)]
    connection.execute("CREATE TEMP TABLE mine AS SELECT 1 AS one")
    connection.execute("SET threads = 1")


def test_a_data_frame_in_a_variable_is_a_table(connection: duckdb.DuckDBPyConnection) -> None:
    peaks = pa.table({"class": ["matmul"], "peak": [989]})  # noqa: F841 - the query names it
    found = connection.sql("SELECT peak, count(*) FROM kernels AS k JOIN peaks AS p ON p.class = k.class GROUP BY ALL")
    assert len(found.fetchall()) == 1


def test_the_file_itself_is_read_only(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.InvalidInputException, match="read-only"):
        connection.execute("DELETE FROM capture")


def test_a_report_is_a_relation(file: Path, connection: duckdb.DuckDBPyConnection) -> None:
    rows = tracedb.report("gemm-variance", file, by=["threads", "channels"])
    table = rows.to_arrow_table()
    assert table.column_names[:2] == ["threads", "channels"]
    assert table.num_rows == len(rows.fetchall()) > 0
    assert pa.table(rows) == table
    assert connection.sql("SELECT count(*) FROM rows").fetchall() == [(table.num_rows,)]
    assert rows.filter("calls > 1e9").fetchall() == []
    reader = rows.arrow()
    assert "gemm" in repr(rows).lower()  # while the reader is open
    assert reader.read_all() == table


def test_a_report_is_a_data_frame_of_polars(file: Path) -> None:
    polars = pytest.importorskip("polars")
    rows = tracedb.report("gemm-variance", file, by=["threads", "channels"])
    assert rows.pl().height == polars.DataFrame(rows).height == len(rows.fetchall())


def test_a_report_has_the_rows_of_the_view(connection: duckdb.DuckDBPyConnection) -> None:
    asked = connection.sql("FROM top_kernels ORDER BY ALL").fetchall()
    rows = tracedb.report("top-kernels", connection)
    assert rows.order("ALL").fetchall() == asked
    assert rows.answer.version == "v1"
    assert tuple(connection.sql(rows.sql).fetchall()) == tuple(rows.fetchall())


def test_reports_of_one_connection_do_not_meet(connection: duckdb.DuckDBPyConnection) -> None:
    first = tracedb.report("matmul-fraction", connection, rank=0, by="rank")
    before = first.fetchall()
    second = tracedb.report("matmul-fraction", connection, rank=[1, 2], where={"channels": 4}, by=["rank"])
    assert {row[0] for row in second.select("rank").fetchall()} == {1, 2}
    assert first.fetchall() == before
    assert {row[0] for row in first.select("rank").fetchall()} == {0}


def test_a_report_of_a_plain_connection(file: Path) -> None:
    with duckdb.connect(file, read_only=True) as plain:
        assert len(tracedb.report("top-kernels", plain, top=3).fetchall()) == 3


def test_labels_are_columns_where_asked(file: Path) -> None:
    rows = tracedb.report("kernels", file, label_columns=True, top=5)
    assert rows.columns[:3] == ["channels", "sweep", "threads"]
    assert rows.select("channels, labels['channels']").fetchall()[0][0] in ("4", "16")
    assert "channels" not in tracedb.report("kernels", file, top=5).columns


@pytest.mark.parametrize("name", ["gemm-variance", "gpu-timeline", "configurations", "kernels"])
def test_columns_of_labels_do_not_shift_the_display(file: Path, name: str) -> None:
    rows = tracedb.report(name, file, label_columns=True)
    assert rows.columns == [column.name for column in rows.answer.columns]
    shown, plain = rows._shown()[0], tracedb.report(name, file)._shown()[0]
    assert shown.shows is not None and plain.shows is not None
    displayed = [show.columns for show in shown.shows]
    for columns in (show.columns for show in plain.shows if show.kind != "place"):
        assert columns in displayed
        for column in columns:
            assert _values(shown, column) == _values(plain, column)
    repr(rows)
    head = rows._repr_markdown_().splitlines()[0]
    assert [word.strip() for word in head.split("|")[1:4]] == ["channels", "sweep", "threads"]


def _values(shown: Answer, column: str) -> list[object]:
    place = [item.name for item in shown.columns].index(column)
    return [row[place] for row in shown.rows]


def test_columns_of_labels_that_a_report_cannot_have_are_said(file: Path) -> None:
    said = "label_columns has no effect: rows of top-kernels have no labels"
    assert any(said in text for text in tracedb.report("top-kernels", file, label_columns=True).warnings)
    assert not any(said in text for text in tracedb.report("top-kernels", file).warnings)
    by = tracedb.report("top-kernels", file, label_columns=True, by="channels")
    assert not any("label_columns" in text for text in by.warnings)


def test_sums_are_exact_in_data_frames(file: Path) -> None:
    assert tracedb.report("top-kernels", file).to_arrow_table().schema.field("total_ns").type == pa.int64()


def test_the_display_is_short(file: Path) -> None:
    rows = tracedb.report("kernels", file)
    lines = repr(rows).splitlines()
    assert len(lines) < 20
    assert lines[-1] == "… the first 10 rows"
    assert max(map(len, lines)) <= 200
    assert rows._repr_markdown_().count("|") > 20


def test_what_does_not_fit_is_said(file: Path) -> None:
    with pytest.raises(UsageError, match="did you mean top-kernels"):
        tracedb.report("top-kernel", file)
    with pytest.raises(NotCaptured, match="no capture has rank 99"):
        tracedb.report("top-kernels", file, rank=99)
    with pytest.raises(TypeError, match="no filter 'ranc'"):
        tracedb.report("top-kernels", file, ranc=1)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"rank": "0,1"}, TypeError, "rank must be a whole number or a list such as [0, 1], not '0,1'"),
        ({"device": [0, "x"]}, TypeError, "device must be a whole number or a list such as [0, 1], not [0, 'x']"),
        ({"where": "channels=5"}, TypeError, "where must be a mapping of labels to values"),
        ({"top": -1}, ValueError, "top must not be negative: -1"),
        ({"top": "5"}, TypeError, "top must be a whole number, not '5'"),
        ({"skip_warmup": -1}, ValueError, "skip_warmup must not be negative: -1"),
        ({"rule": "threads"}, ValueError, "rule must be one of thread, process, time, not 'threads'"),
        ({"by": [1]}, TypeError, "by must be a text or a list of texts, not 1"),
        ({"source": 1}, TypeError, "source must be a text or a list of texts, not 1"),
        ({"counted": "no"}, TypeError, "counted must be True or False, not 'no'"),
        ({"window": (5, 1)}, ValueError, "window must be a pair of nanoseconds"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line(
    file: Path, given: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=re.escape(said)) as raised:
        tracedb.report("top-kernels", file, **given)
    assert "\n" not in str(raised.value) and "SELECT" not in str(raised.value)


def test_none_is_a_filter_not_given(file: Path) -> None:
    rows = tracedb.report("top-kernels", file, rank=None, where=None, rule=None, capture=1)
    assert rows.fetchall() == tracedb.report("top-kernels", file, capture="1").fetchall() != []


def test_the_filters_listed_are_the_documented_ones(file: Path) -> None:
    with pytest.raises(TypeError) as raised:
        tracedb.report("top-kernels", file, ranc=1)
    listed = set(str(raised.value).partition("there are ")[2].split(", "))
    documented = Path(__file__).parents[2].joinpath("docs", "python.md").read_text(encoding="utf-8")
    sentence = documented.partition("the filters of `tracedb report`:")[2].partition(".")[0]
    assert set(re.findall(r"`(\w+)`", sentence)) | {"by"} == listed
