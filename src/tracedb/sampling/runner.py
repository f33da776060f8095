"""Run a sweep from its configuration into the database: batch by batch, resuming where it stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.conditions.sampler import Recent
from tracedb.errors import TracedbError
from tracedb.pipeline import run as pipeline
from tracedb.sampling import bursts_table, conditions_table, sweep, sweep_status
from tracedb.sampling import device as devices
from tracedb.sampling.burst import Meter
from tracedb.sampling.burst import chosen as chosen_for_bursts
from tracedb.sampling.configuration import Configuration
from tracedb.sampling.operator import Operator
from tracedb.sampling.operator_registry import find
from tracedb.sampling.recording import Outcome, Recorder
from tracedb.sampling.steady_load import SteadyLoad
from tracedb.sampling.sweep import Shape
from tracedb.sampling.sweep_status import Series
from tracedb.storage.spill_folder import temporary_folder

if TYPE_CHECKING:
    import torch

STEADY, RESTED = "steady", "rested"
REGIMES = (STEADY, RESTED)
ITERATIONS_A_TRACE = 400
"""Iterations per trace: it is read in seconds and limits what a crash loses."""
STEPS_A_TRACE = 40
"""An optimizer's step has thousands of events."""


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    database: Path
    precision: str
    device: str | None = None
    parts: int = 1
    part: int = 1
    random: int | None = None
    seed: int = 0
    keep_traces: Path | None = None
    retry_failed: bool = False
    regime: str = STEADY
    """``steady``: at the power and clock of sustained work; ``rested``: the device rests between iterations."""
    bursts: int = 3
    """Shapes of an operator whose power is measured, in the steady regime."""


@dataclass(frozen=True)
class Progress:
    """How far a sweep is."""

    series: Series
    done: int
    total: int
    seconds: float

    def __str__(self) -> str:
        if not self.done:
            return f"{self.series.operator} {self.series.dtype} on {self.series.device}: {self.total} shapes to sample"
        rate = self.seconds / max(self.done, 1)
        left = round(rate * (self.total - self.done))
        percent = 100 * self.done / max(self.total, 1)
        return (
            f"{self.series.operator} {self.series.dtype}: {self.done} of {self.total} shapes ({percent:.1f} %), "
            f"{rate:.2f} s a shape, {left // 3600} h {left % 3600 // 60} min {left % 60} s left"
        )


@dataclass
class Account:
    """The results of a sweep."""

    series: Series
    outcomes: list[Outcome]
    known: int
    captures: list[int]
    unread: str | None = None
    """Why the clocks of the GPU were not read."""


def chosen(configuration: Configuration, request: Request) -> list[Shape]:
    """Return the shapes of this part of the sweep, in order; only the one shape if the mode asks for that."""
    if configuration.run != "get_all":
        assert configuration.shape is not None
        return [configuration.shape]
    everything = list(sweep.shapes(configuration.axes))
    if request.random is not None and request.random < len(everything):
        from random import Random

        # The first of one shuffled order, so that fewer shapes are some of those that more would be.
        places = list(range(len(everything)))
        Random(request.seed).shuffle(places)
        everything = [everything[place] for place in sorted(places[: request.random])]
    return sweep.share(everything, request.parts, request.part)


