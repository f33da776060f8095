"""Operators timed while a collective runs beside them (``tracedb sample --beside allreduce``): the launcher.

As in a step whose gradients are summed up beside its backward pass. The captures have the label ``beside``; a model is
not fitted to them, but learns from them how much slower a product is there.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from tracedb.errors import TracedbError
from tracedb.pipeline import run as pipeline
from tracedb.sampling import collectives, sweep_status
from tracedb.sampling import device as devices
from tracedb.sampling.configuration import Configuration
from tracedb.sampling.recording import Outcome, Recorder
from tracedb.sampling.runner import Account, Request, chosen, operator_of, remaining
from tracedb.sampling.sweep import Shape
from tracedb.sampling.sweep_status import Series
from tracedb.storage.spill_folder import temporary_folder

WORKER = "tracedb.sampling.beside_worker"
KINDS = ("allreduce",)
ELEMENTS = {"nccl": 1 << 27, "gloo": 1 << 10}
"""Numbers that each all-reduce sums up: 256 MB in 16 bits, which takes about 1 ms between two H200."""


@dataclass(frozen=True)
class Task:
    """One operator's part of an order."""

    configuration: str
    operator: str
    module: str | None
    function: str | None
    shapes: list[Shape]
    warmups: int
    iterations: int


@dataclass(frozen=True)
class Order:
    """The work of every rank, sent as JSON. ``tasks`` as dictionaries."""

    backend: str
    dtype: str
    tasks: list[dict[str, Any]]
    elements: int
    folder: str


@dataclass
class _Sweep:
    """One operator's sweep: what is known, and what is left to do."""

    configuration: Configuration
    series: Series
    account: Account
    runnable: list[Shape]


def run(configurations: Sequence[Configuration], request: Request, kind: str) -> list[Account]:
    """Sample sweeps on all GPUs of this host while they run a collective; shapes already sampled so are skipped.

    The ranks start once for all operators. On the CPU, there are two ranks. Raises ``TracedbError`` with fewer than two
    GPUs, or if a rank fails.
    """
    backend = "gloo" if request.device == "cpu" else "nccl"
    where = collectives.ring(None, backend, request.precision)
    title = where.device.rpartition(" x")[0]
    sweeps = [_sweep(configuration, request, kind, title, backend) for configuration in configurations]
    todo = [sweep for sweep in sweeps if sweep.runnable]
    if todo:
        _record(todo, request, where, kind)
    for sweep in sweeps:
        if sweep.account.outcomes and not sweep.runnable:
            sweep_status.write(request.database, sweep.series, sweep.account.outcomes, None)
    return [sweep.account for sweep in sweeps]


def _sweep(configuration: Configuration, request: Request, kind: str, title: str, backend: str) -> _Sweep:
    """Return what is left of an operator's sweep; shapes that it does not allow are already among the outcomes."""
    series = Series(configuration.operator, request.precision, title, f"beside_{kind}")
    device = devices.choose("cpu" if backend == "gloo" else None)
    recorder = Recorder(operator_of(configuration), configuration, devices.dtype(request.precision), device)
    account, runnable = remaining(series, chosen(configuration, request), recorder, request)
    return _Sweep(configuration, series, account, runnable)


def _record(sweeps: Sequence[_Sweep], request: Request, where: collectives.Ring, kind: str) -> None:
    """Start the ranks, and load what they have written while they go on: what is loaded stays if they are stopped."""
    with temporary_folder() as temporary:
        folder = Path(temporary)
        tasks = [
            Task(
                str(sweep.configuration.path.absolute()),
                sweep.configuration.operator,
                sweep.configuration.module,
                sweep.configuration.function,
                sweep.runnable,
                sweep.configuration.wait + sweep.configuration.warmup,
                sweep.configuration.active,
            )
            for sweep in sweeps
        ]
        order = Order(
            where.backend,
            request.precision,
            [asdict(task) for task in tasks],
            ELEMENTS[where.backend],
            str(folder.absolute()),
        )
        for number in range(len(sweeps)):
            (folder / f"sweep{number}").mkdir()
        told = folder / "order.json"
        told.write_text(json.dumps(asdict(order)), encoding="utf-8")
        left = list(enumerate(sweeps))

        def load_next() -> None:
            """Load the next operator, if all ranks have written it."""
            if left and len(list((folder / f"sweep{left[0][0]}").glob("outcomes*.json"))) == where.ranks:
                number, sweep = left.pop(0)
                _load(sweep, request, folder / f"sweep{number}", kind)

        collectives.launch(where, told, WORKER, load_next)
        for _ in tuple(left):
            load_next()


def _load(sweep: _Sweep, request: Request, folder: Path, kind: str) -> None:
    """Load the traces of one operator, one of each rank, and store the outcomes of its shapes."""
    series, account = sweep.series, sweep.account
    said = json.loads((folder / "outcomes0.json").read_text(encoding="utf-8"))
    account.outcomes += [
        Outcome(shape, status, detail) for shape, (status, detail) in zip(sweep.runnable, said, strict=True)
    ]
    traces = sorted(folder.glob("rank*.json.gz"))
    if request.keep_traces is not None:
        name = f"{series.operator}_{request.precision}_beside_{kind}_{uuid4().hex[:12]}"
        traces = _moved(traces, request.keep_traces / name)
    label = {"sampled": series.operator, "dtype": request.precision, "device": series.device, "beside": kind}
    loaded = pipeline.ingest(*traces, db=request.database, label=label)
    for outcome in loaded:
        if outcome.error is not None or not outcome.loaded:
            raise TracedbError(f"{outcome.path}: the trace was not loaded: {outcome.error or 'known already'}")
    account.captures += [outcome.loaded[0].capture_id for outcome in loaded]
    sweep_status.write(request.database, series, account.outcomes, account.captures[0])


def _moved(files: Sequence[Path], folder: Path) -> list[Path]:
    folder.mkdir(parents=True)
    return [Path(shutil.move(file, folder)) for file in files]
