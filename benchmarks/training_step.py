"""Time and trace training steps on several GPUs, to compare with ``tracedb predict --step``.

``torchrun --standalone --nproc-per-node=4 benchmarks/training_step.py OUT --spread dp``; OUT gets ``steps.json`` with
the configurations and the times of whole steps, as ``predict --step`` reads it, and ``config=NAME/rankN.json.gz``, a
trace of two steps per rank. ``--plan FILE`` runs several configurations one after another: a JSON list of objects with
the options as keys (``kv_heads``, ``micro_batches`` …).

``--spread``: ``one`` every GPU alone; ``dp`` replicas that all-reduce their gradients after the backward, one weight
at a time; ``ddp`` the same overlapping the backward, by DistributedDataParallel; ``zero1`` as dp, but each replica
updates its part of the weights and gathers the others'; ``fsdp`` weights sharded by layer (``fully_shard``); ``ep`` as
dp, but the experts are shared out; ``mp`` every product split over the ranks; ``pp`` one pipeline stage per rank, 1F1B;
``mesh`` any of these together (``--pp``, ``--dp``, ``--mp``; ``--overlap`` or ``--zero1`` for its replicas), in as many
copies as there are ranks for. With ``mp`` each rank computes the loss over its own
share of the vocabulary: the same work as in training, but not a training objective. ``--kind`` is described in
``spread_model.py``.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from spread_model import LAYERS, ROTATING, Sizes
from spread_trainer import REPLICATED, Plan, Trainer
from torch.profiler import ProfilerActivity, profile, schedule

from tracedb.conditions.sampler import Recent
from tracedb.sampling import device as devices

WARMUPS, TRACED = 3, 2
WARM_SECONDS = 1.0
"""Steps before the timed ones: the clock settles meanwhile."""
READ_SECONDS = 0.6
"""Steps after the timed ones, in which clock and power are read: reading takes time of the host."""
SPREADS = ("one", "dp", "ddp", "zero1", "fsdp", "ep", "mp", "pp", "mesh")
DEFAULTS = {
    "kind": "gpt", "layers": 8, "dim": 2560, "heads": 20, "kv_heads": 0, "ffn": 0, "seq": 2048, "batch": 4,
    "micro_batches": 0, "experts": 8, "top_k": 2, "pp": 1, "dp": 1, "mp": 1, "recompute": False, "bucket_mb": 100,
    "overlap": False, "zero1": False,
}  # fmt: skip


def plan_of(said: dict[str, Any], ranks: int, eps: float) -> Plan:
    """Return a configuration; what it leaves out has its default."""
    said = {**DEFAULTS, **said}
    spread, dim = said["spread"], said["dim"]
    degrees = {name: said[name] if spread == "mesh" else 1 for name in ("pp", "dp", "mp")}
    if spread in ("mp", "pp", *REPLICATED):
        degrees["dp" if spread in REPLICATED else spread] = ranks
    if ranks % math.prod(degrees.values()):
        raise SystemExit(f"{ranks} ranks are no multiple of {degrees}")
    if said["overlap"] and degrees["pp"] > 1:
        raise SystemExit("--overlap goes with --dp and --mp, not with --pp")
    ffn = said["ffn"] or (4 * dim if said["kind"] != "llama" else 8 * dim // 3)
    sizes = Sizes(
        said["kind"], said["layers"], dim, said["heads"], said["kv_heads"] or said["heads"], ffn, said["seq"],
        said["experts"], said["top_k"], said["recompute"],
    )  # fmt: skip
    micro_batches = said["micro_batches"] or (4 if degrees["pp"] > 1 else 1)
    return Plan(
        spread, sizes, said["batch"], micro_batches, **degrees, bucket_mb=said["bucket_mb"], eps=eps,
        overlap=said["overlap"] or spread == "ddp", zero1=said["zero1"] or spread == "zero1",
    )  # fmt: skip


def measured(run: Callable[[], None], device: torch.device, steps: int) -> list[list[float]]:
    """Return the us of each of several steps, for every rank, each from a common start to the rank's end."""
    found = []
    begin = 0.0
    for number in range(WARMUPS):
        begin = time.perf_counter() if number == WARMUPS - 1 else 0.0
        run()
        _wait(device)
    longest = torch.tensor([time.perf_counter() - begin], device=device)
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    for _ in range(math.ceil(WARM_SECONDS / longest.item()) if device.type == "cuda" else 1):
        run()
    for _ in range(steps):
        _meet(device)
        start = time.perf_counter_ns()
        run()
        _wait(device)
        found.append((time.perf_counter_ns() - start) / 1000)
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, found)
    return everyone


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _meet(device: torch.device) -> None:
    _wait(device)
    dist.barrier()
    _wait(device)


