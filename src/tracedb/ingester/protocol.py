"""The interface of a trace source: one object with a name and two methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


@dataclass(frozen=True)
class Capture:
    """One process's trace (or one file that may hold several), read in one go.

    ``files``: all are hashed; companion files come after the first. ``duplicates``: other recordings of the same
    process, which are not read and are named in ``ingest_issue``.
    """

    files: tuple[Path, ...]
    rank: int | None = None
    duplicates: tuple[Path, ...] = ()
    refused: str | None = None
    """Set if the first bytes show that it cannot be read: the message to report, unless another ingester claims the
    file."""


@dataclass(frozen=True)
class Rows:
    """Rows of one schema table, columns by name; absent nullable columns become NULL.

    ``data`` is an Arrow batch or table, or a DuckDB relation over the scratch connection; integers may be narrower
    than the column, and texts dictionary-encoded. ``capture_id`` is left out: the pipeline adds it. ``part`` separates
    the processes of one file. The ``capture`` row of a part comes after all its other rows; it may name a ``source``
    other than the ingester's name.
    """

    table: str
    data: pa.RecordBatch | pa.Table | duckdb.DuckDBPyRelation
    part: int = 0
    is_ordered: bool = True
    """Preserve row order; if false, DuckDB may insert in parallel."""


@dataclass(frozen=True)
class Options:
    """What to read beyond the default, and how to report progress."""

    stacks: bool = True
    """Whether to read Python frames."""
    memory_events: bool = True
    """Whether to read events of the framework's memory allocator."""
    cores: int = 1
    """Processor cores that one read may keep busy."""
    progress: Callable[[int], None] = field(default=lambda done: None)
    """Called with the number of bytes of the files (as stored) newly read."""
    is_second: bool = False
    """Whether this is the second read, after ``ReadAgain``."""
    begun: Begun | None = None
    """The result of ``begin`` for this capture."""
    has_read: Callable[[], None] = field(default=lambda: None)
    """Called by a ``Thorough`` ingester."""


class Begun(Protocol):
    """A read in progress in the background."""

    def close(self) -> None:
        """End it."""
        ...


class ReadAgain(Exception):
    """Raised by ``read`` if later content of a file proves rows wrong that were already yielded.

    All rows are rolled back, and ``read`` is called once more with ``options.is_second``.
    """


@runtime_checkable
class Ingester(Protocol):
    """A source of traces."""

    name: str
    """Stored with each capture as its source."""

    def find(self, files: Sequence[Path]) -> Iterable[Capture]:
        """Claim the captures among ``files`` by content. Looks at names and first bytes only; must not raise."""
        ...

    def read(self, capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
        """Yield the rows of a capture in one forward pass with bounded memory.

        ``scratch`` is for temporary tables only. Raises ``ReadError`` if the file cannot be used; errors of DuckDB and
        the operating system may pass through.
        """
        ...


@runtime_checkable
class Eager(Protocol):
    """An ingester that can start reading before DuckDB and Arrow are imported, which takes as long as 100 MB."""

    def begin(self, capture: Capture, options: Options) -> Begun:
        """Start reading; ``read`` may follow for the same capture. Must import neither. Raises OSError."""
        ...


@runtime_checkable
class Thorough(Protocol):
    """An ingester that reads all of a file before it yields rows, and calls ``options.has_read`` in between.

    Other work on the bytes then waits until the cores have finished reading.
    """

    reads_all_first: bool


@runtime_checkable
class Weighed(Protocol):
    """An ingester that chooses the engine's memory limit for its rows, such as ``300MB``."""

    memory_limit: str


@runtime_checkable
class Described(Protocol):
    """An ingester that describes its installation; ``tracedb doctor`` prints it."""

    def describe(self) -> dict[str, str]:
        """Return facts with short keys."""
        ...
