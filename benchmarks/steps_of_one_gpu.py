"""Time and trace training steps of several architectures and sizes on one GPU: ``steps_of_one_gpu.py OUT``.

OUT gets ``steps.json``, the configurations with the median times of whole steps as ``predict --step`` reads them, and
``config=NAME/rank0.json.gz``, a trace of two steps each. The clock and the power of the GPU during the timed steps are
in ``steps.json`` where NVML can be asked.

Architectures: ``gpt`` (layer norm, GELU); ``rope`` (RMS norm, rotary embedding, GELU); ``parallel`` (one norm for both
attention and MLP, as in GPT-J, with rotary embedding). None has a bias; the element type is bf16.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile, schedule

from tracedb.conditions.sampler import Recent
from tracedb.sampling import device as devices

VOCABULARY, HEAD = 50_304, 128
WARMUPS, STEPS, TRACED = 5, 20, 2
WARM_SECONDS = 1.0
"""Steps before the timed ones, at least: the clock settles meanwhile."""
SIZES = (
    *(("gpt", 10, 3072, 4, 1536), ("gpt", 6, 4608, 4, 1024), ("gpt", 14, 1792, 8, 1024), ("gpt", 5, 5120, 2, 2048)),
    *(("rope", 12, 2304, 4, 2048), ("rope", 8, 3584, 4, 1024), ("rope", 4, 6144, 2, 2048)),
    *(("parallel", 10, 2816, 4, 1536), ("parallel", 6, 4096, 4, 2048), ("parallel", 16, 2048, 8, 1024)),
)
"""Architecture, layers, width, sequences and their length."""
LAYERS = {
    "gpt": "layernorm linear1 flash_atten linear2 res_add layernorm linear3 gelu linear4 res_add",
    "rope": "RMSlayernorm linear1 RoPE RoPE flash_atten linear2 res_add RMSlayernorm linear3 gelu linear4 res_add",
    "parallel": "layernorm linear1 RoPE RoPE flash_atten linear2 linear3 gelu linear4 res_add res_add",
}
"""Operators of a layer, as ``predict --step`` names them."""


def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Return a rotary embedding, as ``tracedb sample`` runs it."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class Layer(nn.Module):  # type: ignore[misc]
    """One layer of an architecture."""

    def __init__(self, kind: str, dim: int, length: int) -> None:
        super().__init__()
        self.kind, self.heads = kind, dim // HEAD
        norm = nn.RMSNorm if kind == "rope" else nn.LayerNorm
        self.norm1 = norm(dim)
        self.norm2 = norm(dim) if kind != "parallel" else None
        self.linear1, self.linear2 = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.linear3, self.linear4 = nn.Linear(dim, 4 * dim, bias=False), nn.Linear(4 * dim, dim, bias=False)
        rates = 10_000.0 ** (-torch.arange(0, HEAD // 2, dtype=torch.float32) / (HEAD // 2))
        angles = torch.arange(length, dtype=torch.float32)[:, None] * rates[None, :]
        self.register_buffer("cosine", torch.cat((angles, angles), dim=-1).cos())
        self.register_buffer("sine", torch.cat((angles, angles), dim=-1).sin())

    def attend(self, x: Tensor) -> Tensor:
        b, length, _ = x.shape
        query, key, value = (
            part.view(b, length, self.heads, HEAD).transpose(1, 2) for part in self.linear1(x).chunk(3, dim=-1)
        )
        if self.kind != "gpt":
            query, key = rotated(query, self.cosine, self.sine), rotated(key, self.cosine, self.sine)
        with nn.attention.sdpa_kernel(nn.attention.SDPBackend.FLASH_ATTENTION) if x.is_cuda else nullcontext():
            y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.linear2(y.transpose(1, 2).reshape(b, length, -1))

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm1(x)
        if self.norm2 is None:
            return x + self.attend(normed) + self.linear4(functional.gelu(self.linear3(normed)))
        x = x + self.attend(normed)
        return x + self.linear4(functional.gelu(self.linear3(self.norm2(x))))


class Model(nn.Module):  # type: ignore[misc]
    """Embedding, layers, norm, head."""

    def __init__(self, kind: str, layers: int, dim: int, length: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, dim)
        self.layers = nn.ModuleList(Layer(kind, dim, length) for _ in range(layers))
        self.norm = (nn.RMSNorm if kind == "rope" else nn.LayerNorm)(dim)
        self.head = nn.Linear(dim, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor, target: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return functional.cross_entropy(self.head(self.norm(x)).view(-1, VOCABULARY), target.view(-1))


def timed(run: Callable[[], None], device: torch.device) -> list[float]:
    """Return the us of each of ``STEPS`` steps, the device waited for before and after each."""
    found: list[float] = []
    first = time.perf_counter()
    warmups = 0
    while len(found) < STEPS:
        devices.wait_for(device)
        begin = time.perf_counter_ns()
        run()
        devices.wait_for(device)
        if warmups >= WARMUPS and time.perf_counter() - first > WARM_SECONDS:
            found.append((time.perf_counter_ns() - begin) / 1000)
        else:
            warmups += 1
    return found


def traced(run: Callable[[], None], device: torch.device, path: Path) -> None:
    """Write a trace of ``TRACED`` steps."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    path.parent.mkdir(parents=True, exist_ok=True)
    with profile(
        activities=activities,
        schedule=schedule(wait=0, warmup=3, active=TRACED, repeat=1),
        record_shapes=True,
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(path)),
    ) as profiler:
        for _ in range(3 + TRACED):
            run()
            devices.wait_for(device)
            profiler.step()


