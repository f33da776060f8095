"""Collectives between the GPUs of one host or several, timed on every rank: the launcher."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from tracedb.errors import TracedbError, UsageError
from tracedb.sampling import device as devices
from tracedb.sampling import sweep, sweep_status
from tracedb.sampling.configuration import Configuration
from tracedb.sampling.recording import Outcome
from tracedb.sampling.runner import Account, load
from tracedb.sampling.sweep_status import Series
from tracedb.storage.spill_folder import temporary_folder

COLLECTIVES = ("allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "gather", "scatter", "p2p")
DIVIDED = ("reducescatter", "alltoall", "scatter")
"""Those that give each rank a part of what a rank puts in."""
ALIASES = {
    "allreduce_large": "allreduce",
    "allgather_large": "allgather",
    "reduce_scatter": "reducescatter",
    "reduce-scatter": "reducescatter",
    "all_to_all": "alltoall",
    "all-to-all": "alltoall",
}
RUN = "run.txt"
"""File in a host's folder with the name of the run, which its workers agreed on with the other hosts."""
WORKER = "tracedb.sampling.collective_worker"
LOOKS_SECONDS = 0.5
"""How often what runs meanwhile is called."""


@dataclass(frozen=True)
class Order:
    """The work of every rank, sent as JSON."""

    backend: str
    dtype: str
    collective: str
    elements: list[int]
    warmups: int
    iterations: int
    folder: str
    run: str
    """Name of this run; all ranks use that of the first."""


@dataclass(frozen=True)
class Ring:
    """The device and ranks that collectives run on."""

    ranks: int
    """Ranks of one host."""
    backend: str
    precision: str
    device: str
    nodes: int = 1
    rendezvous: str | None = None
    """HOST:PORT where the hosts meet, on one of them."""

    @property
    def everywhere(self) -> int:
        """Ranks of all hosts."""
        return self.ranks * self.nodes


def ring(ranks: int | None, backend: str, precision: str, nodes: int = 1, rendezvous: str | None = None) -> Ring:
    """Return the ranks of each host: one per GPU with nccl, 2 by default with gloo.

    Raises ``UsageError`` for fewer than 2 ranks or hosts that do not know where to meet, ``TracedbError`` if there are
    too few GPUs.
    """
    devices.require_torch()
    import torch

    if (nodes > 1) != (rendezvous is not None):
        raise UsageError("--nodes N needs --rendezvous HOST:PORT, the same on every node, and the other way round")
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    fewest = 1 if nodes > 1 else 2
    if backend == "auto":
        backend = "nccl" if gpus >= fewest else "gloo"
    if backend == "nccl" and gpus < (ranks or fewest):
        raise TracedbError(
            f"nccl needs a GPU for each of {ranks or fewest} ranks, PyTorch sees {gpus}; --backend gloo has none"
        )
    ranks = ranks or (gpus if backend == "nccl" else 2)
    if ranks * nodes < 2:
        raise UsageError("a collective needs at least 2 ranks")
    title = torch.cuda.get_device_name(0) if backend == "nccl" else "cpu"
    spread = f" on {nodes} nodes" if nodes > 1 else ""
    return Ring(ranks, backend, precision, f"{title} x{ranks * nodes}{spread}", nodes, rendezvous)


