"""Values that no column can hold: each column that is read, with each kind of such values, in separate rows.

A row is stored with NULL in the field and a warning; it is lost, with a warning, only if its times are unusable.
Nothing wraps around or is cut, nothing else in the file is lost, and all ways of reading give the same rows.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from readers.nsys.test_nsys_faults import reader  # noqa: F401 - a fixture
from readers.nsys.test_nsys_unstaged_kernels import from_the_start  # noqa: F401 - a fixture
from support.nsys_files import ERAS, Nsys, process, thread
from support.nsys_loaded import Loaded, change, load, many, step
from tracedb_nsys import staging_sql, unstaged_kernels
from tracedb_nsys.export import sqlite

pytestmark = pytest.mark.usefixtures("only_few_views")

ODD: dict[str, Any] = {
    "NULL": None,
    "text": "abc",
    "bytes": b"\x00\xff",
    "fraction": 1.5,
    "far": 1e30,
    "minus one": -1,
    "largest": (1 << 63) - 1,
    "least": -(1 << 63),
}
STORED = {
    "gridX": "grid_x",
    "blockY": "block_y",
    "deviceId": "device_id",
    "streamId": "stream_id",
    "contextId": "context_id",
    "correlationId": "correlation_id",
    "registersPerThread": "registers_per_thread",
    "staticSharedMemory": "static_shared_bytes",
}
PREFIX = "CUPTI_ACTIVITY_KIND_"


def whole() -> Nsys:
    """Rows of every table that is read, each many times: one for every column that is spoilt."""
    made = step(ERAS[-1])
    for at in range(40):
        start = 10_000 + 1_000 * at
        made.range(start, start + 900, f"range {at}", registered=at % 2 == 0)
        called = made.call(start + 10, start + 20)
        made.kernel(start + 100, start + 200, f"k{at % 3}", correlation=called, graphNodeId=at + 1, graphId=5)
        made.copy(start + 300, start + 310, correlationId=called, graphNodeId=at + 1)
        place = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": process()}
        made.add("MEMSET", start=start + 400, end=start + 410, bytes=64, value=0, **place)
        made.add("GRAPH_TRACE", start=start + 500, end=start + 510, graphId=5, graphExecId=9, **place)
        made.add("SYNCHRONIZATION", start=start, end=start + 5, syncType=3, **place)
        made.add("OSRT_API", start=start, end=start + 5, globalTid=thread(), nameId=made.string("poll"))
        made.add("MPI_COLLECTIVES_EVENTS", start=start, end=start + 5, globalTid=thread(), textId=1, size=1)
        made.add("CUBLAS_EVENTS", start=start, end=start + 5, globalTid=thread(), nameId=1, eventClass=1)
        made.add("TARGET_INFO_GPU", vmId=1 << 48, id=at + 1, name="H100", uuid=f"GPU-{at}", smCount=132,
                 totalMemory=80 << 30, cuDevice=at + 1, computeMajor=9, computeMinor=0)  # fmt: skip
        made.add("TARGET_INFO_CUDA_DEVICE", gpuId=at, cudaId=at, pid=4242, uuid=f"GPU-{at}")
        made.add("MPI_RANKS", globalPid=process(9_000 + at), rank=at)
        made.add("DIAGNOSTIC_EVENT", timestamp=at, text="No CUDA events collected", globalPid=process())
        made.add("META_DATA_CAPTURE", name=f"{at}:CUDA_GRAPH_TRACE_OPTIONS:MODE", value="node")
        made.add("META_DATA_EXPORT", name="EXPORT_PARAM_TIME_SHIFT", value="0")
        made.add("TARGET_INFO_SYSTEM_ENV", name="NvDriverVersion", value="570.1")
        made.add("ANALYSIS_DETAILS", duration=1000)
        made.domain(100 + at, f"domain {at}")
    return made


def spoilt(folder: Path, value: Any) -> Path:
    """Write the export and put the value into one column of row 3, into the next of row 4, and so on, of each table."""
    path = whole().sqlite(folder / "a.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in names:
            known = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            for place, column in enumerate(known):
                connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', [value, place + 3])
        connection.commit()
    return path


def rows(loaded: Loaded) -> dict[str, list[Any]]:
    assert loaded.errors == []
    tables = ("kernel_event", "launch", "annotation", "annotation_kernel", "device", "ingest_issue", "synchronization")
    capture = "* EXCLUDE (path, sha256, size_bytes, metadata, ingested_at)"
    return {**{name: loaded.rows(name, "*") for name in tables}, "capture": loaded.rows("capture", capture)}


@pytest.mark.parametrize("kind", ODD)
def test_every_column_and_every_way(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    path = spoilt(tmp_path, ODD[kind])
    monkeypatch.setattr(sqlite, "BATCH_ROWS", 4)
    first = rows(Loaded(path, db=tmp_path / "a.duckdb"))
    monkeypatch.setenv("TRACEDB_READER", "python")
    assert rows(Loaded(path, db=tmp_path / "b.duckdb")) == first
    monkeypatch.undo()
    request.getfixturevalue("from_the_start")
    found = Loaded(path, db=tmp_path / "d.duckdb")
    assert rows(found) == first
    for read, skipped, written in found.rows("capture", "events_read", "events_skipped", "rows_written"):
        assert read == skipped + written
    with found.connect() as connection:
        ((written,),) = connection.execute(
            """SELECT (SELECT count(*) FROM kernel_event) + (SELECT count(*) FROM launch)
                + (SELECT count(*) FROM annotation) + (SELECT count(*) FROM synchronization)"""
        ).fetchall()
    assert written == sum(found.rows("capture", "rows_written"))
    # Of 40 to 42 rows of a table those with a spoilt time are lost, at most one each for start and end.
    assert found.rows("kernel_event GROUP BY kind", "kind", "count(*) >= 38") == [
        ("graph", True), ("kernel", True), ("memcpy", True), ("memset", True)]  # fmt: skip
    assert found.rows("ingest_issue WHERE severity = 'warning'", "code") != []


@pytest.mark.usefixtures("reader")
class TestFields:
    @pytest.mark.parametrize("value", [-7, 1 << 40, (1 << 63) - 1, "7 or so", b"7", 7.5])
    def test_a_field_is_null_and_its_row_is_kept(self, tmp_path: Path, value: object) -> None:
        made = many(50)
        for at, recorded in enumerate(STORED):
            made.tables["KERNEL"][at + 20][recorded] = value
        found = load(tmp_path, made)
        for at, stored in enumerate(STORED.values()):
            assert found.rows(f"kernel_event WHERE {stored} IS NULL", "start_ns") == [10 * (at + 20)]
        assert found.one("capture", "status", "events_read", "events_skipped") == ("repaired", 50, 0)
        issue = found.one("ingest_issue", "code", "severity", "count", "skipped", "detail")
        assert issue[:4] == ("field_unreadable", "warning", len(STORED), 0)
        assert all(f"1 values of {PREFIX}KERNEL.{recorded} are" in issue[4] for recorded in STORED)

    def test_numbers_that_are_typed_otherwise_are_numbers(self, tmp_path: Path) -> None:
        """A column without a type keeps what it is given: a file that was made through CSV has texts."""
        path = change(
            many(0).sqlite(tmp_path / "a.sqlite"),
            f"CREATE TABLE {PREFIX}KERNEL (start, end, deviceId, streamId, shortName)",
            f"INSERT INTO {PREFIX}KERNEL VALUES ('1000', '2000', 1.0, '7', 1), (3000.0, 4000, 1, 7, '1')",
        )
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert found.rows("kernel_event", "start_ns", "duration_ns", "device_id", "stream_id") == [
            (1000, 1000, 1, 7),
            (3000, 1000, 1, 7),
        ]
        assert "field_unreadable" not in found.issues

    def test_what_every_row_should_say(self, tmp_path: Path) -> None:
        made = many(5)
        made.kernel(1000, 1010, deviceId=None, streamId=None)
        made.kernel(1020, 1030, demangledName=None, shortName=None)
        found = load(tmp_path, made)
        assert found.one("ingest_issue", "code", "severity", "count", "skipped") == ("field_missing", "warning", 3, 0)
        assert len(found.rows("kernel_event", "name")) == 7

    @pytest.mark.parametrize("by", ["native", "python"])
    def test_a_synchronization_of_all_streams_is_not_odd(
        self, tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TRACEDB_READER", by)
        made = many(5)
        for at, stream in enumerate([7, (1 << 32) - 1]):
            place = {"deviceId": 0, "contextId": 1, "streamId": stream, "globalPid": process()}
            made.add("SYNCHRONIZATION", start=at, end=at + 5, syncType=3 + at, **place)
        path = made.sqlite(tmp_path / "a.sqlite")
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert found.rows("synchronization", "kind", "stream_id") == [("context", None), ("stream", 7)]
        assert "field_unreadable" not in found.issues
        found = Loaded(
            change(path, f"UPDATE {PREFIX}SYNCHRONIZATION SET streamId = {1 << 32} WHERE streamId = 7"),
            db=tmp_path / "b.duckdb",
        )
        assert found.one("ingest_issue", "code", "severity", "count") == ("field_unreadable", "warning", 1)


class TestNames:
    @pytest.mark.parametrize("smallest", [1, 1 << 40])
    def test_strings_that_are_not_there(self, tmp_path: Path, smallest: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("os.cpu_count", lambda: 2)
        monkeypatch.setattr(unstaged_kernels, "SMALLEST_ROWS", smallest)
        made = many(5)
        for at in (1000, 1020):
            made.kernel(at, at + 10, demangledName=999)
        made.strings["gone"] = 998
        made.kernel(1040, 1050, demangledName=998)
        path = change(made.sqlite(tmp_path / "a.sqlite"), "UPDATE StringIds SET value = NULL WHERE id = 998")
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert found.rows("kernel_event WHERE start_ns >= 1000", "name") == ["(string 998)"] + ["(string 999)"] * 2
        assert found.one("ingest_issue", "code", "severity", "count", "skipped") == ("string_missing", "warning", 3, 0)

    @pytest.mark.parametrize("smallest", [1, 1 << 40])
    def test_bytes_that_are_no_text(self, tmp_path: Path, smallest: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of names in use: what else an export holds, as the environment of a process, is nobody's fault."""
        monkeypatch.setattr("os.cpu_count", lambda: 2)
        monkeypatch.setattr(unstaged_kernels, "SMALLEST_ROWS", smallest)
        made = many(5)
        made.kernel(1000, 1010, demangledName=77)
        path = change(
            made.sqlite(tmp_path / "a.sqlite"),
            "INSERT INTO StringIds VALUES (77, CAST(x'6b8f' AS TEXT)), (78, CAST(x'8f' AS TEXT))",
        )
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert found.rows("kernel_event WHERE start_ns = 1000", "name") == ["k\ufffd"]
        assert found.one("ingest_issue", "code", "severity", "count", "skipped") == ("text_replaced", "warning", 1, 0)


