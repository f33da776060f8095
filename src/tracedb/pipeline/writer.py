"""Writing the rows that an ingester yields; every process of a file becomes a capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import duckdb
import pyarrow as pa

from tracedb.derive import graph_links
from tracedb.derive import run as derive
from tracedb.derive.annotation_buffer import Annotations
from tracedb.derive.arrow_rows import column
from tracedb.derive.event_buffer import Events
from tracedb.errors import ReadError
from tracedb.ingester import Rows
from tracedb.pipeline import labels
from tracedb.pipeline.known_captures import Known
from tracedb.pipeline.null_columns import Blanks
from tracedb.pipeline.task import MEMORY_SNAPSHOT, Loaded, Request, Task
from tracedb.storage import pending_facts, schema

if TYPE_CHECKING:
    from tracedb.derive.clipped_event import IncrementalClipping

"""These tables are written as the rows arrive."""
Data: TypeAlias = "pa.RecordBatch | pa.Table | duckdb.DuckDBPyRelation"
Issue = tuple[str, str, int, str]


class KnownBefore(Exception):
    """The database already holds the file; what was written must be rolled back."""


@dataclass
class _Part:
    """A capture whose rows are being written, with statistics that save querying the database."""

    number: int
    capture_id: int
    annotations: Annotations
    events: Events = field(default_factory=Events)
    samples: int = 0
    has_counters: bool = False
    issues: list[Issue] = field(default_factory=list)
    is_amd: bool = False
    clipping: IncrementalClipping | None = None
    has_events: bool = False

    def note(self, table: str, written: Data, count: int) -> None:
        """Record statistics of ``count`` rows that have been written."""
        if table in ("kernel_event", "launch"):
            self.events.take(table, written, count)
        elif table in ("operator_sample", "measure"):
            self.samples += count
        elif table == "counter":
            self.has_counters = self.has_counters or count > 0
        elif table == "device":
            self.is_amd = self.is_amd or "AMD" in column(written, "vendor")
        elif table == "ingest_issue":
            self.issues += _issues(written)


class Writer:
    """Writes the rows of one task; every part becomes a capture."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        task: Task,
        request: Request,
        digest: Callable[[], str],
        stamp: str,
        known: Known,
    ) -> None:
        """``digest`` returns the SHA-256 of the files; it is called when the rows of a part are written."""
        self._connection = connection
        self._task = task
        self._request = request
        self._digest = digest
        self._stamp = stamp
        self._known = known
        self._is_ordered = True
        connection.execute("SET preserve_insertion_order = true")
        self._blanks = Blanks()
        self._ids: dict[int, int] = {}
        self._open: _Part | None = None
        self._loaded: list[Loaded] = []
        self._ranked_by_path: list[Loaded] = []

    def run(self, given: Iterator[Rows]) -> list[Loaded]:
        """Insert everything and derive; returns the captures written. Raises ``KnownBefore``."""
        for rows in given:
            self._insert(rows)
            del rows  # frees their memory for the next
        if self._open is not None:
            raise ReadError("the ingester gave rows but no capture row")
        if len(self._loaded) > 1:
            self._forget_path_rank()
        return self._loaded

    def _forget_path_rank(self) -> None:
        """Remove the path's rank from the captures of a file with several processes: they cannot all have it."""
        for item in self._ranked_by_path:
            item.rank = None
            self._connection.execute("UPDATE main.capture SET rank = NULL WHERE capture_id = ?", [item.capture_id])

    def _insert(self, rows: Rows) -> None:
        part = self._part(rows.part)
        if rows.table == "capture":
            self._capture(_table(rows.data), part)
            return
        if rows.table not in schema.INGESTED_TABLES:
            raise ReadError(f"the ingester gave rows of {rows.table!r}, which is not a table that ingesters fill")
        if rows.table == "annotation":
            part.annotations.take(rows.data)
            return
        if rows.is_ordered != self._is_ordered:
            self._is_ordered = rows.is_ordered
            self._connection.execute(f"SET preserve_insertion_order = {str(rows.is_ordered).lower()}")
        incoming = rows.data
        if rows.table == "kernel_event":
            _observe(incoming, part)
            if isinstance(incoming, pa.Table):
                incoming = self._blanks.added(incoming)
        elif rows.table in ("device", "ingest_issue"):
            incoming = _table(incoming)
        if not isinstance(incoming, duckdb.DuckDBPyRelation) and not incoming.num_rows:
            return
        columns = f"{part.capture_id}::INTEGER AS capture_id, *"
        ((count,),) = self._connection.execute(
            f"INSERT INTO main.{rows.table} BY NAME SELECT {columns} FROM incoming"
        ).fetchall()
        part.note(rows.table, incoming, count)

    def _part(self, number: int) -> _Part:
        """Return the part being written; a new one if there is none."""
        if self._open is None:
            self._ids[number] = self._free_id(number)
            self._open = _Part(number, self._ids[number], Annotations(self._connection))
        if number != self._open.number:
            raise ReadError("the ingester gave rows of a part before the capture row of the part before")
        return self._open

    def _free_id(self, part: int) -> int:
        """Return a capture's number: by path order if that is free, else the next one."""
        wanted = self._request.first_capture_id + self._task.number
        if not part and not self._known.is_taken(wanted):
            return wanted
        free = max([self._known.following, *(mine + 1 for mine in self._ids.values())])
        return max(free, self._request.first_capture_id + self._task.total)

    def _capture(self, given: pa.Table, part: _Part) -> None:
        """Write the capture row, and derive facts from all rows of the capture."""
        digest = self._digest()
        if not self._loaded and self._known.holds(digest):
            raise KnownBefore
        if given.num_rows != 1:
            raise ReadError(f"the ingester gave {given.num_rows} capture rows for one part")
        named, path_rank = self._named()
        recorded = _number(given, "rank")
        rank = recorded if recorded is not None else path_rank
        own = self._own(part, digest, rank, named)
        if "source" in given.column_names:
            del own["source"]
        rest = {name: given[name] for name in given.column_names if name not in own}
        row = pa.table({**own, **rest})  # noqa: F841 - DuckDB finds it by name
        self._connection.execute("INSERT INTO main.capture BY NAME SELECT * FROM row")
        if recorded is not None and path_rank is not None and recorded != path_rank:
            said = f"the trace says rank {recorded}, the path {path_rank}; the trace's is kept"
            self._note(part, "rank_conflict", said)
        for copy in self._task.copies if not self._loaded else ():
            self._note(part, "duplicate_recording", f"{labels.readable(copy)} has the same bytes and was left aside")
        part.issues += derive.finish(
            self._connection,
            part.capture_id,
            part.annotations,
            part.events,
            part.is_amd,
            part.clipping,
            self._known.time_bounds,
        )
        if not self._known.is_empty or self._loaded:  # a single capture has no clock to be aligned with
            pending_facts.owe(self._connection, pending_facts.CLOCK_ALIGNMENT, [part.capture_id])
        has_graphs = part.events.graph_launches > 0 or graph_links.are_possible(self._connection)
        if has_graphs:
            pending_facts.owe(self._connection, pending_facts.GRAPH_LINKS, [part.capture_id])
        self._loaded.append(
            Loaded(
                part.capture_id,
                rank,
                status=column(given, "status", "complete")[0],
                labels=named,
                events_read=_number(given, "events_read"),
                events_skipped=_number(given, "events_skipped"),
                rows_written=_number(given, "rows_written"),
                kernels=self._kernels(part),
                issues=sorted(part.issues, key=itemgetter(0)),
                samples=part.samples,
                has_counters=part.has_counters,
                has_graphs=has_graphs,
                is_snapshot=column(given, "source", "")[0] == MEMORY_SNAPSHOT,
            )
        )
        if recorded is None:
            self._ranked_by_path.append(self._loaded[-1])
        self._open = None

    def _named(self) -> tuple[dict[str, str], int | None]:
        """Return the labels of the capture, and the rank in its path."""
        return labels.placed(self._task.path, self._request.labels_from, self._request.labels, self._task.capture.rank)

    def _own(self, part: _Part, digest: str, rank: int | None, named: dict[str, str]) -> dict[str, pa.Array]:
        """Return the capture columns that the pipeline fills."""
        path = labels.readable(self._task.path)
        return {
            "capture_id": pa.array([part.capture_id], pa.int32()),
            "source": pa.array([self._task.source], pa.string()),
            "path": pa.array([path], pa.string()),
            "part": pa.array([part.number], pa.int32()),
            "sha256": pa.array([digest], pa.string()),
            "size_bytes": pa.array([self._task.size_bytes], pa.int64()),
            "rank": pa.array([rank], pa.int64()),
            "labels": pa.array([list(named.items())], pa.map_(pa.string(), pa.string())),
            "ingester": pa.array([self._stamp], pa.string()),
            "ingested_at": pa.array([datetime.now(UTC).replace(tzinfo=None)], pa.timestamp("us")),
        }

    def _note(self, part: _Part, code: str, detail: str) -> None:
        """Add a note to ``ingest_issue``."""
        self._connection.execute(
            "INSERT INTO main.ingest_issue VALUES (?, ?, 'note', 1, 0, ?)", [part.capture_id, code, detail]
        )
        part.issues.append((code, "note", 1, detail))

    def _kernels(self, part: _Part) -> int:
        if part.events.kernels is not None:
            return part.events.kernels
        ((count,),) = self._connection.execute(
            "SELECT count(*) FROM main.kernel_event WHERE capture_id = ? AND kind = 'kernel'", [part.capture_id]
        ).fetchall()
        return int(count)