def run(
    configuration: Configuration,
    request: Request,
    report: Callable[[Progress], None],
    is_stopped: Callable[[], bool] = lambda: False,
) -> Account:
    """Sample a sweep into the database; shapes already in it are skipped.

    Progress is reported before the first shape and after each one. Once ``is_stopped`` returns true, the shape that
    is running is finished and what was sampled is loaded; the other shapes have no outcome.
    Raises ``TracedbError`` if the operator or the device does not exist, or if a trace could not be loaded.
    """
    operator = operator_of(configuration)
    device = devices.choose(request.device)
    series = Series(operator.name, request.precision, devices.title(device), request.regime)
    recorder = _recorder(operator, configuration, request, device)
    wanted = chosen(configuration, request)
    left = _unsettled(series, wanted, request)
    account = Account(series, [], len(wanted) - len(left), [])
    begun = time.monotonic()
    uuid = devices.uuid(device)
    sampled: dict[tuple[tuple[str, int], ...], int] = {}

    def progress(done: int) -> Progress:
        return Progress(series, len(account.outcomes) + done, len(left), time.monotonic() - begun)

    if left:
        report(progress(0))
    with _folder(request.keep_traces) as folder, Recent(uuid) as conditions:
        account.unread = None if uuid is None else conditions.missing  # the processor has no clocks to read
        for number, batch in enumerate(_batches(left, recorder, configuration)):
            trace = folder / _trace_name(series, request, account.known + number, request.keep_traces is not None)
            refused, size = sum(item.status != "pending" for item in batch), len(batch)

            def goes_on(done: int, refused: int = refused, size: int = size) -> bool:
                if refused + done < size:  # the whole batch is reported once it is loaded
                    report(progress(refused + done))
                return not is_stopped()

            outcomes, capture_id = _one(batch, recorder, trace, series, request, conditions, goes_on)
            account.outcomes += outcomes
            if capture_id is not None:
                account.captures.append(capture_id)
                sampled |= {sweep_status.key(done.shape): capture_id for done in outcomes if done.status == "sampled"}
            report(progress(0))
            if is_stopped():
                return account
        if sampled and request.regime == STEADY and devices.can_spin(device):
            _measure(recorder, _meter_of(device, conditions), sampled, series, request)
    return account


def _measure(
    recorder: Recorder,
    meter: Meter,
    sampled: Mapping[tuple[tuple[str, int], ...], int],
    series: Series,
    request: Request,
) -> None:
    """Measure the energy of some of the sampled shapes, and the launching of the smallest."""
    shapes = {key: dict(key) for key in sampled}
    for number, shape in enumerate(chosen_for_bursts(list(shapes.values()), request.bursts)):
        bursts = recorder.energies(shape, meter, is_diluted=number == 0)
        bursts_table.write(request.database, sampled[sweep_status.key(shape)], series, bursts)
    smallest = min(shapes.values(), key=lambda shape: (math.prod(shape.values()), sweep_status.key(shape)))
    bursts_table.write(request.database, sampled[sweep_status.key(smallest)], series, recorder.host(smallest, meter))


_METERS: dict[torch.device, Meter] = {}


def _meter_of(device: torch.device, conditions: Recent) -> Meter:
    """Return what measures bursts on a device, one for all operators of a run."""
    if device not in _METERS:
        _METERS[device] = Meter(device, conditions.reader, conditions.gpu)
    return _METERS[device]


def profile_one(configuration: Configuration, request: Request, folder: Path) -> tuple[Path, Outcome]:
    """Run the configuration's one shape under the profiler and keep the trace; nothing is loaded into a database."""
    recorder, series = _single(configuration, request)
    assert configuration.shape is not None
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / f"{series.operator}_{series.dtype}.json.gz"
    return trace, recorder.profile([configuration.shape], trace)[0]


def run_once(configuration: Configuration, request: Request) -> Outcome:
    """Run the configuration's one shape once, without the profiler."""
    recorder, _ = _single(configuration, request)
    assert configuration.shape is not None
    return recorder.once(configuration.shape)


def _single(configuration: Configuration, request: Request) -> tuple[Recorder, Series]:
    operator = operator_of(configuration)
    device = devices.choose(request.device)
    recorder = _recorder(operator, configuration, request, device)
    assert configuration.shape is not None
    if refused := recorder.invalid(configuration.shape):
        raise TracedbError(f"{configuration.path}: {sweep.text(operator.name, configuration.shape)}: {refused}")
    return recorder, Series(operator.name, request.precision, devices.title(device), request.regime)


def _recorder(operator: Operator, configuration: Configuration, request: Request, device: torch.device) -> Recorder:
    dtype = devices.dtype(request.precision)
    load = _load_of(dtype, device) if request.regime == STEADY else None
    return Recorder(operator, configuration, dtype, device, load)


@cache
def _load_of(dtype: torch.dtype, device: torch.device) -> SteadyLoad:
    """Return the load, one for all operators of a run."""
    return SteadyLoad(dtype, device)


