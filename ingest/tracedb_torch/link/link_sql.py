"""Turn staged rows into schema rows in SQL: link each GPU row to its launch, operator and message."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa

from tracedb.ingester import Rows
from tracedb.ingester.issues import Account
from tracedb.ingester.name_patterns import COLLECTIVES, LAUNCHES, pattern
from tracedb.storage.schema import ROW_GROUP
from tracedb_torch.int_columns import UNUSABLE, narrowed
from tracedb_torch.link import counted, enclosing, frames
from tracedb_torch.link.numpy_columns import Held, Texts
from tracedb_torch.link.rules import (
    BY_WORK_ITEMS,
    COPY_KIND,
    LONG_NAME,
    MOST_THREADS,
    Rules,
    Seen,
    note_grids,
    note_ids,
)

GROUPS = 2  # row groups of kernels yielded at once
EARLIEST = f"l.start_ns::HUGEINT * {1 << 63} + l.launch_id"
"""Start, then file position, as one number: comparing a pair takes twice the time."""


class Linker:
    """Links the staged rows of one process and yields them as schema rows.

    The current process's rows are temp tables or views ``part_gpu``, ``part_launch``, …
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        rules: Rules,
        account: Account,
        has_messages: bool,
    ) -> None:
        self._connection = connection
        self._rules = rules
        self._account = account
        self._has_messages = has_messages

    def seen(self) -> Seen:
        """Return statistics of the current process's GPU rows."""
        ((rows, first_ns, devices),) = self._connection.execute(
            """SELECT count(*), min(start_ns), list(DISTINCT coalesce(device_id, CASE WHEN pid >= 0 THEN pid END))
            FROM (SELECT start_ns, device_id, pid FROM part_gpu
                UNION ALL SELECT start_ns, NULL AS device_id, pid FROM part_counted)"""
        ).fetchall()
        return Seen(rows, first_ns, sorted(device for device in devices or () if device is not None and device >= 0))

    def rows(self, part: int) -> Iterator[Rows]:
        """Yield the event rows of the current process."""
        self._launches()
        self._operators()
        self._messages()
        self._sort()
        run = self._connection.sql
        yield from self._kernels(part)
        yield Rows("collective_call", run(CALL_SQL), part)
        yield Rows("launch", run(LAUNCH_SQL), part)
        yield Rows("op", run(OP_SQL), part)
        yield Rows("annotation", run(ANNOTATION_SQL), part)
        if (table := self._frames()) is not None:
            yield Rows("frame", table, part)
        yield Rows("memory_event", run(MEMORY_SQL), part)
        yield Rows("synchronization", run(SYNC_SQL), part)
        yield from counted.rows(self._connection, part)

    def _kernels(self, part: int) -> Iterator[Rows]:
        """Yield the sorted rows in whole row groups, so that every core writes one.

        From a temporary table a thread would take twice as many rows at a time.
        """
        connection = self._connection
        # Rows inserted by the current transaction have row ids that start far above 0.
        ((count, begin),) = connection.execute("SELECT count(*), min(rowid) FROM link_sorted").fetchall()
        for first in range(0, count, GROUPS * ROW_GROUP):
            low, high = begin + first, begin + first + GROUPS * ROW_GROUP - 1
            some = connection.sql(f"FROM link_sorted WHERE rowid BETWEEN {low} AND {high}")
            table = pa.RecordBatchReader.from_stream(some).read_all()
            in_groups = pa.Table.from_batches(table.combine_chunks().to_batches(max_chunksize=ROW_GROUP))  # noqa: F841
            yield Rows("kernel_event", connection.sql(KERNEL_SQL), part)

    def _frames(self) -> pa.Table | None:
        """Return the rows of Python frames: as numbers they are few enough for memory."""
        texts = "SELECT id, value FROM staged_text WHERE id IN (SELECT name FROM part_frame)"
        held = Held({"frame": self._narrow("FROM part_frame"), "text": self._narrow(texts)})
        return frames.table(held, Texts(held)) if held.rows("frame") else None

    def _narrow(self, query: str) -> list[pa.RecordBatch]:
        return [narrowed(batch) for batch in pa.RecordBatchReader.from_stream(self._connection.sql(query))]

    def _launches(self) -> None:
        """Join GPU rows to calls by correlation id; of several calls, prefer a launch by name, then the earliest."""
        self._connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE link_launch AS
            SELECT
                l.correlation_id,
                coalesce(
                    arg_min(l.launch_id, {EARLIEST}) FILTER (l.name IN (
                        SELECT id FROM staged_text WHERE regexp_matches(value, $pattern)
                    )),
                    arg_min(l.launch_id, {EARLIEST})
                ) AS launch_id
            FROM part_launch AS l
            WHERE l.correlation_id IN (SELECT correlation_id FROM part_gpu WHERE correlation_id IS NOT NULL)
            GROUP BY l.correlation_id
            """,
            {"pattern": pattern(LAUNCHES)},
        )
        self._connection.execute(
            """
            CREATE OR REPLACE TEMP TABLE link_gpu AS
            SELECT
                g.event_id, g.external_id AS gpu_external_id, l.launch_id, l.name AS launch_name, l.tid, l.start_ns,
                l.duration_ns, coalesce(g.external_id, l.external_id) AS external_id
            FROM part_gpu AS g
            LEFT JOIN link_launch AS c ON g.correlation_id = c.correlation_id
            LEFT JOIN part_launch AS l ON c.launch_id = l.launch_id
            """
        )

    def _operators(self) -> None:
        """Join GPU rows to operators by External id if it is valid, else to the innermost one around the launch."""
        connection = self._connection
        connection.execute(
            """
            CREATE OR REPLACE TEMP TABLE link_op AS
            WITH named AS (
                SELECT external_id, min(op_id) AS op_id FROM part_op
                WHERE external_id IN (SELECT external_id FROM link_gpu) AND $is_op_id
                GROUP BY external_id
            )

            SELECT g.event_id, o.op_id
            FROM link_gpu AS g
            INNER JOIN named AS n ON g.external_id = n.external_id
            INNER JOIN part_op AS o ON n.op_id = o.op_id
            WHERE g.start_ns IS NULL
                OR (o.start_ns <= g.start_ns AND g.start_ns <= o.start_ns + o.duration_ns + $slack)
            """,
            {"is_op_id": not self._external_id_is_correlation(), "slack": self._rules.slack_ns},
        )
        enclosing.enclose(connection, self._rules.slack_ns)

    def _external_id_is_correlation(self) -> bool:
        """From 2022 to 2024 the profiler wrote the correlation id as External id; such ids join wrong operators."""
        if not self._rules.is_whole_microseconds:
            return False
        ((same, known),) = self._connection.execute(
            """SELECT count(*) FILTER (external_id = correlation_id), count(external_id) FROM part_gpu"""
        ).fetchall()
        if same * 2 > known:
            note_ids(self._account, same)
            return True
        return False

    def _messages(self) -> None:
        """Find a collective's metadata: in the kernel itself, else in the operator that launched it."""
        if not self._has_messages:
            self._connection.execute(
                "CREATE OR REPLACE TEMP TABLE link_message (event_id BIGINT, message_id BIGINT, call_id BIGINT)"
            )
            return
        self._connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE link_message AS
            WITH wanted AS (
                SELECT g.event_id, o.op_id, p.parent_id, own.event_id AS own_id
                FROM part_gpu AS g
                INNER JOIN staged_text AS t ON g.name = t.id
                LEFT JOIN link_op AS o ON g.event_id = o.event_id
                LEFT JOIN link_parent AS p ON o.op_id = p.op_id
                LEFT JOIN staged_message AS own ON g.event_id = own.event_id
                WHERE own.event_id IS NOT NULL
                    OR (g.kind = 'kernel' AND regexp_matches(t.value, '{pattern(COLLECTIVES)}'))
            )

            SELECT
                w.event_id,
                coalesce(w.own_id, m.event_id, above.event_id) AS message_id,
                coalesce(m.event_id, above.event_id, w.own_id) AS call_id
            FROM wanted AS w
            LEFT JOIN staged_message AS m ON w.op_id = m.event_id
            LEFT JOIN staged_message AS above ON w.parent_id = above.event_id
            WHERE coalesce(w.own_id, m.event_id, above.event_id) IS NOT NULL
            """
        )

    def _sort(self) -> None:
        """Sort narrow rows by device and time, long names last, before joining the names makes them wide."""
        self._connection.execute("SET preserve_insertion_order = true")  # else several threads mix sorted runs
        self._connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE link_sorted AS
            SELECT
                g.event_id, g.kind, g.name, g.start_ns, g.duration_ns,
                TRY_CAST(nullif(
                    coalesce(g.device_id, CASE WHEN g.pid >= 0 THEN g.pid END), {UNUSABLE}
                ) AS INTEGER) AS device_id,
                CASE WHEN coalesce(g.stream_id, g.tid) >= 0 THEN coalesce(g.stream_id, g.tid) END AS stream_id,
                g.context_id, CASE WHEN g.correlation_id >= 0 THEN g.correlation_id END AS correlation_id,
                link.launch_id, op.op_id,
                g.graph_id, g.graph_node_id, {self._grid()},
                TRY_CAST(g.registers AS INTEGER) AS registers_per_thread, g.shared_bytes, g.occupancy, g.bytes,
                lm.message_id, lm.call_id
            FROM part_gpu AS g
            LEFT JOIN link_gpu AS link ON g.event_id = link.event_id
            LEFT JOIN link_op AS op ON g.event_id = op.event_id
            LEFT JOIN link_message AS lm ON g.event_id = lm.event_id
            ORDER BY {self._long_last()}device_id, g.start_ns, g.event_id
            """
        )

    def _long_last(self) -> str:
        """Return the sort key that puts kernels with long names last; empty if there are none."""
        long = f"SELECT id FROM staged_text WHERE strlen(value) >= {LONG_NAME}"
        ((is_any,),) = self._connection.execute(f"SELECT count(*) > 0 FROM ({long})").fetchall()
        return f"g.name IN ({long}), " if is_any else ""

    def _grid(self) -> str:
        """Return the grid and block columns in blocks and threads, whatever the ROCm release wrote."""
        as_recorded = ", ".join(f"g.grid_{a}, g.block_{a}" for a in "xyz")
        if not self._rules.is_amd:
            return as_recorded
        ((too_large, sized),) = self._connection.execute(
            f"SELECT count(*) FILTER (block_x * block_y * block_z > {MOST_THREADS}), count(grid_x) FROM part_gpu"
        ).fetchall()
        if too_large:
            note_grids(self._account, sized)
            return ", ".join(
                f"CAST(ceil(g.block_{a} / nullif(g.grid_{a}, 0)) AS BIGINT) AS grid_{a}, g.grid_{a} AS block_{a}"
                for a in "xyz"
            )
        return ", ".join(
            f"CASE WHEN link.launch_name IN (SELECT id FROM staged_text WHERE value = '{BY_WORK_ITEMS}') "
            f"THEN CAST(ceil(g.grid_{a} / nullif(g.block_{a}, 0)) AS BIGINT) "
            f"ELSE g.grid_{a} END AS grid_{a}, g.block_{a}"
            for a in "xyz"
        )


