"""Every benchmark of reading and reporting in one command, into one file.

    python benchmarks/all.py [--quick] [--out BENCHMARKS.md] [--others PYTHON] [--traces SWEEP]

Input is made by the scripts themselves, except that `--traces` (files or a folder of several ranks) adds the reports
over ranks, and a real trace, where the repository's shared data are beside it, is used for ingest. `--quick` uses small
inputs: some minutes instead of an hour. `--others`: a Python with HolisticTraceAnalysis and pandas, for comparison.
A benchmark that fails is reported at its place, the others still run, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import measure

HERE = Path(__file__).resolve().parent
PACKAGES = ("tracedb-gpu", "duckdb", "pyarrow", "numpy", "isal", "zstandard")


def commands(is_quick: bool, others: str | None, traces: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the title of each benchmark and its script with arguments."""
    ingest = ["ingest.py", *(["--sizes", "100", "--runs", "1"] if is_quick else ["--runs", "3"])]
    found = [
        ("Reading torch traces", [*ingest, *(["--others", others] if others else [])]),
        ("Reading nsys exports", ["nsys.py", "--rows", "200000" if is_quick else "2000000"]),
        ("Reading rocprofv3 CSV", ["rocprof.py", "--millions", "0.2" if is_quick else "2"]),
        ("Reports", ["reports.py", "--millions", "1" if is_quick else "10"]),
        (
            "One run of many ranks in a lake",
            ["many_ranks.py", "--ranks", *(["16"] if is_quick else ["64", "256", "1024"])],
        ),
    ]
    found.append(
        ("Matching and aligning by number of ranks", ["alignment.py", *(["--ranks", "64"] if is_quick else [])])
    )
    if others:
        found.append(("Other tools", ["peers.py", "--others", others, *(["--rows", "100000"] if is_quick else [])]))
    if traces:
        found.append(("Reports over ranks and configurations", ["ranks.py", *traces]))
    return found


def section(title: str, words: Sequence[str]) -> tuple[str, bool]:
    """Run a benchmark; return its section and whether it succeeded."""
    print(title, file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, str(HERE / words[0]), *words[1:]], stdout=subprocess.PIPE, text=True, check=False
    )
    body = done.stdout.strip() if done.returncode == 0 else f"failed with exit code {done.returncode}"
    return f"## {title}\n\n`python benchmarks/{' '.join(words)}`\n\n{body}\n", done.returncode == 0


def versions() -> str:
    """Return Python and the packages that the figures depend on."""
    return ", ".join([f"Python {sys.version.split()[0]}", *(f"{name} {metadata.version(name)}" for name in PACKAGES)])


def main() -> int:
    """Run all; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--others", metavar="PYTHON")
    parser.add_argument("--traces", nargs="+", default=[])
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    parts = [section(*item) for item in commands(chosen.quick, chosen.others, chosen.traces)]
    head = f"# Benchmarks\n\nMachine: {measure.machine()}. {versions()}.\n"
    text = "\n".join([head, *(body for body, _ in parts)])
    print(text, end="")
    if chosen.out:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(text, encoding="utf-8")
    return 0 if all(is_fine for _, is_fine in parts) else 1


if __name__ == "__main__":
    sys.exit(main())
