"""CPU time of nesting ranges and finding the range around each call: compiled library and SQL.

    python benchmarks/nesting.py [--sizes N …]

Ranges are nested eight deep on two threads, with as many calls. Prints a Markdown table of CPU time, the minimum of
the runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

from tracedb.intervals import native_nesting, nesting
from tracedb.intervals.native_nesting import Column, Ranges

SIZES = (20, 1_000, 5_000, 50_000, 250_000)
NEST = "SELECT item_id, 0 AS lane_a, lane AS lane_b, start_ns, end_ns, item_id AS tie FROM ranges"
CALLS = "SELECT call_id, 0 AS lane_a, lane AS lane_b, start_ns, end_ns FROM calls, (VALUES (0), (1)) AS l(lane)"


def made(count: int) -> tuple[Ranges, Column]:
    """Return ranges, and the starts of as many calls."""
    number = np.arange(count)
    depth, block = number // 2 % 8, number // 16
    start, end = block * 1000 + depth * 10, block * 1000 + 900 - depth * 10
    ranges = Ranges(number % 2, start, end, number)
    return ranges, np.sort(np.random.default_rng(0).integers(0, int(end.max()) + 1, count))


def milliseconds(work: Callable[[], None], runs: int) -> float:
    """Return the minimum CPU time over several runs."""
    each = []
    for _ in range(runs):
        begun = time.process_time()
        work()
        each.append(time.process_time() - begun)
    return min(each) * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, metavar="N")
    chosen = parser.parse_args()
    print("| ranges, and calls | compiled ms | SQL ms |\n|---|---|---|")
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        for count in chosen.sizes:
            ranges, starts = made(count)
            connection.register("ranges", pa.table([*ranges], ["lane", "start_ns", "end_ns", "item_id"]))
            calls = pa.table([np.arange(count), starts, starts + 5], ["call_id", "start_ns", "end_ns"])
            connection.register("calls", calls)

            def compiled(ranges: Ranges = ranges, starts: Column = starts) -> None:
                found = native_nesting.nested(ranges)
                assert found is not None
                list(found.around(starts, starts + 5))

            def by_sql() -> None:
                nesting.nest(connection, NEST)
                nesting.enclose(connection, CALLS)
                nesting.drop(connection)

            runs = 5 if count < 100_000 else 2
            print(
                f"| {count:,} | {milliseconds(compiled, runs):,.2f} | {milliseconds(by_sql, runs):,.1f} |", flush=True
            )


if __name__ == "__main__":
    main()
