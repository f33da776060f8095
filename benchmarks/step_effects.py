"""Measure apart what makes an operator slower or faster in a training step than alone: ``step_effects.py OUT.json``.

Each operator runs in bf16 under these conditions, and its kernels are timed by the profiler (median of ``CALLS``):

- ``rested``: the device is idle for ``REST`` seconds before the call; its inputs were read just before (warm L2);
- ``rested_cold``: the same, but 512 MB were written before the rest;
- ``steady_cold``: behind the load of ``tracedb sample --regime steady``, so at its clock; nothing is in L2;
- ``steady``: as that regime samples: the input that the operator before would have written is partly in L2;
- ``steady_hot``: behind the load, and behind a call of the same operator on the same inputs;
- ``steady_gap``: as ``steady_cold``, with the device idle for some 0.2 ms before the call;
- ``steady_fresh``: as ``steady_cold``, each output in memory that was never used before;
- ``own``: calls of the operator alone, one directly behind the other, for a second: at the clock of its own power;
- ``steady_nan``: as ``steady_cold``, all operands NaN; ``own_nan``: as ``own``, all operands NaN.

OUT.json gets the times in us, with the clock and the power of each condition, and the clock over time after the load
begins and after it changes.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile, record_function

from tracedb.conditions.reading import Reading
from tracedb.conditions.sampler import Recent
from tracedb.sampling import device as devices
from tracedb.sampling.steady_load import SteadyLoad

CALLS, REST, ROUNDS = 10, 0.02, 2
TOKENS, WIDTH = 6144, 3072
Call = Callable[[], torch.Tensor]


def operators(device: torch.device, fill: float | None) -> dict[str, tuple[Call, torch.Tensor]]:
    """Return each operator with its first input; ``fill``: the value of all operands, None for random ones."""

    def tensor(*size: int) -> torch.Tensor:
        found = torch.randn(size, dtype=torch.bfloat16, device=device)
        return found if fill is None else found.fill_(fill)

    x, wide, weight = tensor(TOKENS, WIDTH), tensor(TOKENS, 4 * WIDTH), tensor(WIDTH, 4 * WIDTH)
    heads = tensor(4, WIDTH // 128, TOKENS // 4, 128)
    return {
        "product": (lambda: x @ weight, x),
        "product_of_weight_gradient": (lambda: x.t() @ wide, x),
        "gelu": (lambda: gelu(wide), wide),
        "layernorm": (lambda: layer_norm(x, (WIDTH,)), x),
        "residual": (lambda: x + x, x),
        "attention": (lambda: scaled_dot_product_attention(heads, heads, heads, is_causal=True), heads),
    }


def main(out: Path) -> None:
    """Run all conditions."""
    device = devices.choose(None)
    found: dict[str, object] = {"device": devices.title(device), "torch": torch.__version__}
    load = SteadyLoad(torch.bfloat16, device)
    flush = torch.empty(256 << 20, dtype=torch.bfloat16, device=device)
    with torch.no_grad(), Recent(devices.uuid(device)) as recent:
        found["missing"] = recent.missing
        found["clock_over_time"] = _settling(load, operators(device, None), recent, device)
        rows = []
        for name, (call, first) in operators(device, None).items():
            rows += [{"operator": name, **row} for row in _conditions(call, first, load, flush, recent, device)]
        for name, (call, _) in operators(device, float("nan")).items():
            if name in ("product", "gelu", "attention"):
                before = lambda: load.run(ROUNDS)  # noqa: E731
                rows.append({"operator": name, "condition": "steady_nan", **_timed(call, before, recent, load)})
                rows.append({"operator": name, "condition": "own_nan", **_own(call, recent, device)})
        found["rows"] = rows
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        print(json.dumps(row))


def _conditions(
    call: Call, first: torch.Tensor, load: SteadyLoad, flush: torch.Tensor, recent: Recent, device: torch.device
) -> list[dict[str, object]]:
    def rest(cold: bool) -> None:
        call()
        if cold:
            flush.fill_(1)
        devices.wait_for(device)
        time.sleep(REST)

    def fresh_input() -> None:
        load.run(ROUNDS)
        first.mul_(1)

    def hot() -> None:
        load.run(ROUNDS)
        call()

    def gap() -> None:
        load.run(ROUNDS)
        devices.wait_for(device)
        time.sleep(0.0001)

    def fresh() -> None:
        torch.cuda.empty_cache()
        load.run(3 * ROUNDS)

    before: dict[str, Callable[[], object]] = {
        "rested": lambda: rest(False),
        "rested_cold": lambda: rest(True),
        "steady_cold": lambda: load.run(ROUNDS),
        "steady": fresh_input,
        "steady_hot": hot,
        "steady_gap": gap,
        "steady_fresh": fresh,
    }
    rows: list[dict[str, object]] = []
    for condition, prepare in before.items():
        warm = load if condition.startswith("steady") else None
        rows.append({"condition": condition, **_timed(call, prepare, recent, warm)})
    rows.append({"condition": "own", **_own(call, recent, device)})
    return rows


def _timed(call: Call, before: Callable[[], object], recent: Recent, load: SteadyLoad | None) -> dict[str, object]:
    """Return the median time of the call's kernels, behind ``before``."""
    call()
    if load is not None:
        load.warm_up(0.2)
    begin = time.time_ns()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(CALLS)]
        for start, end in events:
            before()
            start.record()
            with record_function("timed"):
                call()
            end.record()
        torch.cuda.synchronize()
    state = _state(recent.between(begin, time.time_ns()))
    by_events = statistics.median(1000 * start.elapsed_time(end) for start, end in events)
    by_kernels = statistics.median(_kernel_times(profiler))
    return {"us": round(by_kernels, 2), "between_events_us": round(by_events, 2), **state}