def one(size: tuple[str, int, int, int, int], device: torch.device, recent: Recent, out: Path) -> dict[str, Any]:
    """Run one configuration and return its entry in ``steps.json``."""
    kind, layers, dim, batch, length = size
    torch.manual_seed(0)
    with device:
        model = Model(kind, layers, dim, length).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens, target = (torch.randint(0, VOCABULARY, (batch, length), device=device) for _ in range(2))

    def step() -> None:
        optimizer.zero_grad()
        model(tokens, target).backward()
        optimizer.step()

    times = timed(step, device)
    now = time.time_ns()
    readings = recent.between(now - int(sum(times) * 1000), now)
    name = f"{kind}_{layers}x{dim}_{batch}x{length}"
    traced(step, device, out / f"config={name}" / "rank0.json.gz")
    found: dict[str, Any] = {
        "config": name, "layers": layers, "dim": dim, "heads": dim // HEAD, "seq": length, "batch": batch,
        "dtype": "bf16", "gpu": devices.title(device), "layer": LAYERS[kind].split(),
        "norm": "RMSlayernorm" if kind == "rope" else "layernorm", "gpus_per_node": 1,
        "step_us_median": round(statistics.median(times), 1), "step_us_min": round(min(times), 1),
        "step_us_max": round(max(times), 1), "trace": f"config={name}/rank0.json.gz", "torch": torch.__version__,
        "finite": all(bool(parameter.isfinite().all()) for parameter in model.parameters()),
    }  # fmt: skip
    for key in ("sm_clock_mhz", "power_w", "temperature_c"):
        values = [value for reading in readings if (value := getattr(reading, key)) is not None]
        found[f"measured_{key}"] = round(statistics.median(values), 1) if values else None
    found["sm_clocks_mhz"] = [reading.sm_clock_mhz for reading in readings]
    found["throttle"] = max((r.throttle for r in readings if r.throttle), key=len, default=None)
    return found


def main() -> None:
    """Run the configurations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", type=int, help="only this many configurations, evenly over the list")
    parser.add_argument("--device")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try it on the CPU")
    said = parser.parse_args()
    device = devices.choose(said.device)
    sizes = SIZES[:: len(SIZES) // said.only] if said.only else SIZES
    if said.small:
        sizes = tuple((kind, 1, 256, 1, 32) for kind, *_ in sizes[::4])
    said.out.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    with Recent(devices.uuid(device)) as recent:
        for size in sizes:
            found.append(one(size, device, recent, said.out))
            devices.release(device)
            print(json.dumps(found[-1]), flush=True)
            (said.out / "steps.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
