"""Faults of links: meaningless correlation ids, graphs, collectives, streams."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.readings import read
from support.traces import AUTOGRAD_THREAD, PROCESS, call, kernel, memcpy, op, write

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


MESSAGE = {
    "Collective name": "allreduce",
    "In msg nelems": 4096,
    "Out msg nelems": 4096,
    "Group size": 2,
    "dtype": "BFloat16",
    "Process Group Name": "0",
    "Process Group Ranks": "[0, 1]",
    "Seq": 12,
}


@pytest.mark.parametrize(
    ("recorded", "stored"), [("[1000, 3000]", "[1000, 3000]"), ([1000, 3000], "[1000,3000]"), ("[]", None), ([], None)]
)
def test_split_sizes_of_an_all_to_all_are_stored(tmp_path: Path, recorded: object, stored: str | None) -> None:
    args: dict[str, Any] = {**MESSAGE, "Collective name": "all_to_allv", "In split size": recorded}
    found = read(write(tmp_path / "x.json", [call(1, 5, 9), kernel(10, 20, NCCL, correlation=9, **args)], "compact"))
    ((splits, elements),) = found.kernels("message_in_splits", "message_in_elements")
    assert (splits and splits.replace(" ", ""), elements) == (stored and stored.replace(" ", ""), 4096)


class TestCorrelation:
    def test_one_graph_launch_starts_many_kernels(self, tmp_path: Path) -> None:
        nodes = [kernel(100 + i, 1, f"n{i}", correlation=9, graph_id=3, graph_node_id=i) for i in range(24)]
        found = read(write(tmp_path / "x.json", [call(1, 5, 9, "cudaGraphLaunch"), *nodes]))
        assert found.rows("launch", "name", "correlation_id") == [("cudaGraphLaunch", 9)]
        assert found.kernels("launch_id", "graph_id", "graph_node_id") == [(0, 3, i) for i in range(24)]

    @pytest.mark.parametrize("sentinel", [-1, 0, None, 4294967295])
    def test_correlation_ids_that_mean_none_link_nothing(self, tmp_path: Path, sentinel: int | None) -> None:
        count = 10_000 if sentinel == -1 else 100
        calls = [call(i, 1, sentinel) for i in range(count)]
        kernels = [kernel(count + i, 1, correlation=sentinel) for i in range(count)]
        path = write(tmp_path / "x.json", [*calls, *kernels], "compact")
        before = time.process_time()
        found = read(path)
        assert time.process_time() - before < 20
        assert set(found.kernels("correlation_id", "launch_id")) == {(None, None)}
        assert len(found.kernels()) == len(found.rows("launch", "launch_id")) == count

    def test_a_kernel_without_its_call_is_kept(self, tmp_path: Path) -> None:
        found = read(
            write(tmp_path / "x.json", [op(0, 9, external=1), call(1, 1, 5), kernel(3, correlation=6), kernel(4)])
        )
        assert found.kernels("correlation_id", "launch_id", "op_id") == [(6, None, None), (None, None, None)]
        assert found.status == "complete"

    def test_of_several_calls_with_one_correlation_the_launch_is_taken(self, tmp_path: Path) -> None:
        calls = [call(1, 1, 5, "hipArray3DCreate"), call(3, 1, 5, "hipLaunchKernel"), call(2, 1, 5, "hipCtxGetCurrent")]
        found = read(write(tmp_path / "x.json", [*calls, kernel(9, correlation=5)]))
        assert found.kernels("launch_id") == [1]

    def test_driver_calls_are_launches_too(self, tmp_path: Path) -> None:
        found = read(
            write(tmp_path / "x.json", [call(1, 1, 5, "cuLaunchKernelEx", cat="cuda_driver"), kernel(2, correlation=5)])
        )
        assert found.kernels("launch_id") == [0]

    def test_graph_launches_without_kernels_are_reported(self, tmp_path: Path) -> None:
        found = read(write(tmp_path / "x.json", [call(1, 5, 9, "hipGraphLaunch"), call(8, 5, 10, "hipGraphLaunch")]))
        assert found.status == "no_gpu_activity"
        (issue,) = found.tables["ingest_issue"]
        assert issue["code"] == "no_gpu_activity"
        assert issue["detail"] == "2 graph launches but no kernels; record again with graph nodes traced"


class TestCollectives:
    @pytest.mark.parametrize("by", ["external id", "time on the thread", "parent operator"])
    def test_a_collective_takes_missing_arguments_from_its_operator(self, tmp_path: Path, by: str) -> None:
        external = 7 if by == "external id" else None
        events = [op(0, 20, "record_param_comms", external, args=MESSAGE)]
        if by == "parent operator":
            events.append(op(1, 10, "nccl:all_reduce"))
        events += [call(2, 3, 50, "cudaLaunchKernelExC", external=external), kernel(30, 5, NCCL, correlation=50)]
        found = read(write(tmp_path / "x.json", events))
        names = ("collective", "message_in_elements", "message_out_elements", "dtype", "group_name", "group_size")
        assert found.kernels(*names) == [("allreduce", 4096, 4096, "BFloat16", "0", 2)]
        assert found.kernels("group_ranks", "sequence") == [("[0, 1]", 12)]

    def test_the_arguments_of_the_kernel_go_before_those_of_its_operator(self, tmp_path: Path) -> None:
        own = {**MESSAGE, "Collective name": "broadcast"}
        events = [
            op(0, 20, external=7, args=MESSAGE),
            call(2, 3, 50, external=7),
            kernel(30, 5, NCCL, correlation=50, args=own),
        ]
        assert read(write(tmp_path / "x.json", events)).kernels("collective") == ["broadcast"]

    def test_a_collective_without_arguments_is_still_a_kernel(self, tmp_path: Path) -> None:
        found = read(write(tmp_path / "x.json", [call(2, 3, 50), kernel(30, 5, NCCL, correlation=50)]))
        assert found.kernels("name", "collective", "message_in_elements") == [(NCCL, None, None)]

    def test_other_kernels_of_the_operator_get_no_arguments(self, tmp_path: Path) -> None:
        events = [
            op(0, 20, "record_param_comms", 7, args=MESSAGE),
            call(2, 3, 50, external=7),
            call(6, 1, 51, external=7),
        ]
        kernels = [kernel(30, 5, NCCL, correlation=50), kernel(40, 5, "elementwise", correlation=51)]
        found = read(write(tmp_path / "x.json", [*events, *kernels]))
        assert found.kernels("name", "collective") == [(NCCL, "allreduce"), ("elementwise", None)]


class TestDevicesStreamsAndThreads:
    def test_equal_stream_numbers_on_different_devices_stay_apart(self, tmp_path: Path) -> None:
        events = [kernel(i, 86, f"d{device}", device=device, stream=17) for device in range(3) for i in (0, 100)]
        found = read(write(tmp_path / "x.json", events))
        assert sorted(set(found.kernels("device_id", "stream_id"))) == [(0, 17), (1, 17), (2, 17)]
        assert [row["device_id"] for row in found.tables["device"] if row["is_used"]] == [0, 1, 2]

    def test_host_events_of_process_0_are_not_gpu_events(self, tmp_path: Path) -> None:
        events = [op(0, 9, pid=0, tid=0), call(1, 1, 5, pid=0, tid=0), kernel(3, correlation=5)]
        found = read(write(tmp_path / "x.json", events))
        assert (len(found.kernels()), len(found.rows("op", "op_id"))) == (1, 1)
        assert found.rows("launch", "process_id", "thread_id") == [(0, 0)]
        assert found.kernels("launch_id", "op_id") == [(1, 0)]
        assert len(found.captures) == 1

    def test_a_host_event_with_a_stream_argument_is_not_a_kernel(self, tmp_path: Path) -> None:
        triton = op(0, 9, "triton_poi_fused_add_0", 1, args={"stream": 0, "grid": "grid(1024,)", "num_warps": 8})
        found = read(write(tmp_path / "x.json", [triton, kernel(3, 1, "amd", stream=0)]))
        assert found.kernels("name", "stream_id") == [("amd", 0)]
        assert found.rows("op", "name") == ["triton_poi_fused_add_0"]

    def test_a_call_that_outlasts_its_operator_belongs_to_the_parent(self, tmp_path: Path) -> None:
        """hipLaunchKernel starts inside one operator and ends after it: it belongs to the one around both."""
        events = [op(0, 30, "parent"), op(0, 10, "aten::empty_strided"), call(9.85, 7.75, 5), kernel(40, correlation=5)]
        found = read(write(tmp_path / "x.json", events))
        assert found.kernels("op_id") == [0]
        assert found.rows("op", "name", "parent_op_id") == [("parent", None), ("aten::empty_strided", 0)]

    def test_an_external_id_goes_before_time(self, tmp_path: Path) -> None:
        events = [
            op(0, 30, "parent", 1),
            op(0, 10, "child", 2),
            call(9.85, 7.75, 5, external=2),
            kernel(40, correlation=5),
        ]
        assert read(write(tmp_path / "x.json", events)).kernels("op_id") == [1]

    def test_a_trace_of_gpu_events_only(self, tmp_path: Path) -> None:
        found = read(write(tmp_path / "x.json", [kernel(i, 1, correlation=i) for i in range(1, 4)]))
        assert found.kernels("op_id", "launch_id") == [(None, None)] * 3
        assert found.capture["pid"] is None


def test_launch_order_is_the_order_of_the_file(tmp_path: Path) -> None:
    events = [call(i, 1, i + 1, tid=AUTOGRAD_THREAD if i % 2 else PROCESS) for i in range(9)]
    found = read(write(tmp_path / "x.json", [*events, *(memcpy(100 + i, 1, correlation=i + 1) for i in range(9))]))
    assert all(later - earlier == 1 for earlier, later in pairwise(found.kernels("launch_id")))
