"""How fast a kernel trace of rocprofv3 in CSV is loaded and how much memory that takes, beside a bare DuckDB read.

    python benchmarks/rocprof.py [--millions N] [--quoted] [--runs N] [--folder FOLDER]

The trace is made by DuckDB: 60 kernels with names as long as real ones, 4 % of the rows out of order. ``--quoted``
quotes every field, as some conversions do. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import duckdb
import measure

ROWS = """
SELECT
    'KERNEL_DISPATCH' AS Kind, 'Agent 4' AS Agent_Id, 1 + i % 5 AS Queue_Id, i % 567 AS Stream_Id, 4711 AS Thread_Id,
    i + 1 AS Dispatch_Id, 1 + i % 60 AS Kernel_Id,
    CASE WHEN i % 60 < 20 THEN format('Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT{}x64x32_{}', i % 60, $long)
        ELSE format('void at::native::vectorized_elementwise_kernel<{}, at::native::CUDAFunctor_add<float>, {}>(int)',
            i % 60, left($long, (13 * i % 60)::INTEGER)) END AS Kernel_Name,
    1 + i // 2 AS Correlation_Id,
    881072949956651 + 5000 * (i + CASE WHEN i % 25 = 0 THEN 40 ELSE 0 END) AS Start_Timestamp,
    881072949956651 + 5000 * (i + CASE WHEN i % 25 = 0 THEN 40 ELSE 0 END) + 800 + i * 7919 % 4000 AS End_Timestamp,
    0 AS LDS_Block_Size, 0 AS Scratch_Size, 8 * (1 + i % 16) AS VGPR_Count, 0 AS Accum_VGPR_Count, 128 AS SGPR_Count,
    256 AS Workgroup_Size_X, 1 AS Workgroup_Size_Y, 1 AS Workgroup_Size_Z, 256 * (1 + i % 300) AS Grid_Size_X,
    1 AS Grid_Size_Y, 1 AS Grid_Size_Z
FROM range($rows) AS t(i)
"""
TEXTS = "Kind, Agent_Id, Kernel_Name"
LONG = "LDSB1_AFC1_AFEM1_ASEM1_CLR1_CADS0_EPS0_GRVWA16_GRVWB16_GSUAMB_IU1_K1_LBSPPA1024_LBSPPB1024_LPA32_LPB32"
BARE = """
import duckdb, sys
connection = duckdb.connect(config={"threads": 2})
query = "SELECT count(*), sum(End_Timestamp - Start_Timestamp), count(DISTINCT Kernel_Name) FROM read_csv(?)"
connection.execute(query, [sys.argv[1]]).fetchall()
"""


def make(path: Path, rows: int, is_quoted: bool) -> None:
    """Write a trace of that many dispatches."""
    quoted = "*" if is_quoted else TEXTS
    with duckdb.connect(":memory:") as connection:
        text = ROWS.replace("$rows", str(rows)).replace("$long", f"'{LONG}'")
        connection.execute(f"COPY ({text}) TO '{path}' (FORMAT csv, HEADER, FORCE_QUOTE ({quoted}))")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, default=10)
    parser.add_argument("--quoted", action="store_true")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the trace and the database go")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tracedb-bench-", dir=chosen.folder) as folder:
        rows = int(chosen.millions * 1e6)
        trace = Path(folder) / "out_kernel_trace.csv"
        make(trace, rows, chosen.quoted)
        print(f"Machine: {measure.machine()}. {rows:,} dispatches, {trace.stat().st_size / 1e6:,.0f} MB.\n")
        print("| way | wall s | CPU s | million rows / s | million rows / CPU-s | peak memory MB | file MB |")
        print("|---|---|---|---|---|---|---|")
        database = Path(folder) / "bench.duckdb"
        command = [sys.executable, "-m", "tracedb", "-q", "ingest", str(trace), "--db", str(database)]
        _measure("tracedb ingest", command, rows, database, chosen.runs)
        _measure("read_csv of DuckDB", [sys.executable, "-c", BARE, str(trace)], rows, None, chosen.runs)


def _measure(way: str, command: list[str], rows: int, database: Path | None, runs: int) -> None:
    measured = []
    for _ in range(runs):
        if database is not None:
            database.unlink(missing_ok=True)
        measured.append(measure.run(command))
        if measured[-1].exit_code:
            raise SystemExit(f"{way}: {measured[-1].stderr}")
    wall = statistics.median(run.wall_seconds for run in measured)
    cpu = statistics.median(run.cpu_seconds for run in measured)
    peak = max(run.peak_bytes for run in measured) / 1e6
    size = f"{database.stat().st_size / 1e6:,.0f}" if database is not None else ""
    per_second = f"{rows / wall / 1e6:.2f} | {rows / cpu / 1e6:.2f}"
    print(f"| {way} | {wall:.1f} | {cpu:.1f} | {per_second} | {peak:,.0f} | {size} |")


if __name__ == "__main__":
    main()