def operator_of(configuration: Configuration) -> Operator:
    """Return the operator of a sweep. Raises ``TracedbError`` if it does not exist, or without PyTorch."""
    devices.require_torch()
    return find(
        configuration.operator, configuration.module, configuration.function, configuration.path.absolute().parent
    )


def remaining(
    series: Series, wanted: Sequence[Shape], recorder: Recorder, request: Request
) -> tuple[Account, list[Shape]]:
    """Return the account of a sweep and the shapes to run; those that the operator refuses are outcomes of it."""
    left = _unsettled(series, wanted, request)
    refused = [(shape, recorder.invalid(shape)) for shape in left]
    outcomes = [Outcome(shape, "invalid", words) for shape, words in refused if words]
    account = Account(series, outcomes, len(wanted) - len(left), [])
    return account, [shape for shape, words in refused if words is None]


def _unsettled(series: Series, wanted: Sequence[Shape], request: Request) -> list[Shape]:
    """Return the shapes that are not in the database, and with ``retry_failed`` those that failed."""
    known = sweep_status.known(request.database, series)

    def is_settled(status: str | None) -> bool:
        return status is not None and (status in ("sampled", "invalid") or not request.retry_failed)

    return [shape for shape in wanted if not is_settled(known.get(sweep_status.key(shape)))]


def _batches(left: Sequence[Shape], recorder: Recorder, configuration: Configuration) -> Iterator[list[Outcome]]:
    """Yield the shapes in batches; invalid ones with their verdict, the others with status pending."""
    iterations = configuration.wait + configuration.warmup + configuration.active
    budget = STEPS_A_TRACE if configuration.operator.endswith("_optimizer") else ITERATIONS_A_TRACE
    size = max(1, budget // iterations)
    batch: list[Outcome] = []
    pending = 0
    for shape in left:
        refused = recorder.invalid(shape)
        batch.append(Outcome(shape, "pending" if refused is None else "invalid", refused))
        pending += refused is None
        if pending == size:
            yield batch
            batch, pending = [], 0
    if batch:
        yield batch


def _one(
    batch: list[Outcome],
    recorder: Recorder,
    trace: Path,
    series: Series,
    request: Request,
    conditions: Recent,
    goes_on: Callable[[int], bool],
) -> tuple[list[Outcome], int | None]:
    """Profile a batch, load its trace, and store the outcome of each shape."""
    pending = [outcome.shape for outcome in batch if outcome.status == "pending"]
    outcomes = [outcome for outcome in batch if outcome.status != "pending"]
    capture_id = None
    if pending:
        begun = time.time_ns()
        sampled = recorder.profile(pending, trace, goes_on)
        readings = conditions.between(begun, time.time_ns())
        outcomes += sampled
        if any(outcome.status == "sampled" for outcome in sampled):
            (capture_id,) = load([trace], request.database, _labels(series))
            conditions_table.write(request.database, capture_id, readings)
        if request.keep_traces is None:
            trace.unlink()
    sweep_status.write(request.database, series, outcomes, capture_id)
    return outcomes, capture_id


def load(traces: Sequence[Path], database: Path, label: dict[str, str]) -> list[int]:
    """Load traces of sampled shapes and return their captures. Raises ``TracedbError`` if one could not be loaded."""
    loaded = pipeline.ingest(*traces, db=database, label=label)
    for outcome in loaded:
        if outcome.error is not None or not outcome.loaded:
            raise TracedbError(f"{outcome.path}: the trace was not loaded: {outcome.error or 'it is known already'}")
    return [outcome.loaded[0].capture_id for outcome in loaded]


def _labels(series: Series) -> dict[str, str]:
    label = {"sampled": series.operator, "dtype": series.dtype, "device": series.device}
    if series.regime is not None:
        label["regime"] = series.regime
    return label


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    """Yield the folder for traces: the user's, or a temporary one."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with temporary_folder() as folder:
        yield Path(folder)


def _trace_name(series: Series, request: Request, number: int, compressed: bool) -> str:
    part = f"_part{request.part}of{request.parts}" if request.parts > 1 else ""
    return f"{series.operator}_{series.dtype}{part}_{number:05d}.json{'.gz' if compressed else ''}"
