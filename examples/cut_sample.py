"""Cut one profiler step out of a folder of torch-profiler traces: ``python cut_sample.py SOURCE TARGET``.

Every ``*.json.gz`` below SOURCE that marks the step is written to the same place below TARGET. Events that start
within the step are kept unchanged: GPU rows, the API calls that launched them, the operators that contain those
calls, annotations and their projections. Operators and API calls that launched nothing, and flow arrows, are
omitted to keep the files small; the path of the recording machine in ``traceName`` is omitted for privacy. The
output is deterministic.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLOWS = ("s", "t", "f")
GPU_ROWS = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
EVENTS = re.compile(r'"traceEvents"\s*:\s*\[')
TRACE_NAME = re.compile(r'"traceName"\s*:\s*"[^"]*"')

Event = dict[str, Any]


def events(text: str, place: int) -> Iterator[tuple[str, Event, int]]:
    """Yield each event's own text, its content and where it ends, from ``place`` to the end of the array."""
    decoder = json.JSONDecoder()
    while True:
        while text[place] in " \t\r\n,":
            place += 1
        if text[place] == "]":
            return
        event, end = decoder.raw_decode(text, place)
        yield text[place:end], event, end
        place = end


class Step:
    """Decides which events of a trace belong to one step."""

    def __init__(self, found: list[Event], mark: Event) -> None:
        self.first, self.last = mark["ts"], mark["ts"] + mark["dur"]
        launched = {event["args"].get("correlation") for event in found if event.get("cat") in GPU_ROWS}
        self.launches = {
            id(event)
            for event in found
            if event.get("cat") in CALLS
            and (event["args"].get("correlation") in launched or "Synchronize" in event["name"])
        }
        self.calls: dict[Any, list[float]] = {}
        for event in sorted(found, key=lambda event: float(event.get("ts", 0))):
            if id(event) in self.launches:
                self.calls.setdefault(event["tid"], []).append(event["ts"])

    def holds(self, event: Event) -> bool:
        """Whether the event is kept."""
        category = event.get("cat")
        if event["ph"] in FLOWS:
            return False
        if category in (None, "Trace"):  # names of processes and threads, marks of the profiler itself
            return True
        if not self.first <= event["ts"] <= self.last:
            return False
        if category in CALLS:
            return id(event) in self.launches
        return category != "cpu_op" or self._launches_within(event)

    def _launches_within(self, event: Event) -> bool:
        calls = self.calls.get(event["tid"], [])
        place = bisect_left(calls, event["ts"])
        return place < len(calls) and calls[place] <= event["ts"] + event["dur"]


def cut(text: str, step: int, name: str) -> str | None:
    """Return the trace ``text`` cut to a step and called ``name``; None if it does not mark that step."""
    opening = EVENTS.search(text)
    if opening is None:
        return None
    found = list(events(text, opening.end()))
    every = [event for _, event, _ in found]
    for event in every:
        if event.get("cat") == "user_annotation" and event["name"] == f"ProfilerStep#{step}":
            wanted = Step(every, event)
            kept = [raw for raw, event, _ in found if wanted.holds(event)]
            tail = TRACE_NAME.sub(f'"traceName": "{name}"', text[found[-1][2] :])
            return text[: opening.end()] + "\n  " + ",\n  ".join(kept) + tail
    return None


def main() -> None:
    """Cut every trace below a folder."""
    parser = argparse.ArgumentParser(description="Cut one profiler step out of torch-profiler traces.")
    parser.add_argument("source", type=Path, help="folder with *.json.gz traces")
    parser.add_argument("target", type=Path, help="folder to write to")
    parser.add_argument("--step", type=int, default=3, help="number N of ProfilerStep#N (default: %(default)s)")
    given = parser.parse_args()
    for path in sorted(given.source.rglob("*.json.gz")):
        place = path.relative_to(given.source)
        text = cut(gzip.decompress(path.read_bytes()).decode(), given.step, path.name.removesuffix(".gz"))
        if text is None:
            print(f"{place}: no ProfilerStep#{given.step}")
            continue
        out = given.target / place
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        print(f"{place}: {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
