"""Staged rows held in Arrow memory as numpy columns; integers stay integers even where some are NULL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb_torch import int_columns

Values = npt.NDArray[Any]
T = TypeVar("T")
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.signedinteger]
INTEGER = np.iinfo(np.int32)


class Column(NamedTuple):
    """Values of a column and a validity mask; None if all are valid. Values at NULLs are undefined."""

    values: Values
    there: Mask | None = None
    words: pa.Array | None = None
    """If set, the values are indices into this dictionary."""

    @property
    def is_there(self) -> Mask:
        """Which values are not NULL."""
        return np.ones(len(self.values), np.bool_) if self.there is None else self.there

    def only(self, wanted: Mask) -> Column:
        """Return the column with NULL where a value is not wanted."""
        if wanted.all():
            return self
        return self._replace(there=wanted if self.there is None else self.there & wanted)

    def or_else(self, other: Column) -> Column:
        """Return the column with its NULLs filled from the other one."""
        if self.there is None:
            return self
        there = None if other.there is None else self.there | other.there
        return Column(np.where(self.there, self.values, other.values), there, self.words)

    def at(self, places: Places) -> Column:
        """Return the values at the given indices; NULL for negative indices."""
        if not len(self.values):
            return Column(np.zeros(len(places), np.int32), np.zeros(len(places), np.bool_), self.words)
        found = self._replace(values=self.values[places], there=None if self.there is None else self.there[places])
        return found.only(places >= 0)

    def integer(self) -> Column:
        """Return the column as INTEGER; NULL where a value does not fit."""
        if self.values.dtype == np.int32:
            return self
        fits = (self.values >= INTEGER.min) & (self.values <= INTEGER.max)
        return self._replace(values=self.values.astype(np.int32)).only(fits)

    def array(self, places: Places | slice) -> pa.Array:
        """Return the values at the given indices (none negative) as an Arrow array."""
        there = None if self.there is None else self.there[places]
        if there is not None and there.all():
            there = None
        values = int_columns.column(np.ascontiguousarray(self.values[places]), there)
        return values if self.words is None else pa.DictionaryArray.from_arrays(values, self.words, safe=False)


class Held:
    """All rows of a trace by staging table."""

    def __init__(self, batches: dict[str, list[pa.RecordBatch]]) -> None:
        self._batches = batches

    def rows(self, table: str) -> int:
        """Return how many rows there are."""
        return sum(batch.num_rows for batch in self._batches[table])

    def column(self, table: str, name: str) -> Column:
        """Return a column."""
        arrays = self._arrays(table, name)
        if not arrays:
            return Column(np.empty(0, np.int32))
        words = None
        if pa.types.is_dictionary(arrays[0].type):
            words = arrays[0].dictionary  # one of ``int_columns.WORDS``, the same in all batches
            arrays = [array.indices for array in arrays]
        there = None
        if any(array.null_count for array in arrays):
            there = np.concatenate([_there(array) for array in arrays])
        return Column(np.concatenate([int_columns.values_of(array) for array in arrays]), there, words)

    def words(self, table: str, name: str) -> pa.Array:
        """Return a text column."""
        return pa.concat_arrays(self._arrays(table, name) or [pa.array([], pa.string())])

    def release(self, *tables: str) -> None:
        """Free the memory of tables that are no longer needed."""
        for table in tables:
            self._batches[table] = []

    def _arrays(self, table: str, name: str) -> list[pa.Array]:
        return [batch.column(name) for batch in self._batches[table]]


def _there(array: pa.Array) -> Mask:
    bits = array.buffers()[0]
    if bits is None:
        return np.ones(len(array), np.bool_)
    whole: Mask = np.unpackbits(np.frombuffer(bits, np.uint8), count=array.offset + len(array), bitorder="little").view(
        np.bool_
    )
    return whole[array.offset :]


class Texts:
    """The texts of a trace. Rows refer to them by number; numbers are consecutive from each of a few first ones."""

    def __init__(self, held: Held) -> None:
        numbers = held.column("text", "id").values
        self._words = held.words("text", "value")
        self._order = np.argsort(numbers, kind="stable").astype(np.int32)
        numbers = numbers[self._order]
        self._begins = np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 2) != 1)
        self._firsts = numbers[self._begins]

    def column(self, numbers: Column) -> Column:
        """Return the texts for the numbers."""
        if not len(self._words):
            return Column(np.zeros(len(numbers.values), np.int32), np.zeros(len(numbers.values), np.bool_), self._words)
        values = numbers.values if numbers.there is None else np.where(numbers.there, numbers.values, self._firsts[0])
        if len(self._firsts) == 1:
            return Column(self._order[values - self._firsts[0]], numbers.there, self._words)
        run = np.searchsorted(self._firsts, values, "right") - 1
        return Column(self._order[values - self._firsts[run] + self._begins[run]], numbers.there, self._words)


def having(texts: Column, judge: Callable[[str], bool]) -> Mask:
    """Return the mask of rows for whose text ``judge`` is true."""
    is_found: Mask = np.array([bool(found) for found in _judged(texts, judge)], np.bool_)
    return is_found[texts.values] & texts.is_there


def extracted(texts: Column, extract: Callable[[str], str]) -> Column:
    """Return ``extract`` of each row's text; NULL for an empty result."""
    found = [text or "" for text in _judged(texts, extract)]
    words = sorted({"", *found})
    codes = np.array([words.index(text) for text in found], np.int32)[texts.values]
    return Column(codes, texts.there, pa.array(words, pa.string())).only(codes > 0)


def _judged(texts: Column, judge: Callable[[str], T]) -> list[T | None]:
    """Return ``judge`` of each text in use; it is called once per distinct text."""
    words = texts.words
    assert words is not None
    is_used = np.zeros(len(words), np.bool_)
    is_used[texts.values[texts.is_there]] = True
    found: list[T | None] = [None] * len(words)
    for place in np.flatnonzero(is_used).tolist():
        found[place] = judge(words[place].as_py())
    return found
