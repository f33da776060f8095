"""Time and memory of matching collectives and of aligning clocks, by number of ranks, without reading any trace.

    python benchmarks/alignment.py [--ranks 64 256 1024] [--calls 100] [--out RESULTS.md]

The rows are made in a database: every rank has half of its collectives in a group of 8 neighbours and half in one of
every eighth rank ("two groups"), or all of them in one group of all ranks ("one group"). Captures are numbered in a
random order, as they arrive, and clocks are up to 0.5 ms apart. Each line is a process with one thread and 2 GB.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import measure

from tracedb.derive import clock_alignment
from tracedb.storage import schema, views
from tracedb.storage.connection import STORAGE, quoted

SETTINGS: dict[str, str | bool | int | float | list[str]] = {"memory_limit": "2GB", "threads": 1}
TENSOR = 8
MATCH = "SELECT count(DISTINCT collective_id) FROM v1._collective_match"


def build(path: Path, ranks: int, calls: int, is_one_group: bool) -> None:
    """Write a database with the collective kernels of all ranks."""
    groups = {
        "group_name": "'0'"
        if is_one_group
        else f"CASE c % 2 WHEN 0 THEN 't' || r // {TENSOR} ELSE 'd' || r % {TENSOR} END",
        "group_size": str(ranks) if is_one_group else f"CASE c % 2 WHEN 0 THEN {TENSOR} ELSE {ranks // TENSOR} END",
        "group_ranks": f"range({ranks})::VARCHAR"
        if is_one_group
        else f"""CASE c % 2 WHEN 0 THEN range(r // {TENSOR} * {TENSOR}, r // {TENSOR} * {TENSOR} + {TENSOR})
            ELSE range(r % {TENSOR}, {ranks}, {TENSOR}) END::VARCHAR""",
    }
    with duckdb.connect(":memory:", config=SETTINGS) as connection:
        connection.execute(f"ATTACH {quoted(str(path))} AS bench ({STORAGE})")
        connection.execute("USE bench")
        schema.apply(connection, "benchmark")
        views.install(connection)
        connection.execute(
            f"""CREATE TEMP TABLE member AS
            SELECT r, row_number() OVER (ORDER BY hash(r))::INTEGER AS capture_id, hash(r + 7)::HUGEINT % 1000000 AS off
            FROM range({ranks}) AS t(r)"""
        )
        connection.execute(
            """INSERT INTO main.capture BY NAME
            SELECT capture_id, 'torch' AS source, r::INTEGER AS rank, 1759000000000000000 AS clock_zero_unix_ns,
                'complete' AS status, MAP {'job': 'a'} AS labels
            FROM member ORDER BY capture_id"""
        )
        connection.execute(
            f"""INSERT INTO main.kernel_event BY NAME
            SELECT capture_id, c AS event_id, 'kernel' AS kind, 0 AS device_id, 20 AS stream_id,
                'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)' AS name,
                (off + c * 1000000 + hash(r, c)::HUGEINT % 20000)::BIGINT AS start_ns,
                (600000 - hash(r, c)::HUGEINT % 20000 + hash(c, r)::HUGEINT % 3000)::BIGINT AS duration_ns,
                'allreduce' AS collective, 1048576 AS message_in_elements, 1048576 AS message_out_elements,
                'BFloat16' AS dtype, {", ".join(f"{sql} AS {name}" for name, sql in groups.items())}
            FROM member, range({calls}) AS n(c) ORDER BY capture_id, c"""
        )
        connection.execute("CHECKPOINT")


def measured(path: Path) -> None:
    """Print wall and CPU seconds of a match, those of an alignment, and the peak memory in MB."""
    figures = []
    with duckdb.connect(":memory:", config=SETTINGS) as connection:
        connection.execute(f"ATTACH {quoted(str(path))} AS bench ({STORAGE})")
        connection.execute("USE bench")
        for step in (lambda: connection.execute(MATCH).fetchall(), lambda: _align(connection)):
            wall, cpu = time.perf_counter(), time.process_time()
            step()
            figures += [time.perf_counter() - wall, time.process_time() - cpu]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(" | ".join(f"{figure:.2f}" for figure in figures), f"{peak:.0f}", sep=" | ")


def _align(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("BEGIN")
    clock_alignment.align(connection)
    ((aligned, references, captures),) = connection.execute(
        """SELECT count(*), count(DISTINCT reference_capture_id), (SELECT count(*) FROM main.capture)
        FROM main.clock_alignment"""
    ).fetchall()
    assert (aligned, references) == (captures, 1)
    connection.execute("ROLLBACK")


def table(sizes: list[int], calls: int, folder: Path) -> list[str]:
    """Return the lines of the table."""
    lines = [
        "| ranks | groups | collective kernels | match: wall s | CPU s | aligned: wall s | CPU s | peak memory MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for is_one_group in (False, True):
        for ranks in sizes:
            path = folder / f"{ranks}_{is_one_group}.duckdb"
            build(path, ranks, calls, is_one_group)
            command = [sys.executable, __file__, "--of", str(path)]
            found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            words = "one of all ranks" if is_one_group else f"of {TENSOR}, and of every eighth"
            lines.append(f"| {ranks:,} | {words} | {ranks * calls:,} | {found.strip()} |")
            print(lines[-1], file=sys.stderr)
    return lines


def main() -> None:
    """Make, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", nargs="+", type=int, default=[64, 256, 1024])
    parser.add_argument("--calls", type=int, default=100, help="collectives of each rank")
    parser.add_argument("--of", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    if chosen.of:
        measured(chosen.of)
        return
    with tempfile.TemporaryDirectory(prefix="tracedb-bench-") as folder:
        lines = table(chosen.ranks, chosen.calls, Path(folder))
    text = "\n".join([f"Machine: {measure.machine()}.", "", *lines]) + "\n"
    print(text, end="")
    if chosen.out:
        chosen.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
