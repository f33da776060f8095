"""The same questions asked of tracedb and of other tools, one after the other in one run, with their versions.

    python benchmarks/peers.py [--others PYTHON] [--source TRACE] [--rows N] [--runs N] [--out RESULTS.md]

``--others`` is a Python that has HolisticTraceAnalysis, TraceLens, pandas and rocpd, or some of them; tools that are
not installed are named and left out. Each line is one process, from the file to the printed answer. tracedb loads a
file once and then answers from its database, so its lines come in two: load with the first answer, and one more answer.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb
import ingest
import large_export
import measure

TIMELINE = """
import sys
from hta.trace_analysis import TraceAnalysis
print(TraceAnalysis(trace_files={0: sys.argv[1]}).get_temporal_breakdown(visualize=False))
"""
LENS = """
import sys
from TraceLens import TreePerfAnalyzer
print(TreePerfAnalyzer.from_file(sys.argv[1]).get_df_gpu_timeline())
"""
PANDAS = """
import json, sys
import pandas
with open(sys.argv[1]) as file:
    events = json.load(file)["traceEvents"]
kernels = pandas.DataFrame([each for each in events if each.get("cat") == "kernel"])
print(kernels.groupby("name")["dur"].agg(["count", "sum", "mean", "median", "min", "max", "std"]))
"""
NSYS_PANDAS = """
import sqlite3, sys
import pandas
query = "SELECT s.value AS name, k.end - k.start AS dur FROM CUPTI_ACTIVITY_KIND_KERNEL AS k " \\
    "JOIN StringIds AS s ON s.id = k.demangledName"
kernels = pandas.read_sql(query, sqlite3.connect(sys.argv[1]))
print(kernels.groupby("name")["dur"].agg(["count", "sum", "mean", "median", "min", "max", "std"]))
"""
ROCPD = "import rocpd, sys; print(rocpd.connect(sys.argv[1]).execute('SELECT * FROM top_kernels').fetchall())"
VERSIONS = """
import importlib.util, sys
from importlib import metadata
for name, module in (word.split("=") for word in sys.argv[1:]):
    if importlib.util.find_spec(module):
        print(name, metadata.version(name))
"""
PACKAGES = {"HolisticTraceAnalysis": "hta", "TraceLens": "TraceLens", "pandas": "pandas", "rocpd": "rocpd"}
"""Modules of the packages. The package tracelens on the index is another project; AMD's is in its repository only."""


def versions(others: str | None) -> dict[str, str]:
    """Return the versions of the tools that are installed: those of ``others``, and nsys."""
    found: dict[str, str] = {}
    if others:
        done = subprocess.run(
            [others, "-c", VERSIONS, *map("=".join, PACKAGES.items())], capture_output=True, text=True, check=True
        )
        found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    if shutil.which("nsys"):
        done = subprocess.run(["nsys", "--version"], capture_output=True, text=True, check=False)
        found["nsys"] = done.stdout.strip().rpartition(" ")[2]
    return found


def line(question: str, tool: str, commands: Sequence[Sequence[str]], runs: int, cache: Path | None = None) -> str:
    """Run commands one after the other, ``runs`` times, and return their line of the table.

    ``cache``: a cache folder of its own, with the template of new databases, which an earlier ingest has made.
    """
    environment = {"XDG_CACHE_HOME": str(cache)} if cache else {}
    measured = [[measure.run(command, environment) for command in commands] for _ in range(runs)]
    failed = next((run for each in measured for run in each if run.exit_code), None)
    if failed:
        words = failed.stderr.strip().splitlines() or ["no message"]
        return f"| {question} | {tool} | failed: {words[-1][:80].replace('|', '/')} | | |"
    wall = statistics.median(sum(run.wall_seconds for run in each) for each in measured)
    cpu = statistics.median(sum(run.cpu_seconds for run in each) for each in measured)
    peak = max(run.peak_bytes for each in measured for run in each) / 1e6
    return f"| {question} | {tool} | {wall:.2f} | {cpu:.2f} | {peak:,.0f} |"


