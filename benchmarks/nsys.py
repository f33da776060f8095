"""Speed and memory of reading nsys exports: compiled reader, Arrow driver, standard library.

    python benchmarks/nsys.py [--rows N] [--runs N] [--out RESULTS.md]

The export is synthetic: kernels with 20 columns (see large_export.py). Prints a Markdown table; every figure is the
median of the runs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import large_export
import measure


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tracedb-bench-") as folder:
        lines = _table(int(chosen.rows), chosen.runs, Path(folder))
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if chosen.out:
        chosen.out.write_text(text, encoding="utf-8")


def _table(rows: int, runs: int, folder: Path) -> list[str]:
    export, missing = folder / "export.sqlite", folder / "missing"
    large_export.make(export, rows)
    hidden = missing / "adbc_driver_sqlite"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('hidden')\n")
    uncompiled = {"TRACEDB_READER": "python"}
    size = f"{rows:,} kernels, {export.stat().st_size / 1e6:,.0f} MB of SQLite"
    return [
        f"Machine: {measure.machine()}. {size}. Runs: {runs}.",
        "",
        "| reader | wall s | CPU s | kernels / s | kernels / CPU-s | peak memory MB | file MB |",
        "|---|---|---|---|---|---|---|",
        _line("compiled reader", export, rows, runs, {}),
        _line("Arrow driver", export, rows, runs, uncompiled),
        _line("standard library", export, rows, runs, {**uncompiled, "PYTHONPATH": str(missing)}),
    ]


def _line(way: str, export: Path, rows: int, runs: int, environment: dict[str, str]) -> str:
    database = export.with_name("bench.duckdb")
    measured = []
    for _ in range(runs):
        database.unlink(missing_ok=True)
        command = [sys.executable, "-m", "tracedb", "-q", "ingest", str(export), "--db", str(database)]
        measured.append(measure.run(command, environment))
    failed = next((run for run in measured if run.exit_code), None)
    if failed:
        return f"| {way} | failed: {failed.stderr.strip().splitlines()[-1][:80]} | | | | | |"
    wall = statistics.median(run.wall_seconds for run in measured)
    cpu = statistics.median(run.cpu_seconds for run in measured)
    peak = max(run.peak_bytes for run in measured) / 1e6
    size = database.stat().st_size / 1e6
    return f"| {way} | {wall:.1f} | {cpu:.1f} | {rows / wall:,.0f} | {rows / cpu:,.0f} | {peak:,.0f} | {size:,.1f} |"


if __name__ == "__main__":
    main()
