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

from tracedb.sampling import collectives, sweep_status, worker_sweep
from tracedb.sampling import device as devices
from tracedb.sampling.configuration import Configuration
from tracedb.sampling.recording import Outcome
from tracedb.sampling.runner import Account, Request, chosen, load
from tracedb.sampling.sweep_status import Series
from tracedb.sampling.worker_sweep import WorkerSweep

WORKER = "tracedb.sampling.beside_worker"
KINDS = ("allreduce",)
ELEMENTS = {"nccl": 1 << 27, "gloo": 1 << 10}
"""Numbers that each all-reduce sums up: 256 MB in 16 bits, which takes about 1 ms between two H200."""


@dataclass(frozen=True)
class Order:
    """The work of every rank, sent as JSON. ``tasks`` as dictionaries."""

    backend: str
    dtype: str
    tasks: list[dict[str, Any]]
    elements: int
    folder: str


def run(configurations: Sequence[Configuration], request: Request, kind: str) -> list[Account]:
    """Sample sweeps on all GPUs of this host while they run a collective; shapes already sampled so are skipped.

    The ranks start once for all operators. On the CPU, there are two ranks. Raises ``TracedbError`` with fewer than two
    GPUs, or if a rank fails.
    """
    backend = "gloo" if request.device == "cpu" else "nccl"
    where = collectives.ring(None, backend, request.precision)
    title = where.device.rpartition(" x")[0]
    sweeps = [_sweep(configuration, request, kind, title, backend) for configuration in configurations]
    return worker_sweep.run(sweeps, request, lambda todo, folder: _record(todo, request, where, kind, folder))


def _sweep(configuration: Configuration, request: Request, kind: str, title: str, backend: str) -> WorkerSweep:
    series = Series(configuration.operator, request.precision, title, f"beside_{kind}")
    device = devices.choose("cpu" if backend == "gloo" else None)
    return WorkerSweep.of(configuration, series, chosen(configuration, request), request, device)


def _record(sweeps: Sequence[WorkerSweep], request: Request, where: collectives.Ring, kind: str, folder: Path) -> None:
    """Start the ranks, and load what they have written while they go on: what is loaded stays if they are stopped."""
    order = Order(
        where.backend,
        request.precision,
        [asdict(sweep.task) for sweep in sweeps],
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


def _load(sweep: WorkerSweep, request: Request, folder: Path, kind: str) -> None:
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
    account.captures += load(traces, request.database, label)
    sweep_status.write(request.database, series, account.outcomes, account.captures[0])


def _moved(files: Sequence[Path], folder: Path) -> list[Path]:
    folder.mkdir(parents=True)
    return [Path(shutil.move(file, folder)) for file in files]
