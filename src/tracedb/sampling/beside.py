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
from uuid import uuid4

from tracedb.errors import TracedbError
from tracedb.pipeline import run as pipeline
from tracedb.sampling import collectives, sweep_status
from tracedb.sampling import device as devices
from tracedb.sampling.configuration import Configuration
from tracedb.sampling.operator_registry import find
from tracedb.sampling.recording import Outcome, Recorder
from tracedb.sampling.runner import Account, Request, chosen, is_settled
from tracedb.sampling.sweep import Shape
from tracedb.sampling.sweep_status import Series
from tracedb.storage.spill_folder import temporary_folder

WORKER = "tracedb.sampling.beside_worker"
KINDS = ("allreduce",)
ELEMENTS = {"nccl": 1 << 27, "gloo": 1 << 10}
"""Numbers that each all-reduce sums up: 256 MB in 16 bits, which takes about 1 ms between two H200."""


@dataclass(frozen=True)
class Order:
    """The work of every rank, sent as JSON."""

    backend: str
    dtype: str
    configuration: str
    operator: str
    module: str | None
    function: str | None
    shapes: list[Shape]
    warmups: int
    iterations: int
    elements: int
    folder: str


def run(configuration: Configuration, request: Request, kind: str) -> Account:
    """Sample a sweep on all GPUs of this host while they run a collective; shapes already sampled so are skipped.

    On the CPU, with two ranks. Raises ``TracedbError`` with fewer than two GPUs, or if a rank fails.
    """
    backend = "gloo" if request.device == "cpu" else "nccl"
    where = collectives.ring(None, backend, request.precision)
    title = where.device.rpartition(" x")[0]
    series = Series(configuration.operator, request.precision, title, f"beside_{kind}")
    known = sweep_status.known(request.database, series)
    wanted = chosen(configuration, request)
    left = [shape for shape in wanted if not is_settled(known.get(sweep_status.key(shape)), request.retry_failed)]
    account = Account(series, [], len(wanted) - len(left), [])
    operator = find(
        configuration.operator, configuration.module, configuration.function, configuration.path.absolute().parent
    )
    device = devices.choose("cpu" if backend == "gloo" else None)
    recorder = Recorder(operator, configuration, devices.dtype(request.precision), device)
    refused = {sweep_status.key(shape): recorder.invalid(shape) for shape in left}
    runnable = [shape for shape in left if refused[sweep_status.key(shape)] is None]
    account.outcomes += [
        Outcome(shape, "invalid", words) for shape in left if (words := refused[sweep_status.key(shape)])
    ]
    if runnable:
        outcomes, account.captures = _record(configuration, request, where, kind, title, runnable)
        account.outcomes += outcomes
    if account.outcomes:
        first = account.captures[0] if account.captures else None
        sweep_status.write(request.database, series, account.outcomes, first)
    return account


def _record(
    configuration: Configuration,
    request: Request,
    where: collectives.Ring,
    kind: str,
    title: str,
    shapes: Sequence[Shape],
) -> tuple[list[Outcome], list[int]]:
    """Start the ranks and load their traces. Returns the outcomes of the first rank, and the captures."""
    with temporary_folder() as temporary:
        folder = Path(temporary)
        order = Order(
            where.backend,
            request.precision,
            str(configuration.path.absolute()),
            configuration.operator,
            configuration.module,
            configuration.function,
            list(shapes),
            configuration.wait + configuration.warmup,
            configuration.active,
            ELEMENTS[where.backend],
            str(folder.absolute()),
        )
        told = folder / "order.json"
        told.write_text(json.dumps(asdict(order)), encoding="utf-8")
        collectives.launch(where, told, WORKER)
        said = json.loads((folder / "outcomes0.json").read_text(encoding="utf-8"))
        traces = sorted(folder.glob("rank*.json.gz"))
        if request.keep_traces is not None:
            name = f"{configuration.operator}_{request.precision}_beside_{kind}_{uuid4().hex[:12]}"
            traces = _moved(traces, request.keep_traces / name)
        label = {"sampled": configuration.operator, "dtype": request.precision, "device": title, "beside": kind}
        loaded = pipeline.ingest(*traces, db=request.database, label=label)
    for outcome in loaded:
        if outcome.error is not None or not outcome.loaded:
            raise TracedbError(f"{outcome.path}: the trace was not loaded: {outcome.error or 'known already'}")
    found = [Outcome(shape, status, detail) for shape, (status, detail) in zip(shapes, said, strict=True)]
    return found, [outcome.loaded[0].capture_id for outcome in loaded]


def _moved(files: Sequence[Path], folder: Path) -> list[Path]:
    folder.mkdir(parents=True)
    return [Path(shutil.move(file, folder)) for file in files]
