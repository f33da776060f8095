"""``v1.why``: the time of a step by reason, without counting any of it twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from support.pipelines import Pipeline
from support.report_text import filled
from views.test_pipeline_bubble import insert_pipeline

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Rows = list[dict[str, Any]]
Cases = Callable[..., list[dict[str, list[Any]]]]

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
QUERY = "SELECT labels['case'], w FROM v1.why AS w ORDER BY time_ns DESC, reason"


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


def lead(insert: Insert) -> None:
    """The host waits for 40 µs, and then launches a kernel of 10 µs every 20 µs: four gaps of 10 µs are the call's."""
    insert("capture", "capture_id source", (1, "torch"))
    calls = [(3 + n, "cudaLaunchKernel", 110_000 + 20_000 * n, 5_000) for n in range(10)]
    insert("launch", "launch_id name start_ns duration_ns",
           (1, "cudaLaunchKernel", 0, 5_000), (2, "cudaStreamSynchronize", 60_000, 40_000), *calls,
           capture_id=1, thread_id=1)  # fmt: skip
    insert("kernel_event", "event_id launch_id start_ns duration_ns", (1, 1, 10_000, 90_000),
           *[(number, number, start + 5_000, 10_000) for number, _, start, _ in calls],
           capture_id=1, device_id=0, kind="kernel", name=ADD)  # fmt: skip


def products(insert: Insert, dtypes: Sequence[str]) -> None:
    """One matrix product in each type."""
    insert("capture", "capture_id source", (1, "torch"))
    insert("device", "capture_id device_id name vendor", (1, 0, "NVIDIA H100 80GB HBM3", "nvidia"))
    for number, dtype in enumerate(dtypes):
        insert("op", "op_id name input_dims input_types", (number, "aten::mm", "[[512,512],[512,512]]",
               f'["{dtype}","{dtype}"]'), capture_id=1, start_ns=number, duration_ns=1)  # fmt: skip
        insert("kernel_event", "event_id op_id name start_ns", (number, number, "cutlass_gemm", 100_000 * number),
               capture_id=1, device_id=0, kind="kernel", duration_ns=100_000)  # fmt: skip


def without_launches(insert: Insert) -> None:
    insert("capture", "capture_id source", (1, "rocprofv3"))
    insert("kernel_event", "event_id start_ns duration_ns", (1, 0, 10), (2, 30, 10),
           capture_id=1, device_id=0, kind="kernel", name=ADD)  # fmt: skip


def some_launches(insert: Insert) -> None:
    """The host is silent for 100 µs before the launch of the third kernel; that of the second was not recorded."""
    insert("capture", "capture_id source", (1, "rocprofv3"))
    insert("launch", "launch_id name start_ns duration_ns",
           (1, "hipLaunchKernel", 0, 5_000), (3, "hipLaunchKernel", 300_000, 5_000),
           capture_id=1, thread_id=1)  # fmt: skip
    insert("kernel_event", "event_id launch_id start_ns", (1, 1, 10_000), (2, None, 100_000), (3, 3, 310_000),
           capture_id=1, device_id=0, kind="kernel", name=ADD, duration_ns=50_000)  # fmt: skip


def straggler(insert: Insert) -> None:
    """Rank 1 of two is late by 90 ns to eight calls of 10 ns, which do not overlap anything."""
    insert("capture", "capture_id rank", (0, 0), (1, 1), source="torch")
    for rank in (0, 1):
        insert("kernel_event", "event_id start_ns duration_ns",
               *[(n, 1_000 * n + 90 * rank, 100 - 90 * rank) for n in range(8)],
               capture_id=rank, device_id=0, kind="kernel", name="nccl", collective="allreduce", group_name="0",
               group_size=2)  # fmt: skip


def copies(insert: Insert) -> None:
    """A copy of each direction and a memset, then a gap in which the host is in a call that copies."""
    lengths = [("HtoD", 100), ("DtoH", 200), ("DtoD", 400), ("PtoP", 800), (None, 1_600)]
    insert("capture", "capture_id source", (1, "nsys"))
    begin, starts = 0, []
    for _, length in lengths:
        starts.append(begin)
        begin += length
    insert("launch", "launch_id name start_ns duration_ns",
           *[(n, "cudaMemcpyAsync", start - 50, 10) for n, start in enumerate(starts)],
           (9, "cudaMemcpyAsync", begin, 100), capture_id=1, thread_id=1)  # fmt: skip
    insert("kernel_event", "event_id launch_id kind name start_ns duration_ns copy_kind bytes",
           *[(n, n, "memcpy" if kind else "memset", "copy", start, length, kind, 4_096)
             for n, ((kind, length), start) in enumerate(zip(lengths, starts, strict=True))],
           (9, 9, "memcpy", "copy", begin + 100, 10, "DtoD", 4_096), capture_id=1, device_id=0)  # fmt: skip


