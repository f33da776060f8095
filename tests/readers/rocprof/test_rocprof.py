"""rocprofv3 CSV files: headers of every release, quoting, agents, grids, layouts and their faults."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from support.rocprof_files import ERAS, WRITERS, Set, direct, kernel, kernel_trace, proper, small, write
from support.rocprof_loaded import captures, names, read, read_capture
from tracedb.pipeline import labels

GEMM = "void k<int, float>(float*, int)"


class TestHeaders:
    @pytest.mark.parametrize("writer", WRITERS)
    @pytest.mark.parametrize("era", ERAS)
    def test_every_era_gives_the_same_kernels(self, era: str, writer: str, tmp_path: Path) -> None:
        rows = [kernel(GEMM, 20, 50), kernel("b", 10, 15, Grid_Size_X=300, Queue_Id=3)]
        reading = read(kernel_trace(tmp_path / "x_kernel_trace.csv", rows, era, WRITERS[writer]))
        assert reading.kernels("name", "start_ns", "duration_ns", "grid_x", "grid_y", "block_x", "queue_id") == [
            ("b", 10, 5, 2, 1, 256, 3),
            (GEMM, 20, 30, 8, 1, 256, 1),
        ]
        assert reading.kernels("device_id", "stream_id") == [(0, None if era < "7" else 2)] * 2
        assert reading.capture["source"] == "rocprofv3"
        assert reading.faults == {}

    def test_title_case_bom_and_unknown_columns(self, tmp_path: Path) -> None:
        text = "\ufeffagent_id,KERNEL_NAME,New_One,start_timestamp,End_Timestamp\n4,k,what,5,9\n"
        reading = read(write(tmp_path / "a.csv", text))
        assert reading.kernels() == [("k", 5, 4)]

    def test_header_only_and_empty_files(self, tmp_path: Path) -> None:
        kernel_trace(tmp_path / "x_kernel_trace.csv", [])
        write(tmp_path / "x_memory_copy_trace.csv", "")
        (capture,) = captures(tmp_path)
        assert len(capture.files) == 2
        reading = read_capture(capture)
        assert reading.status == "no_gpu_activity"
        assert captures(write(tmp_path / "y" / "y_kernel_trace.csv", "")) == []

    def test_only_calls_were_recorded(self, tmp_path: Path) -> None:
        made = Set(tmp_path)
        made.call("hipMalloc", 1, 2, 1)
        made.save()
        made.agents((0, 0, "CPU"), (4, 4, "GPU"))
        reading = read(tmp_path)
        (issue,) = reading.rows("ingest_issue", "code", "detail")
        assert (reading.status, issue[0]) == ("no_gpu_activity", "no_gpu_activity")
        assert issue[1].startswith("no kernel dispatches in process 17, only 1 API calls; ")
        assert "--kernel-trace" in issue[1]


class TestQuoting:
    @pytest.mark.parametrize("writer", WRITERS)
    def test_names_with_commas(self, writer: str, tmp_path: Path) -> None:
        rows = [kernel(name, at, at + 1) for at, name in enumerate([GEMM, "a,b", "", " spaced ", "1,2,3,4"])]
        reading = read(kernel_trace(tmp_path / "a.csv", rows, writer=WRITERS[writer]))
        assert names(reading) == [GEMM, "a,b", "", " spaced ", "1,2,3,4"]
        assert reading.issues == {"device_guessed": 1}

    @pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    def test_escaped_quotes_and_newlines(self, quoting: int, tmp_path: Path) -> None:
        wanted = ['void k(float*, "x")', 'two\nlines, "y"', '"', '""', 'x","y', "\r\n", "plain"]
        rows = [kernel(name, at, at + 1) for at, name in enumerate(wanted)]
        reading = read(kernel_trace(tmp_path / "a.csv", rows, writer=proper(quoting)))
        assert names(reading) == wanted
        assert set(reading.issues) <= {"device_guessed", "quotes_doubled"}

    def test_quotes_that_the_tool_did_not_escape(self, tmp_path: Path) -> None:
        wanted = ['void k(float*, "x", 3)', '"first"', 'x","y', 'f("")', 'odd"', GEMM]
        rows = [kernel(name, at, at + 1) for at, name in enumerate(wanted)]
        reading = read(kernel_trace(tmp_path / "a.csv", rows))
        assert names(reading) == wanted
        assert reading.issues["quotes_not_escaped"] == 5

    def test_every_line_with_quotes_inside(self, tmp_path: Path) -> None:
        """Each line then holds as many quotes as the first, which is no sign that they stand in the right place."""
        rows = [kernel('k("x")', at, at + 1) for at in range(3)]
        assert names(read(kernel_trace(tmp_path / "a.csv", rows))) == ['k("x")'] * 3

    def test_messages_of_markers(self, tmp_path: Path) -> None:
        made = Set(tmp_path)
        for at, text in enumerate(['say "hi", twice', "line\nbreak", 'end"']):
            made.marker(text, at * 10, at * 10 + 5)
        made.save()
        assert read(tmp_path).rows("annotation", "name") == ['say "hi", twice', "line\nbreak", 'end"']

    def test_a_free_row_with_a_lone_quote_as_agent(self, tmp_path: Path) -> None:
        small(tmp_path).save()
        header = "Guid,Kind,Operation,Agent_Id,Allocation_Size,Address,Correlation_Id,Start_Timestamp,End_Timestamp\n"
        write(
            tmp_path / "17_memory_allocation_trace.csv",
            f'{header}g,MEMORY_ALLOCATION,MEMORY_ALLOCATION_ALLOCATE,"Agent 4",64,0x10,1,5,6\n'
            'g,MEMORY_ALLOCATION,MEMORY_ALLOCATION_FREE,",0,0x10,1,7,8\n',
        )
        reading = read(tmp_path)
        assert (reading.issues["memory_allocation_events"], reading.faults) == (2, {})

    def test_a_line_that_is_no_record_is_lost_alone(self, tmp_path: Path) -> None:
        text = direct(ERAS["7.0"], [["KERNEL_DISPATCH", "Agent 4", 1, 2]])
        path = kernel_trace(tmp_path / "a.csv", [kernel("k", 5, 9), kernel("k", 15, 19)])
        lines = path.read_text().splitlines(keepends=True)
        path.write_text(lines[0] + lines[1] + text.splitlines(keepends=True)[1] + lines[2])
        reading = read(path)
        assert reading.kernels() == [("k", 5, 4), ("k", 15, 4)]
        assert (reading.status, reading.faults) == ("repaired", {"line_unreadable": 1})

    def test_blocks_do_not_cut_records(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        wanted = [f'name {at} "quoted"\nover lines' if at % 3 == 0 else f"name {at}, plain" for at in range(60)]
        rows = [kernel(name, at, at + 1) for at, name in enumerate(wanted)]
        path = kernel_trace(tmp_path / "a.csv", rows, writer=proper())
        for size in (10, 100, 1000):
            monkeypatch.setattr("tracedb_rocprof.csv.chunks.BLOCK_BYTES", size)
            assert names(read(path, cores=2)) == wanted


class TestAgents:
    @pytest.mark.parametrize(
        ("said", "devices"),
        [
            (["Agent 4", "Agent 5"], [0, 1]),
            (["Agent 5"], [1]),
            ([5], [1]),
            (["GPU 1", "GPU 0"], [1, 0]),
        ],
    )
    def test_labels_by_agent_info(self, said: list[str | int], devices: list[int], tmp_path: Path) -> None:
        made = Set(tmp_path)
        made.kernels = [kernel("k", at, at + 1, Agent_Id=label) for at, label in enumerate(said)]
        made.save()
        made.agents((0, 0, "CPU"), (5, 5, "GPU"), (4, 4, "GPU"))
        reading = read(tmp_path)
        assert reading.kernels("device_id") == devices
        assert reading.issues == {}
        described = reading.rows("device", "device_id", "name", "sm_count", "max_clock_mhz", "arch", "vendor")
        assert described == [(at, "MI300X, one of several", 304, 2100, "gfx942", "AMD") for at in (0, 1)]

    def test_logical_node_ids_come_first(self, tmp_path: Path) -> None:
        """Where devices were hidden, logical and absolute ids differ; a label is absolute if it is no logical one."""
        for label, device in (("Agent 1", 0), ("Agent 2", 1), ("Agent 8", 1)):
            made = Set(tmp_path / label)
            made.kernels = [kernel("k", 1, 2, Agent_Id=label)]
            made.save()
            made.agents((0, 0, "CPU"), (7, 1, "GPU"), (8, 2, "GPU"))
            assert read(tmp_path / label).kernels("device_id") == [device]

    def test_without_agent_info_by_order(self, tmp_path: Path) -> None:
        rows = [kernel("k", at, at + 1, Agent_Id=f"Agent {number}") for at, number in enumerate((10, 9, 10, 4))]
        reading = read(kernel_trace(tmp_path / "a.csv", rows))
        assert reading.kernels("device_id") == [2, 1, 2, 0]
        (detail,) = reading.rows("ingest_issue", "detail")
        assert "Agent 4 = device 0, Agent 9 = device 1, Agent 10 = device 2" in detail

    def test_copies_belong_to_the_gpu(self, tmp_path: Path) -> None:
        made = Set(tmp_path)
        made.copy("HOST_TO_DEVICE", 1, 2, "Agent 0", "Agent 4")
        made.copy("DEVICE_TO_HOST", 3, 4, "Agent 5", "Agent 0")
        made.copy("DEVICE_TO_DEVICE", 5, 6, "Agent 4", "Agent 5")
        made.copy("HOST_TO_HOST", 7, 8, "Agent 0", "Agent 0")
        made.save()
        reading = read(tmp_path)
        assert reading.kernels("kind", "copy_kind", "device_id") == [
            ("memcpy", "HtoD", 0),
            ("memcpy", "DtoH", 1),
            ("memcpy", "DtoD", 0),
            ("memcpy", "HtoH", None),
        ]


class TestTimes:
    def test_zero_and_reversed_times_are_no_kernels_of_0_ms(self, tmp_path: Path) -> None:
        rows = [kernel("k", *times) for times in ((0, 0), (0, 10**13), (9, 5), (5, 9), (7, 7))]
        reading = read(kernel_trace(tmp_path / "a.csv", rows))
        assert reading.kernels() == [("k", 5, 4), ("k", 7, 0)]
        assert (reading.status, reading.faults) == ("repaired", {"timestamp_zero": 2, "duration_negative": 1})

    def test_nothing_but_zeros(self, tmp_path: Path) -> None:
        reading = read(kernel_trace(tmp_path / "a.csv", [kernel("k", 0, 0)] * 3))
        assert (reading.kernels(), reading.status, reading.capture["events_read"]) == ([], "repaired", 3)

    def test_a_first_kernel_at_0_and_a_last_at_the_end(self, tmp_path: Path) -> None:
        rows = [kernel("first", 0, 5), kernel("last", 90, 100)]
        assert read(kernel_trace(tmp_path / "a.csv", rows)).kernels() == [("first", 0, 5), ("last", 90, 10)]

    def test_rows_out_of_order_are_put_in_order(self, tmp_path: Path) -> None:
        rows = [kernel(f"k{at}", at, at + 1) for at in (5, 3, 9, 1)]
        reading = read(kernel_trace(tmp_path / "a.csv", rows))
        assert [row["start_ns"] for row in reading.tables["kernel_event"]] == [1, 3, 5, 9]


class TestLinks:
    def test_launches_ranges_and_copies_of_a_set(self, tmp_path: Path) -> None:
        small(tmp_path).save()
        reading = read(tmp_path)
        assert reading.kernels("kind", "launch_id") == [("kernel", 1), ("kernel", 2), ("memcpy", None)]
        assert reading.rows("launch", "name", "correlation_id", "process_id", "thread_id") == [
            ("hipLaunchKernel", 1, 17, 77),
            ("hipModuleLaunchKernel", 2, 17, 77),
        ]
        assert reading.rows("annotation", "name", "style", "duration_ns") == [("forward", "push_pop", 1_700)]
        assert reading.capture["pid"] == 17

    def test_one_graph_launch_has_many_kernels(self, tmp_path: Path) -> None:
        made = Set(tmp_path)
        made.kernels = [kernel("k", at, at + 1, Correlation_Id=9) for at in range(10, 34)]
        made.call("hipGraphLaunch", 1, 2, 9)
        made.save()
        reading = read(tmp_path)
        assert (reading.kernels("launch_id"), len(reading.rows("launch", "name"))) == ([1] * 24, 1)

    def test_correlation_0_links_nothing(self, tmp_path: Path) -> None:
        made = Set(tmp_path)
        made.kernels = [kernel("k", at, at + 1) for at in range(3)]
        made.call("hipMalloc", 1, 2, 0)
        made.save()
        assert read(tmp_path).kernels("launch_id", "correlation_id") == [(None, None)] * 3

    def test_marks_and_profiler_control(self, tmp_path: Path) -> None:
        made = small(tmp_path)
        made.marker("here", 850, 850, domain="MARKER_CORE_API")
        made.marker("roctxProfilerPause", 860, 870, domain="MARKER_CONTROL_API")
        made.save()
        reading = read(tmp_path)
        assert reading.rows("annotation", "name", "style", "duration_ns") == [
            ("forward", "push_pop", 1_700),
            ("here", "mark", None),
        ]
        assert reading.issues["profiler_control"] == 1


class TestSets:
    def test_layouts(self, tmp_path: Path) -> None:
        """Names by process id, by -o, by host folder, in passes, and beside a torch profile of a sweep."""
        for place in (
            "20",
            "out",
            "host-a/20",
            "host-a/21",
            "pass_1/out",
            "pass_2/out",
            "sweep/256thread/rocprof_traces/5",
        ):
            path = tmp_path / place
            small(path.parent, prefix=path.name).save()
        found = captures(tmp_path)
        assert [len(capture.files) for capture in found] == [4] * 7
        assert all(capture.files[0].name.endswith("_kernel_trace.csv") for capture in found)
        assert [capture.rank for capture in found] == [None] * 7

    def test_passes_are_labelled(self) -> None:
        assert labels.from_path(Path("/run/pass_2/17_counter_collection.csv")) == {"pass": "2"}
        assert labels.from_path(Path("/run/passes/17_kernel_trace.csv")) == {}

    def test_ranks(self, tmp_path: Path) -> None:
        for place in (
            "a/0",
            "a/1",
            "b/0",
            "b/2",
            "c/slurm_procid_0",
            "c/slurm_procid_1",
            "h1/x/0",
            "h2/x/1",
            "run_0",
            "run_1",
        ):
            path = tmp_path / place
            kernel_trace(path.parent / f"{path.name}_kernel_trace.csv", [kernel("k", 1, 2)])
        found = {
            str(one.files[0].relative_to(tmp_path)).partition("_kernel")[0]: one.rank for one in captures(tmp_path)
        }
        assert found == {
            "a/0": 0,
            "a/1": 1,
            "b/0": None,
            "b/2": None,
            "c/slurm_procid_0": 0,
            "c/slurm_procid_1": 1,
            "h1/x/0": None,
            "h2/x/1": None,
            "run_0": None,
            "run_1": None,
        }

    def test_ranks_over_folders_of_hosts(self, tmp_path: Path) -> None:
        for place in ("host-a/0", "host-b/1"):
            path = tmp_path / place
            kernel_trace(path.parent / f"{path.name}_kernel_trace.csv", [kernel("k", 1, 2)])
        assert [capture.rank for capture in captures(tmp_path)] == [0, 1]

    def test_statistics_are_compared_and_never_data(self, tmp_path: Path) -> None:
        made = small(tmp_path)
        made.save()
        made.stats("kernel", ("void k<int, float>(float*)", 1, 500), ("Cijk_Alik_Bljk_SB_MT64x64", 1, 700))
        made.stats("memory_copy", ("MEMORY_COPY_HOST_TO_DEVICE", 1, 500))
        assert read(tmp_path).faults == {}
        made.stats("kernel", ("void k<int, float>(float*)", 2, 500), ("another", 1, 7))
        reading = read(tmp_path)
        assert reading.faults == {"stats_mismatch": 3}  # one of them in the trace only
        assert len(reading.kernels()) == 3
        assert captures(tmp_path / "17_kernel_stats.csv") == []

    def test_one_converted_database_of_two_processes(self, tmp_path: Path) -> None:
        rows = [kernel("a", 1, 2, Guid="g1"), kernel("b", 3, 4, Guid="g2"), kernel("c", 5, 6, Guid="g1")]
        reading = read(kernel_trace(tmp_path / "x_kernel_trace.csv", rows, "rocpd"))
        assert reading.rows("kernel_event", "part", "name") == [(0, "a"), (0, "c"), (1, "b")]
        assert len(reading.captures) == 2
