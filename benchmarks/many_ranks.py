"""One run of many ranks in a lake: load, align, report; time and memory of each step, and how they grow.

    python benchmarks/many_ranks.py [--ranks 64 256 1024] [--calls 24] [--jobs 2] [--out RESULTS.md]

Every rank has a small trace of its own, made here: steps, matrix products, and all-reduces in two kinds of groups, of 8
neighbouring ranks and of every eighth rank, as tensor and data parallelism have them. Clocks are up to 1 ms apart. One
rank starts its collectives late; the report must name it. CPU times are of all processes; on a busy machine, wall
times say little.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import measure

GEMM = "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_TNT"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
TENSOR = 8
STRAGGLER = 5
LATE_US = 180.0
CALL_US = 1000.0
BASE_NS = 1_759_000_000_000_000_000


def trace(rank: int, ranks: int, calls: int) -> dict[str, Any]:
    """Return the trace of a rank in PyTorch's format."""
    noise = random.Random(rank)
    offset = noise.uniform(-500, 500)
    return {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "numSms": 132}],
        "baseTimeNanoseconds": BASE_NS,
        "traceEvents": list(_events(rank, ranks, calls, offset, noise)),
    }


def _events(rank: int, ranks: int, calls: int, offset: float, noise: random.Random) -> Iterator[dict[str, Any]]:
    first = rank // TENSOR * TENSOR
    groups = [
        (f"tp{first}", list(range(first, min(first + TENSOR, ranks)))),
        (f"dp{rank % TENSOR}", list(range(rank % TENSOR, ranks, TENSOR))),
    ]
    per_step = max(calls // 3, 1)
    for step in range(-(-calls // per_step)):
        yield {
            **{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1},
            **{"ts": offset + step * per_step * CALL_US, "dur": per_step * CALL_US - 1},
        }
    for call in range(calls):
        at = offset + call * CALL_US
        late = noise.uniform(0, 20) + (LATE_US if rank == STRAGGLER else 0)
        name, members = groups[call % 2]
        shared = {"device": 0, "context": 1, "stream": 7}
        yield _launch(at, 2 * call + 1)
        yield _kernel(GEMM, at + 20, 300, {**shared, "correlation": 2 * call + 1})
        arguments = {
            **{
                "Collective name": "allreduce",
                "In msg nelems": 1 << 20,
                "Out msg nelems": 1 << 20,
                "dtype": "BFloat16",
            },
            **{"Process Group Name": name, "Process Group Ranks": str(members), "Group size": len(members)},
        }
        yield _launch(at + 10, 2 * call + 2)
        duration = 600 - late + noise.uniform(0, 3)
        ids = {**shared, "stream": 20, "correlation": 2 * call + 2}
        yield _kernel(NCCL, at + 350 + late, duration, {**ids, **arguments})


def _launch(at: float, correlation: int) -> dict[str, Any]:
    return {
        **{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1},
        **{"ts": round(at, 3), "dur": 4.0, "args": {"correlation": correlation}},
    }


def _kernel(name: str, at: float, duration: float, arguments: dict[str, Any]) -> dict[str, Any]:
    kind = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": arguments["stream"]}
    sizes = {"grid": [132, 1, 1], "block": [128, 1, 1]}
    return {**kind, "ts": round(at, 3), "dur": round(duration, 3), "args": {**arguments, **sizes}}


def make(folder: Path, ranks: int, calls: int) -> int:
    """Write the traces of all ranks; returns their size in bytes, decompressed."""
    size = 0
    for rank in range(ranks):
        text = json.dumps(trace(rank, ranks, calls)).encode()
        size += len(text)
        (folder / f"rank{rank}.json.gz").write_bytes(gzip.compress(text, 1))
    return size


def steps(traces: Path, lake: Path, jobs: int) -> list[tuple[str, list[str]]]:
    """Return what is measured: its name and the arguments of tracedb."""
    return [
        ("ingest", ["ingest", str(traces), "--lake", str(lake), "--no-align", "--jobs", str(jobs)]),
        ("align", ["lake", "align", str(lake)]),
        ("stragglers", ["--lake", str(lake), "report", "stragglers"]),
        ("compact", ["lake", "compact", str(lake)]),
        ("stragglers, compacted", ["--lake", str(lake), "report", "stragglers"]),
        ("collectives, compacted", ["--lake", str(lake), "report", "collectives"]),
        ("top-kernels, compacted", ["--lake", str(lake), "report", "top-kernels"]),
    ]


def measured(ranks: int, calls: int, jobs: int) -> list[str]:
    """Run all steps for one number of ranks, and return the lines of its table."""
    with tempfile.TemporaryDirectory(prefix="tracedb-bench-") as folder:
        traces, lake = Path(folder) / "traces", Path(folder) / "lake"
        traces.mkdir()
        size = make(traces, ranks, calls)
        print(f"{ranks} ranks, {size / 1e6:.0f} MB", file=sys.stderr)
        lines = []
        for name, words in steps(traces, lake, jobs):
            output = ["--format", "csv"] if "report" in words or "ingest" in words else []
            run = measure.run([sys.executable, "-m", "tracedb", "-q", *words, *output])
            assert run.exit_code == 0, run.stderr
            files = sum(1 for _ in lake.rglob("*.parquet"))
            lines.append(
                f"| {ranks:,} | {name} | {run.wall_seconds:.1f} | {run.cpu_seconds:.1f} | "
                f"{1000 * run.cpu_seconds / ranks:.0f} | {run.peak_bytes / 1e6:,.0f} | {files:,} |"
            )
            print(lines[-1], file=sys.stderr)
        _check(lake)
    return lines


def _check(lake: Path) -> None:
    """Fail unless the late rank, and only that one, is named."""
    query = "SELECT DISTINCT rank FROM stragglers WHERE is_straggler"
    command = [sys.executable, "-m", "tracedb", "-q", "--lake", str(lake), "sql", query, "--format", "csv"]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert found == ["rank", str(STRAGGLER)], found


def table(sizes: Sequence[int], calls: int, jobs: int) -> list[str]:
    """Return the lines of the table over all numbers of ranks."""
    lines = [
        "| ranks | step | wall s | CPU s | CPU ms a rank | peak memory MB | Parquet files |",
        "|---|---|---|---|---|---|---|",
    ]
    return lines + [line for ranks in sizes for line in measured(ranks, calls, jobs)]


def main() -> None:
    """Make, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", nargs="+", type=int, default=[64, 256, 1024])
    parser.add_argument("--calls", type=int, default=24, help="collectives of each rank")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    text = "\n".join([f"Machine: {measure.machine()}.", "", *table(chosen.ranks, chosen.calls, chosen.jobs)]) + "\n"
    print(text, end="")
    if chosen.out:
        chosen.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
