"""The interface to the tables of an export in any format: their names, and their rows as typed Arrow batches.

nsys creates a table only for activity it recorded, and columns appear, vanish and move between releases. So everything
is probed, and columns are chosen by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Protocol

import pyarrow as pa

from tracedb.errors import ReadError

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
SYNC = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
EVENT_RECORD = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
GRAPH = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
DRIVER = "CUPTI_ACTIVITY_KIND_DRIVER"
NVTX = "NVTX_EVENTS"
STRINGS = "StringIds"
META = ("META_DATA_EXPORT", "EXPORT_META_DATA")  # since 2023.3; from 2022.1; older exports have none

TEXT = frozenset(("text", "value", "jsonText"))
"""Text columns among those read in bulk; all others are 64-bit integers."""
START = "start"
TIMES = (START, "end")
LAUNCH = "launch"
ROW = "row"
"""The added column that numbers the rows of a table."""


def is_export(tables: Iterable[str]) -> bool:
    """Whether tables of these names make an export of nsys."""
    names = set(tables)
    if names.intersection(META):
        return True
    return STRINGS in names and any(
        name == NVTX or name.startswith(("TARGET_INFO_", "CUPTI_ACTIVITY_KIND_")) for name in names
    )


class Unsound(ReadError):
    """A table is damaged: lookups by row number miss rows. Nothing read of the export so far counts."""


class Export(Protocol):
    """An export that can be read."""

    @property
    def format(self) -> str:
        """Storage format: sqlite or parquet."""
        ...

    @property
    def tables(self) -> Mapping[str, Sequence[str]]:
        """Columns by table."""
        ...

    def count(self, table: str) -> int:
        """Return the number of rows."""
        ...

    def stored_rows(self, table: str) -> int:
        """Return the number of rows of a table that is not read; in a damaged file, of distinct rows."""
        ...

    def upper_bound(self, table: str) -> int:
        """Return an upper bound of the row numbers, close to the number of rows."""
        ...

    def batches(self, table: str, columns: Sequence[str], parts: int) -> list[Iterator[pa.RecordBatch]]:
        """Return up to ``parts`` iterators over the rows, each to be drained by one thread at a time.

        Batches have the schema ``schema(columns)``.
        """
        ...

    def small(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the values of a small table; a missing column gives None."""
        ...

    def texts(self, numbers: Sequence[int]) -> Mapping[int, str]:
        """Return strings of the export by id, those that exist."""
        ...

    @property
    def odd(self) -> Counter[tuple[str, str]]:
        """Number of values that were not integers within the limits of their column, by table and column."""
        ...

    def verify(self, table: str, rows: int) -> None:
        """Compare the rows read with an independent count; raises ``Unsound`` if another way of reading may help."""
        ...

    def distrust(self, fault: str) -> None:
        """Make the next read use a way that this kind of damage does not affect."""
        ...

    def losses(self) -> tuple[int, str] | None:
        """Return the number of rows lost to damage and a description; None for an intact export."""
        ...


def schema(columns: Sequence[str]) -> pa.Schema:
    """Return the schema of batches of these columns."""
    fields = [pa.field(name, pa.string() if name in TEXT else pa.int64()) for name in columns]
    return pa.schema([pa.field(ROW, pa.int64()), *fields])


def decoded(column: pa.Array) -> pa.Array:
    """Return binary data as text; bytes that are not UTF-8 are replaced."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if item is None else item.decode(errors="replace") for item in column.to_pylist()]
        return pa.array(texts, pa.string())


class Feed:
    """A reader over batches that counts them and keeps the exception that stopped it.

    DuckDB drains it in its own threads and turns an exception into text; ``check`` raises the original.
    """

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        columns: Sequence[str],
        progress: Callable[[int], None],
        watch: Callable[[pa.RecordBatch], None] | None = None,
        launched: Callable[[pa.RecordBatch], pa.Array] | None = None,
        required: Sequence[Sequence[str]] = (),
    ) -> None:
        """``watch`` sees each batch; the result of ``launched`` becomes its column ``launch``.

        ``required``: groups of columns; every row should have a value in one column of each group.
        """
        self.rows = 0
        self.nulls: Counter[str] = Counter()
        """Number of rows without a value in a required group, by the group's first column."""
        held = [[name for name in group if name in columns] for group in required]
        self._required = [group for group in held if group]
        self.span: tuple[int, int] | None = (0, 0)
        """First and last start; None if the starts are not ascending."""
        self._batches = batches
        self._progress = progress
        self._watch = watch
        self._launched = launched
        self._error: ReadError | None = None
        made = schema(columns)
        if launched is not None:
            made = made.append(pa.field(LAUNCH, pa.int64()))
        self.reader = pa.RecordBatchReader.from_batches(made, self.batches())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches; used by ``reader``."""
        try:
            for batch in self._batches:
                self._follow(batch)
                self._count_nulls(batch)
                self.rows += batch.num_rows
                self._progress(batch.num_rows)
                if self._watch is not None:
                    self._watch(batch)
                if self._launched is not None:
                    batch = batch.append_column(LAUNCH, self._launched(batch))
                yield batch
        except ReadError as error:
            self._error = error
            raise

    def _follow(self, batch: pa.RecordBatch) -> None:
        if self.span is None or START not in batch.schema.names or not batch.num_rows:
            return
        if batch[START].null_count:
            self.span = None
            return
        starts = batch[START].to_numpy()
        first, last = self.span if self.rows else (int(starts[0]), int(starts[0]))
        is_sorted = starts[0] >= last and bool((starts[1:] >= starts[:-1]).all())
        self.span = (first, int(starts[-1])) if is_sorted else None

    def _count_nulls(self, batch: pa.RecordBatch) -> None:
        for group in self._required:
            least = min(batch[name].null_count for name in group)
            if least and len(group) > 1:
                import pyarrow.compute as pc  # costs 6 MiB

                absent = [batch[name].is_null() for name in group]
                least = pc.sum(reduce(pc.and_, absent)).as_py()
            if least:
                self.nulls[group[0]] += least

    def check(self) -> None:
        """Raise the exception that stopped the reading, if any."""
        if self._error is not None:
            raise self._error


def in_order(feeds: Sequence[Feed]) -> bool:
    """Whether the rows of all feeds, one feed after the other, are ordered by start."""
    spans = [feed.span for feed in feeds if feed.rows]
    if None in spans:
        return False
    ends = [time for span in spans if span is not None for time in span]
    return ends == sorted(ends)
