"""Answers as an xlsx workbook: a sheet for each, and one with notes.

Rows are streamed. Cells have the answer's values; a time is shown in ms only by its number format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import Any

from tracedb.errors import TracedbError
from tracedb.output.answer import Answer, Column, plain
from tracedb.output.display import time_unit
from tracedb.output.shorten import visible

_EXACT = 10**15 - 1  # spreadsheets keep 15 digits
MOST_ROWS = 1_048_575
MOST_COLUMNS = 16_384
MOST_KEYS = 500
"""Maximum number of map keys that become columns; a larger map stays one column."""
MOST_TEXT = 32_767
"""UTF-16 units per cell."""
LONGEST_NAME = 31
_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
_NOT_XML = re.compile("[\ufffe\uffff\ud800-\udfff]")
_NUMBER = re.compile(r"0|-?[1-9]\d{0,14}")
_LABELS = re.compile(r"MAP\(VARCHAR, ")
_TIME_FORMATS = {"s": '#,##0.000,,," s"', "ms": '#,##0.000,," ms"', "µs": '#,##0.000," µs"'}
_FORMATS = {
    "percent": '0.0"%"',
    "ratio": "0.00",
    "count": "#,##0",
    "bytes": "#,##0",
    "GB/s": "#,##0.00",
    "ms": "#,##0.000",
}
_MOMENT = re.compile(r"(^|_)(start|end|at|zero)(_of_\w+)?(_unix)?_ns$|^start_of_")
NOTES = "Notes"
FIRST = 2_000
"""Rows by which units and widths of columns are chosen."""


@dataclass(frozen=True)
class Sheet:
    """An answer with the name of its sheet."""

    name: str
    answer: Answer
    colours: bool = True


@dataclass
class _Cell:
    """A column of a sheet: the answer's, or one key of a map."""

    header: str
    at: int
    column: Column
    key: str | None = None
    format: str | None = None


@dataclass
class _Written:
    """Facts about a written sheet, for the notes."""

    name: str
    answer: Answer
    rows: int = 0
    cut: int = 0
    said: list[str] = field(default_factory=list)


def require() -> None:
    """Raise ``TracedbError`` if the package that writes workbooks is missing: before anything is worked out for one."""
    if find_spec("xlsxwriter") is None:
        raise TracedbError("xlsx needs the package XlsxWriter, which is not installed: pip install 'tracedb-gpu[xlsx]'")


def write_workbook(sheets: Iterable[Sheet], path: Path, without: Sequence[tuple[str, str]] = ()) -> None:
    """Write a workbook. Text is never interpreted as a formula or a link.

    ``without``: what has no sheet, and why; read after the last sheet is written. Raises ``TracedbError`` if the
    package is missing or a sheet would have too many rows.
    """
    require()
    import xlsxwriter

    with xlsxwriter.Workbook(path, {"constant_memory": True}) as book:
        book.set_properties({"created": datetime(2000, 1, 1)})  # the same answer gives the same bytes
        writer = _Writer(book)
        written = [writer.sheet(sheet) for sheet in sheets]
        writer.notes(written, without)


def sheet_name(text: str, taken: Iterable[str] = ()) -> str:
    """Return a valid sheet name that no other sheet has."""
    used = {name.casefold() for name in taken} | {"history", NOTES.casefold()}
    wanted = _NOT_IN_NAMES.sub("_", text).strip("'")[:LONGEST_NAME] or "answer"
    name, number = wanted, 1
    while name.casefold() in used:
        number += 1
        name = f"{wanted[: LONGEST_NAME - len(str(number)) - 1]}_{number}"
    return name


