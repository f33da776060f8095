"""Answers as binary files: Parquet and xlsx."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from tracedb.errors import TracedbError
from tracedb.output.answer import Answer, plain

_EXACT = 2**53  # a spreadsheet's numbers are float64
_MOST_ROWS = 1_048_575


def write_parquet(answer: Answer, path: Path) -> None:
    """Write the rows as Parquet; descriptions and units go along as field metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with answer.arrow() as reader:
        fields = []
        for field, column in zip(reader.schema, answer.columns, strict=True):
            said = {"unit": column.unit, "description": column.description}
            fields.append(field.with_metadata({key: text for key, text in said.items() if text}))
        schema = pa.schema(fields)
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            written = 0
            for batch in reader:
                kept = batch.slice(0, answer.most - written) if answer.most else batch
                writer.write_batch(pa.RecordBatch.from_arrays(kept.columns, schema=schema))
                written += len(kept)
                if answer.most and written >= answer.most:
                    break


def write_xlsx(answer: Answer, path: Path) -> None:
    """Write one sheet with a frozen, filterable header; text is never taken for a formula or a link."""
    try:
        import xlsxwriter
    except ModuleNotFoundError as error:
        raise TracedbError(
            "xlsx needs the package XlsxWriter, which is not installed: pip install 'tracedb-gpu[xlsx]'"
        ) from error
    with xlsxwriter.Workbook(path, {"constant_memory": True}) as book:
        book.set_properties({"created": datetime(2000, 1, 1)})  # the same answer gives the same bytes
        sheet = book.add_worksheet("answer")
        bold = book.add_format({"bold": True})
        for at, column in enumerate(answer.columns):
            sheet.write_string(0, at, column.name, bold)
            sheet.set_column(at, at, 14 if column.is_number else 40)
        last = 0
        for last, row in enumerate(answer.rows, start=1):
            if last > _MOST_ROWS:
                raise TracedbError(f"a sheet holds {_MOST_ROWS:,} rows and the answer has more; use --top or parquet")
            for at, value in enumerate(row):
                _write_cell(sheet, last, at, value)
        sheet.freeze_panes(1, 0)
        if answer.columns:
            sheet.autofilter(0, 0, last, len(answer.columns) - 1)


def _write_cell(sheet: Any, row: int, at: int, value: object) -> None:
    value = plain(value)
    if value is None:
        return
    if isinstance(value, bool):
        sheet.write_boolean(row, at, value)
    elif isinstance(value, int | float) and abs(value) <= _EXACT:
        sheet.write_number(row, at, value)
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        sheet.write_string(row, at, text[:32_767])
