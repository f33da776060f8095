"""Staging batches out of what the compiled reader scanned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tracedb.ingester import Options
from tracedb_torch import native
from tracedb_torch.columns import one_spelling
from tracedb_torch.native import Column, Scan, Scanner, Text
from tracedb_torch.repair import clean

GPU = (
    *("event_id", "pid", "tid", "kind", "name", "start_ns", "duration_ns", "external_id", "device_id", "context_id"),
    *("stream_id", "correlation_id", "registers", "shared_bytes", "grid_x", "grid_y", "grid_z", "block_x", "block_y"),
    *("block_z", "occupancy", "bytes", "graph_id", "graph_node_id"),
)
LAUNCH = ("launch_id", "pid", "tid", "name", "start_ns", "duration_ns", "external_id", "correlation_id")
OP = (
    *("op_id", "pid", "tid", "name", "start_ns", "duration_ns", "external_id", "sequence_number"),
    *("forward_thread_id", "input_dims", "input_types", "input_strides", "concrete_inputs"),
)
ANNOTATION = (*("annotation_id", "pid", "tid", "name", "style", "start_ns", "duration_ns", "device_id", "stream_id"),)
TABLES = (("gpu", GPU), ("launch", LAUNCH), ("op", OP), ("annotation", ANNOTATION))
WORDS = {
    "kind": pa.array(["kernel", "memcpy", "memset"], pa.string()),
    "style": pa.array(["user", "gpu_projection", "python_function"], pa.string()),
}
"""Columns that the library fills with codes, and what the codes mean."""


COUNTED = (
    *("flow_events", "profiler_spans", "overhead_events", "synchronization_events"),
    *("python_functions", "memory_events"),
)
"""What the library counts, in its order."""


class Block(NamedTuple):
    """A scanned block and its batches, as ``Batches`` makes them of decoded events."""

    scan: Scan
    batches: list[tuple[str, pa.RecordBatch]]


def scanner(options: Options, first_text: int) -> Scanner | None:
    """Return a scanner that numbers texts from ``first_text``; None where the library is not in use."""
    found = native.library()
    return None if found is None else Scanner(found, options, first_text)


def scan(by: Scanner, text: bytes) -> Block:
    """Scan a block."""
    found = by.scan(text)
    return Block(
        found,
        [
            (table, pa.RecordBatch.from_arrays(_arrays(names, rows, columns), names=names))
            for (table, names), (rows, columns) in zip(TABLES, found.tables, strict=False)
            if rows
        ],
    )


def texts(new: Sequence[Text]) -> pa.RecordBatch:
    """Return the batch of new texts; raw JSON in one spelling, whatever the file's white space."""
    values = [clean(one_spelling(text.source)) if text.is_raw else text.source.decode() for text in new]
    numbers = pa.array([text.number for text in new], pa.int64())
    return pa.RecordBatch.from_arrays([numbers, pa.array(values, pa.string())], names=["id", "value"])


def _arrays(names: Sequence[str], rows: int, columns: Sequence[Column]) -> list[pa.Array]:
    arrays = []
    for name, column in zip(names, columns, strict=True):
        if words := WORDS.get(name):
            arrays.append(words.take(pa.array(np.frombuffer(column.values, np.int64))))
            continue
        valid = None if column.valid is None else pa.py_buffer(column.valid)
        kind = pa.float64() if name == "occupancy" else pa.int64()
        arrays.append(pa.Array.from_buffers(kind, rows, [valid, pa.py_buffer(column.values)]))
    return arrays
