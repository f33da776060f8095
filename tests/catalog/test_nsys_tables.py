"""``--as nsys``: queries written for nsys's SQLite exports, on them and on other captures."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import tracedb
from support import rocprof_files
from support.command import run
from support.recordings import DATA, ROOT
from support.tiny import Tiny

EXPORT = DATA / "nsys" / "single_graph.sqlite"
K, M, R = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME"
LAUNCH_SIZE = "registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory"
QUERIES = {
    "kernels": f"SELECT start, end, deviceId, contextId, streamId, correlationId, globalPid, {LAUNCH_SIZE} FROM {K}",
    "names": f"SELECT value, count(*), sum(end - start) FROM {K} k JOIN StringIds s ON s.id = demangledName GROUP BY 1",
    "short names": f"SELECT s.value, k.start FROM {K} k JOIN StringIds s ON s.id = k.shortName",
    "per stream": f"SELECT deviceId, streamId, min(start), max(end), avg(end - start) FROM {K} GROUP BY 1, 2",
    "longest": f"SELECT start, end - start AS duration FROM {K} ORDER BY duration DESC, start LIMIT 10",
    "copies": f"SELECT label, count(*), sum(bytes), sum(end - start) FROM {M} JOIN ENUM_CUDA_MEMCPY_OPER e "
    "ON e.id = copyKind GROUP BY label",
    "memsets": "SELECT start, end, bytes, streamId FROM CUPTI_ACTIVITY_KIND_MEMSET",
    "threads": f"SELECT globalTid / 0x1000000 % 0x1000000 AS PID, globalTid % 0x1000000 AS TID, count(*) FROM {R} "
    "GROUP BY 1, 2",
    "calls": f"SELECT r.start, r.end, correlationId, globalTid FROM {R} r JOIN StringIds ON nameId = id "
    "WHERE value LIKE 'cudaLaunchKernel%'",
    "launch to start": f"SELECT k.start - r.end FROM {K} k JOIN {R} r ON r.correlationId = k.correlationId "
    "AND r.globalTid / 0x1000000 = k.globalPid / 0x1000000",
    "ranges": "SELECT n.start, n.end, eventType, globalTid, coalesce(text, value) FROM NVTX_EVENTS n "
    "LEFT JOIN StringIds ON textId = id WHERE eventType IN (34, 59, 60)",
    "GPUs": "SELECT id, name, totalMemory, smCount FROM TARGET_INFO_GPU",
}


def asked(db: Path, query: str) -> list[tuple[Any, ...]]:
    done = run("sql", query, "--as", "nsys", "--db", db, "--format", "json")
    assert done.exit_code == 0, done.stderr
    return [tuple(row.values()) for row in json.loads(done.stdout)["rows"]]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = tmp_path_factory.mktemp("nsys") / "export.duckdb"
    tracedb.ingest(EXPORT, db=db)
    return db


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_gives_what_the_export_gives(name: str, loaded: Path) -> None:
    with closing(sqlite3.connect(EXPORT)) as original:
        expected = original.execute(QUERIES[name]).fetchall()
    assert expected
    assert Counter(asked(loaded, QUERIES[name])) == Counter(expected)


@pytest.mark.parametrize(
    "selected",
    [
        "7/2",
        "DISTINCT count(*), max(end-start)/1e6 AS ms, (SELECT max(id) FROM StringIds)",
        "k.start, start - end , CASE WHEN 1 THEN 'a,b' ELSE 'c' END || 'x', (1+2)",
        "*",
    ],
)
def test_columns_have_the_names_that_sqlite_gives_them(selected: str, loaded: Path) -> None:
    query = f"SELECT {selected} FROM {K} AS k LIMIT 1"
    with closing(sqlite3.connect(EXPORT)) as original:
        names = [item[0] for item in original.execute(query).description]
    done = run("sql", query, "--as", "nsys", "--db", loaded, "--format", "json")
    assert done.exit_code == 0, done.stderr
    found = [column["name"] for column in json.loads(done.stdout)["columns"]]
    assert set(found) <= {*names, "captureId"} if selected == "*" else found == names


def test_the_queries_run_on_a_torch_trace(tmp_path: Path) -> None:
    tracedb.ingest(ROOT / "examples" / "run", db=tmp_path / "run.duckdb")
    assert len(asked(tmp_path / "run.duckdb", QUERIES["kernels"])) == 2_400
    assert asked(tmp_path / "run.duckdb", QUERIES["calls"])
    with tracedb.connect(tmp_path / "run.duckdb") as connection:
        totals = connection.sql("SELECT sum(calls)::BIGINT FROM top_kernels").fetchall()
    assert sum(row[1] for row in asked(tmp_path / "run.duckdb", QUERIES["names"])) == totals[0][0]


def test_the_queries_run_on_an_amd_trace(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    rows = [rocprof_files.kernel(name, 1_000 * at, 1_000 * at + 500) for at, name in enumerate(("gemm", "add", "gemm"))]
    rocprof_files.kernel_trace(folder / "17_kernel_trace.csv", rows)
    tracedb.ingest(folder, db=tmp_path / "run.duckdb")
    answers = {name: asked(tmp_path / "run.duckdb", query) for name, query in QUERIES.items()}
    assert sorted(row[:2] for row in answers["kernels"]) == [(0, 500), (1_000, 1_500), (2_000, 2_500)]
    assert sorted(answers["names"]) == [("add", 1, 500), ("gemm", 2, 1_000)]
    assert len(answers["short names"]) == len(answers["longest"]) == 3
    assert len(answers["per stream"]) == len(answers["GPUs"]) == 1
    for name in ("copies", "memsets", "threads", "calls", "launch to start", "ranges"):  # none was recorded
        assert answers[name] == []


def test_without_the_option_the_message_names_it(tmp_path: Path) -> None:
    db = Tiny(tmp_path / "t.duckdb").save()
    done = run("sql", "SELECT count(*) FROM stringids", "--db", db)
    assert done.exit_code == 1
    assert "there is no table stringids here: it is one of nsys's, which `tracedb sql --as nsys`" in done.stderr
    assert "Table with name nothing does not exist" in run("sql", "FROM nothing", "--db", db).stderr


def test_captures_of_one_file_do_not_mix(tmp_path: Path) -> None:
    """Two captures of one process number whose correlation ids repeat: a join by correlation id keeps them apart."""
    db = tmp_path / "two.duckdb"
    for number in (1, 2):
        copy = tmp_path / f"run{number}.sqlite"
        copy.write_bytes(EXPORT.read_bytes())
        with closing(sqlite3.connect(copy)) as changed:  # the same file twice would be loaded once
            changed.execute(f"PRAGMA user_version = {number}")
        tracedb.ingest(copy, db=db)
    joined = (
        f"SELECT count(*), sum(k.end - k.start) FROM {R} r JOIN {K} k ON r.correlationId = k.correlationId"
        " AND r.globalTid / 0x1000000 = k.globalPid / 0x1000000"
    )
    with closing(sqlite3.connect(EXPORT)) as original:
        ((count, total),) = original.execute(joined).fetchall()
    assert asked(db, joined) == [(2 * count, 2 * total)]
    every = run("sql", joined, "--as", "nsys", "--db", db)
    assert "nsys's tables hold 2 captures" in every.stderr
    one = run("sql", joined, "--as", "nsys", "--db", db, "--capture", "2", "--format", "csv")
    assert one.stdout.splitlines()[1] == f"{count},{total}" and "captures" not in one.stderr
    assert (
        "captures"
        not in run("sql", f"SELECT captureId, count(*) FROM {K} GROUP BY 1", "--as", "nsys", "--db", db).stderr
    )
    assert run("sql", "FROM meta", "--db", db, "--capture", "2").exit_code == 2
