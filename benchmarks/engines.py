"""Reports over a lake of many captures by DuckDB in place, Spark and Ray: equal rows, time, bytes moved.

    python benchmarks/engines.py [--captures 480] [--engines spark ray] [--reports gpu-timeline …] [--lake DIR]

The captures are those of examples/run, each again and again with another rank, in runs of 20. CPU times are of all
processes, Spark's JVM included; Ray does not account for all of its workers.
Bytes sent are those of the tasks' rows. Shuffled bytes, and those of the tasks' results that the driver got, are the
sums over all tasks of Spark's event log; Ray has no shuffle.
``--lake DIR`` keeps the lake, or takes one made before.
Spark gets two cores and 2 GB unless PYSPARK_SUBMIT_ARGS says otherwise.
"""

from __future__ import annotations

import argparse
import ctypes
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import measure

ROOT = Path(__file__).resolve().parents[1]
REPORTS = ("gpu-timeline", "gemm-variance", "top-kernels")
PER_RUN = 20
PR_SET_CHILD_SUBREAPER = 36
SPARK = "--master local[2] --driver-memory 2g"
LOGGED = " ".join(
    f"--conf spark.eventLog.{name}" for name in ("enabled=true", "rolling.enabled=false", "compress=false")
)


def make(folder: Path, captures: int) -> None:
    """Write the traces: ``PER_RUN`` ranks of each sweep, whose name is a label."""
    sources = sorted((ROOT / "examples" / "run").rglob("*.json.gz"))
    texts = [gzip.decompress(path.read_bytes()).decode() for path in sources]
    for number in range(captures):
        run, rank = divmod(number, PER_RUN)
        text = texts[number % len(texts)].lstrip()
        text = re.sub(r'"rank":\s*\d+', f'"rank": {rank}', text, count=1)
        path = (
            folder
            / f"sweep_{run:03}"
            / "256thread"
            / "nccl_4channels"
            / "torch_profiler"
            / f"rank{rank}"
            / "trace.json.gz"
        )
        path.parent.mkdir(parents=True)
        path.write_bytes(gzip.compress(f'{{"copy": {number}, {text[1:]}'.encode(), 1))


def measured(words: list[str], environment: dict[str, str]) -> tuple[float, float, str]:
    """Run tracedb; return its wall time, the CPU time of all processes that it started, and stderr."""
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "tracedb", *words],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wall = time.perf_counter() - started
    assert done.returncode == 0, done.stderr
    _reap()
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, used, done.stderr


def _reap() -> None:
    """Wait for processes that outlive their parents; a subreaper gets them, and their CPU time."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.2)
        except ChildProcessError:
            return


def moved(logs: Path) -> tuple[int, int, int]:
    """Return the bytes that the tasks of Spark's event logs wrote for a shuffle, read from one, and sent to the driver.

    Removes the logs.
    """
    written = read = results = 0
    for path in logs.iterdir():
        for line in path.read_text().splitlines():
            metrics = json.loads(line).get("Task Metrics") if '"SparkListenerTaskEnd"' in line else None
            if metrics:
                written += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                found = metrics["Shuffle Read Metrics"]
                read += found["Remote Bytes Read"] + found["Local Bytes Read"]
                results += metrics["Result Size"]
        path.unlink()
    return written, read, results


def lines(lake: Path, folder: Path, reports: list[str], engines: list[str]) -> Iterator[str]:
    """Yield the table's lines; stops with an assertion if an answer differs."""
    logs = folder / "logs"
    logs.mkdir()
    submitted = f"{LOGGED} --conf spark.eventLog.dir=file://{logs} {os.environ.get('PYSPARK_SUBMIT_ARGS', SPARK)}"
    environment = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": submitted.removesuffix("pyspark-shell") + " pyspark-shell",
    }
    for report in reports:
        answers: dict[str, str] = {}
        for engine in ("", *engines):
            out = folder / f"{report}-{engine}.csv"
            chosen = ["--engine", engine] if engine else []
            words = ["-v", "report", report, "--lake", str(lake), *chosen, "-o", str(out)]
            wall, cpu, said = measured(words, environment)
            answers[engine] = out.read_text()
            found = re.search(r"(\d+) tasks? sent (\d+) rows, (\d+) bytes", said)
            tasks, rows, size = map(int, found.groups()) if found else (1, 0, 0)
            sent = f"{rows:,} | {size / 1e6:.2f}" if found else "- | -"
            shuffled = " | ".join(f"{part / 1e6:.2f}" for part in moved(logs)) if engine == "spark" else "- | - | -"
            equal = "equal" if answers[engine] == answers[""] else "differs"
            name = engine or "DuckDB in place"
            yield f"| {report} | {name} | {tasks} | {wall:.1f} | {cpu:.1f} | {sent} | {shuffled} | {equal} |"
            assert equal == "equal", f"{report} by {engine} differs: {out}"


def main() -> None:
    """Make the lake, run the reports, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", type=int, default=480)
    parser.add_argument("--engines", nargs="*", default=["spark", "ray"])
    parser.add_argument("--reports", nargs="*", default=list(REPORTS))
    parser.add_argument("--lake", type=Path)
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    print(f"{measure.machine()}\n")
    print(
        "| report | engine | tasks | wall s | CPU s | rows sent | MB sent | MB shuffled: written | read |"
        " MB to the driver | rows |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory(prefix="tracedb-bench-") as name:
        folder = Path(name)
        lake = given.lake or folder / "lake"
        if not lake.exists():
            make(folder / "traces", given.captures)
            wall, cpu, _ = measured(
                ["-q", "ingest", str(folder / "traces"), "--lake", str(lake), "--format", "csv"], {}
            )
            print(
                f"| ingest | {given.captures} captures | - | {wall:.1f} | {cpu:.1f} | - | - | - | - | - | - |",
                flush=True,
            )
        for line in lines(lake, folder, given.reports, given.engines):
            print(line, flush=True)


if __name__ == "__main__":
    main()
