"""Build staging batches from the scanner's result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from tracedb.ingester import Options
from tracedb_torch.decode.values import one_spelling
from tracedb_torch.int_columns import WORDS
from tracedb_torch.recover.repair import clean
from tracedb_torch.scan import native_scanner
from tracedb_torch.scan.native_scanner import Scan, Scanner, Table, Text
from tracedb_torch.staging_columns import COLUMNS, SCANNED

COUNTED = (
    *("flow_events", "profiler_spans", "overhead_events"),
    *("python_functions", "memory_events"),
)
"""Counters of the library, in its order."""


class Block(NamedTuple):
    """A scanned block with its batches, in the form ``Batches`` gives for decoded events."""

    scan: Scan
    batches: list[tuple[str, pa.RecordBatch]]


def scanner(options: Options, first_text: int) -> Scanner | None:
    """Return a scanner that numbers texts from ``first_text``; None if the library is not in use."""
    found = native_scanner.library()
    return None if found is None else Scanner(found, options, first_text)


def block_of(found: Scan) -> Block:
    """Return a scanned block with its batches."""
    return Block(
        found,
        [
            (name, pa.RecordBatch.from_arrays(_arrays(COLUMNS[name], table), names=list(COLUMNS[name])))
            for name, table in zip(SCANNED, found.tables, strict=False)
            if table.rows
        ],
    )


def texts(new: Sequence[Text]) -> pa.RecordBatch:
    """Return the batch of new texts; raw JSON is normalised to one spelling regardless of white space."""
    values = [clean(one_spelling(text.source)) if text.is_raw else text.source.decode() for text in new]
    numbers = pa.array([text.number for text in new], pa.int64())
    return pa.RecordBatch.from_arrays([numbers, pa.array(values, pa.string())], names=list(COLUMNS["text"]))


def _arrays(columns: Mapping[str, str], table: Table) -> list[pa.Array]:
    """Return the library's columns without a copy."""
    assert table.memory is not None
    memory = pa.foreign_buffer(table.memory.address, table.memory.size, table.memory)
    bits = (table.rows + 7) // 8
    arrays = []
    for (name, kind), (width, values, valid) in zip(columns.items(), table.columns, strict=True):
        stored = pa.float64() if kind == "DOUBLE" else pa.int64() if width == 8 else pa.int32()
        there = None if valid is None else memory.slice(valid, bits)
        array = pa.Array.from_buffers(stored, table.rows, [there, memory.slice(values, table.rows * width)])
        arrays.append(pa.DictionaryArray.from_arrays(array, WORDS[name]) if name in WORDS else array)
    return arrays
