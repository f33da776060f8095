"""What rows of ROCm recordings belong to: processes, agents, kernels, passes, known and unknown layouts."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support import rocpd_files
from support.loading import ingest
from support.rocprof_files import CALLS, COUNTERS, ERAS, Set, Value, direct, kernel, kernel_trace, small, write
from support.rocprof_json_files import Document
from support.rocprof_json_files import save as save_json
from support.rocprof_loaded import captures, read
from tracedb.errors import ReadError

V1 = ["Index", "KernelName", "gpu-id", "queue-id", "pid", "tid", "BeginNs", "EndNs"]


def details(path: Path) -> dict[str, str]:
    return dict(read(path).rows("ingest_issue", "code", "detail"))


class TestProcesses:
    def test_results_of_two_runs_in_one_file(self, tmp_path: Path) -> None:
        rows: list[list[Value]] = [[0, "a(int)", 0, 0, 11, 11, 100, 200], [0, "b(int)", 0, 0, 12, 12, 90_000, 90_300]]
        write(tmp_path / "results.csv", direct(V1, rows))
        reading = read(tmp_path)
        assert [(row["part"], row["pid"]) for row in reading.captures] == [(0, 11), (1, 12)]
        assert reading.kernels("part", "name", "duration_ns") == [(0, "a(int)", 100), (1, "b(int)", 300)]
        assert reading.issues["several_processes"] == 2

    def test_counters_of_two_processes_with_equal_dispatch_ids(self, tmp_path: Path) -> None:
        made = Set(tmp_path)
        made.counter(1, "SQ_WAVES", 4.0, 1_000, 1_500)
        made.counter(1, "SQ_WAVES", 9.0, 1_100, 1_700)
        made.counters[1][COUNTERS.index("Process_Id")] = 18
        made.save()
        reading = read(tmp_path)
        assert [row["pid"] for row in reading.captures] == [17, 18]
        assert reading.rows("counter", "part", "value") == [(0, 4.0), (1, 9.0)]
        assert "counter_repeated" not in reading.issues

    def test_kernels_of_no_process_beside_several(self, tmp_path: Path) -> None:
        """A kernel trace has no process ids: beside calls of two processes its rows are nobody's."""
        made = small(tmp_path)
        made.calls.append(["HIP_RUNTIME_API_EXT", "hipMalloc", 18, 78, 1, 10, 20])
        made.save()
        reading = read(tmp_path)
        assert [row["pid"] for row in reading.captures] == [None, 18, 17]
        assert reading.kernels("part", "launch_id") == [(0, None)] * 3
        assert reading.rows("launch", "part", "process_id") == [(1, 18), (2, 17), (2, 17)]
        assert reading.faults == {"process_unknown": 3}


