"""Modules, lines and memory of a recorded training run, by another route: plain Python over the JSON."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support import recordings
from support.command import run
from support.loading import ask, ingest

TRACE = recordings.DATA / "torch" / "h100_bigtrain_stack.json.gz"
EVALUATE = "autograd::engine::evaluate_function"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not TRACE.exists(), reason="the recording with stacks is too large to ship"),
]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stacks") / "trace.duckdb"
    assert ingest(TRACE, db=path).exit_code == 0
    return path


class Spans:
    """Nested spans of one thread; ``around`` gives those that contain a moment, the innermost first."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self._events = sorted(events, key=lambda event: (event["ts"], -event["dur"]))
        self._starts = [event["ts"] for event in self._events]
        self._parents: list[int] = []
        stack: list[int] = []
        for place, event in enumerate(self._events):
            while stack and self._events[stack[-1]]["ts"] + self._events[stack[-1]]["dur"] < event["ts"]:
                stack.pop()
            self._parents.append(stack[-1] if stack else -1)
            stack.append(place)

    def around(self, moment: float) -> Iterator[dict[str, Any]]:
        place = bisect_right(self._starts, moment) - 1
        while place >= 0:
            event = self._events[place]
            if event["ts"] + event["dur"] >= moment:
                yield event
            place = self._parents[place]


@pytest.fixture(scope="module")
def other() -> dict[str, dict[Any, list[float]]]:
    """Kernels and µs by pass, and GPU events and µs by line and pass, from the JSON."""
    events = json.loads(gzip.decompress(TRACE.read_bytes()))["traceEvents"]
    threads: dict[tuple[str, Any], list[dict[str, Any]]] = defaultdict(list)
    ops: dict[int, dict[str, Any]] = {}
    forward: dict[int, dict[str, Any]] = {}
    for event in events:
        kind = event.get("cat")
        if kind in ("cpu_op", "python_function"):
            threads[kind, event["tid"]].append(event)
        if kind == "cpu_op":
            ops[event["args"]["External id"]] = event
            number = event["args"].get("Sequence number")
            is_forward = not event["args"].get("Fwd thread id") and not event["name"].startswith("autograd::engine::")
            if number is not None and is_forward and event["ts"] >= forward.get(number, event)["ts"]:
                forward[number] = event
    spans = {key: Spans(found) for key, found in threads.items()}
    passes: dict[Any, list[float]] = defaultdict(lambda: [0, 0.0])
    lines: dict[Any, list[float]] = defaultdict(lambda: [0, 0.0])
    for event in events:
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        op = ops[event["args"]["External id"]]
        node = next((o for o in spans["cpu_op", op["tid"]].around(op["ts"]) if o["name"].startswith(EVALUATE)), None)
        made = op if node is None else forward[node["args"]["Sequence number"]]
        frames = [frame["name"] for frame in spans["python_function", made["tid"]].around(made["ts"])]
        stage = "forward" if node is None else "backward"
        own = next((name for name in frames if name.startswith(("gpt.py", "single.py"))), None)
        lines[own, stage][0] += 1
        lines[own, stage][1] += event["dur"]
        if event["cat"] == "kernel" and any(name.startswith("nn.Module: ") for name in frames):
            passes[stage][0] += 1
            passes[stage][1] += event["dur"]
    return {"passes": dict(passes), "lines": dict(lines)}


def test_modules(db: Path, other: dict[str, dict[Any, list[float]]]) -> None:
    found = ask(
        db,
        "SELECT pass, sum(kernels) FILTER (depth = 0), sum(self_ns) FROM v1.module_time GROUP BY pass ORDER BY pass",
    )
    by_pass = {name: (kernels, spent) for name, kernels, spent in found}
    assert by_pass["forward"] == (1530, 112_621_257)
    assert by_pass["backward"] == (2274, 208_310_849)
    assert sum(spent for _, spent in by_pass.values()) == 349_877_003
    for name in ("forward", "backward"):
        assert other["passes"][name] == [by_pass[name][0], pytest.approx(by_pass[name][1] / 1e3, abs=0.01)]


def test_lines(db: Path, other: dict[str, dict[Any, list[float]]]) -> None:
    found = ask(
        db, "SELECT source, stage, sum(calls), sum(total_ns) / 1e3 FROM v1.kernel_source GROUP BY source, stage"
    )
    by_line = {(source, stage): [calls, pytest.approx(spent, abs=0.01)] for source, stage, calls, spent in found}
    assert other["lines"] == by_line
    assert by_line["gpt.py(16): forward", "forward"] == [1080, pytest.approx(57_402.275)]
    assert by_line["gpt.py(37): forward", "forward"] == [504, pytest.approx(54_295.066)]
    assert by_line["single.py(16): step", "forward"] == [5400, pytest.approx(28_338.038)]


def test_memory(db: Path) -> None:
    assert ask(db, "SELECT peak_bytes, reserved_peak_bytes, unmatched_frees FROM v1.memory_peak") == [
        (4_787_233_792, 4_909_432_832, 0)
    ]
    for view, column in (("memory_by_op", "live_bytes_at_peak"), ("memory_by_module", "live_bytes_at_peak")):
        assert ask(db, f"SELECT sum({column}) FROM v1.{view}") == [(4_787_233_792,)]


def test_answers_in_a_plain_shell(db: Path) -> None:
    with duckdb.connect(str(db), read_only=True) as plain:
        assert plain.execute("SELECT count(*) > 0 FROM module_time").fetchone() == (True,)


SUMMARIES = {
    "module-time": [
        "91.7 % of kernel time is in modules: forward 32.2 %, backward 59.5 %",
        "by class of the innermost module: Linear 70.9 %, Attn 18.0 %, outside modules 8.3 %, Block 1.4 %, "
        "LayerNorm 0.7 %",
    ],
    "kernel-source": [
        "100.0 % of GPU time was launched below lines of your own code",
        "most of it, over all stages: gpt.py(37): forward with 159.592 ms (44.7 %), 105.296 of them backward",
    ],
    "roofline": [
        "348.4 of 356.7 ms of operators have a known roof; at it they would take 253.5 ms",
        "bound by compute: 272.0 ms at 70 % of the roof; by memory: 76.5 ms at 84 % of the roof",
        "272.0 ms are products in fp32 with a roof of 67 TFLOP/s; TF32 (torch.set_float32_matmul_precision) has 495",
    ],
    "memory-timeline": [
        "device 0: at most 4.46 GiB allocated, 0.019 s after the first event; at least 1.94; 4.57 GiB reserved at most"
        "; memory-by-op and memory-by-module say who holds the peak",
    ],
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_what_a_reader_is_told_first(db: Path, name: str) -> None:
    told = run("report", name, "--db", db, "--top", "1").stderr.splitlines()
    assert told[: len(SUMMARIES[name])] == [f"tracedb: {line}" for line in SUMMARIES[name]]


def test_kernels_of_modules_as_ranges(db: Path) -> None:
    done = run("report", "range-kernels", "--range", "nn.Module: GPT_0", "--db", db, "--format", "json")
    rows = json.loads(done.stdout)["rows"]
    assert (sum(row["total_ns"] for row in rows), sum(row["calls"] for row in rows)) == (112_621_257, 1530)