def ours(file: Path, report: str, question: str, database: Path, runs: int) -> list[str]:
    """Return the lines of tracedb: load with the first answer, and another answer."""
    words = [sys.executable, "-m", "tracedb", "-q"]
    load = [*words, "ingest", str(file), "--db", str(database)]
    ask = [*words, "report", report, "--db", str(database), "--format", "csv"]
    forget = [sys.executable, "-c", "import pathlib, sys; pathlib.Path(sys.argv[1]).unlink(True)", str(database)]
    cache = database.parent / "cache"
    if not cache.exists():
        cache.mkdir()
        measure.run(load, {"XDG_CACHE_HOME": str(cache)})
    return [
        line(question, "tracedb: load and report", [forget, load, ask], runs, cache),
        line(question, "tracedb: report", [ask], runs, cache),
    ]


def table(source: Path, rows: int, others: str | None, runs: int, folder: Path) -> list[str]:
    """Return the lines of the table over all tools that are installed."""
    found = versions(others)
    python = [others or sys.executable, "-c"]
    trace, export = folder / "trace.json", folder / "export.sqlite"
    with gzip.open(source, "rb") as packed, trace.open("wb") as out:
        shutil.copyfileobj(packed, out)
    large_export.make(export, rows)
    torch = f"GPU timeline of a trace of {trace.stat().st_size / 1e6:,.0f} MB"
    lines = ours(trace, "gpu-timeline", torch, folder / "torch.duckdb", runs)
    if "HolisticTraceAnalysis" in found:
        lines.append(
            line(torch, "HolisticTraceAnalysis: get_temporal_breakdown", [[*python, TIMELINE, str(trace)]], runs)
        )
    if "TraceLens" in found:
        lines.append(line(torch, "TraceLens: get_df_gpu_timeline", [[*python, LENS, str(trace)]], runs))
    kernels = "time by kernel name in the same trace"
    lines += ours(trace, "top-kernels", kernels, folder / "torch.duckdb", runs)
    if "pandas" in found:
        lines.append(line(kernels, "json and pandas", [[*python, PANDAS, str(trace)]], runs))
    nsys = f"time by kernel name, {rows:,} kernels of an nsys export ({export.stat().st_size / 1e6:,.0f} MB)"
    lines += ours(export, "top-kernels", nsys, folder / "nsys.duckdb", runs)
    if "nsys" in found:
        stats = ["nsys", "stats", "--report", "gpukernsum", "--format", "csv", "--force-overwrite", "true", str(export)]
        lines.append(line(nsys, "nsys stats: gpukernsum, also by grid and block", [stats], runs))
    if "pandas" in found:
        lines.append(line(nsys, "sqlite3 and pandas", [[*python, NSYS_PANDAS, str(export)]], runs))
    if "rocpd" in found and (database := _rocpd_example()) is not None:
        asked = "time by kernel name in a rocpd file"
        lines += ours(database, "top-kernels", asked, folder / "rocpd.duckdb", runs)
        lines.append(line(asked, "rocpd: top_kernels", [[*python, ROCPD, str(database)]], runs))
    missing = [name for name in (*PACKAGES, "nsys") if name not in found]
    return [
        f"Machine: {measure.machine()}. tracedb with DuckDB {duckdb.__version__}; "
        + ", ".join(f"{name} {version}" for name, version in found.items())
        + (f"; not installed: {', '.join(missing)}" if missing else "")
        + f". Trace: `{source.name}`. Median of runs: {runs}.",
        "",
        "| question | tool | wall s | CPU s | peak memory MB |",
        "|---|---|---|---|---|",
        *lines,
    ]


def _rocpd_example() -> Path | None:
    """Return a rocpd file of the shared data, where they are beside the repository."""
    return next(iter(sorted((ingest.HERE.parent.parent / "shared" / "data" / "rocprof").rglob("*.db"))), None)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--others", metavar="PYTHON")
    parser.add_argument("--source", type=Path, default=ingest.SOURCE if ingest.SOURCE.exists() else ingest.SAMPLE)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tracedb-bench-") as folder:
        lines = table(chosen.source, int(chosen.rows), chosen.others, chosen.runs, Path(folder))
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if chosen.out:
        chosen.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