class TestUnknown:
    def test_agents_and_kernels_that_a_document_does_not_list(self, tmp_path: Path) -> None:
        made = Document()
        made.kernel(1, 5, kernel=99)
        made.kernel(11, 15)
        made.kernels[1]["dispatch_info"]["agent_id"]["handle"] = 77
        reading = read(save_json(tmp_path / "a.json", made))
        assert reading.kernels("name", "device_id") == [("unknown kernel 99", 0), ("void k<int, float>(float*)", None)]
        assert reading.faults == {"kernel_unknown": 1, "agent_unknown": 1}

    def test_agents_and_kernels_that_a_database_does_not_list(self, tmp_path: Path) -> None:
        made = rocpd_files.Database()
        made.kernel(1, 5, kernel=99)
        made.kernel(11, 15, agent=77)
        made.rows["kernel_dispatch"][1]["event_id"] = 55
        reading = read(rocpd_files.save(tmp_path / "a.db", made))
        assert reading.kernels("name", "device_id") == [("unknown kernel 99", 0), (rocpd_files.KERNELS[0], None)]
        assert reading.faults == {"kernel_unknown": 1, "agent_unknown": 1, "event_unknown": 1}

    @pytest.mark.parametrize("cores", [1, 2])
    def test_an_agent_that_agent_info_lacks(self, cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tracedb_rocprof.unstaged_kernels.SMALLEST_BYTES", 0)
        made = Set(tmp_path)
        made.kernels = [kernel("k", at, at + 1, Agent_Id=f"Agent {agent}") for at, agent in enumerate((4, 9, 9))]
        made.save()
        made.agents((0, 0, "CPU"), (4, 4, "GPU"))
        reading = read(tmp_path, cores=cores)
        assert reading.kernels("device_id") == [0, None, None]
        assert reading.faults == {"agent_unknown": 2}

    def test_handles_are_numbered_in_their_order(self, tmp_path: Path) -> None:
        """The first release wrote handles, of which agent_info says nothing."""
        made = Set(tmp_path, era="6.0")
        made.kernels = [kernel("k", 1, 2)]
        made.save()
        made.agents((4, 4, "GPU"))
        reading = read(tmp_path)
        assert (reading.kernels("device_id"), reading.faults) == ([0], {})

    def test_the_vendor_is_the_recorded_one(self, tmp_path: Path) -> None:
        made = Document()
        made.kernel(1, 5)
        entry = made.entry()
        entry["agents"][1]["vendor_name"] = "Advanced Micro Devices, Inc. [AMD/ATI]"
        entry["agents"][2]["vendor_name"] = "Another"
        (tmp_path / "a.json").write_text(json.dumps({"rocprofiler-sdk-tool": [entry]}))
        assert read(tmp_path / "a.json").rows("device", "device_id", "vendor") == [(0, "AMD"), (1, "Another")]


class TestReplays:
    def test_passes_over_a_dispatch_are_one_counted_call(self, tmp_path: Path) -> None:
        made = rocpd_files.Database()
        events = [made.kernel(start, start + 50, dispatch_id=1) for start in (1_000, 2_000, 3_000)]
        made.kernel(9_000, 9_100, dispatch_id=2)
        for row, number in zip(made.rows["kernel_dispatch"], (0, 1, 2, 0), strict=True):
            row["replay_pass"] = number
        for pmc, event in zip((1, 3), events, strict=False):
            made.count(event, pmc, 5.0)
        path = rocpd_files.save(tmp_path / "a.db", made, replay=True)
        reading = read(path)
        assert reading.kernels("start_ns", "is_counted") == [(1_000, True), (9_000, False)]
        first = reading.kernels("event_id")[0]
        assert reading.rows("counter", "event_id", "name") == [(first, "GRBM_COUNT"), (first, "SQ_WAVES")]
        assert (reading.issues["replay_passes"], reading.faults) == (2, {})

    def test_in_a_kernel_trace(self, tmp_path: Path) -> None:
        header = [*ERAS["7.0"], "Replay_Pass"]
        rows = [kernel("k", at, at + 5, Replay_Pass=number) for at, number in ((10, 0), (20, 1))]
        rows.append(kernel("k", 30, 35, Replay_Pass=0, Dispatch_Id=2))
        write(tmp_path / "a_kernel_trace.csv", direct(header, [[row.get(name, 0) for name in header] for row in rows]))
        reading = read(tmp_path)
        assert reading.kernels("start_ns", "is_counted") == [(10, True), (30, False)]


class TestLayouts:
    def test_categories_of_rocprofiler_systems(self, tmp_path: Path) -> None:
        made = rocpd_files.Database()
        made.kernel(1_000, 1_500, stack=1)
        made.region("hipLaunchKernel", 900, 950, "rocm_hip_api", 1)
        made.region("forward", 800, 1_900, "rocm_marker_api")
        made.region("main", 1, 9_000, "host")
        reading = read(rocpd_files.save(tmp_path / "a.db", made))
        assert reading.rows("launch", "name") == ["hipLaunchKernel"]
        assert reading.kernels("launch_id") == reading.rows("launch", "launch_id")
        assert reading.rows("annotation", "name", "style", "duration_ns") == [("forward", "push_pop", 1_100)]
        assert reading.issues == {"region_events": 1}

    def test_a_header_that_is_not_known_is_no_empty_file(self, tmp_path: Path) -> None:
        write(tmp_path / "1_kernel_trace.csv", "Kind,Agent,Kernel,Begin,Finish\nK,4,k,5,9\n")
        with pytest.raises(ReadError, match="its columns are Kind, Agent, Kernel, Begin, Finish; expected Kernel_Name"):
            read(tmp_path)

    def test_other_numbers_of_fields_than_of_columns(self, tmp_path: Path) -> None:
        header = ERAS["7.0"]
        row: list[Any] = [kernel("k, l", 5, 9).get(name, 0) for name in header]
        path = write(tmp_path / "1_kernel_trace.csv", direct(header, [row, row[:-1]]))
        said = "the header has 22 columns, the first unreadable line has {} fields: "
        assert said.format(21) in details(path)["line_unreadable"]
        write(path, direct(header, [row, [*row, 1]]))
        assert said.format(23) in details(path)["line_unreadable"]
        write(path, direct(header, [row[:-1], [*row[:-1]]]))
        with pytest.raises(ReadError, match=f"none of its 2 lines is a record; {said.format(21)}"):
            read(path)

    def test_a_cut_last_line_counts_among_lines_of_which_none_is_a_record(self, tmp_path: Path) -> None:
        header = ERAS["7.0"]
        row: list[Any] = [kernel("k", 5, 9).get(name, 0) for name in header]
        path = write(tmp_path / "1_kernel_trace.csv", direct(header, [row[:-1]] * 3).rstrip("\n"))
        with pytest.raises(ReadError, match="none of its 3 lines is a record"):
            read(path)
        assert "/1_kernel_trace.csv: none of its 3 lines is" in ingest(tmp_path, db=tmp_path / "a.duckdb").stderr
        write(path, direct(header, [row[:-1]]).rstrip("\n"))
        assert read(path).capture["status"] == "truncated"

    def test_dispatches_in_a_table_of_another_name(self, tmp_path: Path) -> None:
        path = rocpd_files.save(tmp_path / "a.db", rocpd_files.small(), suffix=False, views=False)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("ALTER TABLE rocpd_kernel_dispatch RENAME TO rocpd_kernel_dispatch_V4")
        with pytest.raises(ReadError, match="are in table rocpd_kernel_dispatch_V4"):
            read(path)

    def test_dispatches_without_the_columns_needed(self, tmp_path: Path) -> None:
        path = rocpd_files.save(tmp_path / "a.db", rocpd_files.small(), suffix=False, views=False)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute('ALTER TABLE rocpd_kernel_dispatch RENAME COLUMN "end" TO finish')
        with pytest.raises(ReadError, match=r"finish, .*, not end; convert it"):
            read(path)

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
    def test_encodings(self, encoding: str, tmp_path: Path) -> None:
        mark = "\ufeff" if encoding == "utf-16-be" else ""
        rows = [kernel("void k<é>(int, int)", 1_000, 1_500)]
        text = mark + direct(ERAS["7.0"], [[row.get(name, 0) for name in ERAS["7.0"]] for row in rows])
        (tmp_path / "1_kernel_trace.csv").write_bytes(text.replace("\n", "\r\n").encode(encoding))
        made = Document()
        made.kernel(1, 5)
        path = save_json(tmp_path / "2_results.json", made)
        path.write_bytes((mark + path.read_text()).encode(encoding))
        assert read(tmp_path / "1_kernel_trace.csv").kernels() == [("void k<é>(int, int)", 1_000, 500)]
        assert read(path).kernels("start_ns") == [1]


class TestCounts:
    def test_statistics_without_the_trace(self, tmp_path: Path) -> None:
        made = Set(tmp_path)
        made.call("hipLaunchKernel", 1, 2, 1)
        made.save()
        made.stats("kernel", ("k", 2, 300))
        found = details(tmp_path)
        assert set(found) == {"trace_missing", "no_gpu_activity"}
        assert found["trace_missing"].startswith("17_kernel_stats.csv tells of 2 calls of 1 names, 300 ns, but")
        assert "17_kernel_trace.csv is missing" in found["trace_missing"]
        assert "--kernel-trace" in found["trace_missing"]

    def test_statistics_beside_a_document(self, tmp_path: Path) -> None:
        made = Document()
        made.kernel(1, 5)
        save_json(tmp_path / "17_results.json", made)
        Set(tmp_path).stats("kernel", ("void k<int, float>(float*)", 2, 8))
        assert read(tmp_path).faults == {"stats_mismatch": 1}

    def test_counters_of_no_dispatch(self, tmp_path: Path) -> None:
        made = rocpd_files.Database()
        made.count(made.kernel(1, 5), 1, 3.0)
        made.mark("here", 3)
        made.count(made.rows["sample"][0]["event_id"], 1, 4.0)
        made.count(999, 1, 5.0)
        reading = read(rocpd_files.save(tmp_path / "a.db", made))
        assert (reading.issues["counter_samples"], reading.faults) == (1, {"counter_without_dispatch": 1})

    def test_rows_are_held_against_sqlite(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A reader that loses rows of a table is found out by the number that SQLite counts."""
        from tracedb_rocprof.rocpd.sqlite import SqliteFile

        whole = SqliteFile.batches

        def cut(file: SqliteFile, query: Any) -> Any:
            for batch in whole(file, query):
                yield {name: column.slice(1) for name, column in batch.items()}

        monkeypatch.setattr(SqliteFile, "batches", cut)
        reading = read(rocpd_files.save(tmp_path / "a.db", rocpd_files.small()))
        assert reading.status == "repaired"
        assert reading.faults["rows_differ"] >= 2


def chrome(path: Path, *events: dict[str, Any], **top: Any) -> Path:
    sections = {0: "Markers and Ranges", 1: "COPY", 2: "CPU HIP API", 3: "CPU HSA API", 6: "GPU0", 7: "GPU1"}
    named = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}} for pid, name in sections.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"traceEvents": [{}, *named, *events], "otherData": {}, **top}))
    return path


def span(name: str, section: int, start: int, end: int, tid: Any = 5, **args: Any) -> dict[str, Any]:
    given = {"BeginNs": str(start), "EndNs": str(end), "pid": "40", "tid": "5", "Name": name}
    times = {"ts": str(start // 1_000), "dur": str((end - start) // 1_000)}
    return {"ph": "X", "name": name, "pid": section, "tid": tid, **times, "args": {**given, **args}}


class TestRocprofV1:
    def test_kernels_copies_calls_and_ranges(self, tmp_path: Path) -> None:
        path = chrome(
            tmp_path / "results.json",
            span(
                "k(float*)", 7, 1_000_123, 1_033_456, **{"dev-id": "1", "queue-id": "2", "stream-id": "3", "Index": "4"}
            ),
            span("CopyHostToDevice", 1, 2_000_000, 2_000_500, **{"dev-id": "0", "queue-id": "0", "Index": "5"}),
            span("hipLaunchKernel", 2, 900_000, 905_001, Index="4"),
            span("hsa_queue_create", 3, 800_000, 805_001, Index="4"),
            span("step", 0, 700_000, 5_000_000),
            span("here", 0, 710_000, 710_001),
            span("whole", 0, 600_000, 6_000_000, tid=0),
            span("<barrier packet>", 6, 1, 2, **{"dev-id": "0"}),
            {"ph": "s", "pid": 2, "tid": 5, "ts": "1", "id": 4},
        )
        reading = read(path)
        columns = ("kind", "name", "start_ns", "duration_ns", "device_id", "queue_id", "stream_id", "copy_kind")
        assert reading.kernels(*columns) == [
            ("kernel", "k(float*)", 1_000_123, 33_333, 1, 2, 3, None),
            ("memcpy", "MEMORY_COPY_HOST_TO_DEVICE", 2_000_000, 500, 0, 0, None, "HtoD"),
        ]
        launches = dict(reading.rows("launch", "launch_id", "name"))
        assert [launches.get(launch) for launch in reading.kernels("launch_id")] == ["hipLaunchKernel", None]
        assert sorted(launches.values()) == ["hipLaunchKernel", "hsa_queue_create"]
        assert reading.rows("annotation", "name", "style", "duration_ns") == [
            ("whole", "start_end", 5_400_000),
            ("step", "push_pop", 4_300_000),
            ("here", "mark", None),
        ]
        assert (reading.capture["source"], reading.capture["pid"], reading.faults) == ("rocprofv1", 40, {})
        assert reading.issues == {"metadata_events": 7, "flow_events": 1, "other_gpu_events": 1}

    def test_two_processes(self, tmp_path: Path) -> None:
        gpu = {"dev-id": "0", "queue-id": "0"}
        path = chrome(
            tmp_path / "results.json",
            span("a", 6, 100, 200, **gpu),
            span("b", 6, 300, 500, **{**gpu, "pid": 41}),
        )
        reading = read(path)
        assert [row["pid"] for row in reading.captures] == [40, 41]
        assert reading.kernels("part", "name") == [(0, "a"), (1, "b")]

    def test_odd_values_and_a_cut_file(self, tmp_path: Path) -> None:
        gpu = {"dev-id": "0", "queue-id": "0"}
        odd = span("odd", 6, 100, 200, **{"dev-id": "x", "queue-id": str(1 << 63), "stream-id": [1]})
        late = span("late", 6, 100, 200, **{**gpu, "BeginNs": "never"})
        other = {"ph": "X", "name": "?", "pid": 99, "ts": 1, "dur": 1}
        path = chrome(tmp_path / "results.json", span("a", 6, 1, 2, **gpu), odd, late, other, 7)  # type: ignore[arg-type]
        reading = read(path)
        assert reading.kernels("name", "device_id", "queue_id", "stream_id") == [
            ("a", 0, 0, None),
            ("odd", None, None, None),
        ]
        assert reading.faults == {"field_unreadable": 3, "timestamp_unusable": 1, "event_unreadable": 1}
        assert reading.issues["region_events"] == 1
        text = path.read_text()
        path.write_text(text[: text.index('"odd"')])
        assert (read(path).status, read(path).kernels("name")) == ("truncated", ["a"])

    def test_a_trace_of_torch_is_left_alone(self, tmp_path: Path) -> None:
        event = {"ph": "X", "cat": "kernel", "name": "BeginNs", "pid": 0, "tid": 7, "ts": 1, "dur": 1, "args": {}}
        (tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
        assert captures(tmp_path) == []

    def test_it_is_read_before_the_csv(self, tmp_path: Path) -> None:
        chrome(tmp_path / "results.json", span("a", 6, 1, 2, **{"dev-id": "0"}))
        write(tmp_path / "results.csv", direct(V1, [[0, "a", 0, 0, 40, 5, 1, 2]]))
        (capture,) = captures(tmp_path)
        assert [path.name for path in capture.files + capture.duplicates] == ["results.json", "results.csv"]


def test_calls_file_with_an_unknown_header(tmp_path: Path) -> None:
    kernel_trace(tmp_path / "2_kernel_trace.csv", [kernel("k", 5, 9)])
    write(tmp_path / "2_hip_api_trace.csv", direct([CALLS[0], "What", "Begin"], [["H", "a", 5]]))
    found = details(tmp_path)
    assert found["header_unknown"] == "2_hip_api_trace.csv is not read; its columns are Domain, What, Begin"
