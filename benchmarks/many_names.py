"""Memory of every report on a capture of 20,000 distinct kernel names, and the time to its first line.

    python benchmarks/many_names.py [--names 20000] [--keep FILE] [--of DATABASE] [--only NAME…] [--format FORMAT…]

The trace is synthetic: kernels named as PyTorch, CUTLASS, Triton and cuBLAS name theirs, 100 to 500 characters long,
each with its own operator and shapes, in 20 steps. Each report runs in its own process (`tracedb report NAME --top 0`),
as a table into a pipe unless other formats are named. Prints the peak of the resident set size, the time to the first
line (formats that are no text have none), the CPU time, and the number of lines.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measure

FORMATS = ("table", "csv", "json", "ndjson", "markdown", "html", "parquet", "xlsx")
BINARY = ("parquet", "xlsx")
STEPS = 20
FUNCTOR = "at::native::CUDAFunctor_add<c10::BFloat16>"
NAMES = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, "
    f"c10::BFloat16, {FUNCTOR} >, std::array<char*, {{n}}ul> >(int, at::native::BinaryFunctor<c10::BFloat16, "
    f"c10::BFloat16, c10::BFloat16, {FUNCTOR} >, std::array<char*, {{n}}ul>)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
    "at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{{lambda(float, float)#{n}}}>, "
    "unsigned int, float, 4, 4> >(at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
    "at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{{lambda(float, float)#{n}}}>, "
    "unsigned int, float, 4, 4>)",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>, "
    "cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<{n}, cute::tuple<"
    "cute::C<2>, cute::C<1>, cute::C<1> > >, cute::tuple<cute::C<128>, cute::C<{n}>, cute::C<64> > > > >"
    "(cutlass::gemm::kernel::GemmUniversal<>::Params)",
    "triton_red_fused__to_copy_add_mul_native_layer_norm_native_layer_norm_backward_sum_view_{n}",
    "triton_poi_fused_add_gelu_mul_native_dropout_transpose_unsafe_view_cat_convert_element_type_where_{n}",
    "nvjet_sm90_tst_{n}x128_64x4_2x1_v_bz_coopA_TNN_with_a_tail_as_long_as_the_names_of_other_libraries_are_{n}",
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<{n}, 128, 64, 4, false, false, "
    "cutlass::bfloat16_t>, false, true, false, false, true, true, false, false>(pytorch_flash::Flash_fwd_params)",
)


@dataclass(frozen=True)
class Run:
    """What one command took."""

    exit_code: int
    first_line_seconds: float | None
    cpu_seconds: float
    peak_bytes: int
    lines: int


def events(count: int) -> Iterator[dict[str, Any]]:
    """Yield the events of a trace with ``count`` kernel names, each called once or twice."""
    per_step = -(-count // STEPS)
    for number in range(count):
        at = 1000.0 + 30 * number
        name = NAMES[number % len(NAMES)].format(n=number)
        if number % per_step == 0:
            label = f"ProfilerStep#{number // per_step}"
            yield {
                "ph": "X",
                "cat": "user_annotation",
                "name": label,
                "pid": 1,
                "tid": 1,
                "ts": at,
                "dur": 30 * per_step - 1,
            }
        shapes = [[number % 4096 + 1, 1024], [1024, 64 + number % 512]]
        yield {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": at + 1, "dur": 9,
               "args": {"External id": number + 1, "Input Dims": shapes, "Input type": ["float", "float"]}}  # fmt: skip
        yield {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 2, "dur": 3,
               "args": {"External id": number + 1, "correlation": number + 1}}  # fmt: skip
        yield {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at + 8, "dur": 1 + number % 13,
               "args": {"External id": number + 1, "correlation": number + 1, "device": 0, "stream": 7, "context": 1,
                        "grid": [number % 99 + 1, 1, 1], "block": [128, 1, 1], "registers per thread": 32,
                        "shared memory": 0}}  # fmt: skip


def build(path: Path, count: int) -> None:
    """Write the database. Exits if that fails."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "rank0.pt.trace.json")
        device = {"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85_000_000_000, "numSms": 132}
        head = {"schemaVersion": 1, "deviceProperties": [device], "distributedInfo": {"rank": 0, "world_size": 1}}
        trace.write_text(json.dumps({**head, "traceEvents": list(events(count))}))
        done = measure.run([sys.executable, "-m", "tracedb", "ingest", str(trace), "--db", str(path)])
    if done.exit_code:
        sys.exit(done.stderr)


def run(command: list[str]) -> Run:
    """Run a command with its output in a pipe."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    first = None
    lines = 0
    for _ in process.stdout:
        first = first or time.perf_counter() - started
        lines += 1
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(process.returncode, first, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", type=int, default=20_000)
    parser.add_argument("--keep", type=Path, help="write the database here and leave it")
    parser.add_argument("--of", type=Path, help="a database to use instead")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--format", nargs="+", choices=FORMATS, default=["table"])
    given = parser.parse_args()
    from tracedb.report import registry

    with tempfile.TemporaryDirectory() as folder:
        database = given.of or given.keep or Path(folder, "many.duckdb")
        if given.of is None:
            build(database, given.names)
        print(measure.machine())
        print("| report | format | peak MB | first line s | CPU s | lines |\n|---|---|--:|--:|--:|--:|")
        for name in given.only or [report.name for report in registry.every()]:
            for form in given.format:
                command = [sys.executable, "-m", "tracedb", "report", name, "--top", "0", "--db", str(database)]
                command += ["-o", str(Path(folder, f"out.{form}"))] if form in BINARY else ["--format", form]
                took = run(command)
                if took.exit_code == 0:
                    first = "" if took.first_line_seconds is None else f"{took.first_line_seconds:.2f}"
                    peak = took.peak_bytes / 1e6
                    print(
                        f"| {name} | {form} | {peak:.0f} | {first} | {took.cpu_seconds:.2f} | {took.lines:,} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