class TestRanges:
    def test_an_end_that_is_none_does_not_leave_a_range_open(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "whole")
        made.range(10, 20, "spoilt", registered=False)
        path = change(made.sqlite(tmp_path / "a.sqlite"), "UPDATE NVTX_EVENTS SET \"end\" = 'abc' WHERE rowid = 2")
        found = Loaded(path, db=tmp_path / "a.duckdb")
        assert found.rows("annotation", "name", "is_open") == [("whole", False)]
        assert found.one("capture", "events_read", "events_skipped") == (2, 1)
        assert found.issues["times_unusable"] == 1

    def test_a_row_that_does_not_say_what_it_is(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "whole")
        made.range(10, 20, "spoilt", kind=1 << 50)
        found = load(tmp_path, made)
        assert found.rows("annotation", "name") == ["whole"]
        assert found.rows("ingest_issue WHERE code = 'event_unreadable'", "severity", "skipped") == [("warning", 1)]

    def test_a_far_time_is_no_end_of_the_session(self, tmp_path: Path) -> None:
        """nsys lets ranges that are still open end with the last time that NVTX tells."""
        made = Nsys()
        made.range(0, None, "open")
        made.range(10, 100, "whole")
        made.range(20, (1 << 63) - 1, "spoilt")
        assert load(tmp_path, made).one("capture", "metadata ->> 'last_annotation_ns'") == "100"