class _Writer:
    """Writes the sheets of one workbook."""

    def __init__(self, book: Any) -> None:
        self._book = book
        self._bold = book.add_format({"bold": True, "text_wrap": True, "valign": "top", "bottom": 1})
        self._wrapped = book.add_format({"text_wrap": True, "valign": "top"})
        self._formats: dict[str, Any] = {}
        self._names: list[str] = []

    def sheet(self, sheet: Sheet) -> _Written:
        answer = sheet.answer
        name = sheet_name(sheet.name, self._names)
        self._names.append(name)
        page = self._book.add_worksheet(name)
        keys = _keys(answer)  # before the rows are read: a connection has only one open result
        source = iter(answer.rows)
        first = list(islice(source, FIRST))
        cells = _cells(answer, keys, first)
        if len(cells) > MOST_COLUMNS:
            raise TracedbError(f"a sheet holds {MOST_COLUMNS:,} columns and {name} has {len(cells):,}; choose less")
        for place, cell in enumerate(cells):
            page.write_string(0, place, _text(cell.header)[0], self._bold)
            if said := _said(cell):
                page.write_comment(0, place, said, {"x_scale": 2.4})
            form = self._format(cell.format)
            page.set_column(place, place, _width(cell, first), form)
        done = _Written(name, answer)
        for row in chain(first, source):
            if answer.most and done.rows >= answer.most:
                break
            done.rows += 1
            if done.rows > MOST_ROWS:
                raise TracedbError(
                    f"a sheet holds {MOST_ROWS:,} rows and the answer has more; use --top N, or -o FILE.parquet"
                )
            for place, cell in enumerate(cells):
                done.cut += self._write(page, done.rows, place, cell, row)
        page.freeze_panes(1, 0)
        _paged(page)
        if cells:
            page.autofilter(0, 0, done.rows, len(cells) - 1)
        if sheet.colours and done.rows:
            _colour(page, cells, done.rows)
        return done

    def notes(self, written: Sequence[_Written], without: Sequence[tuple[str, str]]) -> None:
        """Write the last sheet: the source of each answer, warnings, and the meaning of columns."""
        page = self._book.add_worksheet(NOTES)
        _paged(page)
        page.set_column(0, 1, 28, self._wrapped)
        page.set_column(2, 2, 12, self._wrapped)
        page.set_column(3, 3, 110, self._wrapped)
        for place, header in enumerate(("sheet", "about", "unit", "note")):
            page.write_string(0, place, header, self._bold)
        page.freeze_panes(1, 0)
        line = 1
        missing = [(name, "no answer", "", reason) for name, reason in without]
        for rows in [*map(_notes, written), missing]:
            for row in rows:
                for place, text in enumerate(row):
                    if text:
                        page.write_string(line, place, _text(text)[0], self._wrapped)
                line += 1

    def _format(self, form: str | None) -> Any:
        if form is None:
            return None
        if form not in self._formats:
            self._formats[form] = self._book.add_format({"num_format": form})
        return self._formats[form]

    def _write(self, page: Any, row: int, at: int, cell: _Cell, values: Sequence[object]) -> bool:
        """Write a value; returns whether it is a text that had to be truncated."""
        value = values[cell.at]
        if cell.key is not None:
            value = value.get(cell.key) if isinstance(value, dict) else None
        value = plain(value)
        if value is None:
            return False
        form = self._format(cell.format)
        if isinstance(value, bool):
            page.write_boolean(row, at, value)
        elif isinstance(value, int | float) and abs(value) <= _EXACT:
            page.write_number(row, at, value, form)
        elif cell.key is not None and isinstance(value, str) and _NUMBER.fullmatch(value):  # sorts as a number
            page.write_number(row, at, int(value))
        else:
            text, is_cut = _text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            page.write_string(row, at, text)
            return is_cut
        return False


def _paged(page: Any) -> None:
    """Set up the print: whole rows on a landscape page, the header on each."""
    page.set_landscape()
    page.fit_to_pages(1, 0)  # as many pages high as the rows need
    page.repeat_rows(0)


def _keys(answer: Answer) -> dict[str, list[str]]:
    """Return the keys of maps with text keys, such as labels, which become columns."""
    if answer.keys is None:
        return {}
    found = {column.name: answer.keys(column.name) for column in answer.columns if _LABELS.match(column.type)}
    return {name: keys for name, keys in found.items() if len(keys) <= MOST_KEYS}


