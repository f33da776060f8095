"""Ranges and marks of nsys exports: styles, names, domains, and the kernels inside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.nsys_files import MARK, OTHER_PID, PID, START_END, THREAD_NAME, Nsys, thread
from support.nsys_loaded import load

pytestmark = pytest.mark.usefixtures("only_few_views")


class TestRanges:
    def test_styles(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "a")
        made.range(10, 50, "b", kind=START_END)
        made.range(20, None, "c", kind=MARK)
        made.range(30, 40, "d", kind=70)
        made.range(30, None, "worker", kind=THREAD_NAME)
        found = load(tmp_path, made)
        columns = ("name", "style", "start_ns", "duration_ns", "is_open", "depth")
        assert found.rows("annotation", *columns) == [
            ("a", "push_pop", 0, 100, False, 0),
            ("b", "start_end", 10, 40, False, 1),
            ("c", "mark", 20, None, False, None),
            ("d", "push_pop", 30, 10, False, 2),
        ]
        assert found.one("capture", "status") == "no_gpu_activity"

    def test_names_are_registered_or_plain_or_missing(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 1, "registered")
        made.range(2, 3, "plain", registered=False)
        made.range(4, 5)
        assert load(tmp_path, made).rows("annotation", "name", order="start_ns") == ["registered", "plain", "(no name)"]

    @pytest.mark.parametrize("registered", [True, False])
    def test_domains_are_of_their_process(self, tmp_path: Path, registered: bool) -> None:
        made = Nsys()
        made.domain(1, "NCCL", registered=registered)
        made.domain(1, "TensorRT", pid=OTHER_PID, registered=registered)
        made.range(0, 10, "a", domain=1)
        made.range(0, 10, "b", domain=1, tid=OTHER_PID, pid=OTHER_PID)
        made.range(0, 10, "c", domain=2)
        made.range(0, 10, "d")
        assert load(tmp_path, made).rows("annotation", "name", "domain") == [
            ("a", "NCCL"),
            ("b", "TensorRT"),
            ("c", None),
            ("d", None),
        ]

    def test_a_range_still_open_lasts_until_the_last_that_nvtx_tells(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, None, "open")
        made.range(400, None, "mark", kind=MARK)
        made.launch(390, 1000, 1010)
        made.launch(391, 2000, 2010)
        found = load(tmp_path, made)
        assert found.rows("annotation WHERE is_open", "name", "duration_ns") == [("open", None)]
        assert found.held() == [("open", 1000)]
        assert json.loads(found.one("capture", "metadata"))["last_annotation_ns"] == 400

    def test_a_range_that_ends_on_another_thread_is_of_none(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "roaming", kind=START_END, endGlobalTid=thread(PID + 1))
        made.range(0, 100, "staying", kind=START_END)
        made.launch(10, 1000, 1010)
        found = load(tmp_path, made)
        assert found.rows("annotation", "name", "thread_id") == [("roaming", None), ("staying", PID)]
        assert found.held("thread") == [("staying", 1000)]
        assert found.held("process") == [("roaming", 1000), ("staying", 1000)]
        assert found.issues["range_over_threads"] == 1

    def test_times_before_zero(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(-500, -100, "early")
        made.kernel(-300, -200)
        found = load(tmp_path, made)
        assert found.rows("annotation", "start_ns", "duration_ns") == [(-500, 400)]
        assert found.rows("kernel_event", "start_ns", "duration_ns") == [(-300, 100)]

    def test_calls_of_libraries_become_ranges(self, tmp_path: Path) -> None:
        made = Nsys()
        made.add("MPI_COLLECTIVES_EVENTS", start=0, end=10, globalTid=thread(), textId=made.string("MPI_Allreduce"))
        made.add("CUBLAS_EVENTS", start=20, end=40, globalTid=thread(), nameId=made.string("cublasSgemm"))
        made.add("CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", start=50, end=60, globalTid=thread(), nameId=made.string("acc"))
        made.range(0, 5, "plain")
        made.launch(22, 1000, 1010)
        found = load(tmp_path, made)
        assert found.rows("annotation", "domain", "name", "style", "start_ns", "duration_ns") == [
            ("MPI", "MPI_Allreduce", "user", 0, 10),
            ("OpenACC", "acc", "user", 50, 10),
            ("cuBLAS", "cublasSgemm", "user", 20, 20),
            (None, "plain", "push_pop", 0, 5),
        ]
        assert found.held() == [("cublasSgemm", 1000)]
        assert len(set(found.rows("annotation", "annotation_id"))) == 4

    def test_payloads_of_nccl(self, tmp_path: Path) -> None:
        made = Nsys()
        made.domain(1, "NCCL")
        made.add("NVTX_PAYLOAD_SCHEMAS", domainId=1, schemaId=1)
        where = {"NCCL communicator ID": "0xabc", "No. of ranks": 8, "Rank": 3, "CUDA device": 3}
        made.range(0, 10, "ncclCommInitRank", domain=1, jsonText=json.dumps(where))
        what = {"NCCL communicator ID": "0xabc", "Message size [bytes]": 1 << 20, "Reduction operation": "Sum"}
        made.range(100, 200, "ncclAllReduce", domain=1, jsonTextId=made.string(json.dumps(what)))
        made.launch(120, 1000, 1100, "ncclDevKernel_AllReduce")
        made.launch(300, 1200, 1300)
        found = load(tmp_path, made)
        columns = ("collective", "bytes", "group_name", "group_size")
        assert found.rows("kernel_event", *columns, order="start_ns") == [
            ("ncclAllReduce", 1 << 20, "0xabc", 8),
            (None, None, None, None),
        ]
        assert found.one("capture", "rank", "world_size") == (3, 8)


class TestRules:
    def test_launches_of_another_thread_are_of_no_range_of_this_one(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "backward")
        made.launch(10, 1000, 1010, tid=PID + 1)
        found = load(tmp_path, made)
        assert found.held("thread") == []
        assert found.held("process") == [("backward", 1000)]

    def test_a_kernel_belongs_to_the_range_of_its_launch(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "first")
        made.range(150, 300, "second")
        made.launch(50, 200, 260)
        assert load(tmp_path, made).held() == [("first", 200)]

    def test_crossing_ranges_each_hold_what_lies_in_them(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "a", kind=60)
        made.range(50, 150, "b", kind=60)
        made.range(60, 90, "c")
        made.launch(70, 1000, 1001)
        made.launch(110, 2000, 2001)
        assert load(tmp_path, made).held() == [("a", 1000), ("b", 1000), ("b", 2000), ("c", 1000)]

    def test_a_kernel_without_its_call_is_kept(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "forward")
        made.launch(10, 1000, 1010)
        made.kernel(2000, 2010, "orphan", correlation=99)
        found = load(tmp_path, made)
        assert found.rows("kernel_event", "name", "launch_id IS NULL", order="start_ns")[1] == ("orphan", True)
        assert found.held() == [("forward", 1000)]

    def test_a_call_without_usable_times_launches_nothing(self, tmp_path: Path) -> None:
        made = Nsys()
        made.kernel(100, 110, correlation=made.call(20, 10))
        found = load(tmp_path, made)
        assert found.rows("kernel_event", "launch_id") == [None]
        assert found.rows("launch", "name") == []

    def test_of_several_calls_the_first_launched(self, tmp_path: Path) -> None:
        made = Nsys()
        made.call(10, 20, "first", correlation=5)
        made.call(30, 40, "second", correlation=5)
        made.kernel(100, 110, correlation=5)
        joined = "kernel_event JOIN main.launch AS l USING (capture_id, launch_id)"
        assert load(tmp_path, made).rows(joined, "l.name") == ["first"]

    @pytest.mark.parametrize("sentinel", [0, -1, None, 0xFFFFFFFF])
    def test_correlation_ids_that_mean_none_link_nothing(self, tmp_path: Path, sentinel: int | None) -> None:
        made = Nsys()
        for number in range(50):
            made.call(number, number + 1, correlation=0)
            made.tables["RUNTIME"][-1]["correlationId"] = sentinel
            made.kernel(number, number + 1, correlation=sentinel)
        found = load(tmp_path, made)
        assert found.rows("kernel_event", "count(*)", "count(launch_id)", "count(correlation_id)") == [(50, 0, 0)]

    def test_equal_stream_numbers_on_different_devices_stay_apart(self, tmp_path: Path) -> None:
        made = Nsys()
        for device in range(3):
            made.kernel(0, 86, device=device, stream=17)
        found = load(tmp_path, made)
        assert found.rows("kernel_event", "device_id", "stream_id") == [(0, 17), (1, 17), (2, 17)]
