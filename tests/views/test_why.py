"""``v1.why``: the time of a step by reason, without counting any of it twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.pipelines import Pipeline
from views.test_pipeline_bubble import insert_pipeline

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
REASONS = "SELECT reason, time_ns FROM v1.why ORDER BY time_ns DESC, reason"


@pytest.fixture
def step(insert: Insert) -> None:
    """One step of 1 ms: its kernels, what the host does, and the calls, on one thread."""
    insert("capture", "capture_id source", (1, "torch"))
    insert("annotation", "annotation_id name start_ns duration_ns", (1, "ProfilerStep#3", 0, 1_000_000),
           capture_id=1, style="user", thread_id=1)  # fmt: skip
    insert("launch", "launch_id name start_ns duration_ns",
           (1, "cudaLaunchKernel", 10_000, 5_000),
           (2, "cudaLaunchKernel", 640_000, 5_000),
           (3, "cudaStreamSynchronize", 660_000, 45_000),
           (4, "cudaLaunchKernel", 740_000, 5_000),
           (5, "cudaMemcpyAsync", 760_000, 5_000), capture_id=1, thread_id=1)  # fmt: skip
    insert("op", "op_id name start_ns duration_ns",
           (1, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 130_000, 500_000),
           capture_id=1, thread_id=1)  # fmt: skip
    insert("kernel_event", "event_id launch_id kind name start_ns duration_ns copy_kind bytes",
           (1, 1, "kernel", ADD, 20_000, 100_000, None, None),
           (2, 2, "kernel", "slow_kernel", 650_000, 50_000, None, None),
           (3, 4, "kernel", "cutlass_gemm", 750_000, 100_000, None, None),
           (4, 5, "memcpy", "Memcpy HtoD", 850_000, 50_000, "HtoD", 1_000_000), capture_id=1, device_id=0)  # fmt: skip
    insert("annotation_kernel", "event_id", *[(n,) for n in (1, 2, 3, 4)], capture_id=1, annotation_id=1,
           rule="process")  # fmt: skip


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.why") == []


@pytest.mark.usefixtures("step")
def test_the_parts_of_a_step(ask: Ask, shuffled: Callable[[], None]) -> None:
    right = [
        ("data_loading", 500_000),
        ("host_between", 10_000 + 20_000 + 100_000),  # before the first call, around the loading, after the last call
        ("computation", 100_000),
        ("unfused", 100_000),
        ("copy", 50_000),
        ("custom_kernel", 50_000),
        ("host_sync", 45_000),  # of the time from the end of the awaited kernel to the next start, as long as the call
        ("launch_bound", 2 * 10_000 + 5_000),  # from the launch to the start, after each gap
    ]
    assert ask(REASONS) == right
    assert sum(time for _, time in right) == 1_000_000
    shuffled()
    assert ask(REASONS) == right
    assert ask("SELECT round(sum(share_percent), 9), any_value(steps), max(wall_ns) FROM v1.why") == [
        (100.0, 1, 1_000_000)
    ]


def test_the_lead_that_a_synchronization_costs(insert: Insert, ask: Ask) -> None:
    """The host waits for 40 µs, and then launches a kernel of 10 µs every 20 µs: four gaps of 10 µs are the call's."""
    insert("capture", "capture_id source", (1, "torch"))
    calls = [(3 + n, "cudaLaunchKernel", 110_000 + 20_000 * n, 5_000) for n in range(10)]
    insert("launch", "launch_id name start_ns duration_ns",
           (1, "cudaLaunchKernel", 0, 5_000), (2, "cudaStreamSynchronize", 60_000, 40_000), *calls,
           capture_id=1, thread_id=1)  # fmt: skip
    insert("kernel_event", "event_id launch_id start_ns duration_ns", (1, 1, 10_000, 90_000),
           *[(number, number, start + 5_000, 10_000) for number, _, start, _ in calls],
           capture_id=1, device_id=0, kind="kernel", name=ADD)  # fmt: skip
    found: dict[str, int] = dict(ask(REASONS))
    idle = 15_000 + 9 * 10_000  # after the long kernel, and between the others
    assert found == {"unfused": 190_000, "host_sync": 40_000, "launch_bound": idle - 40_000}


