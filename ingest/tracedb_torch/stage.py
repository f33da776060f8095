"""Staging tables in the scratch connection: narrow rows as the file has them, before anything is linked."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

import duckdb
import pyarrow as pa

TABLES = {
    "gpu": """event_id BIGINT, pid BIGINT, tid BIGINT, kind VARCHAR, name BIGINT, start_ns BIGINT, duration_ns BIGINT,
        external_id BIGINT, device_id BIGINT, context_id BIGINT, stream_id BIGINT, correlation_id BIGINT,
        registers BIGINT, shared_bytes BIGINT, grid_x BIGINT, grid_y BIGINT, grid_z BIGINT, block_x BIGINT,
        block_y BIGINT, block_z BIGINT, occupancy DOUBLE, bytes BIGINT, graph_id BIGINT, graph_node_id BIGINT""",
    "launch": """launch_id BIGINT, pid BIGINT, tid BIGINT, name BIGINT, start_ns BIGINT, duration_ns BIGINT,
        external_id BIGINT, correlation_id BIGINT""",
    "op": """op_id BIGINT, pid BIGINT, tid BIGINT, name BIGINT, start_ns BIGINT, duration_ns BIGINT,
        external_id BIGINT, sequence_number BIGINT, forward_thread_id BIGINT, input_dims BIGINT, input_types BIGINT,
        input_strides BIGINT, concrete_inputs BIGINT""",
    "annotation": """annotation_id BIGINT, pid BIGINT, tid BIGINT, name BIGINT, style VARCHAR, start_ns BIGINT,
        duration_ns BIGINT, device_id BIGINT, stream_id BIGINT""",
    "message": """event_id BIGINT, collective VARCHAR, message_in BIGINT, message_out BIGINT, dtype VARCHAR,
        group_name VARCHAR, group_size BIGINT, group_ranks VARCHAR, sequence BIGINT""",
    "memory": """memory_event_id BIGINT, pid BIGINT, tid BIGINT, start_ns BIGINT, device_type BIGINT,
        device_id BIGINT, address BIGINT, bytes BIGINT, allocated BIGINT, reserved BIGINT""",
    "text": "id BIGINT, value VARCHAR",
    "process": "pid BIGINT, name VARCHAR",
}
FLUSH_ROWS = 60_000


class Stage:
    """Collects Arrow batches per staging table and inserts them from one other thread, a few at a time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._waiting: dict[str, list[pa.RecordBatch]] = {name: [] for name in TABLES}
        self._rows = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tracedb-stage")
        self._pending: Future[None] | None = None

    def __enter__(self) -> Stage:
        for name, columns in TABLES.items():
            self._connection.execute(f"CREATE OR REPLACE TEMP TABLE staged_{name} ({columns})")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self._pending is not None and not self._pending.done():
            self._connection.interrupt()
        self._thread.shutdown(wait=True, cancel_futures=True)

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Take a batch whose columns stand in the order of the table."""
        if batch.num_rows:
            self._waiting[table].append(batch)
            self._rows += batch.num_rows
        if self._rows >= FLUSH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Hand what waits to the inserting thread; waits itself while that is still busy with the batches before."""
        self._settle()
        ready = {name: batches for name, batches in self._waiting.items() if batches}
        self._waiting = {name: [] for name in TABLES}
        self._rows = 0
        if ready:
            self._pending = self._thread.submit(self._insert, ready)

    def finish(self) -> None:
        """Insert everything that waits."""
        self.flush()
        self._settle()

    def _settle(self) -> None:
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()

    def _insert(self, ready: dict[str, list[pa.RecordBatch]]) -> None:
        for name, batches in ready.items():
            self._connection.register("incoming", pa.Table.from_batches(batches))
            self._connection.execute(f"INSERT INTO staged_{name} FROM incoming")
            self._connection.unregister("incoming")