def run(configuration: Configuration, where: Ring, database: Path, keep_traces: Path | None) -> Account:
    """Sample one collective over its sizes; sizes already in the database are skipped.

    Raises ``TracedbError`` if the configuration is not that of a collective, or if a rank fails.
    """
    collective = ALIASES.get(configuration.operator, configuration.operator)
    if collective not in COLLECTIVES or len(configuration.columns) != 1:
        raise TracedbError(
            f"{configuration.path}: expected kernel_name to be one of {', '.join(COLLECTIVES)} over one parameter, "
            f"what a rank puts in; found {configuration.operator} over {', '.join(configuration.columns)}"
        )
    series = Series(collective, where.precision, where.device)
    known = sweep_status.known(database, series)
    wanted = _sizes(configuration)
    left = [size for size in wanted if sweep_status.key(shape_of(size, where)) not in known]
    account = Account(series, [], len(wanted) - len(left), [])
    refused = [size for size in left if collective in DIVIDED and size % where.everywhere]
    for size in refused:
        detail = f"{size} elements cannot be divided evenly among {where.everywhere} ranks"
        account.outcomes.append(Outcome(shape_of(size, where), "invalid", detail))
    runnable = [size for size in left if size not in refused]
    if runnable:
        account.captures += _record(configuration, where, collective, runnable, database, keep_traces)
        account.outcomes += [Outcome(shape_of(size, where), "sampled") for size in runnable]
    if account.outcomes:
        sweep_status.write(database, series, account.outcomes, account.captures[0] if account.captures else None)
    return account


def shape_of(elements: int, where: Ring) -> sweep.Shape:
    """Return the shape of a collective."""
    return {"elements": elements, "nodes": where.nodes, "gpus_per_node": where.ranks}


def _sizes(configuration: Configuration) -> list[int]:
    if configuration.run == "get_one" and configuration.shape is not None:
        return list(configuration.shape.values())
    return [value for shape in sweep.shapes(configuration.axes) for value in shape.values()]


def _record(
    configuration: Configuration,
    where: Ring,
    collective: str,
    sizes: Sequence[int],
    database: Path,
    keep_traces: Path | None,
) -> list[int]:
    """Start the ranks, wait for their traces and load all of them. Returns the captures."""
    run_id = uuid4().hex[:12]
    with temporary_folder() as temporary:
        folder = Path(temporary) if keep_traces is None else keep_traces / f"{collective}_{where.precision}_{run_id}"
        folder.mkdir(parents=True, exist_ok=True)
        order = Order(
            where.backend,
            where.precision,
            collective,
            list(sizes),
            configuration.wait + configuration.warmup,
            configuration.active,
            str(folder.absolute()),
            run_id,
        )
        told = Path(temporary) / "order.json"
        told.write_text(json.dumps(asdict(order)), encoding="utf-8")
        launch(where, told, WORKER)
        agreed = (folder / RUN).read_text(encoding="utf-8")
        traces = sorted(folder.glob("rank*.json*"), key=lambda path: int(path.name.split(".")[0].removeprefix("rank")))
        label = {"sampled": collective, "dtype": where.precision, "device": where.device, "run": agreed}
        captures = load(traces, database, label)
    if len(captures) != where.ranks:
        raise TracedbError(f"{len(captures)} of {where.ranks} ranks left a trace of {collective}")
    return captures


def launch(where: Ring, told: Path, worker: str, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Run a worker on every rank of this host under torchrun; of several hosts, all do so at the same time.

    ``meanwhile`` is called again and again until the ranks have ended. Raises ``TracedbError`` with the worker's last
    output if one fails.
    """
    meeting = ["--standalone"]
    if where.rendezvous is not None:
        meeting = [f"--nnodes={where.nodes}", "--rdzv-backend=c10d", f"--rdzv-endpoint={where.rendezvous}"]
        meeting.append("--rdzv-id=tracedb")
    command = [sys.executable, "-m", "torch.distributed.run", *meeting, f"--nproc-per-node={where.ranks}"]
    with tempfile.TemporaryFile() as output:
        running = subprocess.Popen(
            [*command, "-m", worker, str(told)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")},
        )
        try:
            while running.poll() is None:
                meanwhile()
                with suppress(subprocess.TimeoutExpired):
                    running.wait(LOOKS_SECONDS)
        finally:
            running.kill()
            running.wait()
        output.seek(0)
        written = output.read().decode(errors="replace")
    if running.returncode != 0:
        said = [line for line in written.splitlines() if "Error" in line or "error" in line] or [written[-300:]]
        raise TracedbError(f"a rank failed (exit code {running.returncode}): {' | '.join(said[:3])[:600]}")
