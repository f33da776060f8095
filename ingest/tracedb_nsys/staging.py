"""Staging tables in the scratch connection: narrow rows as they are in the export, before linking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import duckdb

from tracedb.errors import ReadError
from tracedb.ingester import ReadAgain, Rows
from tracedb.ingester.issues import Account
from tracedb_nsys import export_issues, gpu_metrics, unstaged_kernels
from tracedb_nsys import staging_sql as made
from tracedb_nsys.export import table_roles
from tracedb_nsys.export.protocol import (
    DRIVER,
    EVENT_RECORD,
    KERNEL,
    NVTX,
    RUNTIME,
    STRINGS,
    SYNC,
    TIMES,
    Export,
    Feed,
    Unsound,
    in_order,
)
from tracedb_nsys.header import KNOWN_SCHEMAS
from tracedb_nsys.launches import Calls

NO_EVENTS = ("TARGET_INFO_", "META_DATA_", "ENUM_", "DIAGNOSTIC_EVENT")
TIME_COLUMNS = ("start", "timestamp", "rawTimestamp", "startedAt")
# JSON texts are only needed for collectives, whose library registers its payload schema.
PAYLOADS = "NVTX_PAYLOAD_SCHEMAS"
JSON = ("jsonText", "jsonTextId")


NOT_READ = "look like GPU work, but this version of tracedb does not read them"
WHAT_TO_DO = "export again with a release of nsys that writes those, or update tracedb"
UNREAD = "device_events_not_read:"
GPU = ("kernel", "copy")
VALID_ON_GPU = "duration_ns IS NOT NULL AND (start_ns <> 0 OR duration_ns <> 0)"
NUMBERS = {"copy": "kernel", "nvtx": "annotation", "other": "annotation"}
"""Groups of staging tables that share one numbering of rows."""


class Stage:
    """Fills the staging tables from an export and counts the rows read."""

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
        self._direct: unstaged_kernels.UnstagedKernels | None = None
        self.events_read = 0
        self.kernels_are_sorted = False
        """Whether the export's kernels, and so ``staged_kernel``, are ordered by start."""

    def fill(self, may_bypass_staging: bool = False) -> Iterator[Rows]:
        """Read everything; yields kernels that need no staging. Raises ``ReadError`` if the export is damaged.

        Raises ``ReadAgain`` if damage shows after kernels were yielded.
        """
        try:
            yield from self._fill(may_bypass_staging)
        except Unsound as error:
            if self.direct_rows():
                raise ReadAgain from None
            self._export.distrust(str(error))
            self._account.clear()
            yield from self._fill(False)

    def _fill(self, may_bypass_staging: bool) -> Iterator[Rows]:
        self._bases: dict[str, int] = {}
        self._calls = Calls()
        self._direct = None
        self.events_read = 0
        self._nulls: Counter[tuple[str, str]] = Counter()
        for name, columns in made.STAGED.items():
            self._connection.execute(f"CREATE OR REPLACE TEMP TABLE staged_{name} ({columns})")
        tables = self._export.tables
        others = {
            table: domain
            for table, columns in tables.items()
            if (domain := made.domain_of(table)) and set(TIMES).issubset(columns)
        }
        found = {role: table_roles.tables_of(role, tables) for role in table_roles.EXPECTED}
        read = {NVTX, STRINGS, *others}.union(*found.values())
        self._total = sum(self._export.upper_bound(table) for table in read if table in tables)
        for table in (*found[RUNTIME], *found[DRIVER]):
            self._events(table, "launch", made.LAUNCH)
        self._calls.finish()
        self._check_kernels(found[KERNEL])
        if may_bypass_staging and self._can_bypass_staging(found[KERNEL]):
            yield from self._read_directly()
        else:
            for table in found[KERNEL]:
                self._events(table, "kernel", made.KERNELS)
        for role, template in made.COPIES.items():
            for table in found[role]:
                self._events(table, "copy", template)
        for table in found[SYNC]:
            self._events(table, "sync", made.SYNC)
        self._event_records()
        self._nvtx()
        for table, domain in others.items():
            self._events(table, "other", f"'{domain}' AS domain, {made.OTHER}")
        if self._conditions():
            read.add(gpu_metrics.TABLE)
        self._left_aside(read)
        self._strings()
        self._flaws()

    def _check_kernels(self, kernels: Sequence[str]) -> None:
        """Raise ``ReadError`` if there are kernels but none can be read."""
        held = {
            table: set(TIMES).issubset(self._export.tables[table]) for table in kernels if self._export.count(table)
        }
        if held and not any(held.values()):
            table = next(iter(held))
            why = f"{table}: {self._export.count(table):,} kernels {_without_times(self._export.tables[table])}"
            raise ReadError(f"{why}; tracedb knows versions {KNOWN_SCHEMAS} of the export's tables: {WHAT_TO_DO}")

    def _can_bypass_staging(self, kernels: Sequence[str]) -> bool:
        """Whether there are many kernels, and nothing later in the export is joined to them."""
        tables = self._export.tables
        return (
            kernels == [KERNEL]
            and set(TIMES).issubset(tables[KERNEL])
            and {"id", "value"}.issubset(tables.get(STRINGS, ()))
            and PAYLOADS not in tables
            and self._export.upper_bound(KERNEL) >= unstaged_kernels.SMALLEST_ROWS
        )

    def _read_directly(self) -> Iterator[Rows]:
        """Read the kernels and yield their rows."""
        names = _Names(self._export.tables[KERNEL])
        query = made.filled(made.KERNELS, names, 0)
        used = sorted(names.used.union(TIMES))
        makes = self._direct = unstaged_kernels.UnstagedKernels(
            self._connection, query, VALID_ON_GPU, self._export.texts
        )
        read = 0
        for part in self._export.batches(KERNEL, used, self._parts):
            feed = Feed(part, used, self._advance, None, self._calls.of, table_roles.required(KERNEL))
            for table in unstaged_kernels.grouped(feed.batches()):
                yield makes.rows(table)
            read += feed.rows
            self._count_nulls(KERNEL, [feed])
        self._export.verify(KERNEL, read)
        self._bases["kernel"] = self._export.upper_bound(KERNEL)
        self._account_for(KERNEL, read, self.direct_rows())
        self._account_for_columns(KERNEL, read)

    def direct_rows(self) -> int:
        """Return how many kernels were not staged."""
        ((rows,),) = self._connection.execute("SELECT coalesce(sum(kernels), 0) FROM staged_total").fetchall()
        return int(rows)

    def _events(self, table: str, into: str, template: str) -> None:
        """Read a table of events with a duration; those without usable times are lost."""
        columns = self._export.tables[table]
        if not set(TIMES).issubset(columns):
            count = self._count_unread(table)
            self._account.lost("columns_missing", count, f"{table}: {count} rows {_without_times(columns)}")
            return
        valid = VALID_ON_GPU if into in GPU else "duration_ns IS NOT NULL"
        rows, kept = self._insert(table, into, template, valid)
        self._account_for(table, rows, kept)
        self._account_for_columns(table, rows)

    def _account_for_columns(self, table: str, rows: int) -> None:
        """Report columns of a table that are missing, and tables under another name than today's."""
        role = table_roles.role_of(table)
        if role is None or not rows:
            return
        if missing := table_roles.absent(role, self._export.tables[table]):
            detail = f"{table} has no {', '.join(missing)}; its rows are kept without"
            self._account.mended("columns_missing", rows, detail)
        if table != role:
            self._account.noted("table_renamed", rows, f"rows of {table}, read as those of {role}")

    def _account_for(self, table: str, rows: int, kept: int) -> None:
        self.events_read += rows
        lost = rows - kept
        self._account.lost("times_unusable", lost, f"{lost} rows of {table} end before they start or have no times")

    def _event_records(self) -> None:
        """Read which call recorded which CUDA event; the rows are counted with those that give no row."""
        if self._bases.get("sync") and self._export.tables.get(EVENT_RECORD):
            self._insert(EVENT_RECORD, "record", made.RECORD, "true")

    def _nvtx(self) -> None:
        columns = self._export.tables.get(NVTX, ())
        if not columns:
            return
        leave = () if PAYLOADS in self._export.tables else JSON
        rows, _ = self._insert(NVTX, "nvtx", made.NVTX, "true", leave)
        self.events_read += rows

    def _conditions(self) -> bool:
        """Stage the clocks among the sampled metrics; returns whether there are any. Other metrics are left aside."""
        if not gpu_metrics.prepare(self._connection, self._export):
            return False
        table, columns = gpu_metrics.TABLE, sorted(gpu_metrics.COLUMNS)
        feeds = [Feed(part, columns, self._advance) for part in self._export.batches(table, columns, 1)]
        rows, kept = self._drain(feeds, gpu_metrics.INSERT)
        self._export.verify(table, rows)
        self.events_read += rows
        self._account.left_aside("gpu_metrics", rows - kept, "sampled metrics of GPUs other than clocks; skipped")
        return True

    def _insert(self, table: str, into: str, template: str, valid: str, leave: Sequence[str] = ()) -> tuple[int, int]:
        """Stage a table; returns the number of rows read and of rows kept."""
        names = _Names(name for name in self._export.tables[table] if name not in leave)
        numbers = NUMBERS.get(into, into)
        base = self._bases.get(numbers, 0)
        query = made.filled(template, names, base)
        used = sorted(names.used.union(set(TIMES).intersection(self._export.tables[table])))
        watch = partial(self._calls.add, base=base) if into == "launch" else None
        launched = self._calls.of if into in GPU else None
        parts = self._export.batches(table, used, self._parts)
        feeds = [Feed(part, used, self._advance, watch, launched, table_roles.required(table)) for part in parts]
        rows, kept = self._drain(
            feeds, f"INSERT INTO staged_{into} BY NAME SELECT * FROM (SELECT {query} FROM ({{feeds}})) WHERE {valid}"
        )
        if into == "kernel":
            self.kernels_are_sorted = base == 0 and in_order(feeds)
        self._bases[numbers] = base + self._export.upper_bound(table)
        self._export.verify(table, rows)
        self._count_nulls(table, feeds)
        return rows, kept

    def _drain(self, feeds: Sequence[Feed], query: str) -> tuple[int, int]:
        if not feeds:
            return 0, 0
        for number, feed in enumerate(feeds):
            self._connection.register(f"feed_{number}", feed.reader)
        union = " UNION ALL ".join(f"SELECT * FROM feed_{number}" for number in range(len(feeds)))
        self._connection.execute("SET preserve_insertion_order = true")  # also if several threads read
        try:
            ((done,),) = self._connection.execute(query.format(feeds=union)).fetchall()
        except duckdb.Error:
            for feed in feeds:
                feed.check()
            raise
        finally:
            self._connection.execute("SET preserve_insertion_order = false")
            for number in range(len(feeds)):
                self._connection.unregister(f"feed_{number}")
        return sum(feed.rows for feed in feeds), int(done)

    def _advance(self, rows: int) -> None:
        self._progress(rows / max(self._total, 1))

    def _left_aside(self, read: set[str]) -> None:
        """Count the events of tables that are not read."""
        for table, columns in self._export.tables.items():
            is_event = table.startswith("CUPTI_ACTIVITY_KIND_") or not set(TIME_COLUMNS).isdisjoint(columns)
            if table in read or not is_event or table.startswith(NO_EVENTS):
                continue
            count = self._count_unread(table)
            code = table.removeprefix("CUPTI_ACTIVITY_KIND_").lower()
            if table_roles.is_gpu_work(table, columns):
                self._account.lost(f"{UNREAD}{table}", count, f"{count} rows of {table} {NOT_READ}")
            else:
                self._account.left_aside(code, count, f"rows of {table}: no GPU work, call or range; skipped")

    def _count_unread(self, table: str) -> int:
        """Count the events of a table that is not read; the count is verified like that of a table that is."""
        count = self._export.stored_rows(table)
        self._export.verify(table, count)
        self.events_read += count
        return count

    def _strings(self) -> None:
        """Read only strings that staged rows refer to: StringIds also holds the machine's environment."""
        used = " UNION ".join(
            f"SELECT {column} AS id FROM staged_{table} WHERE {column} IS NOT NULL" for table, column in made.NAMED
        )
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE staged_used AS {used}")
        ((used_count,),) = self._connection.execute("SELECT count(*) FROM staged_used").fetchall()
        columns = ["id", "value"]
        # If no string is wanted, DuckDB would not read them to the end, and some would seem lost.
        if not used_count or not set(columns).issubset(self._export.tables.get(STRINGS, ())):
            return
        feeds = [Feed(part, columns, self._advance) for part in self._export.batches(STRINGS, columns, 1)]
        rows, _ = self._drain(
            feeds,
            """INSERT INTO staged_text SELECT id, min(value) FROM ({feeds})
            WHERE id IN (SELECT id FROM staged_used) GROUP BY id""",
        )
        self._export.verify(STRINGS, rows)

    def _count_nulls(self, table: str, feeds: Sequence[Feed]) -> None:
        for feed in feeds:
            for column, count in feed.nulls.items():
                if column == "streamId" and table_roles.role_of(table) == SYNC:
                    continue  # its largest number stands for all streams
                self._nulls[table, column] += count

    def _flaws(self) -> None:
        export_issues.of_values(self._export, self._nulls, self._account)
        went = self._direct
        nameless, replaced = (went.nameless, went.replaced) if went else (0, 0)
        export_issues.of_names(self._connection, nameless, replaced, self._account)
        export_issues.of_file(self._export, self._account)


def _without_times(columns: Sequence[str]) -> str:
    lacking = " and ".join(name for name in TIMES if name not in columns)
    return f"cannot be read without {lacking} (its columns: {', '.join(columns)[:300]})"


class _Names(dict[str, str]):
    """Columns of a table for a template: missing ones are NULL; records which were used."""

    def __init__(self, columns: Iterable[str]) -> None:
        super().__init__({name: f'"{name}"' for name in columns})
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> str:
        if name not in self:
            return "NULL"
        self.used.add(name)
        return super().__getitem__(name)
