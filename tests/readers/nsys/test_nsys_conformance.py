"""The nsys ingester passes the suite of every ingester, on built and on recorded exports."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support import conformance, recordings
from support.nsys_files import ERAS
from support.nsys_loaded import step
from tracedb_nsys import ingester

RECORDED = sorted((recordings.DATA / "nsys").rglob("*.sqlite"))
KINDS = {"kernel": "KERNEL", "memcpy": "MEMCPY", "memset": "MEMSET", "graph": "GRAPH_TRACE", "launch": "RUNTIME",
         "synchronization": "SYNCHRONIZATION"}  # fmt: skip
RANGES = (34, 59, 60, 65, 70, 71)
NO_EVENTS = ("TARGET_INFO_", "META_DATA_", "ENUM_", "DIAGNOSTIC_EVENT")


def count(path: Path) -> dict[str, int]:
    """Count by SQLite itself."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]

        def rows(table: str, where: str = "true") -> int:
            if table not in tables:
                return 0
            return int(connection.execute(f'SELECT count(*) FROM "{table}" WHERE {where}').fetchone()[0])

        columns = {table: [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')] for table in tables}
        events = sum(
            rows(table)
            for table in tables
            if (table.startswith("CUPTI_") or {"start", "startedAt"} & set(columns[table]))
            and not table.startswith(NO_EVENTS)
        )
        found = {kind: rows(f"CUPTI_ACTIVITY_KIND_{table}") for kind, table in KINDS.items()}
        return {**found, "annotation": rows("NVTX_EVENTS", f"eventType IN {RANGES}"), "events": events}


def shuffled(path: Path, folder: Path) -> Path:
    """The same rows, the last first."""
    target = folder / f"shuffled-{path.name}"
    target.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(target)) as connection:
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE name GLOB '*_KIND_*' OR name = 'NVTX_EVENTS'"
        ).fetchall():
            connection.execute(f'CREATE TEMP TABLE moved AS SELECT * FROM "{table}" ORDER BY rowid DESC')
            connection.execute(f'DELETE FROM "{table}"')
            connection.execute(f'INSERT INTO "{table}" SELECT * FROM moved')
            connection.execute("DROP TABLE moved")
        connection.commit()
    return target


def test_files_of_nobody(tmp_path: Path) -> None:
    conformance.check_foreign(ingester, tmp_path)


@pytest.mark.parametrize("era", ERAS)
def test_built_exports(era: str, tmp_path: Path) -> None:
    path = step(era).sqlite(tmp_path / "a.sqlite")
    conformance.check_rows(ingester, path)
    conformance.check_same_twice(ingester, path)
    conformance.check_shuffled(ingester, path, shuffled(path, tmp_path))
    conformance.check_counts(ingester, path, count)
    (tmp_path / "cut").mkdir()
    conformance.check_cut(ingester, path, tmp_path / "cut")
    conformance.check_rows(ingester, *step(era).parquet(tmp_path / "b_pqtdir").iterdir())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory(tmp_path: Path) -> None:
    made = step()
    for number in range(50_000):
        made.kernel(number * 10, number * 10 + 5, correlation=number)
    conformance.check_memory("tracedb_nsys", made.sqlite(tmp_path / "a.sqlite"), 400, tmp_path)


@pytest.mark.shared
class TestRecorded:
    @pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
    def test_rows_however_they_stand(self, path: Path, tmp_path: Path) -> None:
        conformance.check_rows(ingester, path)
        conformance.check_counts(ingester, path, count)
        conformance.check_shuffled(ingester, path, shuffled(path, tmp_path))
