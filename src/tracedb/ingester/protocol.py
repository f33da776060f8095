"""What a trace source must provide: one object with a name and two methods."""

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

    ``files``: all are hashed; companions come after the first. ``duplicates``: other recordings of the same
    process, left aside and named in ``ingest_issue``.
    """

    files: tuple[Path, ...]
    rank: int | None = None
    duplicates: tuple[Path, ...] = ()
    refused: str | None = None
    """Why it is not to be read, if its first bytes tell: the file is reported with that, unless another ingester
    claims it."""


@dataclass(frozen=True)
class Rows:
    """Rows of one schema table, columns by name; absent nullable columns become NULL.

    ``data`` is an Arrow batch or table, or a DuckDB relation over the scratch connection; integers may have fewer bits
    than the column, and texts be a dictionary. ``capture_id`` is left out: the pipeline adds it. ``part`` tells the
    processes apart where one file holds several. The ``capture`` row of a part comes after all its other rows; it may
    name a ``source`` other than the ingester's name.
    """

    table: str
    data: pa.RecordBatch | pa.Table | duckdb.DuckDBPyRelation
    part: int = 0
    is_ordered: bool = True
    """Whether they are to lie in the database in this order, as far as DuckDB keeps it; if not, several cores write."""


@dataclass(frozen=True)
class Options:
    """What the user asked to read beyond the usual, and how to report progress."""

    python_stacks: bool = False
    memory_events: bool = False
    cores: int = 1
    """Processor cores that one read may keep busy."""
    progress: Callable[[int], None] = field(default=lambda done: None)
    """Called with the number of bytes of the files (as stored) that were newly read."""
    is_second: bool = False
    """Whether ``ReadAgain`` was raised before."""
    begun: Begun | None = None
    """What ``begin`` gave for this capture."""
    has_read: Callable[[], None] = field(default=lambda: None)
    """For a ``Thorough`` ingester to call."""


class Begun(Protocol):
    """Reading that goes on by itself."""

    def close(self) -> None:
        """End it."""
        ...


class ReadAgain(Exception):
    """Raised by ``read`` where what comes late in a file proves rows wrong that it has yielded.

    All are rolled back, and it is called once more, with ``options.is_second``.
    """


@runtime_checkable
class Ingester(Protocol):
    """A source of traces."""

    name: str
    """Stored with each capture as its source."""

    def find(self, files: Sequence[Path]) -> Iterable[Capture]:
        """Claim the captures among ``files`` by content. Looks at names and first bytes only; raises nothing."""
        ...

    def read(self, capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
        """Yield the rows of a capture in one forward pass with bounded memory.

        ``scratch`` is for temporary tables only. Raises ``ReadError`` where the file cannot be used; DuckDB's and
        the operating system's own errors may pass.
        """
        ...


@runtime_checkable
class Eager(Protocol):
    """An ingester that can begin to read before DuckDB and Arrow are there: their import takes as long as 100 MB."""

    def begin(self, capture: Capture, options: Options) -> Begun:
        """Begin to read; ``read`` with the same capture follows, or nothing does. Imports neither. Raises OSError."""
        ...


@runtime_checkable
class Thorough(Protocol):
    """An ingester that reads all of a file before it yields rows, and calls ``options.has_read`` in between.

    What else is done with the bytes then waits until the cores have nothing to read any more.
    """

    reads_all_first: bool


@runtime_checkable
class Weighed(Protocol):
    """An ingester that knows how much memory the database engine should have for its rows, as ``300MB``."""

    memory_limit: str


@runtime_checkable
class Described(Protocol):
    """An ingester that has something to say about how it is installed; ``tracedb doctor`` prints it."""

    def describe(self) -> dict[str, str]:
        """Return facts by a word or two."""
        ...
