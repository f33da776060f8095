"""``v1.hta_temporal_breakdown``, ``v1.tracelens_gpu_timeline``: names, units, definitions of HTA and TraceLens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

EVENT = "event_id kind name start_ns duration_ns"
HTA = '"idle_time(us)", "compute_time(us)", "non_compute_time(us)", "kernel_time(us)"'
PERCENTS = "idle_time_pctg, compute_time_pctg, non_compute_time_pctg"
TRACELENS = 'SELECT "type", "time ms", "percent" FROM v1.tracelens_gpu_timeline'


@pytest.mark.parametrize("view", ["hta_temporal_breakdown", "tracelens_gpu_timeline"])
def test_empty(ask: Ask, view: str) -> None:
    assert ask(f"SELECT * FROM v1.{view}") == []


def test_what_hta_takes_for_computation(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    insert("kernel_event", EVENT,
           (1, "kernel", "add", 0, 1000), (2, "kernel", "mul", 500, 1500),          # 0 to 2000
           (3, "kernel", "ncclDevKernel_AllReduce", 1000, 2000),                     # adds 1000, not computation
           (4, "kernel", "rcclGenericKernel", 3000, 500),                            # computation to HTA
           (5, "kernel", "waitSync", 3500, 500), (6, "kernel", "MyMemcpyKernel", 4000, 500),  # neither
           (7, "memcpy", "[CUDA memcpy HtoD]", 4500, 500), (8, "memset", "Memset", 6000, 1000),
           capture_id=0, device_id=0)  # fmt: skip
    right = [(1.0, 2.5, 3.5, 7.0, 14.29, 35.71, 50.0)]
    assert ask(f"SELECT {HTA}, {PERCENTS} FROM v1.hta_temporal_breakdown") == right
    shuffled()
    assert ask(f"SELECT {HTA}, {PERCENTS} FROM v1.hta_temporal_breakdown") == right


def test_what_tracelens_takes_for_communication(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    insert("kernel_event", EVENT,
           (1, "kernel", "add", 0, 1000), (2, "memset", "Memset", 1000, 1000),       # computation: 0 to 2000
           (3, "kernel", "RCCL_Generic", 1500, 1000), (4, "kernel", "vllm::cross_device_reduce_1stage", 2000, 1000),
           (5, "memcpy", "Memcpy HtoD", 500, 1000), (6, "kernel", "__amd_rocclr_copyBuffer", 2500, 1500),
           (7, "kernel", "__amd_rocclr_fillBufferAligned", 9000, 1000),              # computation
           capture_id=0, device_id=0)  # fmt: skip
    right = [
        ("busy_time", 0.005, 50.0),
        ("computation_time", 0.003, 30.0),
        ("exposed_comm_time", 0.001, 10.0),
        ("exposed_memcpy_time", 0.001, 10.0),
        ("idle_time", 0.005, 50.0),
        ("total_comm_time", 0.0015, 15.0),
        ("total_memcpy_time", 0.0025, 25.0),
        ("total_time", 0.01, 100.0),
    ]
    assert ask(f"{TRACELENS} ORDER BY ALL") == right
    shuffled()
    assert ask(f"{TRACELENS} ORDER BY ALL") == right


def test_devices_together_and_captures_apart(insert: Insert, ask: Ask, report: Report) -> None:
    insert("capture", "capture_id rank labels", (0, 0, {"t": "8"}), (1, 1, {"t": "8"}), source="torch")
    insert("kernel_event", "capture_id device_id event_id start_ns duration_ns", (0, 0, 1, 0, 1000),
           (0, 1, 2, 3000, 1000), (1, 0, 1, 0, 2000), kind="kernel", name="add")  # fmt: skip
    assert ask(f"SELECT capture_id, rank, labels['t'], {HTA} FROM v1.hta_temporal_breakdown ORDER BY ALL") == [
        (0, 0, "8", 2.0, 2.0, 0.0, 4.0),
        (1, 1, "8", 0.0, 2.0, 0.0, 2.0),
    ]
    by = {"t": "{base}.labels['t']"}
    assert report("hta_temporal_breakdown", f'"t", {HTA}', by=by) == [("8", 2.0, 4.0, 0.0, 6.0)]
    found = report("tracelens_gpu_timeline", '"t", "type", "time ms"', by=by, where={"e": "e.rank = 0"})
    assert ("8", "idle_time", 0.002) in found and ("8", "total_time", 0.004) in found and len(found) == 8


def test_no_length_has_no_shares(insert: Insert, ask: Ask) -> None:
    insert("kernel_event", EVENT, (1, "kernel", "add", 5, 0), capture_id=0)
    assert ask(f"SELECT {HTA}, {PERCENTS} FROM v1.hta_temporal_breakdown") == [(0.0,) * 4 + (None,) * 3]
    assert {row[1:] for row in ask(TRACELENS)} == {(0.0, None)}


def test_left_out_work_is_not_idle_time(insert: Insert, report: Report) -> None:
    """Of a, 200 ns of work, and 100 ns before its second kernel in which no device of the capture runs anything."""
    insert("kernel_event", "event_id device_id name start_ns duration_ns",
           (1, 0, "a", 0, 100), (2, 1, "b", 100, 200), (3, 0, "a", 400, 100), (4, 1, "b", 600, 50),
           capture_id=0, kind="kernel")  # fmt: skip
    chosen: dict[str, Any] = {"where": {"e": "e.name = 'a'"}, "is_part": True}
    assert report("hta_temporal_breakdown", HTA, **chosen) == [(0.1, 0.2, 0.0, 0.3)]
    shares: dict[str, float] = dict(report("tracelens_gpu_timeline", '"type", round("time ms" * 1e6)', **chosen))
    assert (shares["busy_time"], shares["idle_time"], shares["total_time"]) == (200, 100, 300)
    everything = report("hta_temporal_breakdown", HTA, is_part=True)
    assert everything == report("hta_temporal_breakdown", HTA) == [(0.2, 0.45, 0.0, 0.65)]