def _cells(answer: Answer, maps: dict[str, list[str]], first: Sequence[Sequence[object]]) -> list[_Cell]:
    """Return the columns of a sheet."""
    taken = {column.name for column in answer.columns}
    cells: list[_Cell] = []
    for at, column in enumerate(answer.columns):
        if column.name not in maps:
            cells.append(_Cell(column.name, at, column, None, _format_of(column, [row[at] for row in first])))
            continue
        value_type = column.type.partition(", ")[2].rstrip(")")
        for key in maps[column.name]:
            part = Column(column.name, value_type, column.unit, column.description)
            header = f"{column.name} {key}" if key in taken else key
            cells.append(_Cell(header, at, part, key, _format_of(part, ())))
    return cells


def _format_of(column: Column, values: Sequence[object]) -> str | None:
    """Return the number format of a column; for times in one unit, by the largest of the first values."""
    if not column.is_number:
        return None
    if column.unit == "ns":
        if _MOMENT.search(column.name):
            return "#,##0"
        return _TIME_FORMATS[time_unit(values)[1]]
    if column.unit in _FORMATS:
        return _FORMATS[column.unit]
    return "#,##0.000" if column.type in ("DOUBLE", "FLOAT") else None


def _said(cell: _Cell) -> str:
    """Return what is shown when the pointer is on a header: the unit of the values, and their meaning."""
    column = cell.column
    shown = next((unit for unit, form in _TIME_FORMATS.items() if form == cell.format), "")
    unit = f"Unit: {column.unit}{f', shown in {shown}' if shown else ''}." if column.unit else ""
    return " ".join(part for part in (unit, visible(column.description or "")) if part)


def _width(cell: _Cell, first: Sequence[Sequence[object]]) -> float:
    if cell.column.is_number or cell.key is not None:
        return max(12, min(len(cell.header) + 3, 24))
    longest = max((len(str(row[cell.at])) for row in first[:100]), default=0)
    return max(12, min(longest + 2, 60))


def _colour(page: Any, cells: Sequence[_Cell], rows: int) -> None:
    """Shade percentages and ratios by size, except a column with a verdict."""
    for place, cell in enumerate(cells):
        if cell.column.unit in ("percent", "ratio"):
            scale = {"type": "2_color_scale", "min_color": "#FFFFFF", "max_color": "#F5B041"}
            page.conditional_format(1, place, rows, place, scale)


def _text(text: str) -> tuple[str, bool]:
    """Return a text that fits a cell, and whether it was truncated.

    Characters invalid in XML are replaced; XlsxWriter writes control characters in the format's own escapes.
    """
    clean = _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
    units = clean.encode("utf-16-le")
    if len(units) <= 2 * MOST_TEXT:
        return clean, False
    return units[: 2 * (MOST_TEXT - 1)].decode("utf-16-le", errors="ignore") + "\N{HORIZONTAL ELLIPSIS}", True


def _notes(done: _Written) -> Iterator[tuple[str, str, str, str]]:
    answer = done.answer
    report = " ".join(part for part in (answer.report, answer.version) if part)
    if report:
        yield done.name, "report", "", report
    if answer.database:
        yield done.name, "database", "", PurePath(answer.database).name  # a manager needs no path of this machine
    if answer.filters:
        yield done.name, "filters", "", json.dumps(plain(dict(answer.filters)), ensure_ascii=False)
    yield done.name, "rows", "", f"{done.rows:,}" + (f" (a sheet holds {MOST_ROWS:,})" if done.rows else "")
    for warning in answer.warnings:
        yield done.name, "warning", "", warning
    for note in answer.notes:
        yield done.name, "note", "", note
    if answer.left_out:
        yield done.name, "rows left out", "", answer.left_out
    if done.cut:
        yield done.name, "warning", "", f"{done.cut:,} texts are cut: a cell holds {MOST_TEXT:,} characters"
    for column in answer.columns:
        if column.description or column.unit:
            yield done.name, column.name, column.unit or "", column.description or ""
