"""Cut recordings of benchmarks/planted_causes.py down for tests: ``python cut.py [--steps N] SOURCE TARGET NAME…``.

Kept of each trace: GPU rows, the calls that launched them, synchronizations and waits of streams, the operators around
those calls, and ranges; with ``--steps``, of the first N steps. Omitted: all else, arguments that no test needs, and
the name of the trace. Times and durations are as recorded.
"""

from __future__ import annotations

import argparse
import gzip
import json
from bisect import bisect_left
from pathlib import Path
from typing import Any

GPU = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
WAITS = ("Synchronize", "StreamWait")
NEEDLESS = (
    *("Record function id", "Ev Idx", "queued", "blocks per SM", "warps per SM", "est. achieved occupancy %", "cbid"),
    *("Sequence number", "Fwd thread id", "Input Strides", "Concrete Inputs", "shared memory", "registers per thread"),
    *("grid", "block", "context", "memory bandwidth (GB/s)", "Process Group Description"),
)


def cut(trace: dict[str, Any], steps: int | None) -> dict[str, Any]:
    """Return the trace with what is kept."""
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    if steps is not None:
        ends = sorted(
            event["ts"] + event["dur"]
            for event in events
            if event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep#")
        )
        events = [event for event in events if event["ts"] + event["dur"] <= ends[steps - 1]]
    launched = {event["args"].get("correlation") for event in events if event.get("cat") in GPU}
    calls = [
        event
        for event in events
        if event.get("cat") in CALLS
        and (event["args"].get("correlation") in launched or any(word in event["name"] for word in WAITS))
    ]
    starts: dict[Any, list[float]] = {}
    for event in sorted(calls, key=lambda event: float(event["ts"])):
        starts.setdefault(event["tid"], []).append(event["ts"])

    def is_around(event: dict[str, Any]) -> bool:
        mine = starts.get(event["tid"], [])
        place = bisect_left(mine, event["ts"])
        return place < len(mine) and mine[place] <= event["ts"] + event["dur"]

    kept = [event for event in events if event.get("cat") in (*GPU, "user_annotation")] + calls
    kept += [event for event in events if event.get("cat") == "cpu_op" and is_around(event)]
    for event in kept:
        for name in NEEDLESS:
            event.get("args", {}).pop(name, None)
    kept.sort(key=lambda event: float(event["ts"]))
    header = {key: value for key, value in trace.items() if key not in ("traceEvents", "traceName", "trace_id")}
    return {**header, "traceEvents": kept}


def main() -> None:
    """Cut the recordings that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--steps", type=int)
    given = parser.parse_args()
    for name in given.names:
        for path in sorted((given.source / f"config={name}").glob("rank*.json.gz")):
            small = given.target / f"config={name}" / path.name
            small.parent.mkdir(parents=True, exist_ok=True)
            with gzip.open(path) as file:
                text = json.dumps(cut(json.load(file), given.steps), separators=(",", ":"))
            small.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
            print(small.name, small.stat().st_size)


if __name__ == "__main__":
    main()