@pytest.mark.usefixtures("step")
def test_evidence(ask: Ask) -> None:
    found = ask("SELECT place, capture_id, event_ids, sql FROM v1.why WHERE reason = 'data_loading'")
    query = "SELECT * FROM v1.gpu_gaps WHERE capture_id = 1 AND after_event_id IN (2)"
    assert found == [(1, 1, [2], query)]
    assert [row[0] for row in ask(f"SELECT idle_ns FROM ({query})")] == [530_000]
    assert ask("SELECT place FROM v1.why WHERE reason = 'computation'") == [(None,)]
    for (text,) in ask("SELECT sql FROM v1.why WHERE sql IS NOT NULL"):
        assert ask(text)


@pytest.mark.usefixtures("step")
def test_rules_of_the_user_come_first(insert: Insert, ask: Ask) -> None:
    insert("why_rule", "priority subject pattern reason",
           (1, "kernel", "slow_kernel", "our kernel"), (2, "kernel", "vectorized", "computation"),
           (3, "host", "DataLoader", "our loader"))  # fmt: skip
    found: dict[str, int] = dict(ask(REASONS))
    assert (found["our kernel"], found["our loader"], found["computation"]) == (50_000, 500_000, 200_000)
    assert ask("SELECT title, advice FROM v1.why WHERE reason = 'our kernel'") == [("our kernel", None)]


@pytest.mark.usefixtures("step")
def test_filters(report: Report) -> None:
    found: dict[str, int] = dict(report("why", "reason, time_ns", where={"e": "e.event_id <> 2"}))
    assert "custom_kernel" not in found
    assert sum(found.values()) == 1_000_000


@pytest.mark.usefixtures("step")
def test_left_out_work_is_not_idle_time(ask: Ask, report: Report) -> None:
    """What is left of the time is of the chosen events and of the gaps that they end, with the same reasons."""
    parts: dict[str, int] = dict(ask(REASONS))
    assert dict(report("why", "reason, time_ns", is_part=True)) == parts
    found: dict[int, dict[str, int]] = {}
    for number in (1, 2, 3, 4):
        found[number] = dict(report("why", "reason, time_ns", where={"e": f"e.event_id = {number}"}, is_part=True))
    assert found[1] == {"unfused": 100_000, "host_between": 10_000, "launch_bound": 10_000}
    assert found[2] == {
        "custom_kernel": 50_000,
        "data_loading": 500_000,
        "host_between": 20_000,
        "launch_bound": 10_000,
    }
    assert found[3] == {"computation": 100_000, "host_sync": 45_000, "launch_bound": 5_000}
    assert found[4] == {"copy": 50_000, "host_between": 100_000}  # no gap before it, and the end of the step
    assert sum(sum(times.values()) for times in found.values()) == 1_000_000


@pytest.mark.parametrize(
    ("dtypes", "advice"),
    [
        (["c10::BFloat16"], "fp8 where its accuracy is enough; sizes"),
        (["c10::BFloat16", "float"], "bf16 or fp8 instead of fp32, or TF32; sizes"),
        (["c10::Float8_e4m3fn"], "sizes"),
    ],
)
def test_a_smaller_type_is_advised_only_where_products_use_a_larger_one(
    insert: Insert, ask: Ask, dtypes: list[str], advice: str
) -> None:
    insert("capture", "capture_id source", (1, "torch"))
    insert("device", "capture_id device_id name vendor", (1, 0, "NVIDIA H100 80GB HBM3", "nvidia"))
    for number, dtype in enumerate(dtypes):
        insert("op", "op_id name input_dims input_types", (number, "aten::mm", "[[512,512],[512,512]]",
               f'["{dtype}","{dtype}"]'), capture_id=1, start_ns=number, duration_ns=1)  # fmt: skip
        insert("kernel_event", "event_id op_id name start_ns", (number, number, "cutlass_gemm", 100_000 * number),
               capture_id=1, device_id=0, kind="kernel", duration_ns=100_000)  # fmt: skip
    ((found,),) = ask("SELECT advice FROM v1.why WHERE reason = 'below_peak'")
    assert found.startswith(advice)


