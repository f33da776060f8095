"""rocpd databases: tables with suffixes, several processes, agents by place, copies with bytes, regions, counters."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support import conformance
from support.rocpd_files import KERNELS, Database, save, small
from support.rocprof_files import small as small_set
from support.rocprof_json_files import save as save_json
from support.rocprof_json_files import small as small_json
from support.rocprof_loaded import captures, read, read_capture
from tracedb.errors import ReadError
from tracedb_rocprof import ingester


def counters(reading: Any) -> list[tuple[int, str, float]]:
    """Return start of the dispatch, name and value of each counter."""
    starts = {row["event_id"]: row["start_ns"] for row in reading.tables["kernel_event"]}
    return sorted(
        (starts[event], name, value) for event, name, value in reading.rows("counter", "event_id", "name", "value")
    )


class TestDatabase:
    @pytest.mark.parametrize(("suffix", "views"), [(True, True), (True, False), (False, False)])
    @pytest.mark.parametrize("batch_rows", [1, 32_768])
    def test_everything_of_a_process(
        self, batch_rows: int, suffix: bool, views: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tracedb_rocprof.rocpd.sqlite.BATCH_ROWS", batch_rows)
        reading = read(save(tmp_path / "17_results.db", small(), suffix=suffix, views=views))
        assert reading.kernels("kind", "name", "start_ns", "duration_ns", "device_id", "launch_id", "bytes") == [
            ("kernel", KERNELS[0], 1_000, 500, 0, 1, None),
            ("kernel", KERNELS[1], 2_000, 700, 1, 2, None),
            ("memcpy", "MEMORY_COPY_HOST_TO_DEVICE", 3_000, 500, 1, None, 4_096),
        ]
        columns = ("queue_id", "stream_id", "grid_x", "block_x", "static_shared_bytes", "shared_bytes")
        assert reading.kernels(*columns, "registers_per_thread")[0] == (1, 3, 8, 256, 512, 1_024, 24)
        assert reading.rows("launch", "name", "process_id", "thread_id") == [("hipLaunchKernel", 17, 77)] * 2
        assert reading.rows("annotation", "name", "style", "duration_ns", "thread_id") == [
            ("whole", "start_end", 4_300, 77),
            ('forward, "quoted"', "push_pop", 1_100, 77),
            ("inner", "push_pop", 75, 77),
            ("here", "mark", None, 77),
        ]
        assert reading.issues == {"profiler_control": 1, "region_events": 1, "memory_allocation_events": 1}
        assert reading.rows("device", "device_id", "name", "sm_count", "max_clock_mhz", "is_used") == [
            (at, "MI300X", 304, 2100, True) for at in (0, 1)
        ]
        capture = reading.capture
        assert (capture["source"], capture["pid"], capture["host"], capture["rank"]) == ("rocpd", 17, "host-a", None)
        assert "secret" not in json.dumps(reading.tables)

    def test_merged_processes(self, tmp_path: Path) -> None:
        """Ids are unique within a process only, so each joins within its own suffix."""
        first = small(environment={"RANK": "0", "WORLD_SIZE": "2", "HOME": "secret"})
        other = Database("0000ffff-aaaa-1111", 18, environment={"SLURM_PROCID": "1", "SLURM_NTASKS": "2"})
        other.strings = ["zzz"]
        other.add("string", string="zzz")
        other.kernel(5, 9, 2, stack=1, agent=3)
        other.region("hipModuleLaunchKernel", 1, 2, "HIP_RUNTIME_API", 1)
        reading = read(save(tmp_path / "merged.db", first, other))
        assert [(row["part"], row["pid"], row["rank"], row["world_size"]) for row in reading.captures] == [
            (0, 17, 0, 2),
            (1, 18, 1, 2),
        ]
        assert reading.rows("kernel_event", "name", "device_id", part=1) == [(KERNELS[1], 1)]
        assert reading.rows("launch", "name", part=1) == ["hipModuleLaunchKernel"]
        (launch,) = reading.rows("launch", "launch_id", part=1)
        assert reading.rows("kernel_event", "launch_id", part=1) == [launch]
        assert "secret" not in json.dumps(reading.tables)

    def test_counters(self, tmp_path: Path) -> None:
        made = Database()
        first = made.kernel(1_000, 1_500)
        made.kernel(2_000, 2_500)
        for pmc, value in ((1, 10.0), (2, 5.5), (3, 7.0)):
            made.count(first, pmc, value)
        reading = read(save(tmp_path / "a.db", made))
        assert counters(reading) == [(1_000, "GRBM_COUNT", 7.0), (1_000, "SQ_WAVES", 15.5)]
        assert reading.kernels("start_ns", "is_counted") == [(1_000, True), (2_000, False)]

    def test_tables_that_are_not_there(self, tmp_path: Path) -> None:
        for number, missing in enumerate(
            ("event", "string", "info_agent", "sample", "pmc_event", "info_thread", "track")
        ):
            reading = read(save(tmp_path / f"{number}.db", small(), without=[missing]))
            assert [start for start, kind in reading.kernels("start_ns", "kind") if kind == "kernel"] == [1_000, 2_000]

    def test_calls_without_kernels(self, tmp_path: Path) -> None:
        made = Database()
        made.region("hipMalloc", 1, 2, "HIP_RUNTIME_API")
        reading = read(save(tmp_path / "a.db", made))
        (detail,) = reading.rows("ingest_issue", "detail")
        assert (reading.status, detail[:50]) == (
            "no_gpu_activity",
            "no kernel dispatches in process 17, only 1 API cal",
        )
        aborted = read(save(tmp_path / "b.db", Database(), without=["kernel_dispatch", "region"]))
        assert aborted.status == "no_gpu_activity"


class TestFaults:
    def test_conformance(self, tmp_path: Path) -> None:
        path = save(tmp_path / "17_results.db", small())
        conformance.check_rows(ingester, path)
        conformance.check_same_twice(ingester, path)
        (tmp_path / "cut").mkdir()
        conformance.check_cut(ingester, path, tmp_path / "cut")

    def test_another_schema(self, tmp_path: Path) -> None:
        newer = read(save(tmp_path / "a.db", small(version="4.0")))
        detail = dict(newer.rows("ingest_issue", "code", "detail"))["schema_unknown"]
        assert detail.startswith("rocpd schema version 4.0, known is 3; ")
        assert newer.capture["tool_version"] == "rocpd schema 4.0"
        assert newer.kernels() == read(save(tmp_path / "c.db", small())).kernels()
        assert read(save(tmp_path / "b.db", small(version="3.0.1"))).capture["tool_version"] == "rocpd schema 3.0.1"

    def test_unusable_times(self, tmp_path: Path) -> None:
        made = Database()
        for start, end in ((0, 0), (9, 5), (5, 9)):
            made.kernel(start, end)
        reading = read(save(tmp_path / "a.db", made))
        assert (reading.kernels(), reading.faults) == (
            [(KERNELS[0], 5, 4)],
            {"timestamp_zero": 1, "duration_negative": 1},
        )

    def test_an_unfinished_write(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a.db", small())
        (tmp_path / "a.db-journal").write_bytes(b"x")
        with pytest.raises(ReadError, match="unfinished write"):
            read(path)

    def test_databases_of_rocprof_v1_are_refused_by_name(self, tmp_path: Path) -> None:
        path = tmp_path / "results.db"
        with closing(sqlite3.connect(path)) as connection:
            for table in ("HIP", "OPS", "KERN", "COPY"):
                connection.execute(f"CREATE TABLE {table} (BeginNs INTEGER, EndNs INTEGER)")
            connection.commit()
        with pytest.raises(ReadError, match="rocprof v1"):
            read(path)


class TestDuplicates:
    def test_the_database_is_read_and_the_others_left_aside(self, tmp_path: Path) -> None:
        small_set(tmp_path).save()
        save_json(tmp_path / "17_results.json", small_json())
        save(tmp_path / "17_results.db", small())
        (capture,) = captures(tmp_path)
        assert [path.name for path in capture.files] == ["17_results.db"]
        details = dict(read_capture(capture).rows("ingest_issue", "code", "detail"))
        assert "17_results.json, 17_kernel_trace.csv" in details["duplicate_recording"]

    def test_all_forms_of_one_process_give_the_same(self, tmp_path: Path) -> None:
        """Kernels, launches and ranges are the same rows, whatever they were written in."""
        database = read(save(tmp_path / "a.db", small()))
        document = read(save_json(tmp_path / "b.json", small_json()))
        columns = ("kind", "name", "start_ns", "duration_ns", "device_id", "queue_id", "grid_x", "block_x", "launch_id")
        kernels = [row for row in database.kernels(*columns) if row[0] == "kernel"]
        assert kernels == [row for row in document.kernels(*columns) if row[0] == "kernel"]
        for table, names in (
            ("launch", ("name", "start_ns", "duration_ns", "thread_id")),
            ("annotation", ("style", "start_ns", "duration_ns")),
        ):
            assert database.rows(table, *names) == document.rows(table, *names)
