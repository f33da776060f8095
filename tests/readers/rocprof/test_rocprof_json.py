"""JSON of rocprofv3: streamed, kinds through its own table of strings, queues as lanes."""

from __future__ import annotations

import gzip
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support import conformance
from support.rocprof_files import small as small_set
from support.rocprof_json_files import KERNELS, KINDS, Document, save, small
from support.rocprof_loaded import captures, read, read_capture
from tracedb.errors import ReadError
from tracedb.ingester.issues import Account
from tracedb_rocprof import ingester
from tracedb_rocprof.json.stream import JsonStream

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "rocprof" / "json"


def symbols_of(path: Path) -> list[bytes]:
    """Return the texts of the symbols of a document's only process."""
    with path.open("rb") as file:
        stream = JsonStream(file, Account())
        return [
            stream.value()
            for _ in stream.members()
            for _ in stream.items()
            for key in stream.members()
            for _ in (stream.items() if key == "kernel_symbols" else _skipped(stream))
        ]


def _skipped(stream: JsonStream) -> tuple[()]:
    stream.skip()
    return ()


class TestDocument:
    @pytest.mark.parametrize("indent", [None, 4])
    def test_everything_of_a_process(self, indent: int | None, tmp_path: Path) -> None:
        reading = read(save(tmp_path / "17_results.json", small(), indent=indent))
        assert reading.kernels("kind", "name", "start_ns", "duration_ns", "device_id", "launch_id", "bytes") == [
            ("kernel", KERNELS[7], 1_000, 500, 0, 1, None),
            ("kernel", KERNELS[8], 2_000, 700, 1, 2, None),
            ("memcpy", "MEMORY_COPY_HOST_TO_DEVICE", 3_000, 500, 1, None, 4_096),
        ]
        columns = ("queue_id", "stream_id", "grid_x", "block_x", "static_shared_bytes", "shared_bytes")
        assert reading.kernels(*columns, "registers_per_thread")[0] == (1, 3, 8, 256, 512, 1_024, 24)
        assert reading.rows("launch", "name", "process_id") == [("hipLaunchKernel", 17)] * 2
        assert reading.rows("annotation", "name", "style", "duration_ns") == [
            ("whole", "start_end", 4_300),
            ('forward "quoted" }, {"size": 1', "push_pop", 1_100),
            ("inner", "push_pop", 75),
            ("here", "mark", None),
        ]
        assert reading.issues == {"profiler_control": 2, "memory_allocation_events": 2}
        assert reading.rows("device", "device_id", "name", "sm_count", "max_clock_mhz", "memory_bytes", "is_used") == [
            (at, "MI350X", 256, 2200, 309_220_868_096, True) for at in (0, 1)
        ]
        capture = reading.capture
        assert (capture["source"], capture["pid"], capture["host"]) == ("rocprofv3", 17, "host-a")
        assert "secret" not in json.dumps(reading.tables)

    def test_kinds_numbered_otherwise(self, tmp_path: Path) -> None:
        """The numbers of kinds change from release to release; only the table tells what they mean."""
        turned = read(save(tmp_path / "b.json", small(kinds=KINDS[::-1])))
        assert turned.tables == read(save(tmp_path / "a.json", small())).tables

    def test_members_in_another_order(self, tmp_path: Path) -> None:
        wanted = read(save(tmp_path / "a.json", small()))
        entry = small().entry()
        other = {key: entry[key] for key in ("metadata", "strings", "buffer_records", "kernel_symbols", "agents")}
        (tmp_path / "b.json").write_text(json.dumps({"rocprofiler-sdk-tool": [other]}))
        found = read(tmp_path / "b.json")
        for table, *columns in (
            ("kernel_event", "kind", "name", "device_id", "start_ns"),
            ("annotation", "name", "style", "start_ns"),
            ("launch", "name", "start_ns"),
        ):
            assert found.rows(table, *columns) == wanted.rows(table, *columns)

    def test_several_processes(self, tmp_path: Path) -> None:
        other = Document(pid=18)
        other.kernel(1, 2, 8)
        reading = read(save(tmp_path / "x_results.json", small(), other))
        assert [(row["part"], row["pid"]) for row in reading.captures] == [(0, 17), (1, 18)]
        assert reading.rows("kernel_event", "name", part=1) == [KERNELS[8]]
        assert reading.issues["several_processes"] == 2

    def test_counters_are_summed_over_the_parts_of_the_device(self, tmp_path: Path) -> None:
        made = small()
        made.count(2, 1_000, 1_500, (1, 10.0), (1, 5.5), (2, 3.0))
        made.count(9, 7_000, 7_500, (1, 1.0))
        reading = read(save(tmp_path / "a.json", made))
        events = {row["event_id"]: row["start_ns"] for row in reading.tables["kernel_event"]}
        found = [
            (events[event], name, value) for event, name, value in reading.rows("counter", "event_id", "name", "value")
        ]
        assert sorted(found) == [(1_000, "GRBM_COUNT", 3.0), (1_000, "SQ_WAVES", 15.5), (7_000, "SQ_WAVES", 1.0)]
        assert reading.kernels("start_ns", "is_counted") == [
            (1_000, True),
            (2_000, False),
            (3_000, None),
            (7_000, True),
        ]

    def test_large_numbers(self, tmp_path: Path) -> None:
        made = Document()
        made.kernel(1, 2, queue=(1 << 64) - 1)
        reading = read(save(tmp_path / "a.json", made))
        assert (reading.kernels("queue_id"), reading.faults) == ([None], {"field_unreadable": 1})

    def test_small_pieces(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = save(tmp_path / "a.json", small())
        wanted = read(path).tables
        for size in (1, 7, 300, 1_000):
            monkeypatch.setattr("tracedb_rocprof.json.stream.CHUNK", size)
            assert read(path).tables == wanted

    def test_pieces_that_end_within_names_with_brackets(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Symbols end in ``[clone .kd]``, and names of lambdas hold braces."""
        entry = small().entry()
        for symbol in entry["kernel_symbols"]:
            symbol["formatted_kernel_name"] = f"f{symbol['kernel_id']}(x)::{{lambda()#1}} [clone .kd] [["
        path = tmp_path / "a.json"
        path.write_text(json.dumps({"rocprofiler-sdk-tool": [entry]}))
        wanted, symbols = read(path).tables, [json.dumps(symbol).encode() for symbol in entry["kernel_symbols"]]
        for size in range(40, 140):
            monkeypatch.setattr("tracedb_rocprof.json.stream.CHUNK", size)
            assert symbols_of(path) == symbols
            if size % 20 == 0:
                assert read(path).tables == wanted


class TestFaults:
    @pytest.mark.parametrize("spoilt", ["]", '{"traceEvents": [}'])
    def test_brackets_that_do_not_match(self, spoilt: str, tmp_path: Path) -> None:
        """What comes before is kept, and the place is named; a file with nothing before is refused."""
        path = save(tmp_path / "a.json", small(), indent=1)
        sound, first = path.read_text(), re.compile(r'(?<=[{])\s*"size": 184')
        at = list(first.finditer(sound))[1].start()  # in the second dispatch
        path.write_text(sound[:at] + spoilt + sound[at:])
        reading = read(path)
        assert (reading.status, reading.faults, len(reading.kernels())) == ("truncated", {"file_damaged": 1}, 1)
        wanted = f"{spoilt[-1]} at byte {at + len(spoilt) - 1}, where {'}' if spoilt == ']' else ']'} is expected"
        assert reading.rows("ingest_issue", "detail") == [f"not valid JSON: {wanted}; nothing after it is read"]
        at = sound.index("{", sound.index('"agents"')) + 1
        path.write_text(sound[:at] + spoilt + sound[at:])
        with pytest.raises(ReadError, match=r"damaged, not valid JSON: . at byte \d+, where . is expected"):
            read(path)

    def test_cut_files(self, tmp_path: Path) -> None:
        (tmp_path / "cut").mkdir()
        path = save(tmp_path / "17_results.json", small())
        conformance.check_cut(ingester, path, tmp_path / "cut", [0.1, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99])

    def test_cut_archive(self, tmp_path: Path) -> None:
        made = small()
        for at in range(1, 3_001):
            made.kernel(at * 7_919, at * 7_919 + at, stream=at)
        packed = gzip.compress(save(tmp_path / "a.json", made).read_bytes())
        path = tmp_path / "17_results.json.gz"
        path.write_bytes(packed)
        assert len(read(path).kernels()) == 3_003
        path.write_bytes(packed[: len(packed) // 2])
        reading = read(path)
        assert (reading.status, set(reading.faults)) == ("truncated", {"file_cut", "stream_damaged"})
        assert 500 < len(reading.kernels()) < 3_000

    @pytest.mark.parametrize("text", ['{"%s":7}', '{"%s":[{5:1}]}', '["%s"]'])
    def test_something_else(self, text: str, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_text(text % "rocprofiler-sdk-tool")
        with pytest.raises(ReadError, match="JSON"):
            read(path)

    def test_no_records(self, tmp_path: Path) -> None:
        assert read(save(tmp_path / "a.json", Document())).status == "no_gpu_activity"


class TestDuplicates:
    def test_json_is_read_and_csv_left_aside(self, tmp_path: Path) -> None:
        small_set(tmp_path).save()
        save(tmp_path / "17_results.json", small())
        (capture,) = captures(tmp_path)
        assert [path.name for path in capture.files] == ["17_results.json"]
        assert len(capture.duplicates) == 4
        reading = read_capture(capture)
        details = dict(reading.rows("ingest_issue", "code", "detail"))
        assert "17_hip_api_trace.csv" in details["duplicate_recording"]


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.exists(), reason="the real traces are not beside the repository")
def test_recorded_file() -> None:
    path = SHARED / "908_results.json.gz"
    (capture,) = captures(path)
    reading = read_capture(capture)
    rows: list[dict[str, Any]] = reading.tables["kernel_event"]
    assert len(rows) == 43_915
    starts = [row["start_ns"] for row in rows]
    assert starts == sorted(starts)
    with gzip.open(path) as file:
        (entry,) = json.load(file)["rocprofiler-sdk-tool"]
    recorded = [record["start_timestamp"] for record in entry["buffer_records"]["kernel_dispatch"]]
    assert sorted(recorded) == starts
    assert sum(after < before for before, after in pairwise(recorded)) == 1_937
    assert len({row["queue_id"] for row in rows}) == 5
    assert len({row["stream_id"] for row in rows}) == 567
    names = {symbol["kernel_id"]: symbol["formatted_kernel_name"] for symbol in entry["kernel_symbols"]}
    wanted = {
        (record["start_timestamp"], names[record["dispatch_info"]["kernel_id"]])
        for record in entry["buffer_records"]["kernel_dispatch"]
    }
    assert {(row["start_ns"], row["name"]) for row in rows} == wanted
    assert reading.faults == {}