def _kernel_times(profiler: profile) -> list[float]:
    """Return the sum of kernel times within each range named timed, in us."""
    ranges = [event for event in profiler.events() if event.name == "timed" and event.device_type.name == "CPU"]
    times = []
    for item in ranges:
        inside = [item, *item.cpu_children]
        for event in inside:
            inside += [child for child in event.cpu_children if child not in inside]
        times.append(sum(kernel.duration for event in inside for kernel in event.kernels))
    return [value for value in times if value] or [0.0]


def _own(call: Call, recent: Recent, device: torch.device) -> dict[str, object]:
    """Return the mean time of calls that follow each other for a second, after half a second of them."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    devices.wait_for(device)
    begin = time.perf_counter()
    call()
    devices.wait_for(device)
    batch = max(int(0.05 / max(time.perf_counter() - begin, 2e-5)), 1)
    for _ in range(6):
        for _ in range(batch):
            call()
        devices.wait_for(device)
    begun, calls = time.time_ns(), 0
    start.record()
    while time.time_ns() - begun < 500_000_000:
        for _ in range(batch):
            call()
        calls += batch
        end.record()
        devices.wait_for(device)
    return {"us": round(1000 * start.elapsed_time(end) / calls, 2), **_state(recent.between(begun, time.time_ns()))}


def _settling(
    load: SteadyLoad, calls: dict[str, tuple[Call, torch.Tensor]], recent: Recent, device: torch.device
) -> list[dict[str, object]]:
    """Return clock and power over time: idle, load, products only, passes over memory only, load, idle."""
    begin = time.time_ns()
    marks = []
    for name, seconds in (("idle", 0.3), ("load", 1.2), ("product", 0.8), ("gelu", 0.8), ("load", 0.6), ("idle", 0.4)):
        marks.append((time.time_ns(), name))
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            if name == "idle":
                time.sleep(0.02)
            elif name == "load":
                load.run(4)
            else:
                for _ in range(20):
                    calls[name][0]()
            devices.wait_for(device)
    rows = []
    for reading in recent.between(begin, time.time_ns()):
        phase = [name for at, name in marks if at <= reading.unix_ns][-1]
        rows.append({"ms": (reading.unix_ns - begin) // 1_000_000, "phase": phase, **_state([reading])})
    return rows


def _state(readings: list[Reading]) -> dict[str, object]:
    """Return the median of each number."""
    found: dict[str, object] = {}
    for name in ("sm_clock_mhz", "memory_clock_mhz", "power_w", "temperature_c"):
        values = [value for reading in readings if (value := getattr(reading, name)) is not None]
        found[name] = round(statistics.median(values), 1) if values else None
    found["throttle"] = max((r.throttle for r in readings if r.throttle), key=len, default=None)
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
