"""Store integer columns in 32 bits where the values fit: half the memory while a file is read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

LEAST, MOST = np.iinfo(np.int32).min, np.iinfo(np.int32).max
WORDS = {
    "kind": pa.array(["kernel", "memcpy", "memset"], pa.string()),
    "style": pa.array(["user", "gpu_projection"], pa.string()),
}
"""Columns with a fixed set of words, in the order of their codes in the compiled reader."""
TIMES = ("start_ns", "duration_ns")
UNUSABLE = -1
"""Marks an invalid device or stream number: no other field of the event may replace it."""


def word(column: str, value: str, rows: int) -> pa.Array:
    """Return a column with the same word in every row."""
    words = WORDS[column]
    return pa.DictionaryArray.from_arrays(np.full(rows, words.to_pylist().index(value), np.int32), words)


def moved(numbers: pa.Array, further: int) -> pa.Array:
    """Return event numbers (no NULLs) with ``further`` added."""
    values = numbers.to_numpy()
    if further + int(values.max()) > MOST:
        values = values.astype(np.int64)
    return column(values + further)


def column(values: npt.NDArray[np.number | np.bool_], there: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return the values without a copy; NULL where they are not ``there``.

    Like ``pa.array``, but without importing numpy's masked arrays only to see that these are none.
    """
    bits = None if there is None else _bits(there)
    data = _bits(values.view(np.bool_)) if values.dtype == np.bool_ else pa.py_buffer(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [bits, data])


def _bits(values: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def narrowed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with 32 bits for every integer column whose values fit, except times."""
    if pa.types.is_int32(batch.column(0).type):
        return batch  # already narrow: made by the compiled reader
    columns = [
        _cast(values, np.int32)
        if name not in TIMES and pa.types.is_int64(values.type) and _is_small(values)
        else values
        for name, values in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def joined(batches: list[pa.RecordBatch]) -> pa.Table:
    """Return batches as one table: a column that has 64 bits in one batch gets them in all."""
    kinds = zip(*(batch.schema.types for batch in batches), strict=True)
    wide = [place for place, found in enumerate(kinds) if len(set(found)) > 1]
    if wide:
        batches = [_widened(batch, wide) for batch in batches]
    return pa.Table.from_batches(batches)


def _widened(batch: pa.RecordBatch, places: list[int]) -> pa.RecordBatch:
    columns = batch.columns
    for place in places:
        if pa.types.is_int32(columns[place].type):
            columns[place] = _cast(columns[place], np.int64)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def values_of(numbers: pa.Array) -> npt.NDArray[np.signedinteger]:
    """Return the values without a copy; the value at a NULL is undefined."""
    _, values = numbers.buffers()
    found: npt.NDArray[np.signedinteger] = np.frombuffer(values, numbers.type.to_pandas_dtype())
    return found[numbers.offset : numbers.offset + len(numbers)]


def _is_small(numbers: pa.Array) -> bool:
    values = values_of(numbers)
    return bool(values.min() >= LEAST and values.max() <= MOST)


def _cast(numbers: pa.Array, kind: type[np.int32] | type[np.int64]) -> pa.Array:
    """Return the column with another integer type; values at NULLs are ignored."""
    there, _ = numbers.buffers()
    if there is not None and numbers.offset:
        return numbers.cast(pa.from_numpy_dtype(kind))
    values = pa.py_buffer(values_of(numbers).astype(kind))
    return pa.Array.from_buffers(pa.from_numpy_dtype(kind), len(numbers), [there, values])
