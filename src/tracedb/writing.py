"""Writing the rows that an ingester yields; every process of a file becomes a capture."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from tracedb import derive, labels, schema
from tracedb.errors import ReadError
from tracedb.ingester import Rows
from tracedb.tasks import Loaded, Request, Task

if TYPE_CHECKING:
    from tracedb.clipping import Passing

MANY_ROWS = 50_000
"""Tables below are written as they come."""


class KnownBefore(Exception):
    """The database holds the file already; what was written is to be rolled back."""


class _Blanks:
    """Columns of NULL for those of ``kernel_event`` that are not given; none of them has a default.

    DuckDB would make each a constant and then write it out value by value, which costs more than to read a column.
    """

    def __init__(self) -> None:
        self._schema: pa.Schema | None = None
        self._zeros = pa.py_buffer(b"")

    def added(self, rows: pa.Table) -> pa.Table:
        """Return the rows with these columns; all share one buffer."""
        if self._schema is None:
            self._schema = schema.arrow("kernel_event")
        count = rows.num_rows
        if self._zeros.size < 8 * (count + 1):
            self._zeros = pa.py_buffer(bytes(8 * (count + 1)))
        given = set(rows.schema.names)
        for field in self._schema:
            if field.name in given:
                continue
            if pa.types.is_string(field.type):
                buffers = [self._zeros] * 3  # which are NULL, where texts begin, texts
            elif pa.types.is_primitive(field.type):
                buffers = [self._zeros] * 2
            else:
                continue
            rows = rows.append_column(field, pa.Array.from_buffers(field.type, count, buffers, count))
        return rows


class Writer:
    """Writes the rows of one task; every part becomes a capture."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        task: Task,
        request: Request,
        digest: Callable[[], str],
        stamp: str,
    ) -> None:
        """``digest`` gives the SHA-256 of the files; it is asked for when the rows of a part are written."""
        self._connection = connection
        self._task = task
        self._request = request
        self._digest = digest
        self._stamp = stamp
        self._is_ordered = True
        connection.execute("SET preserve_insertion_order = true")
        self._blanks = _Blanks()
        self._ids: dict[int, int] = {}
        self._open: int | None = None
        self._loaded: list[Loaded] = []
        self._ranked_by_path: list[Loaded] = []
        self._passing: Passing | None = None
        self._has_passed = False

    def run(self, first: Rows, rest: Iterator[Rows]) -> list[Loaded]:
        """Insert everything and derive; returns the captures written. Raises ``KnownBefore``."""
        self._insert(first)
        for rows in rest:
            self._insert(rows)
        if self._open is not None:
            raise ReadError("the ingester gave rows but no capture row")
        if len(self._loaded) > 1:
            self._forget_path_rank()
        return self._loaded

    def _forget_path_rank(self) -> None:
        """Take the path's rank from the captures of a file that held several processes: it is not that of all."""
        for item in self._ranked_by_path:
            item.rank = None
            self._connection.execute("UPDATE main.capture SET rank = NULL WHERE capture_id = ?", [item.capture_id])

    def _insert(self, rows: Rows) -> None:
        connection = self._connection
        if self._open is None:
            self._open = rows.part
            self._ids[rows.part] = self._free_id(rows.part)
            derive.begin(connection)
            self._passing, self._has_passed = None, False
        if rows.part != self._open:
            raise ReadError("the ingester gave rows of a part before the capture row of the part before")
        capture_id = self._ids[rows.part]
        if rows.table == "capture":
            self._capture(rows, capture_id)
            return
        if rows.table not in schema.INGESTED_TABLES:
            raise ReadError(f"the ingester gave rows of {rows.table!r}, which is no table that ingesters fill")
        incoming = rows.data
        if rows.table == "annotation":
            connection.execute("INSERT INTO annotation_in BY NAME SELECT * FROM incoming")
            return
        if rows.is_ordered != self._is_ordered:
            self._is_ordered = rows.is_ordered
            connection.execute(f"SET preserve_insertion_order = {str(rows.is_ordered).lower()}")
        if rows.table == "kernel_event":
            self._pass(rows.data)
            if isinstance(incoming, pa.Table) and incoming.num_rows >= MANY_ROWS:
                incoming = self._blanks.added(incoming)
        connection.execute(
            f"INSERT INTO main.{rows.table} BY NAME SELECT {int(capture_id)}::INTEGER AS capture_id, * FROM incoming"
        )

    def _pass(self, data: pa.RecordBatch | pa.Table | duckdb.DuckDBPyRelation) -> None:
        """Have the first events seen as they pass, where they come from a queue and are many; then all others."""
        if isinstance(data, pa.Table):
            if not self._has_passed and data.num_rows >= MANY_ROWS and "queue_id" in data.column_names:
                from tracedb.clipping import Passing  # its arrays take time to import

                self._passing = Passing()
            if self._passing is not None:
                self._passing.take(data)
        else:
            self._passing = None
        self._has_passed = True

    def _free_id(self, part: int) -> int:
        """Return the number for a capture: by the order of the paths where that is free, else the next."""
        wanted = self._request.first_capture_id + self._task.number
        taken, free = self._connection.execute(
            "SELECT count(*) FILTER (capture_id = ?), coalesce(max(capture_id), 0) + 1 FROM main.capture", [wanted]
        ).fetchall()[0]
        if part or taken:
            return max(int(free), self._request.first_capture_id + self._task.total)
        return wanted

    def _capture(self, rows: Rows, capture_id: int) -> None:
        connection, path = self._connection, self._task.capture.files[0]
        digest = self._digest()
        if not self._loaded and self._is_known(digest):
            raise KnownBefore
        incoming = rows.data  # noqa: F841 - DuckDB finds it by name
        names = rows.data.columns if isinstance(rows.data, duckdb.DuckDBPyRelation) else rows.data.schema.names
        source = "" if "source" in names else f"'{self._task.source}' AS source, "
        connection.execute(
            f"INSERT INTO main.capture BY NAME SELECT {int(capture_id)}::INTEGER AS capture_id, {source}* FROM incoming"
        )
        ranks = connection.execute("SELECT rank FROM main.capture WHERE capture_id = ?", [capture_id]).fetchall()
        if len(ranks) != 1:
            raise ReadError(f"the ingester gave {len(ranks)} capture rows for one part")
        ((recorded,),) = ranks
        found = labels.from_path(path)
        regex_rank = None
        if self._request.labels_from is not None:
            match = labels.compile_regex(self._request.labels_from).search(path.as_posix())
            named = {key: value for key, value in (match.groupdict() if match else {}).items() if value is not None}
            rank_text = named.pop("rank", None)
            regex_rank = int(rank_text) if rank_text and re.fullmatch(r"\d{1,7}", rank_text) else None
            found.update(named)
        found.update(self._request.labels)
        path_rank = regex_rank if regex_rank is not None else labels.rank_from_path(path)
        if self._task.capture.rank is not None:
            path_rank = self._task.capture.rank
        connection.execute(
            """UPDATE main.capture SET path = $path, part = $part, sha256 = $sha256, size_bytes = $size,
                rank = coalesce(rank, $rank), labels = map_from_entries($labels::STRUCT(k VARCHAR, v VARCHAR)[]),
                ingester = $ingester, ingested_at = $now
            WHERE capture_id = $capture""",
            {
                "path": str(path).encode("utf-8", errors="replace").decode(),
                "part": rows.part,
                "sha256": digest,
                "size": self._task.size_bytes,
                "rank": path_rank,
                "labels": [{"k": key, "v": value} for key, value in sorted(found.items())],
                "ingester": self._stamp,
                "now": datetime.now(UTC).replace(tzinfo=None),
                "capture": capture_id,
            },
        )
        self._note_rank(capture_id, recorded, path_rank)
        derive.finish(connection, capture_id, self._passing)
        self._loaded.append(self._read_back(capture_id))
        if recorded is None:
            self._ranked_by_path.append(self._loaded[-1])
        self._open = None

    def _is_known(self, digest: str) -> bool:
        ((known,),) = self._connection.execute(
            "SELECT count(*) FROM main.capture WHERE sha256 = ?", [digest]
        ).fetchall()
        return bool(known)

    def _note_rank(self, capture_id: int, rank: int | None, path_rank: int | None) -> None:
        if rank is not None and path_rank is not None and rank != path_rank:
            self._connection.execute(
                "INSERT INTO main.ingest_issue VALUES (?, 'rank_conflict', 'note', 1, 0, ?)",
                [capture_id, f"the trace says rank {rank}, the path {path_rank}; the trace's is kept"],
            )

    def _read_back(self, capture_id: int) -> Loaded:
        (row,) = self._connection.execute(
            """SELECT rank, status, labels, coalesce(events_read, 0), coalesce(events_skipped, 0),
                coalesce(rows_written, 0),
                (SELECT count(*) FROM main.kernel_event AS k WHERE k.capture_id = c.capture_id AND k.kind = 'kernel'),
                (SELECT count(*) FROM main.operator_sample AS o WHERE o.capture_id = c.capture_id)
            FROM main.capture AS c WHERE capture_id = ?""",
            [capture_id],
        ).fetchall()
        issues = self._connection.execute(
            """SELECT code, severity, count, coalesce(detail, '') FROM main.ingest_issue
            WHERE capture_id = ? ORDER BY code""",
            [capture_id],
        ).fetchall()
        rank, status, found, read, skipped, written, kernels, samples = row
        return Loaded(capture_id, rank, status, dict(found), read, skipped, written, kernels, issues, samples)
