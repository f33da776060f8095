"""A selection of captures as one timeline: processes, lanes, slices, flows and counters, ready for a file format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tracedb.errors import NotCaptured, TracedbError
from tracedb.export import queries
from tracedb.report import caveats, no_answer, registry, selection
from tracedb.storage.statements import set_variables
from tracedb.storage.views import CURRENT

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from tracedb.report.filters import Filters, Scope

APART = (
    "the clocks of these captures cannot be compared: it is not known of all when they began. Those of which it is not "
    "known are placed at the start of the others; select captures with --capture or --source"
)


class Process(NamedTuple):
    """A capture."""

    capture_id: int
    pid: int
    name: str
    labels: str
    place: int


class Lane(NamedTuple):
    """A lane of a thread or stream; ``lane`` counts from 0 on each."""

    number: int
    pid: int
    tid: int
    lane: int
    place: int
    name: str


class Slice(NamedTuple):
    """The fixed fields of a slice; its arguments are kept by name beside it. ``ts`` and ``dur`` are µs as decimal
    text."""

    category: str
    name: str
    pid: int
    tid: int
    track_number: int
    start_ns: int
    end_ns: int
    ts: str
    dur: str
    flows: list[int] | None
    flow: int | None
    is_open: bool
    is_mark: bool


class Sample(NamedTuple):
    """A value of a counter."""

    name: str
    unit: str | None
    pid: int
    start_ns: int
    ts: str
    value: float


class Header(NamedTuple):
    """The header; ``base_ns`` is the Unix time of the file's zero, None if unknown."""

    base_ns: int | None
    is_comparable: bool
    stretched: int
    slices: int
    gpu_slices: int
    aside: int
    captures: int
    rank: int | None
    world_size: int | None
    metadata: str | None
    devices: list[dict[str, Any]] | None


_FIRST = len(Slice._fields)


@dataclass
class Timeline:
    """A timeline whose slices are in temporary tables of the connection."""

    connection: duckdb.DuckDBPyConnection
    header: Header
    processes: list[Process]
    lanes: list[Lane]
    warnings: list[str]

    def slices(self) -> Iterator[tuple[Slice, dict[str, Any]]]:
        """Yield every slice with its arguments, lane by lane, in time order, outer slices first."""
        for process in self.processes:
            set_variables(self.connection, trace_capture=process.capture_id)
            for name in ("trace_cpu", "trace_gpu"):
                self.connection.execute(queries.text(name))
                columns = queries.names(self.connection)[_FIRST:]
                for row in queries.rows(self.connection):
                    values = zip(columns, row[_FIRST:], strict=True)
                    yield Slice(*row[:_FIRST]), {key: value for key, value in values if value is not None}

    def samples(self) -> Iterator[Sample]:
        """Yield the values of counters, in time order for each counter of a process."""
        for process in self.processes:
            set_variables(self.connection, trace_capture=process.capture_id)
            self.connection.execute(queries.text("trace_counter"))
            for row in queries.rows(self.connection):
                yield Sample(*row)


def prepare(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    filters: Filters,
    is_aligned: bool = True,
    is_gpu_only: bool = False,
) -> Timeline:
    """Select the slices that match the filters, and lay them out.

    Raises ``UsageError`` or ``NotCaptured`` if the filters do not apply, ``NotCaptured`` if there is no GPU activity,
    ``TracedbError`` if captures are too far apart.
    """
    scope = selection.select(connection, filters, CURRENT, False, None)
    set_variables(connection, trace_aligned=is_aligned, trace_part=filters.on_events, trace_gpu_only=is_gpu_only)
    _select(connection, path, scope)
    queries.run(connection, "trace_link")
    while queries.run(connection, "trace_link_propagate"):
        pass
    queries.run(connection, "trace_process")
    (row,) = connection.execute(queries.text("trace_header")).fetchall()
    header = Header(*row)
    report = registry.find("gpu-timeline")
    if not header.gpu_slices:
        raise NotCaptured(no_answer.reason(connection, report, scope, path))
    processes = _all(
        connection, "SELECT capture_id, pid, name, labels, place FROM temp.trace_process ORDER BY capture_id"
    )
    lanes = _all(
        connection,
        """SELECT t.number, p.pid, t.tid, t.lane, t.place, t.name FROM temp.trace_lane AS t
           INNER JOIN temp.trace_process AS p ON p.capture_id = t.capture_id ORDER BY t.number""",
    )
    said = caveats.warnings(connection, report, scope, ("capture_id", "rank", "labels", "device_id"))
    if not header.is_comparable:
        said.append(APART)
    return Timeline(connection, header, [Process(*item) for item in processes], [Lane(*item) for item in lanes], said)


def _select(connection: duckdb.DuckDBPyConnection, path: Path, scope: Scope) -> None:
    from duckdb import ConversionException, OutOfRangeException

    try:
        queries.run(connection, "trace_slice", scope)
    except (ConversionException, OutOfRangeException) as error:
        raise TracedbError(
            f"{path}: the selected captures are more than 292 years apart on one clock, and no timeline holds both; "
            "select some with --capture"
        ) from error


def _all(connection: duckdb.DuckDBPyConnection, query: str) -> list[Sequence[Any]]:
    return list(connection.execute(query).fetchall())
