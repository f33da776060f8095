"""Replay a capture's operators on this machine and store the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.errors import NotCaptured, UsageError
from tracedb.replay import copies, measure, recorded_passes, sequence, store, variants
from tracedb.replay.energy_meter import Counter
from tracedb.replay.measure import Chosen, Conditions, Measured
from tracedb.replay.measured_pass import MeasuredPass
from tracedb.replay.operators import Incomplete, load_library, overloads
from tracedb.replay.probe import Bench, Outcome, Trial
from tracedb.replay.recorded_passes import Recorded, Selection, Signature
from tracedb.replay.timing import cache_reader
from tracedb.report import captures
from tracedb.sampling import device as devices
from tracedb.storage.connection import open_read_only
from tracedb.storage.spill_folder import temporary_folder

if TYPE_CHECKING:
    import duckdb
    import torch

NOT_OPERATORS = ("collective", "graph_only", "no_operator", "no_shapes")
"""Hints that say already why a signature cannot be replayed."""
ENERGY_SHARE = 95.0
"""Percent of the recorded time whose operators' energy is measured; the rest is too short to be told apart."""


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    database: Path
    capture: str | None = None
    step: int | None = None
    range_glob: str | None = None
    device: str | None = None
    mode: str = "compare"
    cache: str = "warm"
    clock: str = "sustained"
    samples: int = 20
    operators: tuple[str, ...] = ()
    """Patterns of names; one with a leading ``!`` excludes."""
    libraries: tuple[str, ...] = ()
    """Modules to import that register operators with PyTorch."""
    energy_seconds: float = 0.0
    measured: MeasuredPass | None = None
    threads: int | None = None
    keep_traces: Path | None = None


@dataclass(frozen=True)
class Result:
    """What became of a signature."""

    signature_id: int
    status: str
    detail: str | None = None
    times: Measured | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Replayed:
    """A finished replay."""

    request: Request
    recorded: Recorded
    device: str
    results: Sequence[Result]
    whole: sequence.WholePass | None
    idle_watts: float | None


def run(request: Request, say: Callable[[str], None]) -> int:
    """Replay, store the results, and return the number of the replay.

    Raises ``UsageError`` for a capture, step or range that does not exist, ``NotCaptured`` if there is nothing to
    replay, ``TracedbError`` if PyTorch or the device is missing or the GPU is lost.
    """
    devices.require_torch("replay")
    device = devices.choose(request.device)
    for module in request.libraries:
        load_library(module)
    with open_read_only(request.database) as connection:
        selection = Selection(_capture(connection, request.capture, say), request.step, request.range_glob)
        found = recorded_passes.load(connection, selection)
    if found.is_gpu and device.type == "cpu":
        say("the operators were recorded on a GPU and are replayed on the CPU: ratios compare the CPU with the GPU")
    with _folder(request.keep_traces) as folder, _without_gradients(request.threads):
        done = _replayed(request, found, device, folder, say)
    return store.write(request.database, done)


def _replayed(
    request: Request, found: Recorded, device: torch.device, folder: Path, say: Callable[[str], None]
) -> Replayed:
    counter = Counter(device) if request.energy_seconds else None
    idle = counter.idle(max(request.energy_seconds, 1.0)) if counter else None
    reader = cache_reader(device)
    bench = Bench(device, reader if request.cache == "cold" else None)
    results, chosen = _tried(request, found, bench, folder, say)
    times: dict[int, Measured] = {}
    if request.mode != "full":
        energetic = _energetic(found.signatures, chosen)
        conditions = Conditions(
            cache=request.cache,
            clock=request.clock,
            warms_up=request.clock == "sustained" and device.type == "cuda",
            samples=request.samples,
            reader=reader,
            counter=counter,
            energy_seconds=request.energy_seconds,
            energy_for=energetic,
        )
        times = measure.measure(list(chosen.values()), bench, device, conditions, say)
    whole = None
    if request.mode != "isolated":
        say("replays a whole pass")
        whole = sequence.run(found.sequence, chosen, bench, device, request.samples, counter)
    finished = [_with_times(result, times.get(result.signature_id)) for result in results]
    return Replayed(request, found, devices.title(device), finished, whole, idle)


def _tried(
    request: Request, found: Recorded, bench: Bench, folder: Path, say: Callable[[str], None]
) -> tuple[list[Result], dict[int, Chosen]]:
    """Try the ways to call each operator: first the likeliest of all, then others where that was not it."""
    around = variants.context(found)
    results: dict[int, Result] = {}
    forms: dict[int, list[Trial]] = {}
    for signature in found.signatures:
        refused, trials = _trials(signature, around, request.operators)
        if refused is not None:
            results[signature.signature_id] = refused
        else:
            forms[signature.signature_id] = trials
    say(f"tries {len(forms)} of {len(found.signatures)} unique operators")
    outcomes = bench.probe([trials[0] for trials in forms.values()], folder, 1)
    by_number = {signature.signature_id: signature for signature in found.signatures}
    others = [
        trial
        for number, trials in forms.items()
        if not _is_it(by_number[number], outcomes[trials[0].name])
        for trial in trials[1:]
    ]
    if others:
        say(f"tries {len(others)} other ways to call operators")
        outcomes.update(bench.probe(others, folder, 2))
    chosen: dict[int, Chosen] = {}
    for number, trials in forms.items():
        best = _best(by_number[number], trials, outcomes)
        outcome = outcomes[best.name]
        status = "replayed" if outcome.status == "ran" else outcome.status
        results[number] = Result(number, status, outcome.detail, outcome=outcome)
        if status == "replayed":
            chosen[number] = Chosen(number, best.form, outcome.bytes)
    return [results[signature.signature_id] for signature in found.signatures], chosen