def traced(run: Callable[[], None], device: torch.device, trace: Path) -> None:
    """Write the trace of ``TRACED`` steps."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    plan = schedule(wait=0, warmup=2, active=TRACED, repeat=1)

    def keep(profiler: profile) -> None:
        profiler.export_chrome_trace(str(trace))

    with profile(activities=activities, schedule=plan, record_shapes=True, on_trace_ready=keep) as profiler:
        for _ in range(2 + TRACED):
            _meet(device)
            run()
            _wait(device)
            profiler.step()


def name_of(plan: Plan) -> str:
    """Return the configuration's name."""
    sizes = plan.sizes
    spread = plan.spread
    if spread == "mesh":
        degrees = {"pp": plan.pp, "dp": plan.dp, "mp": plan.mp}
        spread = "".join(f"{name}{degree}" for name, degree in degrees.items() if degree > 1)
        spread += "_ddp" * plan.overlap + "_zero1" * plan.zero1
    again = ("_recompute" if sizes.recompute else "") + (f"_m{plan.micro_batches}" if plan.micro_batches > 1 else "")
    return f"{spread}_{sizes.kind}_{sizes.layers}x{sizes.dim}_{plan.batch}x{sizes.seq}{again}"


def described(trainer: Trainer, name: str, dtype: str, times: list[list[float]]) -> dict[str, object]:
    """Return the configuration as ``tracedb predict --step`` reads it, with the measured times."""
    plan, sizes = trainer.plan, trainer.plan.sizes
    found: dict[str, object] = {
        "config": name, "layers": sizes.layers, "dim": sizes.dim, "heads": sizes.heads, "seq": sizes.seq,
        "batch": plan.batch, "dtype": dtype, "layer": LAYERS[sizes.kind].split(),
        "norm": "RMSlayernorm" if sizes.kind in ROTATING else "layernorm", **trainer.described(),
    }  # fmt: skip
    if sizes.kv_heads != sizes.heads:
        found["kv_heads"] = sizes.kv_heads
    if sizes.ffn != 4 * sizes.dim:
        found["ffn"] = sizes.ffn
    if sizes.recompute:
        found["recompute"] = True
    if sizes.kind == "moe":
        found |= {"experts": sizes.experts, "top_k": sizes.top_k}
    if trainer.device.type == "cuda":
        found["gpu"] = torch.cuda.get_device_name()
    # Ranks that work together end a step together; further copies of the model have times of their own.
    together = times[: plan.pp * plan.dp * plan.mp]
    steps = [max(ranks) for ranks in zip(*together, strict=True)]
    return found | {
        "gpus_per_node": len(times),
        "operands": "finite" if trainer.is_finite() else "nan",
        "step_us_median": round(statistics.median(steps), 1),
        "step_us_min": round(min(steps), 1),
        "step_us_max": round(max(steps), 1),
        "steps_us": [round(step, 1) for step in steps],
        "step_us_by_rank": [round(statistics.median(rank), 1) for rank in times],
        "trace": f"config={name}/rank0.json.gz",
        "torch": torch.__version__,
    }


def state_of(run: Callable[[], None], device: torch.device, step_us: float) -> dict[str, object]:
    """Return the clock and the power of every rank's GPU in further steps; None where they cannot be read."""
    with Recent(devices.uuid(device)) as recent:
        begin = time.time_ns()
        for _ in range(max(math.ceil(READ_SECONDS * 1e6 / step_us), 2) if device.type == "cuda" else 1):
            _meet(device)
            run()
            _wait(device)
        readings = recent.between(begin, time.time_ns())
    mine = {}
    for key in ("sm_clock_mhz", "power_w", "temperature_c"):
        values = [value for reading in readings if (value := getattr(reading, key)) is not None]
        mine[f"measured_{key}"] = round(statistics.median(values), 1) if values else None
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, mine)
    return {key: [one[key] for one in everyone] for key in mine}


