"""Mutate inputs of the readers, and check that all ways of reading agree and that nothing is lost or crashes.

    python tests/robustness/fuzz.py --seed 1 --count 2000
    python tests/robustness/fuzz.py --format torch --seed 1 --first 17 --count 1     # one input again

The same format, seed and number give the same input. The inputs of a format are read in a separate process; if it
crashes or hangs, that is a finding, and another process continues after that input. Each finding is printed with the
command that reproduces it; ``--keep`` saves its input files. Prints a table; the exit code is 1 if there were
findings. ``--sanitize`` builds the C readers with -fsanitize=address,undefined and uses these.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingest")]

from robustness import inputs_nsys, inputs_rocprof, inputs_torch, sanitized  # noqa: E402
from robustness.invariants import Case, judge  # noqa: E402

Maker = Callable[[random.Random, Path], Case]
FORMATS: dict[str, tuple[Any, Maker]] = {
    "torch": (inputs_torch.ingester, inputs_torch.make),
    "nsys-sqlite": (inputs_nsys.ingester, inputs_nsys.make_sqlite),
    "nsys-parquet": (inputs_nsys.ingester, inputs_nsys.make_parquet),
    "rocprof-csv": (inputs_rocprof.ingester, inputs_rocprof.make_csv),
    "rocprof-json": (inputs_rocprof.ingester, inputs_rocprof.make_json),
    "rocpd": (inputs_rocprof.ingester, inputs_rocprof.make_rocpd),
    "samples": (inputs_rocprof.samples_ingester, inputs_rocprof.make_samples),
}
MOST_SECONDS = 30.0
"""Time for one input, after which it hangs; it takes some tens of milliseconds."""
MEMORY = Path("/dev/shm")
"""A folder in memory, where there is one: making and removing files costs as much as reading them."""
Said = dict[str, Any]


@dataclass
class Tally:
    """What came of the inputs of a format."""

    states: Counter[str] = field(default_factory=Counter)
    inputs: int = 0
    whole: int = 0
    accounted: int = 0
    findings: list[Said] = field(default_factory=list)
    seconds: float = 0.0


def tried(name: str, seed: int, number: int, keep: Path | None = None) -> Case:
    """Make an input, read it in all its ways, and return it judged; ``keep``: where its files go if it is a finding."""
    ingester, make = FORMATS[name]
    with tempfile.TemporaryDirectory(prefix="tracedb-fuzz-") as folder:
        case = make(random.Random(f"{name} {seed} {number}"), Path(folder))
        judge(ingester, case)
        if case.wrong and keep is not None:
            target = keep / f"{name}-{seed}-{number}"
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder, target)
            (target / "finding.txt").write_text("\n".join([again(name, seed, number), *case.wrong, ""]))
    return case


def again(name: str, seed: int, number: int) -> str:
    """Return the command that reads an input again."""
    return f"python tests/robustness/fuzz.py --format {name} --seed {seed} --first {number} --count 1"


def work(name: str, seed: int, numbers: range, keep: Path) -> None:
    """Read inputs in this process; say a line of JSON after each."""
    if MEMORY.is_dir() and "TMPDIR" not in os.environ:
        tempfile.tempdir = str(MEMORY)
    for number in numbers:
        case = tried(name, seed, number, keep)
        said = {
            "number": number,
            "state": case.state,
            "whole": case.is_whole,
            "accounted": case.is_accounted,
            "wrong": case.wrong,
        }
        print(json.dumps(said), flush=True)


def explored(name: str, seed: int, numbers: range, keep: Path, seconds: float, settings: dict[str, str]) -> Tally:
    """Have processes read inputs of a format, for so long at most."""
    tally, began, following = Tally(), time.monotonic(), numbers.start
    while following < numbers.stop and time.monotonic() - began < seconds and not STOPPED.is_set():
        command = [sys.executable, __file__, "--worker", "--format", name, "--seed", str(seed), "--keep", str(keep)]
        command += ["--first", str(following), "--count", str(numbers.stop - following)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **settings}) as worker:
            why = "ended"
            for said in _lines(worker):
                if said is None:
                    why = f"did not end within {MOST_SECONDS:.0f} s"
                    break
                _add(tally, said, name, seed)
                following = said["number"] + 1
                if time.monotonic() - began > seconds or STOPPED.is_set():
                    why = ""
                    break
            else:
                if following >= numbers.stop:
                    why = ""
            if why or following < numbers.stop:
                worker.kill()
        if why:
            said = {"number": following, "state": "broken", "whole": False, "accounted": False}
            said["wrong"] = [f"the process {why} (exit code {worker.returncode})"]
            _add(tally, said, name, seed)
            following += 1
    tally.seconds = time.monotonic() - began
    return tally


def _lines(worker: subprocess.Popen[bytes]) -> Iterator[Said | None]:
    """Yield what a worker says; None once, at the end, where it says nothing for too long."""
    assert worker.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(worker.stdout, selectors.EVENT_READ)
        while selector.select(2 * MOST_SECONDS):
            line = worker.stdout.readline()
            if not line:
                return
            yield json.loads(line)
    yield None


def _add(tally: Tally, said: Said, name: str, seed: int) -> None:
    tally.inputs += 1
    tally.states[said["state"]] += 1
    tally.whole += said["whole"]
    tally.accounted += said["accounted"]
    if said["wrong"]:
        tally.findings.append(said)
        print(again(name, seed, said["number"]), *said["wrong"], sep="\n    ", flush=True)


STOPPED = threading.Event()
"""Set by SIGTERM: what is done so far is told, and nothing more is done."""


def _stop(*_: object) -> None:
    STOPPED.set()


def table(tallies: dict[str, Tally]) -> str:
    """Return the outcomes as a table in Markdown."""
    names = ("complete", "repaired", "truncated", "no_gpu_activity", "refused", "not claimed")
    others = ("other", "read as a whole", "ingested", "findings", "seconds")
    lines = [f"| format | inputs | {' | '.join((*names, *others))} |"]
    lines.append("|---" * (len(names) + len(others) + 2) + "|")
    for name, tally in tallies.items():
        counts = [tally.states[state] for state in names]
        cells = [tally.inputs, *counts, tally.inputs - sum(counts), tally.whole, tally.accounted, len(tally.findings)]
        lines.append(f"| {name} | {' | '.join(f'{cell:,}' for cell in cells)} | {tally.seconds:,.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Explore, and print what came of it."""
    parser = argparse.ArgumentParser(description="Give the readers changed inputs.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--count", type=int, default=100, help="inputs of each format")
    parser.add_argument("--seconds", type=float, default=1e9, help="time for each format")
    parser.add_argument("--format", action="append", choices=list(FORMATS))
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "tracedb-fuzz")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)
    names = given.format or list(FORMATS)
    numbers = range(given.first, given.first + given.count)
    given.keep.mkdir(parents=True, exist_ok=True)
    if given.worker:
        sanitized.use_chosen()
        work(names[0], given.seed, numbers, given.keep)
        return
    settings = sanitized.built(given.keep / "sanitized") if given.sanitize else {}
    tallies = {name: explored(name, given.seed, numbers, given.keep, given.seconds, settings) for name in names}
    print(table(tallies))
    sys.exit(1 if any(tally.findings for tally in tallies.values()) else 0)


if __name__ == "__main__":
    main()
