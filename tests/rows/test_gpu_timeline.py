"""v1.gpu_timeline: parts that sum to the whole."""

from __future__ import annotations

import random

from .conftest import ADD, GEMM, NCCL, Trace

COLUMNS = "computation_ns, exposed_collective_ns, exposed_copy_ns, busy_ns, idle_ns, total_ns"


def test_each_layer_hides_the_ones_after_it(trace: Trace) -> None:
    trace.capture(rank=1)
    trace.event(GEMM, 0, 40)
    trace.event(NCCL, 20, 60)
    trace.event("Memcpy HtoD", 50, 70, kind="memcpy")
    trace.event("Memset", 90, 100, kind="memset")
    assert trace.rows(f"rank, device_id, {COLUMNS}", "gpu_timeline") == [(1, 0, 40, 20, 20, 80, 20, 100)]
    percents = "computation_percent, exposed_collective_percent, exposed_copy_percent, busy_percent, idle_percent"
    assert trace.rows(percents, "gpu_timeline") == [(40.0, 20.0, 20.0, 80.0, 20.0)]


def test_graph_replays_compute(trace: Trace) -> None:
    trace.capture()
    trace.event("graph 3", 10, 20, kind="graph")
    assert trace.rows(COLUMNS, "gpu_timeline") == [(10, 0, 0, 10, 0, 10)]


def test_a_copy_done_by_a_kernel_computes(trace: Trace) -> None:
    trace.capture(vendor="AMD")
    trace.event("__amd_rocclr_copyBuffer", 0, 10)
    assert trace.rows(COLUMNS, "gpu_timeline") == [(10, 0, 0, 10, 0, 10)]


def test_one_event_of_no_length_has_no_percent(trace: Trace) -> None:
    trace.capture()
    trace.event(ADD, 5, 5)
    assert trace.rows(f"{COLUMNS}, busy_percent", "gpu_timeline") == [(0, 0, 0, 0, 0, 0, None)]


def test_a_long_event_that_others_lie_in(trace: Trace) -> None:
    trace.capture()
    trace.event(GEMM, 0, 100)
    trace.event(ADD, 10, 20)
    trace.event(ADD, 110, 120)
    assert trace.rows(COLUMNS, "gpu_timeline") == [(110, 0, 0, 110, 10, 120)]


def test_devices_are_apart_and_a_missing_device_is_one(trace: Trace) -> None:
    trace.capture()
    trace.event(ADD, 0, 10, device_id=0)
    trace.event(ADD, 5, 15, device_id=1)
    trace.event(ADD, 0, 1, device_id=None)
    assert trace.rows("device_id, busy_ns", "gpu_timeline") == [(0, 10), (1, 10), (None, 1)]


def test_parts_sum_exactly_on_random_events(trace: Trace) -> None:
    chance = random.Random(3)
    trace.capture()
    layers: dict[str, set[int]] = {"kernel": set(), "collective": set(), "memcpy": set()}
    everything: set[int] = set()
    for _ in range(80):
        what, start = chance.choice(list(layers)), chance.randrange(0, 400)
        end = start + chance.randrange(0, 25)
        name = {"kernel": GEMM, "collective": NCCL, "memcpy": "Memcpy DtoD"}[what]
        trace.event(name, start, end, kind="memcpy" if what == "memcpy" else "kernel")
        layers[what].update(range(start, end))
        everything.update((start, end))
    compute, collective, copy = layers.values()
    busy, total = len(compute | collective | copy), max(everything) - min(everything)
    parts = (len(compute), len(collective - compute), len(copy - compute - collective))
    assert trace.rows(COLUMNS, "gpu_timeline") == [(*parts, busy, total - busy, total)]
