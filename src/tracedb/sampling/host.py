"""The host's time in whole training steps (``tracedb sample host_gpt.yml …``): the launcher.

Bursts time the host in the launching of one operator. What Python does between operators (calls of modules, autograd's
bookkeeping, the optimizer's loop over weights, checkpoints) is part of a step, too. So models that are small enough for
the host to bound their steps are trained in processes of their own, in which no profiler has run: once it has, launches
may stay slower. Several processes, one after another, tell how far the host's speed varies.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from tracedb.errors import TracedbError
from tracedb.sampling import bursts_table, sweep_status, worker_sweep
from tracedb.sampling import device as devices
from tracedb.sampling.burst import Burst
from tracedb.sampling.configuration import Configuration
from tracedb.sampling.recording import Outcome
from tracedb.sampling.runner import Account, Request, chosen, load, operator_of
from tracedb.sampling.sweep import Shape, share, text
from tracedb.sampling.sweep_status import Series
from tracedb.sampling.worker_sweep import WorkerSweep

WORKER = "tracedb.sampling.host_worker"
PROCESSES = 2


@dataclass(frozen=True)
class Order:
    """The work of one process, sent as JSON. ``tasks`` as dictionaries."""

    dtype: str
    device: str
    tasks: list[dict[str, Any]]
    folder: str
    is_traced: bool
    """Whether the steps are also traced, after they were timed."""


@dataclass
class _Sweep(WorkerSweep):
    """One model's sweep, and what was measured."""

    bursts: list[list[Burst]] = field(default_factory=list)
    """Of each shape."""
    told: list[tuple[str, str | None]] = field(default_factory=list)
    """Status and detail of each shape."""


def is_model(configuration: Configuration) -> bool:
    """Whether a configuration is of a whole model. Raises ``TracedbError`` if its operator does not exist."""
    return operator_of(configuration).is_model


def run(configurations: Sequence[Configuration], request: Request) -> list[Account]:
    """Time the host in steps of models; shapes that are in the database already are skipped.

    Raises ``TracedbError`` if the device does not exist, a process fails, or a trace could not be loaded.
    """
    device = devices.choose(request.device)
    sweeps = [_sweep(configuration, request, device) for configuration in configurations]

    def work(todo: list[_Sweep], folder: Path) -> None:
        for number in range(PROCESSES):
            _start(todo, request, device, folder / str(number), is_traced=number == PROCESSES - 1)
        for place, sweep in enumerate(todo):
            _load(sweep, request, folder / str(PROCESSES - 1) / f"{place}.json.gz")

    return worker_sweep.run(sweeps, request, work)


def groups(shapes: Sequence[Shape]) -> list[list[Shape]]:
    """Return the shapes that differ only in their number of layers, together."""
    found: dict[str, list[Shape]] = {}
    for shape in shapes:
        rest = {name: value for name, value in shape.items() if name != "layers"}
        found.setdefault(text("", rest), []).append(shape)
    return list(found.values())


def _wanted(configuration: Configuration, request: Request) -> list[Shape]:
    """Return the shapes of this part of the sweep.

    Those that differ only in their number of layers stay in one part, and ``--random`` leaves none of them out: the
    difference between them is the time of a layer.
    """
    everything = groups(chosen(configuration, replace(request, parts=1, part=1, random=None)))
    return [shape for group in share(everything, request.parts, request.part) for shape in group]


def _sweep(configuration: Configuration, request: Request, device: Any) -> _Sweep:
    name = operator_of(configuration).name
    series = Series(name, request.precision, devices.title(device), request.regime)
    return _Sweep.of(configuration, series, _wanted(configuration, request), request, device)


def _start(sweeps: Sequence[_Sweep], request: Request, device: Any, folder: Path, *, is_traced: bool) -> None:
    """Run one process to its end, and add what it measured to the sweeps."""
    folder.mkdir()
    tasks = [asdict(sweep.task) for sweep in sweeps]
    order = Order(request.precision, str(device), tasks, str(folder.absolute()), is_traced)
    told = folder / "order.json"
    told.write_text(json.dumps(asdict(order)), encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", WORKER, str(told)], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if ended.returncode != 0:
        words = ended.stderr.decode(errors="replace").strip().splitlines() or ["nothing on stderr"]
        raise TracedbError(f"a process that times the host failed (exit code {ended.returncode}): {words[-1][:300]}")
    for place, sweep in enumerate(sweeps):
        found = json.loads((folder / f"{place}.json").read_text(encoding="utf-8"))
        sweep.bursts = sweep.bursts or [[] for _ in sweep.runnable]
        for bursts, shape, item in zip(sweep.bursts, sweep.runnable, found, strict=True):
            bursts += [
                Burst(shape, name, host_ns=round(ns), is_synchronous=False)
                for name, times in item["rounds"].items()
                for ns in times
            ]
        sweep.told = [(item["status"], item["detail"]) for item in found]


def _load(sweep: _Sweep, request: Request, trace: Path) -> None:
    """Load the trace of a model, and store the host's times and the outcomes of the shapes."""
    series, account = sweep.series, sweep.account
    outcomes = [
        Outcome(shape, status, detail) for shape, (status, detail) in zip(sweep.runnable, sweep.told, strict=True)
    ]
    capture_id = None
    if any(outcome.status == "sampled" for outcome in outcomes):
        if request.keep_traces is not None:
            request.keep_traces.mkdir(parents=True, exist_ok=True)
            kept = request.keep_traces / f"{series.operator}_{series.dtype}_{uuid4().hex[:12]}.json.gz"
            trace = Path(shutil.move(trace, kept))
        label = {"sampled": series.operator, "dtype": series.dtype, "device": series.device, "host": "alone"}
        (capture_id,) = load([trace], request.database, label)
        account.captures.append(capture_id)
        for outcome, bursts in zip(outcomes, sweep.bursts, strict=True):
            if outcome.status == "sampled":
                bursts_table.write(request.database, capture_id, series, bursts)
    account.outcomes += outcomes
    sweep_status.write(request.database, series, account.outcomes, capture_id)