def test_what_left_out_work_hides_has_no_reason(insert: Insert, report: Report) -> None:
    """A collective beside a kernel that is left out is exposed only where that does not run."""
    insert("capture", "capture_id source", (1, "torch"))
    insert("kernel_event", "event_id kind name start_ns duration_ns collective",
           (1, "kernel", ADD, 0, 100, None), (2, "kernel", NCCL, 50, 100, "allreduce"),
           (3, "memcpy", "Memcpy HtoD", 140, 30, None), capture_id=1, device_id=0)  # fmt: skip
    for number, time in ((1, 100), (2, 50), (3, 20)):
        found = report("why", "sum(time_ns)::BIGINT", where={"e": f"e.event_id = {number}"}, is_part=True)
        assert found == [(time,)]


def test_without_launches_idle_time_has_no_cause(insert: Insert, ask: Ask) -> None:
    insert("capture", "capture_id source", (1, "rocprofv3"))
    insert("kernel_event", "event_id start_ns duration_ns", (1, 0, 10), (2, 30, 10),
           capture_id=1, device_id=0, kind="kernel", name=ADD)  # fmt: skip
    assert ask(REASONS) == [("unfused", 20), ("unknown_idle", 20)]


def test_a_straggler_is_named(insert: Insert, ask: Ask) -> None:
    """Rank 1 of two is late by 90 ns to eight calls of 10 ns, which do not overlap anything."""
    insert("capture", "capture_id rank", (0, 0), (1, 1), source="torch")
    for rank in (0, 1):
        insert("kernel_event", "event_id start_ns duration_ns",
               *[(n, 1_000 * n + 90 * rank, 100 - 90 * rank) for n in range(8)],
               capture_id=rank, device_id=0, kind="kernel", name="nccl", collective="allreduce", group_name="0",
               group_size=2)  # fmt: skip
    found = ask("SELECT reason, time_ns, worst_rank FROM v1.why WHERE reason <> 'unknown_idle' ORDER BY ALL")
    assert found == [("exposed_collective", 2 * 8 * 10, 1), ("straggler", 8 * 90, 1)]
    ((title, detail, percent),) = ask("SELECT title, detail, worst_percent FROM v1.why WHERE reason = 'straggler'")
    assert title == "Other ranks wait for rank 1, which is late"
    assert detail.startswith("rank 1 is late")
    assert "the others wait for it: rank 0 0.001 ms (10.1 %)" in detail  # 8 x 90 of 7,100 ns
    assert percent == 0  # the straggler itself does not wait


def test_only_copies_between_host_and_device_are_named_so(insert: Insert, ask: Ask) -> None:
    """A copy of each direction and a memset, then a gap in which the host is in a call that copies."""
    copies = [("HtoD", 100), ("DtoH", 200), ("DtoD", 400), ("PtoP", 800), (None, 1_600)]
    insert("capture", "capture_id source", (1, "nsys"))
    begin, starts = 0, []
    for _, length in copies:
        starts.append(begin)
        begin += length
    insert("launch", "launch_id name start_ns duration_ns",
           *[(n, "cudaMemcpyAsync", start - 50, 10) for n, start in enumerate(starts)],
           (9, "cudaMemcpyAsync", begin, 100), capture_id=1, thread_id=1)  # fmt: skip
    insert("kernel_event", "event_id launch_id kind name start_ns duration_ns copy_kind bytes",
           *[(n, n, "memcpy" if kind else "memset", "copy", start, length, kind, 4_096)
             for n, ((kind, length), start) in enumerate(zip(copies, starts, strict=True))],
           (9, 9, "memcpy", "copy", begin + 100, 10, "DtoD", 4_096), capture_id=1, device_id=0)  # fmt: skip
    found = ask("SELECT reason, time_ns, events FROM v1.why ORDER BY ALL")
    assert [row for row in found if "copy" in row[0]] == [("copy", 300, 2), ("device_copy", 400 + 800 + 1_600 + 10, 4)]


