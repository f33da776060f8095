"""Try each way to call an operator under the profiler, and keep the one that launches the recorded kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracedb.errors import TracedbError
from tracedb.pipeline import run as pipeline
from tracedb.replay import tensors
from tracedb.replay.copies import Transfer
from tracedb.replay.operators import Form
from tracedb.replay.timing import Call
from tracedb.sampling import device as devices
from tracedb.sampling.recording import FAULTS, fault_of
from tracedb.storage import resources, statements
from tracedb.storage.connection import open_read_only

if TYPE_CHECKING:
    import torch

WARMUPS = 2
CALLS = 7
MEMORY_SHARE = 0.8
"""Share of the free memory that inputs and outputs may take."""


@dataclass(frozen=True)
class Trial:
    """A way to call the operator of a signature."""

    signature_id: int
    variant: int
    form: Form | Transfer

    @property
    def name(self) -> str:
        """The name of its ranges."""
        return f"replay|{self.signature_id}|{self.variant}"


@dataclass(frozen=True)
class Outcome:
    """What became of a trial: ran, too_large, out_of_memory or failed."""

    status: str
    detail: str | None = None
    bytes: int = 0
    """Memory of inputs and outputs."""
    kernels: str | None = None
    kernel_ns: float | None = None


class Bench:
    """Runs trials on one device."""

    def __init__(self, device: torch.device, reader: Call | None) -> None:
        self._device = device
        self._reader = reader

    def probe(self, trials: Sequence[Trial], folder: Path, number: int) -> dict[str, Outcome]:
        """Run trials and return their outcomes by name, on a GPU with the kernels that they launched.

        The profiler's trace is written to ``folder``, and read by the same reader as any recording.
        """
        if self._device.type != "cuda":
            return {trial.name: self._tried(trial) for trial in trials}
        from torch.profiler import ProfilerActivity, profile

        trace = folder / f"replay_{number}.json"
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            outcomes = {trial.name: self._tried(trial) for trial in trials}
        profiler.export_chrome_trace(str(trace))
        return _with_kernels(outcomes, trace, folder / f"replay_{number}.duckdb")

    def _tried(self, trial: Trial) -> Outcome:
        try:
            size = self.size(trial.form)
            if size > self.free() * MEMORY_SHARE:
                return Outcome("too_large", f"{size:,} bytes of inputs and outputs do not fit into {self._device}")
            self._run(trial)
        except FAULTS as error:
            return self._failed(trial, error)
        finally:
            if self._device.type == "cuda":
                devices.wait_for(self._device)
        return Outcome("ran", trial.form.note, size)

    def _failed(self, trial: Trial, error: BaseException) -> Outcome:
        kind, words = fault_of(error)
        if kind == "lost":
            raise ends_the_gpu(trial.signature_id, words) from error
        if kind == "out_of_memory":
            devices.release(self._device)
        return Outcome(kind, words)

    def _run(self, trial: Trial) -> None:
        from torch.profiler import record_function

        with precision(trial.form):
            call = self.prepared(trial.form)
            for _ in range(WARMUPS if self._device.type == "cuda" else 1):
                call()
            if self._device.type != "cuda":
                return
            for _ in range(CALLS):
                if self._reader is not None:
                    self._reader()
                with record_function(trial.name):
                    call()
                devices.wait_for(self._device)

    def prepared(self, form: Form | Transfer) -> Call:
        """Return a function that runs the operator on tensors made now. Raises what PyTorch raises."""
        return form.call(lambda spec: tensors.make(spec, self._device))

    def size(self, form: Form | Transfer) -> int:
        """Return the memory of inputs and, as far as shapes alone tell it, of outputs."""
        inputs = sum(spec.bytes for spec in form.specs())
        if isinstance(form, Transfer) or inputs > self.free():
            return inputs
        try:
            result = form.call(tensors.on_meta)()
        except (*FAULTS, NotImplementedError):  # outputs depend on the contents
            return inputs
        return inputs + tensors.bytes_of(result)

    def free(self) -> int:
        """Return the device's free memory in bytes."""
        import torch

        if self._device.type == "cuda":
            unused = torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device)
            return int(torch.cuda.mem_get_info(self._device)[0]) + int(unused)
        return _free_of_host()


def ends_the_gpu(signature_id: int, words: str) -> TracedbError:
    """Return the error for a GPU that an operator has made unusable."""
    return TracedbError(
        f"signature {signature_id}: {words}; the GPU cannot be used any more by this process; "
        "leave the operator out with --operator '!NAME' and run again"
    )


def _free_of_host() -> int:
    import os

    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def precision(form: Form | Transfer) -> Iterator[None]:
    """Allow TF32 for matrix products inside the block if the form does."""
    import torch

    matmul: Any = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    matmul.allow_tf32 = form.tf32
    try:
        yield
    finally:
        matmul.allow_tf32 = before


def _with_kernels(outcomes: Mapping[str, Outcome], trace: Path, database: Path) -> dict[str, Outcome]:
    from dataclasses import replace

    (loaded,) = pipeline.ingest(trace, db=database)
    if loaded.error is not None:
        raise TracedbError(f"{trace}: the profiler's trace of the replay was not loaded: {loaded.error}")
    with open_read_only(database) as connection:
        statements.run(connection, resources.text("sql", "replay", "probed.sql"))
        rows = connection.execute("SELECT name, kernels, kernel_ns FROM temp.replay_probed").fetchall()
    launched = {name: (kernels, kernel_ns) for name, kernels, kernel_ns in rows}
    return {
        name: replace(outcome, kernels=launched.get(name, ("[]", 0.0))[0], kernel_ns=launched.get(name, ("[]", 0.0))[1])
        if outcome.status == "ran"
        else outcome
        for name, outcome in outcomes.items()
    }