def copying_call(insert: Insert) -> None:
    insert("capture", "capture_id source", (1, "nsys"))
    insert("launch", "launch_id name start_ns duration_ns",
           (1, "cudaLaunchKernel", 0, 5), (2, "cudaMemcpyAsync", 30_000, 30_000), (3, "cudaLaunchKernel", 61_000, 5),
           capture_id=1, thread_id=1)  # fmt: skip
    insert("kernel_event", "event_id launch_id kind name start_ns duration_ns copy_kind bytes",
           (1, 1, "kernel", ADD, 10, 29_990, None, None), (2, 2, "memcpy", "copy", 50_000, 5_000, "HtoD", 4_096),
           (3, 3, "kernel", ADD, 61_005, 10, None, None), capture_id=1, device_id=0)  # fmt: skip


def unrecorded(insert: Insert) -> None:
    insert("capture", "capture_id source", (1, "torch"))
    insert("launch", "launch_id start_ns", (1, 0), (2, 9_000),
           name="cudaLaunchKernel", duration_ns=1, capture_id=1, thread_id=1)  # fmt: skip
    insert("kernel_event", "event_id launch_id start_ns duration_ns", (1, 1, 10, 10), (2, 2, 10_020, 10),
           capture_id=1, device_id=0, kind="kernel", name=ADD)  # fmt: skip
    insert("unrecorded_span", "capture_id device_id start_ns end_ns replays", (1, 0, 1_020, 10_020, 3))


def slow_stage(insert: Insert, is_batched: bool) -> None:
    """Four stages of eight micro-batches; stage 2 takes twice as long, and the others wait inside SendRecv."""
    forward, backward = ([100_000 * (1 + (stage == 2)) for stage in range(4)] for _ in range(2))
    insert_pipeline(insert, Pipeline(forward, backward, 8, transfer=5, is_batched=is_batched))


def pending(insert: Insert) -> None:
    """After a synchronization the host launches ten kernels at once: the gaps between them are the device's."""
    insert("capture", "capture_id source", (1, "torch"))
    calls = [(3 + n, "cudaLaunchKernel", 110_000 + 1_000 * n, 1_000) for n in range(10)]
    insert("launch", "launch_id name start_ns duration_ns",
           (1, "cudaLaunchKernel", 0, 5_000), (2, "cudaStreamSynchronize", 10_000, 90_000), *calls,
           capture_id=1, thread_id=1)  # fmt: skip
    insert("kernel_event", "event_id launch_id start_ns duration_ns", (1, 1, 10_000, 90_000),
           *[(number, number, 115_000 + 22_000 * n, 20_000) for n, (number, *_) in enumerate(calls)],
           capture_id=1, device_id=0, kind="kernel", name=ADD)  # fmt: skip


BFLOAT, FLOAT, FLOAT8 = "c10::BFloat16", "float", "c10::Float8_e4m3fn"
WRITERS: dict[str, Callable[[Insert], None]] = {
    "step": step,
    "lead": lead,
    "bf16": partial(products, dtypes=(BFLOAT,)),
    "fp32 too": partial(products, dtypes=(BFLOAT, FLOAT)),
    "fp8": partial(products, dtypes=(FLOAT8,)),
    "without launches": without_launches,
    "some launches": some_launches,
    "straggler": straggler,
    "copies": copies,
    "copying call": copying_call,
    "unrecorded": unrecorded,
    "slow stage, batched": partial(slow_stage, is_batched=True),
    "slow stage, one by one": partial(slow_stage, is_batched=False),
    "pending": pending,
}


@pytest.fixture(scope="module")
def why(cases: Cases) -> dict[str, Rows]:
    """The rows of each case, the longest time first."""
    (found,) = cases(WRITERS, QUERY)
    return found


def times(rows: Rows) -> list[tuple[str, int]]:
    return [(row["reason"], row["time_ns"]) for row in rows]


def test_empty(ask: Ask) -> None:
    assert ask("SELECT * FROM v1.why") == []