def test_idle_time_in_a_copying_call_is_no_copy(insert: Insert, ask: Ask) -> None:
    insert("capture", "capture_id source", (1, "nsys"))
    insert("launch", "launch_id name start_ns duration_ns",
           (1, "cudaLaunchKernel", 0, 5), (2, "cudaMemcpyAsync", 30_000, 30_000), (3, "cudaLaunchKernel", 61_000, 5),
           capture_id=1, thread_id=1)  # fmt: skip
    insert("kernel_event", "event_id launch_id kind name start_ns duration_ns copy_kind bytes",
           (1, 1, "kernel", ADD, 10, 29_990, None, None), (2, 2, "memcpy", "copy", 50_000, 5_000, "HtoD", 4_096),
           (3, 3, "kernel", ADD, 61_005, 10, None, None), capture_id=1, device_id=0)  # fmt: skip
    found = {reason: (time, events) for reason, time, events in ask("SELECT reason, time_ns, events FROM v1.why")}
    assert found["copy"] == (5_000, 1)
    assert found["copy_call"][0] >= 5_000
    assert sum(time for time, _ in found.values()) == 61_005


def test_unrecorded_replays(insert: Insert, ask: Ask) -> None:
    insert("capture", "capture_id source", (1, "torch"))
    insert("launch", "launch_id start_ns", (1, 0), (2, 9_000),
           name="cudaLaunchKernel", duration_ns=1, capture_id=1, thread_id=1)  # fmt: skip
    insert("kernel_event", "event_id launch_id start_ns duration_ns", (1, 1, 10, 10), (2, 2, 10_020, 10),
           capture_id=1, device_id=0, kind="kernel", name=ADD)  # fmt: skip
    insert("unrecorded_span", "capture_id device_id start_ns end_ns replays", (1, 0, 1_020, 10_020, 3))
    assert ask(REASONS) == [("unrecorded", 9_000), ("launch_bound", 1_000), ("unfused", 20)]


@pytest.mark.parametrize("is_batched", [True, False])
def test_the_slow_stage_of_a_pipeline_is_named(insert: Insert, ask: Ask, is_batched: bool) -> None:
    """Four stages of eight micro-batches; stage 2 takes twice as long, and the others wait inside SendRecv."""
    forward, backward = ([100_000 * (1 + (stage == 2)) for stage in range(4)] for _ in range(2))
    insert_pipeline(insert, Pipeline(forward, backward, 8, transfer=5, is_batched=is_batched))
    (reason, detail) = ask("SELECT reason, detail FROM v1.why WHERE reason LIKE '%bubble' OR place = 1 ORDER BY place")[
        0
    ]
    assert reason == "pipeline_bubble"
    assert detail.startswith("rank 2 waits least")


def test_gaps_between_pending_kernels_are_not_the_host(insert: Insert, ask: Ask) -> None:
    """After a synchronization the host launches ten kernels at once: the gaps between them are the device's."""
    insert("capture", "capture_id source", (1, "torch"))
    calls = [(3 + n, "cudaLaunchKernel", 110_000 + 1_000 * n, 1_000) for n in range(10)]
    insert("launch", "launch_id name start_ns duration_ns",
           (1, "cudaLaunchKernel", 0, 5_000), (2, "cudaStreamSynchronize", 10_000, 90_000), *calls,
           capture_id=1, thread_id=1)  # fmt: skip
    insert("kernel_event", "event_id launch_id start_ns duration_ns", (1, 1, 10_000, 90_000),
           *[(number, number, 115_000 + 22_000 * n, 20_000) for n, (number, *_) in enumerate(calls)],
           capture_id=1, device_id=0, kind="kernel", name=ADD)  # fmt: skip
    found: dict[str, int] = dict(ask(REASONS))
    late = sum(22_000 * n - 1_000 * n + 5_000 > 50_000 for n in range(10))
    assert found == {"unfused": 290_000, "host_sync": 15_000 + 2_000 * (9 - late), "dependency": 2_000 * late}
    ((device_ns,),) = ask("SELECT device_bound_ns FROM v1.idle_breakdown")
    assert device_ns == 5_000 + 9 * 2_000  # the time of the first launch is with host_sync
