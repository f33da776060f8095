"""Sweeps that worker processes run (``host``, ``beside``): a worker's task, and what the launcher does around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from tracedb.sampling import device as devices
from tracedb.sampling import sweep_status
from tracedb.sampling.configuration import Configuration
from tracedb.sampling.operator import Operator
from tracedb.sampling.operator_registry import find
from tracedb.sampling.recording import Recorder
from tracedb.sampling.runner import Account, Request, operator_of, remaining
from tracedb.sampling.sweep import Shape
from tracedb.sampling.sweep_status import Series
from tracedb.storage.spill_folder import temporary_folder


@dataclass(frozen=True)
class Task:
    """One operator's part of the work of a process, sent as JSON."""

    configuration: str
    operator: str
    module: str | None
    function: str | None
    shapes: list[Shape]
    warmups: int
    active: int
    """Iterations of each shape that count."""

    def found(self) -> Operator:
        """Return its operator. Raises ``TracedbError`` if it does not exist."""
        return find(self.operator, self.module, self.function, Path(self.configuration).parent)


@dataclass
class WorkerSweep:
    """One operator's sweep: what is known, and what is left to do."""

    configuration: Configuration
    series: Series
    account: Account
    runnable: list[Shape]

    @classmethod
    def of(
        cls, configuration: Configuration, series: Series, wanted: Sequence[Shape], request: Request, device: Any
    ) -> Self:
        """Return what is left of a sweep; shapes that the operator does not allow are already among the outcomes."""
        recorder = Recorder(operator_of(configuration), configuration, devices.dtype(request.precision), device)
        account, runnable = remaining(series, wanted, recorder, request)
        return cls(configuration, series, account, runnable)

    @property
    def task(self) -> Task:
        """Its part of the work of a process."""
        configuration = self.configuration
        return Task(
            str(configuration.path.absolute()),
            configuration.operator,
            configuration.module,
            configuration.function,
            self.runnable,
            configuration.wait + configuration.warmup,
            configuration.active,
        )


AnySweep = TypeVar("AnySweep", bound=WorkerSweep)


def run(sweeps: Sequence[AnySweep], request: Request, work: Callable[[list[AnySweep], Path], None]) -> list[Account]:
    """Have the sweeps that are not complete run by ``work``, in a temporary folder, and return the results of all."""
    todo = [sweep for sweep in sweeps if sweep.runnable]
    if todo:
        with temporary_folder() as folder:
            work(todo, Path(folder))
    for sweep in sweeps:
        if sweep.account.outcomes and not sweep.runnable:
            sweep_status.write(request.database, sweep.series, sweep.account.outcomes, None)
    return [sweep.account for sweep in sweeps]