def test_the_parts_of_a_step(why: dict[str, Rows]) -> None:
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
    assert times(why["step"]) == right
    assert sum(time for _, time in right) == 1_000_000
    assert sum(row["share_percent"] for row in why["step"]) == pytest.approx(100)
    assert {(row["steps"], row["wall_ns"]) for row in why["step"]} == {(1, 1_000_000)}


def test_the_order_of_rows_does_not_matter(why: dict[str, Rows], cases: Cases) -> None:
    assert cases(WRITERS, QUERY, is_turned=True) == [why]


def test_the_lead_that_a_synchronization_costs(why: dict[str, Rows]) -> None:
    idle = 15_000 + 9 * 10_000  # after the long kernel, and between the others
    assert dict(times(why["lead"])) == {"unfused": 190_000, "host_sync": 40_000, "launch_bound": idle - 40_000}


def test_evidence(why: dict[str, Rows], insert: Insert, ask: Ask) -> None:
    step(insert)
    found = {row["reason"]: row for row in why["step"]}
    loading = found["data_loading"]
    query = "SELECT * FROM v1.gpu_gaps WHERE capture_id = 1 AND after_event_id IN (2)"
    assert (loading["place"], loading["capture_id"], loading["event_ids"], loading["sql"]) == (1, 1, [2], query)
    assert [row[0] for row in ask(f"SELECT idle_ns FROM ({query})")] == [530_000]
    assert found["computation"]["place"] is None
    texts = [row["sql"] for row in why["step"] if row["sql"] is not None]
    assert len(texts) == 7
    for text in texts:
        assert ask(text)


def test_rules_of_the_user_come_first(insert: Insert, ask: Ask) -> None:
    step(insert)
    insert("why_rule", "priority subject pattern reason",
           (1, "kernel", "slow_kernel", "our kernel"), (2, "kernel", "vectorized", "computation"),
           (3, "host", "DataLoader", "our loader"))  # fmt: skip
    found = {row[0]: row[1:] for row in ask("SELECT reason, time_ns, title, advice FROM v1.why")}
    assert found["our kernel"] == (50_000, "our kernel", None)
    assert (found["our loader"][0], found["computation"][0]) == (500_000, 200_000)


def test_filters(insert: Insert, ask: Ask) -> None:
    step(insert)
    found: dict[str, int] = dict(ask(filled("why", "reason, time_ns", where={"e": "e.event_id <> 2"})))
    assert "custom_kernel" not in found
    assert sum(found.values()) == 1_000_000


def beside(insert: Insert) -> None:
    """A collective beside a kernel, and a copy at its end."""
    insert("capture", "capture_id source", (1, "torch"))
    insert("kernel_event", "event_id kind name start_ns duration_ns collective",
           (1, "kernel", ADD, 0, 100, None), (2, "kernel", NCCL, 50, 100, "allreduce"),
           (3, "memcpy", "Memcpy HtoD", 140, 30, None), capture_id=1, device_id=0)  # fmt: skip


CHOSEN: Mapping[str, tuple[Callable[[Insert], None], str]] = {
    "all of the step": (step, "true"),
    **{f"event {number}": (step, f"e.event_id = {number}") for number in (1, 2, 3, 4)},
    **{f"beside, event {number}": (beside, f"e.event_id = {number}") for number in (1, 2, 3)},
}
"""Captures of which only some events are chosen."""


@pytest.fixture(scope="module")
def chosen(cases: Cases) -> dict[str, dict[str, int]]:
    """The time of each reason of the captures in ``CHOSEN``, from one report."""
    conditions = [f"e.labels['case'] = '{name}' AND {condition}" for name, (_, condition) in CHOSEN.items()]
    text = filled("why", "labels['case'], reason, time_ns", where={"e": " OR ".join(conditions)}, is_part=True)
    (found,) = cases({name: write for name, (write, _) in CHOSEN.items()}, text)
    return {name: dict(rows) for name, rows in found.items()}


def test_left_out_work_is_not_idle_time(why: dict[str, Rows], chosen: dict[str, dict[str, int]]) -> None:
    """What is left of the time is of the chosen events and of the gaps that they end, with the same reasons."""
    assert chosen["all of the step"] == dict(times(why["step"]))
    assert chosen["event 1"] == {"unfused": 100_000, "host_between": 10_000, "launch_bound": 10_000}
    assert chosen["event 2"] == {
        "custom_kernel": 50_000,
        "data_loading": 500_000,
        "host_between": 20_000,
        "launch_bound": 10_000,
    }
    assert chosen["event 3"] == {"computation": 100_000, "host_sync": 45_000, "launch_bound": 5_000}
    assert chosen["event 4"] == {"copy": 50_000, "host_between": 100_000}  # no gap before it, and the end of the step
    assert sum(sum(chosen[f"event {number}"].values()) for number in (1, 2, 3, 4)) == 1_000_000