KERNEL_SQL = f"""
SELECT
    g.event_id, g.kind, name.value AS name, g.start_ns, g.duration_ns, g.device_id, g.stream_id, g.context_id,
    g.correlation_id, g.launch_id, g.op_id, g.graph_id, g.graph_node_id, g.grid_x, g.grid_y, g.grid_z, g.block_x,
    g.block_y, g.block_z, g.registers_per_thread, g.shared_bytes, g.occupancy AS occupancy_percent, g.bytes,
    CASE WHEN g.kind = 'memcpy' THEN nullif(regexp_extract(name.value, '{COPY_KIND}'), '') END AS copy_kind,
    m.collective, m.message_in AS message_in_elements, m.message_out AS message_out_elements,
    m.in_splits AS message_in_splits, m.dtype,
    m.group_name, TRY_CAST(m.group_size AS INTEGER) AS group_size, m.group_ranks, m.sequence, g.call_id
FROM in_groups AS g
LEFT JOIN staged_text AS name ON g.name = name.id
LEFT JOIN staged_message AS m ON g.message_id = m.event_id
"""
CALL_SQL = """
SELECT
    m.event_id AS call_id, m.collective, m.message_in AS message_in_elements, m.message_out AS message_out_elements,
    m.in_splits AS message_in_splits, m.out_splits AS message_out_splits, m.dtype, m.group_name,
    TRY_CAST(m.group_size AS INTEGER) AS group_size, m.group_ranks, m.sequence,
    TRY_CAST(m.source_rank AS INTEGER) AS source_rank, TRY_CAST(m.destination_rank AS INTEGER) AS destination_rank,
    TRY_CAST(m.peer AS INTEGER) AS rank_in_group
FROM staged_message AS m
WHERE m.event_id IN (SELECT op_id FROM part_op) OR m.event_id IN (SELECT call_id FROM link_message)
ORDER BY m.event_id
"""
LAUNCH_SQL = """
SELECT l.launch_id, CASE WHEN l.correlation_id >= 0 THEN l.correlation_id END AS correlation_id,
    name.value AS name, CASE WHEN l.pid >= 0 THEN l.pid END AS process_id,
    l.tid AS thread_id, l.start_ns, l.duration_ns, kernel.value AS kernel_name, l.graph_node_id
FROM part_launch AS l
INNER JOIN staged_text AS name ON l.name = name.id
LEFT JOIN link_launch AS c ON l.launch_id = c.launch_id AND l.kernel IS NOT NULL
LEFT JOIN staged_text AS kernel ON CASE WHEN c.launch_id IS NULL THEN l.kernel END = kernel.id
"""
OP_SQL = """
SELECT o.op_id, name.value AS name, CASE WHEN o.pid >= 0 THEN o.pid END AS process_id, o.tid AS thread_id, o.start_ns,
    o.duration_ns, p.parent_id AS parent_op_id, o.sequence_number, o.forward_thread_id,
    dims.value AS input_dims, types.value AS input_types, strides.value AS input_strides,
    concrete.value AS concrete_inputs
FROM part_op AS o
INNER JOIN staged_text AS name ON o.name = name.id
LEFT JOIN link_parent AS p ON o.op_id = p.op_id
LEFT JOIN staged_text AS dims ON o.input_dims = dims.id
LEFT JOIN staged_text AS types ON o.input_types = types.id
LEFT JOIN staged_text AS strides ON o.input_strides = strides.id
LEFT JOIN staged_text AS concrete ON o.concrete_inputs = concrete.id
"""
ANNOTATION_SQL = """
SELECT a.annotation_id, name.value AS name, a.style,
    CASE WHEN a.style = 'gpu_projection' OR a.pid < 0 THEN NULL ELSE a.pid END AS process_id,
    CASE WHEN a.style != 'gpu_projection' THEN a.tid END AS thread_id,
    TRY_CAST(a.device_id AS INTEGER) AS device_id, a.stream_id, a.start_ns, a.duration_ns,
    a.duration_ns IS NULL AS is_open
FROM part_annotation AS a
INNER JOIN staged_text AS name ON a.name = name.id
"""
MEMORY_SQL = """
SELECT memory_event_id, TRY_CAST(device_type AS INTEGER) AS device_type, TRY_CAST(device_id AS INTEGER) AS device_id,
    CASE WHEN address >= 0 THEN address::UBIGINT END AS address, bytes, allocated AS total_allocated_bytes,
    reserved AS total_reserved_bytes, CASE WHEN pid >= 0 THEN pid END AS process_id, tid AS thread_id, start_ns
FROM part_memory
"""
# The profiler writes -1, in 32 or 64 bits, where there is no stream or event.
SYNC_SQL = """
SELECT sync_id, sync_kind AS kind, start_ns, duration_ns,
    CASE WHEN correlation_id >= 0 THEN correlation_id END AS correlation_id,
    CASE WHEN device_id >= 0 THEN device_id::INTEGER WHEN pid BETWEEN 0 AND 2147483647 THEN pid::INTEGER END
        AS device_id,
    CASE WHEN context_id BETWEEN 0 AND 4294967294 THEN context_id END AS context_id,
    CASE WHEN stream_id BETWEEN 0 AND 4294967294 THEN stream_id END AS stream_id,
    CASE WHEN waited_stream_id BETWEEN 0 AND 4294967294 THEN waited_stream_id END AS waited_stream_id,
    CASE WHEN cuda_event_id BETWEEN 0 AND 4294967294 THEN cuda_event_id END AS cuda_event_id,
    CASE WHEN record_correlation_id >= 0 THEN record_correlation_id END AS record_correlation_id
FROM part_sync
"""
