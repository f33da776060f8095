"""Staging tables in the scratch connection: narrow rows as the export has them, before anything is linked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import duckdb

from tracedb_nsys.account import Account
from tracedb_nsys.tables import DRIVER, GRAPH, KERNEL, MEMCPY, MEMSET, NVTX, ROW, RUNTIME, STRINGS, Export, Feed

TABLES = {
    "gpu": """event_id BIGINT, kind UTINYINT, gpid BIGINT, name BIGINT, start_ns BIGINT, duration_ns BIGINT,
        device_id INTEGER, context_id INTEGER, stream_id INTEGER, correlation_id BIGINT, graph_id BIGINT,
        graph_node_id BIGINT, registers INTEGER, static_shared INTEGER, dynamic_shared INTEGER, grid_x INTEGER,
        grid_y INTEGER, grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER, bytes BIGINT,
        copy_kind INTEGER""",
    "launch": """launch_id BIGINT, gpid BIGINT, tid INTEGER, name BIGINT, start_ns BIGINT, duration_ns BIGINT,
        correlation_id BIGINT""",
    "nvtx": """annotation_id BIGINT, gpid BIGINT, tid INTEGER, is_elsewhere BOOLEAN, event_type INTEGER, name BIGINT,
        text VARCHAR, domain_id BIGINT, start_ns BIGINT, end_ns BIGINT, json BIGINT, json_text VARCHAR""",
    "other": """annotation_id BIGINT, gpid BIGINT, tid INTEGER, domain VARCHAR, name BIGINT, start_ns BIGINT,
        duration_ns BIGINT""",
    "text": "id BIGINT, value VARCHAR",
}
KINDS = ("kernel", "memcpy", "memset", "graph")
TIMES = ("start", "end")
PROCESS_MASK = -1 << 24  # of a serialized thread id: hardware, virtual machine and process
# Ends before starts, and sums that overflow, give NULL and are left out.
DURATION = """CASE WHEN "end" >= start AND start > -4611686018427387904 AND "end" < 4611686018427387904
    THEN "end" - start END"""
CORRELATION = "CASE WHEN {correlationId} NOT IN (0, -1, 4294967295) THEN {correlationId} END"
GPU = f"""row + $base AS event_id, {{globalPid}} & {PROCESS_MASK} AS gpid, start AS start_ns, {DURATION} AS duration_ns,
    TRY_CAST({{deviceId}} AS INTEGER) AS device_id, TRY_CAST({{contextId}} AS INTEGER) AS context_id,
    TRY_CAST({{streamId}} AS INTEGER) AS stream_id, {CORRELATION} AS correlation_id,
    nullif({{graphNodeId}}, 0) AS graph_node_id"""
GPU_MORE = {
    KERNEL: ", ".join(
        (
            "0 AS kind, coalesce({demangledName}, {mangledName}, {shortName}) AS name, nullif({graphId}, 0) AS graph_id",
            "TRY_CAST({registersPerThread} AS INTEGER) AS registers",
            "TRY_CAST({staticSharedMemory} AS INTEGER) AS static_shared",
            "TRY_CAST({dynamicSharedMemory} AS INTEGER) AS dynamic_shared",
            *(f"TRY_CAST({{{what}{axis.upper()}}} AS INTEGER) AS {what}_{axis}" for what in ("grid", "block") for axis in "xyz"),
        )
    ),
    MEMCPY: "1 AS kind, {bytes} AS bytes, TRY_CAST({copyKind} AS INTEGER) AS copy_kind",
    MEMSET: "2 AS kind, {bytes} AS bytes",
    GRAPH: "3 AS kind, coalesce({graphId}, {graphExecId}) AS graph_id",
}
THREAD = f"{{globalTid}} & {PROCESS_MASK} AS gpid, ({{globalTid}} & {~PROCESS_MASK})::INTEGER AS tid"
LAUNCH = f"row + $base AS launch_id, {THREAD}, {{nameId}} AS name, start AS start_ns, {DURATION} AS duration_ns, {CORRELATION} AS correlation_id"
NVTX_ROW = f"""row + $base AS annotation_id, {THREAD}, coalesce({{endGlobalTid}} <> {{globalTid}}, false) AS is_elsewhere,
    TRY_CAST({{eventType}} AS INTEGER) AS event_type, {{textId}} AS name, {{text}} AS text, {{domainId}} AS domain_id,
    {{start}} AS start_ns, {{end}} AS end_ns, {{jsonTextId}} AS json, {{jsonText}} AS json_text"""
OTHER = f"row + $base AS annotation_id, {THREAD}, coalesce({{textId}}, {{nameId}}) AS name, start AS start_ns, {DURATION} AS duration_ns"
OTHER_DOMAINS = (
    ("MPI_", "MPI"),
    ("CUPTI_ACTIVITY_KIND_OPENACC_", "OpenACC"),
    ("CUBLAS_EVENTS", "cuBLAS"),
    ("CUDNN_EVENTS", "cuDNN"),
)
NO_EVENTS = ("TARGET_INFO_", "META_DATA_", "ENUM_", "DIAGNOSTIC_EVENT")
TIME_COLUMNS = ("start", "timestamp", "rawTimestamp", "startedAt")
# Their text is of use only for collectives, whose libraries declare what they attach.
PAYLOADS = "NVTX_PAYLOAD_SCHEMAS"
JSON = ("jsonText", "jsonTextId")


class Stage:
    """Fills the staging tables from an export; counts what it reads."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        export: Export,
        account: Account,
        cores: int,
        progress: Callable[[float], None],
    ) -> None:
        self._connection = connection
        self._export = export
        self._account = account
        self._parts = max(cores, 1)
        self._progress = progress
        self._bases: dict[str, int] = {}
        self.events_read = 0

    def fill(self) -> None:
        """Read everything. Raises ``ReadError`` where the export is damaged."""
        for name, columns in TABLES.items():
            self._connection.execute(f"CREATE OR REPLACE TEMP TABLE staged_{name} ({columns})")
        others = {table: domain for table in self._export.tables if (domain := _domain(table))}
        read = [*GPU_MORE, RUNTIME, DRIVER, NVTX, STRINGS, *others]
        self._total = sum(self._export.about(table) for table in read if table in self._export.tables)
        for table, more in GPU_MORE.items():
            self._events(table, "gpu", f"{GPU}, {more}")
        for table in (RUNTIME, DRIVER):
            self._events(table, "launch", LAUNCH)
        self._nvtx()
        for table, domain in others.items():
            self._events(table, "other", f"'{domain}' AS domain, {OTHER}")
        self._left_aside({*read})
        self._strings()

    def _events(self, table: str, into: str, template: str) -> None:
        """Read a table of events that last; those without usable times are lost."""
        columns = self._export.tables.get(table, ())
        if not columns:
            return
        if not set(TIMES).issubset(columns):
            count = self._export.count(table)
            self.events_read += count
            self._account.lost("columns_missing", count, f"{table} has no columns start and end")
            return
        valid = "duration_ns IS NOT NULL"
        if into == "gpu":
            valid += " AND (start_ns <> 0 OR duration_ns <> 0)"
        rows, kept = self._insert(table, into, template, valid)
        self.events_read += rows
        self._account.lost("times_unusable", rows - kept, f"{rows - kept} rows of {table} end before they start or have no times")

    def _nvtx(self) -> None:
        columns = self._export.tables.get(NVTX, ())
        if not columns:
            return
        leave = () if PAYLOADS in self._export.tables else JSON
        rows, _ = self._insert(NVTX, "nvtx", NVTX_ROW, "true", leave)
        self.events_read += rows

    def _insert(
        self, table: str, into: str, template: str, valid: str, leave: Sequence[str] = ()
    ) -> tuple[int, int]:
        """Stage a table; returns how many rows were read and how many kept."""
        names = _Names(name for name in self._export.tables[table] if name not in leave)
        query = template.format_map(names).replace("$base", str(self._base(table, into)))
        used = list(names.used.union(set(TIMES).intersection(self._export.tables[table])))
        feeds = [Feed(part, used, self._advance) for part in self._export.batches(table, used, self._parts)]
        rows, kept = self._drain(
            feeds, f"INSERT INTO staged_{into} BY NAME SELECT * FROM (SELECT {query} FROM ({{feeds}})) WHERE {valid}"
        )
        self._bases[into] = self._bases.get(into, 0) + self._export.about(table)
        return rows, kept

    def _base(self, table: str, into: str) -> int:
        """Return what is added to row numbers, so that those of several tables differ."""
        return self._bases.get(into, 0)

    def _drain(self, feeds: Sequence[Feed], query: str) -> tuple[int, int]:
        if not feeds:
            return 0, 0
        for number, feed in enumerate(feeds):
            self._connection.register(f"feed_{number}", feed.reader)
        union = " UNION ALL ".join(f"SELECT * FROM feed_{number}" for number in range(len(feeds)))
        try:
            done = self._connection.execute(query.format(feeds=union)).fetchone()
        except duckdb.Error:
            for feed in feeds:
                feed.check()
            raise
        finally:
            for number in range(len(feeds)):
                self._connection.unregister(f"feed_{number}")
        return sum(feed.rows for feed in feeds), int(done[0]) if done else 0

    def _advance(self, rows: int) -> None:
        self._progress(rows / max(self._total, 1))

    def _left_aside(self, read: set[str]) -> None:
        """Count the events of tables that are not read."""
        for table, columns in self._export.tables.items():
            is_event = table.startswith("CUPTI_ACTIVITY_KIND_") or not set(TIME_COLUMNS).isdisjoint(columns)
            if table in read or not is_event or table.startswith(NO_EVENTS):
                continue
            count = self._export.count(table)
            self.events_read += count
            code = table.removeprefix("CUPTI_ACTIVITY_KIND_").lower()
            self._account.left_aside(code, count, f"rows of {table}: no GPU work, call or range; left aside")

    def _strings(self) -> None:
        """Read the strings that staged rows name, and no other: exports hold the environment of the machine there."""
        if not {"id", "value"}.issubset(self._export.tables.get(STRINGS, ())):
            return
        used = " UNION ".join(
            f"SELECT {column} AS id FROM staged_{table} WHERE {column} IS NOT NULL"
            for table, column in (("gpu", "name"), ("launch", "name"), ("nvtx", "name"), ("nvtx", "json"), ("other", "name"))
        )
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE staged_used AS {used}")
        columns = ["id", "value"]
        feeds = [Feed(part, columns, self._advance) for part in self._export.batches(STRINGS, columns, 1)]
        self._drain(
            feeds, "INSERT INTO staged_text SELECT id, value FROM ({feeds}) WHERE id IN (SELECT id FROM staged_used)"
        )


class _Names(dict[str, str]):
    """Columns of a table for a template: absent ones are NULL; remembers which were used."""

    def __init__(self, columns: Iterable[str]) -> None:
        super().__init__({name: f'"{name}"' for name in columns})
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> str:
        if name == "feeds":
            return "{feeds}"
        if name not in self:
            return "NULL"
        self.used.add(name)
        return super().__getitem__(name)


def _domain(table: str) -> str | None:
    for prefix, domain in OTHER_DOMAINS:
        if table.startswith(prefix) and table not in ("MPI_RANKS", "MPI_COMMUNICATORS"):
            return domain
    return None
