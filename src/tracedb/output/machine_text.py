"""Machine-readable text: CSV, JSON, newline-delimited JSON. Values are exact and names complete."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from typing import TextIO

from tracedb.output.answer import Answer, plain

_FORMULA = re.compile(r"[\t\r\n]|[\s\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""How a formula may begin: some spreadsheets skip what cannot be seen, or take full-width signs."""


_DECIMALS = {"MB": 3}
"""Decimals of a unit in CSV, trailing zeros included: those of nsys, in whose reports alone it occurs."""


def write_csv(answer: Answer, target: TextIO) -> None:
    """Write CSV as in RFC 4180, with a header; NULL is empty, maps and lists are JSON text."""
    writer = csv.writer(target)
    writer.writerow([_harmless(column.name) for column in answer.columns])
    fixed = {at: _DECIMALS[column.unit] for at, column in enumerate(answer.columns) if column.unit in _DECIMALS}
    for row in answer.rows:
        cells = [_csv_cell(value) for value in row]
        for at, digits in fixed.items():
            if isinstance(cells[at], int | float):
                cells[at] = f"{cells[at]:.{digits}f}"
        writer.writerow(cells)


def write_json(answer: Answer, target: TextIO) -> None:
    """Write one object: metadata, columns, rows; one row per line."""
    head = {
        "report": answer.report,
        "version": answer.version,
        "database": answer.database,
        "filters": dict(answer.filters or {}),
        "warnings": [*answer.warnings, *([answer.left_out] if answer.left_out else [])],
        **({"notes": answer.notes} if answer.notes else {}),
        **answer.extra,
    }
    target.write("{\n")
    for key, value in head.items():
        target.write(f"{_dump(key)}: {_dump(plain(value))},\n")
    columns = [
        {"name": item.name, "type": item.type, "unit": item.unit, "description": item.description}
        for item in answer.columns
    ]
    target.write(f'"columns": {_lines(iter([_dump(column) for column in columns]))},\n')
    target.write('"rows": [')
    separator = "\n"
    for text in _objects(answer):
        target.write(f"{separator}{text}")
        separator = ",\n"
    target.write("\n]\n}\n")


def write_object(values: Mapping[str, object], target: TextIO) -> None:
    """Write a JSON object on one line."""
    target.write(_dump(plain(values)) + "\n")


def write_ndjson(answer: Answer, target: TextIO) -> None:
    """Write each row as an object on its own line."""
    for text in _objects(answer):
        target.write(text + "\n")


def _objects(answer: Answer) -> Iterator[str]:
    names = [column.name for column in answer.columns]
    for row in answer.rows:
        yield _dump({name: plain(value) for name, value in zip(names, row, strict=True)})


def _lines(texts: Iterator[str]) -> str:
    return "[\n" + ",\n".join(texts) + "\n]"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _csv_cell(value: object) -> object:
    value = plain(value)
    if isinstance(value, dict | list):
        return _harmless(_dump(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return _harmless(value) if isinstance(value, str) else value


def _harmless(text: str) -> str:
    """Return text that spreadsheets do not interpret as a formula: a quote is put before a leading ``=``, ``+``, ``-``
    or ``@``."""
    if not _FORMULA.match(text):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text
