"""Answers as binary files: Parquet and xlsx."""

from __future__ import annotations

import json
from pathlib import Path

from tracedb.output.answer import Answer


def write_parquet(answer: Answer, path: Path) -> None:
    """Write the rows as Parquet, with descriptions and units as field metadata and remarks as file metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with answer.arrow() as reader:
        fields = []
        for field, column in zip(reader.schema, answer.columns, strict=True):
            said = {"unit": column.unit, "description": column.description}
            fields.append(field.with_metadata({key: text for key, text in said.items() if text}))
        about: dict[str, str] = {}
        for kind in ("warning", "note"):
            if texts := [text for which, text in answer.remarks if which == kind]:
                about[f"tracedb.{kind}s"] = json.dumps(texts, ensure_ascii=False)
        schema = pa.schema(fields, about or None)
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            written = 0
            for batch in reader:
                kept = batch.slice(0, answer.most - written) if answer.most else batch
                writer.write_batch(pa.RecordBatch.from_arrays(kept.columns, schema=schema))
                written += len(kept)
                if answer.most and written >= answer.most:
                    break


def write_xlsx(answer: Answer, path: Path) -> None:
    """Write one sheet with the answer, named after its report, and one with notes (see ``workbook``)."""
    from tracedb.output.workbook import Sheet, write_workbook

    write_workbook([Sheet(answer.report or "answer", answer)], path)