def _trials(
    signature: Signature, around: variants.Context, patterns: Sequence[str]
) -> tuple[Result | None, list[Trial]]:
    number = signature.signature_id
    if not _is_wanted(signature.name, patterns):
        return Result(number, "left_out", "left out by --operator"), []
    if signature.hint in NOT_OPERATORS:
        return Result(number, signature.hint, _WHY[signature.hint]), []
    try:
        if signature.hint in ("memcpy", "memset"):
            return None, [Trial(number, 0, copies.transfer(signature))]
        if not overloads(signature.name):
            return Result(
                number,
                "custom",
                "no operator of PyTorch's own; its code is not in the trace (--library imports operators)",
            ), []
        forms = variants.of(signature, around)
    except Incomplete as error:
        return Result(number, "incomplete", str(error)), []
    return None, [Trial(number, place, form) for place, form in enumerate(forms)]


_WHY = {
    "collective": "a collective needs its other ranks",
    "graph_only": "launched by a graph, so that no operator is recorded",
    "no_operator": "no operator is recorded around its launch",
    "no_shapes": "recorded without shapes; record with record_shapes=True",
}


def _is_wanted(name: str, patterns: Sequence[str]) -> bool:
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    left_out = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    if any(fnmatchcase(name, pattern) for pattern in left_out):
        return False
    return not wanted or any(fnmatchcase(name, pattern) for pattern in wanted)


def _is_it(signature: Signature, outcome: Outcome) -> bool:
    """Whether a trial launched what was recorded; without a GPU, whether it ran."""
    if outcome.status != "ran":
        return False
    return outcome.kernels is None or outcome.kernels == signature.kernels


def _best(signature: Signature, trials: Sequence[Trial], outcomes: Mapping[str, Outcome]) -> Trial:
    """Return the trial that launched the recorded kernels, else the first that ran, else the first."""
    tried = [trial for trial in trials if trial.name in outcomes]
    for trial in tried:
        if _is_it(signature, outcomes[trial.name]):
            return trial
    return next((trial for trial in tried if outcomes[trial.name].status == "ran"), tried[0])


def _energetic(signatures: Sequence[Signature], chosen: Mapping[int, Chosen]) -> frozenset[int]:
    """Return the replayable signatures with most time, up to ``ENERGY_SHARE`` of what can be replayed."""
    replayable = [signature for signature in signatures if signature.signature_id in chosen]
    wanted = sum(signature.share_percent for signature in replayable) * ENERGY_SHARE / 100
    found: list[int] = []
    covered = 0.0
    for signature in replayable:
        if covered >= wanted:
            break
        found.append(signature.signature_id)
        covered += signature.share_percent
    return frozenset(found)


def _with_times(result: Result, times: Measured | None) -> Result:
    if times is None:
        return result
    if times.fault is not None:
        return Result(result.signature_id, times.fault.kind, times.fault.words, times)
    return Result(result.signature_id, result.status, result.detail, times, result.outcome)


def _capture(connection: duckdb.DuckDBPyConnection, word: str | None, say: Callable[[str], None]) -> int:
    """Return the chosen capture; by default the only one, else the lowest rank's first."""
    if word is not None:
        found = captures.chosen(captures.paths(connection), word)
        if len(found) > 1:
            raise UsageError(f"--capture {word}: {len(found)} captures match; replay takes one")
        return found[0]
    numbers = connection.execute(
        """SELECT c.capture_id FROM main.capture AS c
           WHERE EXISTS (SELECT 1 FROM main.op AS o WHERE o.capture_id = c.capture_id)
               OR EXISTS (SELECT 1 FROM main.kernel_event AS e WHERE e.capture_id = c.capture_id)
           ORDER BY c.rank NULLS LAST, c.capture_id"""
    ).fetchall()
    if not numbers:
        raise NotCaptured("no capture has operators or GPU activity; record with torch.profiler and record_shapes=True")
    if len(numbers) > 1:
        say(f"replays capture {numbers[0][0]} of {len(numbers)}; --capture chooses another")
    return int(numbers[0][0])


@contextmanager
def _without_gradients(threads: int | None) -> Iterator[None]:
    """Compute no gradients, and take denormal numbers for zero as far as the CPU can: repeated calls make such."""
    import torch

    could = torch.set_flush_denormal(True)
    before = torch.get_num_threads()
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(before)
        if could:
            torch.set_flush_denormal(False)


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    """Yield the folder for traces: the user's, or a temporary one."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with temporary_folder() as folder:
        yield Path(folder)
