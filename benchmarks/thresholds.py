"""Measure each size threshold at which an ingest or a report switches code paths: the same input on both paths.

    python benchmarks/thresholds.py [--runs N] [--only WORD]

The two paths run alternately. Prints the medians of CPU and wall seconds of the whole command, the largest peak
memory, and the medians of the ratios pair by pair: below 1, the path for large input is faster. On a busy machine,
run it under ``chrt -f 50``, which preempts other work; otherwise the wall times are meaningless.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import ingest
import large_export
import large_trace
import measure
import rocprof

NEVER = 1 << 60
COMMAND = """
import sys, importlib
for name, value in {values}:
    module, _, constant = name.partition(":")
    setattr(importlib.import_module(module), constant, value)
from tracedb.cli.main import main
sys.argv = ["tracedb", *{arguments!r}, "-q"]
main()
"""


class Threshold(NamedTuple):
    """A constant with its module, an input that shows its effect, and values that make all input small or all large."""

    constant: str
    source: str
    small: int
    large: int
    besides: tuple[tuple[str, int], ...] = ()
    """Other constants to set on both sides."""
    report: str = ""
    """The report that is measured over a database; without it, an ingest is."""


THRESHOLDS = (
    Threshold("tracedb.pipeline.early_read:EARLY_FROM", "trace", NEVER, 0),
    Threshold("tracedb.pipeline.early_read:EARLY_FROM", "large trace", NEVER, 0),
    Threshold("tracedb.pipeline.batch_load:SMALL_BYTES", "small traces", NEVER, 0),
    Threshold("tracedb.pipeline.capture_load:HASHED_AFTER", "large trace", NEVER, 0),
    Threshold("tracedb.derive.annotation_buffer:MOST_HELD", "small traces", NEVER, -1),
    Threshold("tracedb.derive.event_buffer:MOST", "small traces", NEVER, -1),
    Threshold("tracedb.derive.event_buffer:MOST", "trace", NEVER, -1),
    Threshold("tracedb_torch.staging:HELD_BYTES", "trace", NEVER, 0),
    Threshold("tracedb_torch.link.enclosing:MOST", "trace", NEVER, 0, (("tracedb_torch.staging:HELD_BYTES", 0),)),
    Threshold("tracedb_nsys.unstaged_kernels:SMALLEST_ROWS", "export", NEVER, 0),
    Threshold("tracedb_rocprof.unstaged_kernels:SMALLEST_BYTES", "dispatches", NEVER, 0),
    *(
        Threshold("tracedb.storage.connection:SMALL", source, NEVER, 0, report=report)
        for source in ("small database", "large database")
        for report in ("why", "critical-path", "top-kernels", "queue-depth")
    ),
)


def _small_traces(target: Path) -> None:
    target.mkdir()
    assert ingest.SAMPLE is not None
    for number in range(24):
        with gzip.open(ingest.SAMPLE) as packed, (target / f"rank{number}.json").open("wb") as out:
            shutil.copyfileobj(packed, out)
            out.write(b"\n" * number)  # bytes of its own


def _trace(size_bytes: int) -> Callable[[Path], None]:
    assert ingest.SAMPLE is not None
    return partial(large_trace.make, ingest.SAMPLE, size_bytes=size_bytes)


def _database(size_bytes: int) -> Callable[[Path], None]:
    """Return the function that loads a trace of this size."""

    def load(target: Path) -> None:
        trace = target.with_suffix(".json")
        _trace(size_bytes)(trace)
        _checked(["ingest", str(trace), "--db", str(target), "--jobs", "1"], ())
        trace.unlink()

    return load


SOURCES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "small traces": ("in", _small_traces),
    "trace": ("trace.json", _trace(60_000_000)),
    "large trace": ("large.json", _trace(300_000_000)),
    "export": ("export.sqlite", partial(large_export.make, rows=900_000)),
    "small database": ("small.duckdb", _database(60_000_000)),
    "large database": ("large.duckdb", _database(300_000_000)),
    "dispatches": ("1_kernel_trace.csv", partial(rocprof.make, rows=400_000, is_quoted=True)),
}
"""Name → name of the file or folder, and the function that creates it."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", default="", metavar="WORD")
    chosen = parser.parse_args()
    print("| constant | input | small: CPU s, wall s, MB | large: CPU s, wall s, MB | large / small: CPU, wall |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="tracedb-bench-") as name:
        for threshold in THRESHOLDS:
            if chosen.only in f"{threshold.constant} {threshold.source} {threshold.report}":
                print(_line(threshold, Path(name), chosen.runs), flush=True)


def _line(threshold: Threshold, folder: Path, runs: int) -> str:
    file, make = SOURCES[threshold.source]
    source = folder / file
    if not source.exists():
        make(source)
    found: dict[int, list[measure.Measured]] = {threshold.small: [], threshold.large: []}
    for _ in range(runs):
        for value, measured in found.items():
            values = (*threshold.besides, (threshold.constant, value))
            if threshold.report:
                measured.append(_report(threshold.report, source, values))
            else:
                measured.append(_ingest(source, folder / "x.duckdb", values))
    small, large = found.values()
    sides = [
        f"{median(m.cpu_seconds for m in measured):.2f}, {median(m.wall_seconds for m in measured):.2f}, "
        f"{max(m.peak_bytes for m in measured) / 1e6:.0f}"
        for measured in (small, large)
    ]
    pairs = list(zip(small, large, strict=True))
    ratios = (
        f"{median(b.cpu_seconds / a.cpu_seconds for a, b in pairs):.2f}, "
        f"{median(b.wall_seconds / a.wall_seconds for a, b in pairs):.2f}"
    )
    measured_on = f"{threshold.report} of {threshold.source}" if threshold.report else threshold.source
    return f"| `{threshold.constant}` | {measured_on} | {' | '.join(sides)} | {ratios} |"


def _ingest(source: Path, database: Path, values: tuple[tuple[str, int], ...]) -> measure.Measured:
    database.unlink(missing_ok=True)
    return _checked(["ingest", str(source), "--db", str(database), "--jobs", "1"], values)


def _report(name: str, database: Path, values: tuple[tuple[str, int], ...]) -> measure.Measured:
    of = ["why"] if name == "why" else ["report", name]
    return _checked([*of, "--db", str(database), "--format", "csv"], values)


def _checked(arguments: list[str], values: tuple[tuple[str, int], ...]) -> measure.Measured:
    measured = measure.run([sys.executable, "-c", COMMAND.format(values=values, arguments=arguments)])
    if measured.exit_code:
        raise SystemExit(measured.stderr)
    return measured


if __name__ == "__main__":
    main()
