"""ROCm recordings are read in pieces; where they are cut does not matter. Faults found by fuzzing."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from readers.rocprof.test_rocprof_legacy import V1
from support import rocpd_files
from support.rocprof_files import write
from support.rocprof_json_files import KERNELS, Document, small
from support.rocprof_loaded import Reading, captures, read, read_capture
from tracedb.errors import ReadError
from tracedb.ingester.issues import Account
from tracedb_rocprof.csv import chunks
from tracedb_rocprof.json import stream as jsonstream

SIZES = (1, 2, 3, 5, 8, 13, 50, 200, 1 << 20)
LAMBDA = "k<f()::{lambda(int)#1}>(int) [clone]"


@pytest.mark.parametrize("text", ["x{y", "}z", "[[", 'a\\"{', "\\\\", "{lambda(int)#1}", ""])
def test_brackets_in_a_string_are_none_wherever_it_is_cut(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = f'{{"a": [{{"n": "{text}", "b": 1}}, {{"n": "{text}"}}], "c": {{"k": "{text}"}}, "d": "{text}"}}'.encode()
    found = []
    for size in range(1, len(data) + 1):
        monkeypatch.setattr(jsonstream, "CHUNK", size)
        stream = jsonstream.JsonStream(io.BytesIO(data), Account())
        found.append([(key, json.loads(stream.value())) for key in stream.members()])
    assert all(one == list(json.loads(data).items()) for one in found)


def readings(folder: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the tables that a document gives in pieces of several sizes."""
    (folder / "17_results.json").write_bytes(content)
    found = []
    for size in SIZES:
        monkeypatch.setattr(jsonstream, "CHUNK", size)
        found.append(read(folder / "17_results.json").tables)
    return found


def content(change: Callable[[bytes], bytes], made: Document | None = None) -> bytes:
    return change(json.dumps({"rocprofiler-sdk-tool": [(made or small()).entry()]}).encode())


def test_names_of_lambdas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = readings(
        tmp_path, content(lambda data: data.replace(KERNELS[8].encode(), LAMBDA.encode())), monkeypatch
    )
    assert LAMBDA in [row["name"] for row in first["kernel_event"]]
    assert all(other == first for other in others)


def of_many() -> Document:
    made = small()
    for at in range(20):
        made.kernel(10_000 + 100 * at, 10_050 + 100 * at)
    return made


@pytest.mark.parametrize("spoilt", [b"p:", b'"p":', b'\\":', b'p"":'])
def test_a_quote_too_few_or_too_many(spoilt: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: bytes) -> bytes:
        before, mark, after = data.partition(b'"start_timestamp": 11000')
        return before + mark.replace(b'p":', spoilt) + after

    first, *others = readings(tmp_path, content(broken, of_many()), monkeypatch)
    assert all(other == first for other in others)
    (row,) = first["capture"]
    assert row["status"] in ("repaired", "truncated")
    assert row["events_read"] - row["events_skipped"] == row["rows_written"] >= 12
    assert any(issue["severity"] == "warning" for issue in first["ingest_issue"])


def test_bytes_that_are_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = readings(
        tmp_path, content(lambda data: data.replace(b'"private_segment_size"', b'"\x80rivate"'), of_many()), monkeypatch
    )
    assert all(other == first for other in others)
    assert sum(row["kind"] == "kernel" for row in first["kernel_event"]) == 22


def test_a_section_is_what_it_is_called_where_an_event_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def event(at: int) -> dict[str, Any]:
        return {"ph": "X", "name": f"k{at}", "pid": 9, "args": {"BeginNs": 100 * at, "EndNs": 100 * at + 50, "pid": 17}}

    named = {"ph": "M", "name": "process_name", "pid": 9, "args": {"name": "GPU1"}}
    events = [event(1), event(2), named, event(3), event(4)]
    first, *others = readings(tmp_path, json.dumps({"traceEvents": events}).encode(), monkeypatch)
    assert all(other == first for other in others)
    assert [row["name"] for row in first["kernel_event"]] == ["k3", "k4"]
    assert "process 9" in next(row["detail"] for row in first["ingest_issue"] if row["code"] == "region_events")


def test_processes_of_a_file_come_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = V1.splitlines(keepends=True)
    path = write(tmp_path / "results.csv", "".join([lines[0], lines[1].replace(",17,77,", ",99,77,"), lines[2]]))
    (capture,) = captures(path)

    def pids(reading: Reading) -> list[int]:
        return [row["pid"] for row in reading.captures]

    assert pids(read_capture(capture)) == [99, 17]
    monkeypatch.setattr(chunks, "BLOCK_BYTES", 150)
    assert pids(read_capture(capture)) == [99, 17]


def test_a_database_without_a_column_is_refused_without_the_query(tmp_path: Path) -> None:
    path = rocpd_files.save(tmp_path / "17_results.db", rocpd_files.small(), suffix=False, views=False)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE rocpd_sample RENAME COLUMN event_id TO renamed")
        connection.commit()
    with pytest.raises(ReadError, match=r"other columns than expected .*no such column: s\.event_id") as caught:
        read(path)
    assert "SELECT" not in str(caught.value)


def test_a_damaged_schema_is_refused(tmp_path: Path) -> None:
    """SQLite's message quotes the damaged statement, which is no UTF-8."""
    path = rocpd_files.save(tmp_path / "17_results.db", rocpd_files.small(), suffix=False, views=False)
    path.write_bytes(path.read_bytes().replace(b'CREATE TABLE "rocpd_event"', b'CREATE TABLE \x80rocpd_event"'))
    with pytest.raises(ReadError, match="damaged or in use"):
        read(path)