def prepared(plan: Plan, device: torch.device, said: argparse.Namespace) -> tuple[Trainer, Callable[[], None]]:
    """Return the model of a configuration, and its step."""
    trainer = Trainer(plan, device, devices.dtype(said.dtype))
    tokens, target = trainer.batch()
    return trainer, lambda: trainer.step(tokens, target)


def timed(plan: Plan, device: torch.device, said: argparse.Namespace) -> dict[str, object]:
    """Time one configuration."""
    trainer, step = prepared(plan, device, said)
    times = measured(step, device, said.steps)
    step_us = statistics.median(max(ranks) for ranks in zip(*times, strict=True))
    return described(trainer, name_of(plan), said.dtype, times) | state_of(step, device, step_us)


def trace(plan: Plan, device: torch.device, said: argparse.Namespace) -> None:
    """Trace one configuration."""
    folder = said.out / f"config={name_of(plan)}"
    folder.mkdir(parents=True, exist_ok=True)
    _, step = prepared(plan, device, said)
    measured(step, device, 1)  # the clock settles meanwhile
    traced(step, device, folder / f"rank{dist.get_rank()}.json.gz")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--spread", choices=SPREADS, default="one")
    parser.add_argument("--plan", type=Path, help="a JSON list of configurations")
    for key, value in DEFAULTS.items():
        option = f"--{key.replace('_', '-')}"
        if key == "kind":
            parser.add_argument(option, choices=tuple(LAYERS), default=value)
        elif isinstance(value, bool):
            parser.add_argument(option, action="store_true")
        else:
            parser.add_argument(option, type=int, default=value)
    parser.add_argument("--dtype", choices=("bf16", "fp16", "fp32"), default="bf16")
    parser.add_argument("--eps", type=float, default=1e-8, help="of AdamW; in fp16 1e-8 is 0 and weights become NaN")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=20, help="timed steps")
    parser.add_argument("--times-only", action="store_true", help="write no traces")
    parser.add_argument("--until", type=float, help="leave out what would begin after this many seconds")
    return parser.parse_args()


def _joined(found: dict[str, Any], known: list[dict[str, Any]]) -> dict[str, Any]:
    """Add the steps that an earlier run of the same configuration timed: the host's speed varies over minutes."""
    before = next((one for one in known if one["config"] == found["config"]), None)
    if before is None:
        return found
    steps = before["steps_us"] + found["steps_us"]
    rounds = [*before.get("medians_us", [before["step_us_median"]]), found["step_us_median"]]
    return found | {
        "steps_us": steps, "medians_us": rounds, "step_us_median": round(statistics.median(steps), 1),
        "step_us_min": min(steps), "step_us_max": max(steps),
    }  # fmt: skip


def _is_late(begun: float, until: float | None, device: torch.device) -> bool:
    """Whether any rank's time is up."""
    late = torch.tensor([float(until is not None and time.monotonic() - begun > until)], device=device)
    dist.all_reduce(late, op=dist.ReduceOp.MAX)
    return bool(late.item())


def main() -> None:
    """Time and trace the configurations."""
    begun = time.monotonic()
    said = _arguments()
    device = torch.device(said.device)
    if said.device == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        dist.init_process_group("gloo")
    single = {key: getattr(said, key) for key in ("spread", *DEFAULTS)}
    wanted = [single] if said.plan is None else json.loads(said.plan.read_text(encoding="utf-8"))
    found: list[dict[str, object]] = []
    said.out.mkdir(parents=True, exist_ok=True)
    written = said.out / "steps.json"
    known = json.loads(written.read_text(encoding="utf-8")) if written.exists() else []
    plans = [plan_of(item, dist.get_world_size(), said.eps) for item in wanted]
    try:
        for plan in plans:
            if _is_late(begun, said.until, device):
                break
            found.append(_joined(timed(plan, device, said), known))
            gc.collect()
            devices.release(device)
            if dist.get_rank() == 0:
                print(json.dumps(found[-1]), flush=True)
                written.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        # Traced only after all were timed: once the profiler has run, launches may stay slower.
        for plan in plans[: 0 if said.times_only else len(found)]:
            trace(plan, device, said)
            gc.collect()
            devices.release(device)
        dist.barrier()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
