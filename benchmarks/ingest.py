"""Speed and memory of reading traces, compared with other readers.

    python benchmarks/ingest.py [--source TRACE] [--others PYTHON] [--runs N] [--out RESULTS.md]

``--source`` is a real Kineto trace in its native layout (.json.gz); larger traces are built from its events.
``--others`` is a Python that has HolisticTraceAnalysis and pandas. Prints a Markdown table; every figure is the
median of the runs.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import large_trace
import measure

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent / "shared" / "data" / "sampling" / "middleStage_optimizer.json.gz"
SAMPLE = next(iter(sorted((HERE.parent / "examples" / "run").rglob("*.json.gz"))), None)
SMALL_FILES = 64
HTA = "from hta.trace_analysis import TraceAnalysis; import sys; TraceAnalysis(trace_files={0: sys.argv[1]})"
PANDAS = "import json, sys, pandas; pandas.json_normalize(json.load(open(sys.argv[1]))['traceEvents'])"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=SOURCE if SOURCE.exists() else SAMPLE)
    parser.add_argument("--sizes", type=float, nargs="*", default=[500, 2000], metavar="MB")
    parser.add_argument("--others", metavar="PYTHON")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tracedb-bench-") as folder:
        lines = _table(chosen, Path(folder))
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if chosen.out:
        chosen.out.write_text(text, encoding="utf-8")


def _table(chosen: argparse.Namespace, folder: Path) -> list[str]:
    raw = folder / "trace.json"
    with gzip.open(chosen.source, "rb") as packed, raw.open("wb") as out:
        shutil.copyfileobj(packed, out)
    os.sync()  # else the system writes it to disk beside what is measured
    lines = [
        f"Machine: {measure.machine()}. Source: `{chosen.source.name}`. Median of runs: {chosen.runs}.",
        "",
        "| input | reader | wall s | CPU s | MB of JSON / s | MB / CPU-s | peak memory MB | file MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    json_mb = raw.stat().st_size / 1e6
    lines.append(_ingest(f"{json_mb:,.0f} MB JSON", raw, json_mb, folder, chosen.runs))
    lines.append(
        _ingest(
            f"the same, gzip ({chosen.source.stat().st_size / 1e6:,.1f} MB)",
            chosen.source,
            json_mb,
            folder,
            chosen.runs,
        )
    )
    for size in chosen.sizes:
        large = folder / f"trace_{size:.0f}.json"
        large_trace.make(raw, large, int(size * 1e6))
        os.sync()
        lines.append(_ingest(f"{size:,.0f} MB JSON", large, large.stat().st_size / 1e6, folder, chosen.runs))
        large.unlink()
    if SAMPLE is not None:
        lines.append(_small(SAMPLE, folder, chosen.runs))
    if chosen.others:
        for way, code in (("HolisticTraceAnalysis", HTA), ("json + pandas", PANDAS)):
            runs = [measure.run([chosen.others, "-c", code, str(raw)]) for _ in range(max(chosen.runs - 2, 1))]
            lines.append(_line(f"{json_mb:,.0f} MB JSON", way, runs, json_mb, None))
    return lines


def _small(sample: Path, folder: Path, runs: int) -> str:
    """Measure many small traces, which differ only in trailing blanks."""
    content = gzip.decompress(sample.read_bytes())
    many = folder / "many"
    for number in range(SMALL_FILES):
        path = many / f"rank{number}" / "trace.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(content + b"\n" * number)
    os.sync()
    label = f"{SMALL_FILES} traces of {len(content) / 1e6:.1f} MB"
    return _ingest(label, many, SMALL_FILES * len(content) / 1e6, folder, runs)


def _ingest(label: str, trace: Path, json_mb: float, folder: Path, runs: int) -> str:
    database = folder / "bench.duckdb"
    measured = []
    for _ in range(runs):
        database.unlink(missing_ok=True)
        measured.append(
            measure.run([sys.executable, "-m", "tracedb", "-q", "ingest", str(trace), "--db", str(database)])
        )
    return _line(label, "tracedb ingest", measured, json_mb, database.stat().st_size / 1e6)


def _line(label: str, way: str, runs: list[measure.Measured], json_mb: float, file_mb: float | None) -> str:
    failed = next((run for run in runs if run.exit_code), None)
    if failed:
        return f"| {label} | {way} | failed: {failed.stderr.strip().splitlines()[-1][:80]} | | | | | |"
    wall = statistics.median(run.wall_seconds for run in runs)
    cpu = statistics.median(run.cpu_seconds for run in runs)
    peak = max(run.peak_bytes for run in runs) / 1e6
    size = f"{file_mb:,.1f}" if file_mb is not None else ""
    figures = f"{wall:.2f} | {cpu:.2f} | {json_mb / wall:,.0f} | {json_mb / cpu:,.0f} | {peak:,.0f} | {size}"
    return f"| {label} | {way} | {figures} |"


if __name__ == "__main__":
    main()
