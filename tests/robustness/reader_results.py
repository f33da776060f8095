"""What readers return before DuckDB is involved: a twentieth of the time of a complete ingest.

Rows, counts and rejections of two ways are compared here for every input; complete ingests are compared for some.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from robustness.invariants import Way, difference
from support.nsys_files import TEXT_COLUMNS
from tracedb.errors import ReadError
from tracedb.ingester import Capture, Options
from tracedb.ingester.issues import Account
from tracedb_nsys.export.parquet import ParquetExport
from tracedb_nsys.export.protocol import NVTX, STRINGS, TEXT, TIMES, Export, Unsound
from tracedb_nsys.export.sqlite import SqliteExport
from tracedb_rocprof import capture as rows
from tracedb_rocprof.staging import STAGED, Stage
from tracedb_rocprof.unstaged_kernels import UnstagedKernels

Found = dict[str, Any]
AGENTS, TEXTS = ("agent", "source", "target"), ("name", "counter")


def compared(found: Sequence[tuple[Way, Found]]) -> list[str]:
    """Return where the ways part from the first one."""
    (first, expected), *others = found
    wrong = [item for _, one in found for item in one.pop("wrong", [])]
    for way, one in others:
        if "refused" in one and "refused" in expected:
            continue
        if one != expected:
            said = next((key for key in expected if one.get(key) != expected[key]), "refused")
            parts = [str(expected.get(said))[:400], str(one.get(said))[:400]]
            if said == "rows" and "rows" in one:
                parts = [difference(expected["rows"], one["rows"], None)]
            wrong.append(f"{way.name} differs from {first.name} before DuckDB in {said}: {' against '.join(parts)}")
    return wrong


class _Nowhere:
    """Stands for a connection whose tables nobody asks."""

    def execute(self, *_: Any) -> _Nowhere:
        return self


class _Recorded(Stage):
    """Keeps what it would put into staging tables."""

    def __init__(self) -> None:
        super().__init__(_Nowhere(), Account())  # type: ignore[arg-type]
        self.kept: dict[str, list[pa.Table]] = defaultdict(list)
        self.moved: list[Any] = []

    def _insert(self, table: str, batch: pa.Table) -> None:
        self.kept[table].append(batch)

    def move(self, tables: Iterable[str], old: int, new: int) -> None:
        self.moved.append((list(tables), old, new))

    def rows(self) -> dict[str, list[str]]:
        """Return the rows of each table with texts in place of their numbers."""
        self._release()
        texts = {table: dict(_pairs(given.table())) for table, given in (("text", self.texts), ("agent", self.agents))}
        found = {}
        for table, batches in self.kept.items():
            made = []
            for row in (row for batch in batches for row in batch.to_pylist()):
                words = {name: texts["text"].get(row[name], row[name]) for name in TEXTS if name in row}
                words |= {name: texts["agent"].get(row[name], row[name]) for name in AGENTS if name in row}
                made.append(repr(sorted({**row, **words}.items())))
            found[table] = sorted(made)
        return {table: made for table, made in found.items() if made}


def _pairs(table: pa.Table) -> Iterable[tuple[int, str]]:
    return zip(table["id"].to_pylist(), table["value"].to_pylist(), strict=True)


def of_rocprof(capture: Capture, way: Way) -> Found:
    """Return what a reader of ROCm's recordings would stage, its account, and whether both add up."""
    stage = _Recorded()
    with way.taken():
        try:
            reading = rows._fill(stage, UnstagedKernels(stage), capture, Options())
            while True:
                next(reading)
        except StopIteration as ended:
            recording = ended.value
        except ReadError as error:
            return {"refused": str(error), "state": "refused"}
    found = stage.rows()
    gave, account = sum(len(found.get(table, ())) for table in STAGED), stage.account
    issues = {code: (item.severity, item.count, item.skipped) for code, item in account.issues.items()}
    state = "truncated" if recording.is_cut else "repaired" if account.is_repaired else "complete"
    whole = {"state": state, "rows": found, "issues": issues, "read": stage.events_read, "moved": stage.moved}
    whole |= {"agents": recording.agents, "places": recording.places, "unknown": sorted(stage.texts.unknown.values())}
    if stage.events_read != gave + account.skipped:
        whole["wrong"] = [f"{way.name}: {stage.events_read} events read, {gave} rows, {account.skipped} skipped"]
    return whole


def of_nsys(capture: Capture, way: Way) -> Found:
    """Return the rows of the tables of an export that are read, what was odd, and what damage cost."""
    with way.taken():
        try:
            path = capture.files[0]
            export: Export = ParquetExport(capture.files) if path.suffix == ".parquet" else SqliteExport(path)
            try:
                found = _tables(export)
            except Unsound as error:
                export.distrust(str(error))
                found = _tables(export)
        except ReadError as error:
            return {"refused": str(error), "state": "refused"}
    losses = export.losses()
    state = "complete" if losses is None and not export.odd else "repaired"
    return {"state": state, "rows": found, "odd": dict(export.odd), "losses": losses and losses[0]}


def _tables(export: Export) -> dict[str, list[str]]:
    found = {}
    for table, names in sorted(export.tables.items()):
        texts = TEXT if table == NVTX else ()  # elsewhere, columns of these names are not read
        columns = sorted(name for name in names if name.isascii() and (name in texts or name not in TEXT_COLUMNS))
        if table == STRINGS:
            columns = [name for name in ("id", "value") if name in names]
        if table != STRINGS and not set(TIMES).issubset(columns):
            continue
        if columns:
            batches = [batch for part in export.batches(table, columns, 1) for batch in part]
            made = sorted(repr(sorted(row.items())) for batch in batches for row in batch.to_pylist())
            export.verify(table, len(made))
            found[table] = made
    return {table: made for table, made in found.items() if made}


def counted(path: Path, found: Found) -> list[str]:
    """Return which tables of a sound database have other numbers of rows than SQLite counts."""
    if "refused" in found:
        return []
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            if connection.execute("PRAGMA quick_check").fetchall() != [("ok",)]:
                return []
            counts = {
                table: connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in found["rows"]
            }
    except (sqlite3.Error, UnicodeDecodeError):
        return []
    return [
        f"{len(found['rows'][table])} rows of {table} are read, SQLite counts {count}"
        for table, count in counts.items()
        if len(found["rows"][table]) != count
    ]