def test_what_left_out_work_hides_has_no_reason(chosen: dict[str, dict[str, int]]) -> None:
    """A collective beside a kernel that is left out is exposed only where that does not run."""
    assert [sum(chosen[f"beside, event {number}"].values()) for number in (1, 2, 3)] == [100, 50, 20]


@pytest.mark.parametrize(
    ("case", "advice"),
    [
        ("bf16", "fp8 where its accuracy is enough; sizes"),
        ("fp32 too", "bf16 or fp8 instead of fp32, or TF32; sizes"),
        ("fp8", "sizes"),
    ],
)
def test_a_smaller_type_is_advised_only_where_products_use_a_larger_one(
    why: dict[str, Rows], case: str, advice: str
) -> None:
    (found,) = [row["advice"] for row in why[case] if row["reason"] == "below_peak"]
    assert found.startswith(advice)


def test_without_launches_idle_time_has_no_cause(why: dict[str, Rows]) -> None:
    assert times(why["without launches"]) == [("unfused", 20), ("unknown_idle", 20)]


def test_idle_time_before_an_event_without_launch_has_no_cause(why: dict[str, Rows], insert: Insert, ask: Ask) -> None:
    found = {"unfused": 150_000, "host_between": 150_000, "unknown_idle": 40_000, "launch_bound": 10_000}
    assert dict(times(why["some launches"])) == found
    some_launches(insert)
    assert ask("SELECT host_bound_ns, device_bound_ns, unknown_ns FROM v1.idle_breakdown") == [
        (150_000, 10_000, 40_000)
    ]


def test_a_straggler_is_named(why: dict[str, Rows]) -> None:
    found = {row["reason"]: row for row in why["straggler"] if row["reason"] != "unknown_idle"}
    assert {name: (row["time_ns"], row["worst_rank"]) for name, row in found.items()} == {
        "exposed_collective": (2 * 8 * 10, 1),
        "straggler": (8 * 90, 1),
    }
    late = found["straggler"]
    assert late["title"] == "Other ranks wait for rank 1, which is late"
    assert late["detail"].startswith("rank 1 is late")
    assert "the others wait for it: rank 0 0.001 ms (10.1 %)" in late["detail"]  # 8 x 90 of 7,100 ns
    assert late["worst_percent"] == 0  # the straggler itself does not wait


def test_only_copies_between_host_and_device_are_named_so(why: dict[str, Rows]) -> None:
    found = {row["reason"]: (row["time_ns"], row["events"]) for row in why["copies"] if "copy" in row["reason"]}
    assert found == {"copy": (300, 2), "device_copy": (400 + 800 + 1_600 + 10, 4)}


def test_idle_time_in_a_copying_call_is_no_copy(why: dict[str, Rows]) -> None:
    found = {row["reason"]: (row["time_ns"], row["events"]) for row in why["copying call"]}
    assert found["copy"] == (5_000, 1)
    assert found["copy_call"][0] >= 5_000
    assert sum(time for time, _ in found.values()) == 61_005


def test_unrecorded_replays(why: dict[str, Rows]) -> None:
    assert times(why["unrecorded"]) == [("unrecorded", 9_000), ("launch_bound", 1_000), ("unfused", 20)]


@pytest.mark.parametrize("case", ["slow stage, batched", "slow stage, one by one"])
def test_the_slow_stage_of_a_pipeline_is_named(why: dict[str, Rows], case: str) -> None:
    (found,) = [row for row in why[case] if row["place"] == 1]
    assert found["reason"] == "pipeline_bubble"
    assert found["detail"].startswith("rank 2 waits least")


def test_gaps_between_pending_kernels_are_not_the_host(why: dict[str, Rows], insert: Insert, ask: Ask) -> None:
    late = sum(22_000 * n - 1_000 * n + 5_000 > 50_000 for n in range(10))
    right = {"unfused": 290_000, "host_sync": 15_000 + 2_000 * (9 - late), "dependency": 2_000 * late}
    assert dict(times(why["pending"])) == right
    pending(insert)
    ((device_ns,),) = ask("SELECT device_bound_ns FROM v1.idle_breakdown")
    assert device_ns == 5_000 + 9 * 2_000  # the time of the first launch is with host_sync