def test_parquet_of_any_type(tmp_path: Path) -> None:
    """Writers choose types: floats, texts and unsigned numbers are read as SQLite's are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = many(5).parquet(tmp_path / "a_pqtdir")
    path = folder / f"{PREFIX}KERNEL.parquet"
    table = pq.read_table(path)
    for name, values in (
        ("gridX", pa.array([1.0, 2.5, None, float("nan"), 1e30])),
        ("gridY", pa.array(["1", "x", None, "-4", "9" * 30])),
        ("gridZ", pa.array([1, 1 << 63, None, (1 << 64) - 1, 5], pa.uint64())),
        ("blockX", pa.array([b"1", None, b"x", None, None])),
        ("blockY", pa.array([True, None, False, None, None])),
        ("blockZ", pa.array([[1], None, [], None, None], pa.list_(pa.int64()))),
    ):
        table = table.set_column(table.column_names.index(name), name, values)
    pq.write_table(table, path)
    found = Loaded(folder, db=tmp_path / "a.duckdb")
    columns = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
    assert found.rows("kernel_event", *columns, order="start_ns") == [
        (1, 1, 1, None, 1, None),
        (None, None, None, None, None, None),
        (None, None, None, None, 0, None),
        (None, None, None, None, None, None),
        (None, None, 5, None, None, None),
    ]
    assert found.issues["field_unreadable"] == 3 + 3 + 2 + 2 + 2


def test_the_columns_that_are_read_are_the_ones_that_are_spoilt() -> None:
    """The sample export has every column that templates name, so that none is left out above."""
    made = whole()
    for table, template in (
        ("KERNEL", staging_sql.KERNELS),
        ("MEMCPY", staging_sql.COPIES[f"{PREFIX}MEMCPY"]),
        ("MEMSET", staging_sql.COPIES[f"{PREFIX}MEMSET"]),
        ("GRAPH_TRACE", staging_sql.COPIES[f"{PREFIX}GRAPH_TRACE"]),
        ("RUNTIME", staging_sql.LAUNCH),
        ("NVTX_EVENTS", staging_sql.NVTX),
    ):
        asked: set[str] = set()

        class Names(dict[str, str]):
            def __missing__(self, name: str, asked: set[str] = asked) -> str:
                asked.add(name)
                return "NULL"

        staging_sql.filled(template, Names(), 0)
        absent = asked.difference(made.columns(table))
        assert absent <= {"graphId", "graphNodeId"}, table  # of copies and replays
