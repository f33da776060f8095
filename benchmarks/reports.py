"""Time and memory of reports on a file of 10 million kernel events.

    python benchmarks/reports.py [--millions 10] [--of DATABASE] [--keep FILE] [--all] [--runs 1] [--out RESULTS.md]

The file is synthetic: 8 captures, 200 kernel names, one operator per kernel, and one collective in twenty kernels on a
second stream. With `--of` it repeats the captures of a database with all that belongs to them. Each report runs in its
own process, `tracedb report NAME`, and writes all of its rows as CSV. With `--all`, every report runs instead of five,
and prints its table as a user sees it, because some have a row for each kernel. Prints the median and the maximum of
the runs.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from pathlib import Path

import duckdb
import measure

from tracedb.report import registry
from tracedb.storage import schema, views
from tracedb.storage.connection import STORAGE, attached, quoted, workbench

NOT_CAPTURED = 3
REPORTS = ("top-kernels", "matmul-fraction", "gemm-variance", "collective-overlap", "gpu-timeline")


def build(path: Path, millions: float) -> None:
    """Write the database."""
    rows = int(millions * 1e6)
    with duckdb.connect(":memory:", config={"memory_limit": "2GB", "temp_directory": str(path.parent)}) as connection:
        connection.execute(f"ATTACH {quoted(str(path))} AS bench ({STORAGE})")
        connection.execute("USE bench")
        schema.apply(connection, "benchmark")
        views.install(connection)
        connection.execute(
            """INSERT INTO main.capture BY NAME SELECT i::INTEGER AS capture_id, 'torch' AS source, i::INTEGER AS rank,
                MAP {'channels': '8'} AS labels FROM range(8) AS r(i)"""
        )
        connection.execute(
            """INSERT INTO main.device BY NAME
            SELECT i::INTEGER AS capture_id, 0 AS device_id, 'NVIDIA' AS vendor FROM range(8) AS r(i)"""
        )
        connection.execute(
            f"""INSERT INTO main.kernel_event BY NAME
            SELECT (i * 8 // {rows})::INTEGER AS capture_id, i AS event_id, 'kernel' AS kind,
                CASE WHEN i % 20 = 0 THEN 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)'
                    WHEN i % 5 = 0 THEN 'nvjet_sm90_tst_' || hash(i) % 40 || 'x64_64x8_1x4_h_bz_NNN'
                    ELSE 'void at::native::vectorized_elementwise_kernel<' || hash(i) % 160 || ', at::native::'
                        || repeat('CUDAFunctor_add<c10::BFloat16>, ', 6) || 'std::array<char*, 3ul> >(int)' END AS name,
                i * 10000 AS start_ns, (hash(i) % 20000 + 1000)::BIGINT AS duration_ns, 0 AS device_id,
                CASE WHEN i % 20 = 0 THEN 20 ELSE 7 END AS stream_id, i AS op_id, i AS launch_id
            FROM range({rows}) AS r(i)"""
        )
        connection.execute(
            f"""INSERT INTO main.op BY NAME
            SELECT (i * 8 // {rows})::INTEGER AS capture_id, i AS op_id, 'aten::mm' AS name, i * 10000 AS start_ns,
                100 AS duration_ns, '[[' || hash(i) % 50 || ', 1024], [1024, 4096]]' AS input_dims
            FROM range({rows}) AS r(i)"""
        )
        connection.execute("CHECKPOINT")


def repeat(path: Path, millions: float, source: Path) -> None:
    """Write a database that repeats all that belongs to the captures of another one, with a label for each copy."""
    with workbench("2GB", None, path) as connection, attached(connection, path):
        connection.execute(f"ATTACH {quoted(str(source))} AS given (READ_ONLY)")
        schema.apply(connection, "benchmark")
        views.install(connection)
        ((kernels, captures),) = connection.execute(
            """SELECT count(*) FILTER (kind = 'kernel'), (SELECT max(capture_id) + 1 FROM given.main.capture)
            FROM given.main.kernel_event"""
        ).fetchall()
        tables = connection.execute(
            """SELECT table_name FROM duckdb_columns()
            WHERE database_name = 'given' AND schema_name = 'main' AND column_name = 'capture_id'
                AND table_name IN (SELECT table_name FROM duckdb_tables() WHERE database_name = 'given')"""
        ).fetchall()
        for number in range(math.ceil(millions * 1e6 / kernels)):
            for (table,) in tables:
                moved = f"(capture_id + {number * captures})::INTEGER AS capture_id"
                if table == "capture":
                    moved += f", map_concat(labels, MAP {{'copy': '{number}'}}) AS labels"
                connection.execute(
                    f"INSERT INTO main.{table} BY NAME SELECT * REPLACE ({moved}) FROM given.main.{table}"
                )


def row(name: str, path: Path, times: int, *options: str) -> str:
    """Run a report ``times`` times and return its line of the table."""
    command = [sys.executable, "-m", "tracedb", "report", name, "--db", str(path), *options]
    runs = [measure.run(command) for _ in range(times)]
    assert all(run.exit_code in (0, NOT_CAPTURED) for run in runs), runs[0].stderr
    if runs[0].exit_code:
        return f"| {name} | not captured | | | |"
    walls = [run.wall_seconds for run in runs]
    cpu, peak = statistics.median(run.cpu_seconds for run in runs), max(run.peak_bytes for run in runs)
    return f"| {name} | {statistics.median(walls):.2f} | {max(walls):.2f} | {cpu:.2f} | {peak / 1e6:,.0f} |"


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, default=10)
    parser.add_argument("--of", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tracedb-bench-") as folder:
        path = chosen.keep or Path(folder) / "reports.duckdb"
        if not path.exists() and chosen.of:
            repeat(path, chosen.millions, chosen.of)
        elif not path.exists():
            build(path, chosen.millions)
        asked = (
            [row(report.name, path, chosen.runs) for report in registry.every()]
            if chosen.all
            else [row(name, path, chosen.runs, "--format", "csv") for name in REPORTS]
        )
        lines = [
            f"Machine: {measure.machine()}.",
            f"{chosen.millions:g} million kernel events, file of {path.stat().st_size / 1e6:,.0f} MB."
            f" Median and maximum of {chosen.runs} runs.",
            "",
            "| report | wall s | max wall s | CPU s | peak memory MB |",
            "|---|---|---|---|---|",
            *asked,
        ]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if chosen.out:
        chosen.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
