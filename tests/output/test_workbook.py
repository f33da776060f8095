"""xlsx as a spreadsheet reads it: types, formats, notes, and text that is only text."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import duckdb
import pytest

from tracedb.errors import TracedbError
from tracedb.output import from_rows, from_sql
from tracedb.output import workbook as output
from tracedb.output.answer import Answer, Column, about
from tracedb.output.workbook import MOST_TEXT, Sheet, sheet_name, write_workbook

pytest.importorskip("xlsxwriter", reason="the xlsx extra is not installed")
openpyxl = pytest.importorskip("openpyxl", reason="the reader of xlsx is not installed")

HOSTILE = (
    "=1+1",
    '=HYPERLINK("http://example.org","x")',
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1+1",
    "http://example.org",
    "<b>&amp;</b>]]>",
    "right\u202eto left",
    "\U0001f600 beyond the first plane",
    "'",
)


def loaded(path: Path) -> Any:
    return openpyxl.load_workbook(path)


def sheet(answer: Answer, path: Path) -> Any:
    write_workbook([Sheet(answer.report or "answer", answer)], path)
    for name in zipfile.ZipFile(path).namelist():  # as strict a parser as any
        if name.endswith(".xml"):
            ElementTree.fromstring(zipfile.ZipFile(path).read(name))
    return loaded(path).worksheets[0]


def test_sheets_print_with_whole_rows_and_the_header_on_each_page(tmp_path: Path) -> None:
    page = sheet(from_rows([Column("name", "VARCHAR")], [("a",)]), tmp_path / "x.xlsx")
    for each in (page, page.parent["Notes"]):
        assert (each.page_setup.orientation, each.sheet_properties.pageSetUpPr.fitToPage) == ("landscape", True)
        assert (each.page_setup.fitToWidth or 1, each.page_setup.fitToHeight) == (1, 0)
        assert each.print_title_rows == "$1:$1"


def test_text_is_text_whatever_it_looks_like(tmp_path: Path) -> None:
    answer = from_rows([Column("name", "VARCHAR")], [(text,) for text in HOSTILE])
    page = sheet(answer, tmp_path / "a.xlsx")
    assert tuple(row[0].value for row in page.iter_rows(min_row=2)) == HOSTILE
    assert {row[0].data_type for row in page.iter_rows(min_row=2)} == {"s"}
    assert not page._hyperlinks
    assert b"<f>" not in zipfile.ZipFile(tmp_path / "a.xlsx").read("xl/worksheets/sheet1.xml")


def test_what_xml_cannot_hold_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    texts = ["a\x00\x01\x1fb", "a\ufffe\uffffb", "a\ud800b", "_x0041_"]
    page = sheet(from_rows([Column("name", "VARCHAR")], [(text,) for text in texts]), tmp_path / "a.xlsx")
    found = [row[0].value for row in page.iter_rows(min_row=2)]
    assert [openpyxl.utils.escape.unescape(text) for text in found[:1]] == ["a\x00\x01\x1fb"]
    assert found[1:3] == ["a\ufffd\ufffdb", "a\ufffdb"]
    assert openpyxl.utils.escape.unescape(found[3]) == "_x0041_"


def test_a_text_that_is_too_long_is_cut_and_said_to_be(tmp_path: Path) -> None:
    texts = ["x" * MOST_TEXT, "x" * (MOST_TEXT + 1), "\U0001f600" * MOST_TEXT]
    page = sheet(from_rows([Column("name", "VARCHAR")], [(text,) for text in texts]), tmp_path / "a.xlsx")
    found = [row[0].value for row in page.iter_rows(min_row=2)]
    assert found[0] == texts[0]
    assert [len(text.encode("utf-16-le")) // 2 for text in found[1:]] == [MOST_TEXT, MOST_TEXT]
    assert {text[-1] for text in found[1:]} == {"\N{HORIZONTAL ELLIPSIS}"}
    notes = [row for row in loaded(tmp_path / "a.xlsx")["Notes"].iter_rows(values_only=True) if row[1] == "warning"]
    assert notes == [("answer", "warning", None, "2 texts are cut: a cell holds 32,767 characters")]


def test_columns_have_types_and_formats_and_values_stay_whole(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        answer = from_sql(
            connection,
            """SELECT MAP {'threads': '256', 'sweep': 'a'} AS labels, 1234567 AS calls, 21_000_123::BIGINT AS total_ns,
                      1_500::BIGINT AS min_ns, 1_790_857_026_123_456_789 AS start_ns, 12.5::DOUBLE AS share_percent,
                      1.25::DOUBLE AS slowdown, NULL::BIGINT AS max_ns, true AS is_best, 'x' AS verdict
               UNION ALL
               SELECT MAP {'threads': '1024', 'other': '007'}, 1, 1, 2, 3, 50, 1, 4, false, NULL ORDER BY calls DESC""",
            {"calls": "Number of calls.", "total_ns": "Sum. [ns]"},
        )
        answer.report, answer.version, answer.database = "top-kernels", "v1", "/home/someone/run.duckdb"
        answer.warnings, answer.notes, answer.left_out = ["=a warning"], ["=the gist"], "2 of 9 rows"
        page = sheet(answer, tmp_path / "a.xlsx")
    assert (page.title, page.freeze_panes, page.auto_filter.ref) == ("top-kernels", "A2", "A1:L3")
    rows = list(page.iter_rows())
    labels = ["threads", "other", "sweep"]
    numbers = ["calls", "total_ns", "min_ns", "start_ns", "share_percent", "slowdown", "max_ns"]
    assert [cell.value for cell in rows[0]] == [*labels, *numbers, "is_best", "verdict"]
    first = [256, None, "a", 1_234_567, 21_000_123, 1_500, "1790857026123456789", 12.5, 1.25, None, True, "x"]
    assert [cell.value for cell in rows[1]] == first
    assert [cell.value for cell in rows[2]] == [1_024, "007", None, 1, 1, 2, 3, 50, 1, 4, False, None]
    formats = {head.value: cell.number_format for head, cell in zip(rows[0], rows[1], strict=True)}
    assert formats["calls"] == "#,##0"
    assert (formats["total_ns"], formats["min_ns"]) == ('#,##0.000,," ms"', '#,##0.000," µs"')
    assert (formats["share_percent"], formats["slowdown"]) == ('0.0"%"', "0.00")
    coloured = sorted(str(item.sqref) for item in page.conditional_formatting)
    assert coloured == ["H2:H3", "I2:I3"]
    notes = list(loaded(tmp_path / "a.xlsx")["Notes"].iter_rows(values_only=True))
    assert ("top-kernels", "report", None, "top-kernels v1") in notes
    assert ("top-kernels", "database", None, "run.duckdb") in notes
    assert ("top-kernels", "warning", None, "=a warning") in notes
    assert ("top-kernels", "note", None, "=the gist") in notes
    assert ("top-kernels", "rows left out", None, "2 of 9 rows") in notes
    assert ("top-kernels", "total_ns", "ns", "Sum.") in notes
    assert any(row[1] == "rows" and row[3] == "2 (a sheet holds 1,048,575)" for row in notes)


def test_headers_say_unit_and_meaning_to_the_pointer(tmp_path: Path) -> None:
    columns = [Column("total_ns", "BIGINT", "ns", "Sum of \x1bdurations."), Column("name", "VARCHAR")]
    page = sheet(from_rows(columns, [(1, "a")]), tmp_path / "a.xlsx")
    assert page["A1"].value == "total_ns"
    assert page["A1"].comment.text == "Unit: ns, shown in µs. Sum of \N{REPLACEMENT CHARACTER}durations."
    assert page["B1"].comment is None


def test_several_sheets_have_names_of_their_own(tmp_path: Path) -> None:
    names = ["a" * 40, "a" * 40, "Notes", "x/y:[z]?*", "'quoted'", "History", ""]
    sheets = [Sheet(name, from_rows([Column("n", "BIGINT")], [(1,)])) for name in names]
    write_workbook(sheets, tmp_path / "a.xlsx")
    found = loaded(tmp_path / "a.xlsx").sheetnames
    assert found == ["a" * 31, "a" * 29 + "_2", "Notes_2", "x_y__z___", "quoted", "History_2", "answer", "Notes"]
    assert all(len(name) <= 31 for name in found)
    assert sheet_name("A", ["a"]) == "A_2"


def test_more_rows_than_a_sheet_holds_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MOST_ROWS", 10)
    answer = from_rows([Column("n", "BIGINT")], [(number,) for number in range(11)])
    with pytest.raises(
        TracedbError, match=r"a sheet holds 10 rows and the answer has more; use --top N, or -o FILE.parq"
    ):
        write_workbook([Sheet("n", answer)], tmp_path / "a.xlsx")


def test_a_pivot_of_maps_keeps_the_order_of_its_keys(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        query = "SELECT 'busy' AS part, MAP {'256_4': 1.5, '256_16': 2.5} AS configurations"
        answer = from_sql(connection, query, {"configurations": "Mean. [ms]"})
        assert answer.columns[1] == about("configurations", answer.columns[1].type, "Mean. [ms]")
        page = sheet(answer, tmp_path / "a.xlsx")
    assert [[cell.value for cell in row] for row in page.iter_rows()] == [
        ["part", "256_4", "256_16"],
        ["busy", 1.5, 2.5],
    ]
    assert page["B2"].number_format == "#,##0.000"