def _observe(data: Data, part: _Part) -> None:
    """Look for clipped events while they are written, if all come as tables and the first ones are of queues."""
    if isinstance(data, pa.Table):
        if not part.has_events and "queue_id" in data.column_names:
            from tracedb.derive.clipped_event import IncrementalClipping  # imports numpy

            part.clipping = IncrementalClipping()
        if part.clipping is not None:
            part.clipping.take(data)
    else:
        part.clipping = None
    part.has_events = True


def _table(data: Data) -> pa.Table:
    """Return a small number of rows as a table."""
    if isinstance(data, duckdb.DuckDBPyRelation):
        return data.to_arrow_table()
    return pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data


def _number(row: pa.Table, name: str) -> int | None:
    """Return a number from a single row. Raises ``pa.ArrowInvalid`` if it is not a number."""
    if name not in row.column_names:
        return None
    column = row[name]
    if not pa.types.is_integer(column.type):
        column = column.cast(pa.int64())
    found = column[0].as_py()
    return None if found is None else int(found)


def _issues(rows: pa.Table) -> list[Issue]:
    columns = [column(rows, "code"), column(rows, "severity", "note"), column(rows, "count", 1)]
    details = column(rows, "detail")
    return [
        (code, severity, int(count), detail or "")
        for code, severity, count, detail in zip(*columns, details, strict=True)
    ]
