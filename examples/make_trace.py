"""Record a small trace with torch.profiler: ``python make_trace.py [FILE]``, then ``tracedb ingest FILE``.

A few training steps of a small network, with input shapes and named ranges. Without a GPU the trace holds operators
and ranges only, and tracedb says that no GPU activity was captured.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def train_step(torch: Any, model: Any, optimizer: Any, inputs: Any) -> None:
    """Run one step in three ranges, as the reports over ranges like them."""
    with torch.profiler.record_function("forward"):
        loss = model(inputs).square().mean()
    with torch.profiler.record_function("backward"):
        loss.backward()
    with torch.profiler.record_function("optimizer"):
        optimizer.step()
        optimizer.zero_grad()


def record(path: Path, steps: int, width: int) -> None:
    """Train for a warm-up step and ``steps`` recorded ones, and write the trace of these to ``path``."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    layers = [torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Linear(width, width)]
    model = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    inputs = torch.randn(256, width, device=device)
    path.parent.mkdir(parents=True, exist_ok=True)
    with torch.profiler.profile(
        activities=activities,
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=steps, repeat=1),
        on_trace_ready=lambda done: done.export_chrome_trace(str(path)),
        record_shapes=True,
    ) as profiler:
        for _ in range(1 + steps):
            train_step(torch, model, optimizer, inputs)
            profiler.step()


def main() -> None:
    """Record and say where the trace is."""
    parser = argparse.ArgumentParser(description="Record a small trace with torch.profiler.")
    parser.add_argument("file", nargs="?", type=Path, default=Path("trace/rank0.json.gz"))
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--width", type=int, default=512)
    given = parser.parse_args()
    record(given.file, given.steps, given.width)
    print(f"{given.file}: {given.file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
