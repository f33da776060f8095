"""Time and memory of the reports over ranks and configurations on a sweep, each in its own process.

    python benchmarks/ranks.py TRACES… [--by threads --by channels] [--sides A B] [--out RESULTS.md]

TRACES are files or folders, or one database with the traces already loaded. Loading is not measured (see ingest.py).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import measure

from tracedb.pipeline import run as pipeline

REPORTS = (
    "overlap-effect",
    "stragglers",
    "collectives",
    "collective-summary",
    "gpu-timeline",
    "gpu-timeline-average",
    "idle-breakdown",
    "gemm-variance",
    "queue-depth",
)
GROUPED = ("overlap-effect",)
"""Reports that are run with --by; the rows of the others are per configuration or rank anyway."""


def commands(by: Sequence[str], sides: Sequence[str]) -> list[list[str]]:
    """Return the arguments of each command, without the program and the database."""
    groups = [word for key in by for word in ("--by", key)]
    found = [["report", name, *(groups if name in GROUPED else ())] for name in REPORTS]
    return [*found, ["compare", *sides]]


def rows(database: Path, asked: Sequence[Sequence[str]]) -> list[str]:
    """Run the commands one after the other and return the lines of the table, with the total last."""
    lines = ["| command | wall s | CPU s | peak memory MB |", "|---|---|---|---|"]
    wall = cpu = 0.0
    peak = 0
    for words in asked:
        run = measure.run([sys.executable, "-m", "tracedb", *words, "--db", str(database), "--format", "csv"])
        assert run.exit_code == 0, run.stderr
        wall, cpu, peak = wall + run.wall_seconds, cpu + run.cpu_seconds, max(peak, run.peak_bytes)
        lines.append(
            f"| {' '.join(words)} | {run.wall_seconds:.2f} | {run.cpu_seconds:.2f} | {run.peak_bytes / 1e6:,.0f} |"
        )
    return [*lines, f"| all, the largest peak | {wall:.2f} | {cpu:.2f} | {peak / 1e6:,.0f} |"]


def main() -> None:
    """Load, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--by", action="append", default=[])
    parser.add_argument("--sides", nargs=2, default=["rank=0", "rank=1"])
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tracedb-bench-") as folder:
        database = Path(folder) / "sweep.duckdb"
        if len(chosen.traces) == 1 and chosen.traces[0].suffix == ".duckdb":
            database = chosen.traces[0]
        else:
            outcomes = pipeline.ingest(*chosen.traces, db=database)
            assert not [outcome.error for outcome in outcomes if outcome.error]
        lines = [f"Machine: {measure.machine()}.", "", *rows(database, commands(chosen.by, chosen.sides))]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if chosen.out:
        chosen.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
