"""Time the chosen forms of many operators in turns, and their energy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracedb.replay.copies import Transfer
from tracedb.replay.energy_meter import Counter, Energy
from tracedb.replay.operators import Form
from tracedb.replay.probe import MEMORY_SHARE, Bench, ends_the_gpu, precision
from tracedb.replay.timing import Call, Watch, watch
from tracedb.sampling import device as devices
from tracedb.sampling.recording import FAULTS, Fault, fault_of

if TYPE_CHECKING:
    import torch

REST_SECONDS = 0.02
"""Pause before each sample of a rested clock."""
WARM_SECONDS = 0.5
"""Least time that operators take turns before the first sample, so that the clock is that of work that goes on."""
MOST_AT_ONCE = 400
"""Operators whose inputs are kept at a time."""
MOST_SECONDS = 2.0
"""Time after which no more samples of an operator are taken, once there are ``LEAST_SAMPLES``."""
LEAST_SAMPLES = 3


@dataclass(frozen=True)
class Chosen:
    """The form of a signature that is timed, and the memory it takes."""

    signature_id: int
    form: Form | Transfer
    bytes: int


@dataclass
class Measured:
    """The times of a signature in ns a call."""

    signature_id: int
    method: str = ""
    samples: list[float] = field(default_factory=list)
    energy: Energy | None = None
    fault: Fault | None = None


@dataclass(frozen=True)
class Conditions:
    """How operators are timed."""

    cache: str
    clock: str
    warms_up: bool
    """Whether operators take turns before the first sample: a GPU's clock follows its load."""
    samples: int
    reader: Call
    counter: Counter | None = None
    energy_seconds: float = 0.0
    energy_for: frozenset[int] = frozenset()
    """Signatures whose energy is measured."""


def measure(
    chosen: Sequence[Chosen], bench: Bench, device: torch.device, conditions: Conditions, say: Callable[[str], None]
) -> dict[int, Measured]:
    """Return the times of each signature."""
    results: dict[int, Measured] = {}
    for batch in _batches(chosen, int(bench.free() * MEMORY_SHARE)):
        say(f"times {len(results) + len(batch)} of {len(chosen)} operators")
        results.update(_batch(batch, bench, device, conditions))
        devices.release(device)
    return results


def _batches(chosen: Sequence[Chosen], memory: int) -> Iterator[list[Chosen]]:
    batch: list[Chosen] = []
    taken = 0
    for item in chosen:
        if batch and (taken + item.bytes > memory or len(batch) == MOST_AT_ONCE):
            yield batch
            batch, taken = [], 0
        batch.append(item)
        taken += item.bytes
    if batch:
        yield batch


def _batch(batch: Sequence[Chosen], bench: Bench, device: torch.device, conditions: Conditions) -> dict[int, Measured]:
    reader = conditions.reader if conditions.cache == "cold" else None
    results: dict[int, Measured] = {}
    watches: dict[int, Watch] = {}
    for item in batch:
        result = results[item.signature_id] = Measured(item.signature_id)
        try:
            with precision(item.form):
                watches[item.signature_id] = watch(bench.prepared(item.form), device, reader)
        except FAULTS as error:
            result.fault = fault_of(error)
            if result.fault.kind == "lost":
                raise ends_the_gpu(item.signature_id, result.fault.words) from error
            devices.release(device)
            continue
        result.method = watches[item.signature_id].method
    forms = {item.signature_id: item.form for item in batch}
    _take_turns(watches, results, forms, conditions)
    if conditions.counter is not None:
        for number in watches.keys() & conditions.energy_for:
            with precision(forms[number]):
                results[number].energy = conditions.counter.loop(watches[number].enqueue, conditions.energy_seconds)
    return results


def _take_turns(
    watches: dict[int, Watch], results: dict[int, Measured], forms: dict[int, Form | Transfer], conditions: Conditions
) -> None:
    """Take one sample of each operator after the other, as often as asked for.

    Work of all kinds in turn brings the GPU to the clock and temperature of a step; one operator over and over would
    bring it to its own.
    """
    is_rested = conditions.clock == "rested"
    begin = time.perf_counter()
    while watches and conditions.warms_up:
        for number, watch_ in watches.items():
            with precision(forms[number]):
                watch_.sample()
        if time.perf_counter() - begin > WARM_SECONDS:
            break
    spent = dict.fromkeys(watches, 0.0)
    for turn in range(conditions.samples):
        for number, watch_ in watches.items():
            if turn >= LEAST_SAMPLES and spent[number] > MOST_SECONDS:
                continue
            if is_rested:
                time.sleep(REST_SECONDS)
            begin = time.perf_counter()
            with precision(forms[number]):
                results[number].samples.append(watch_.sample())
            spent[number] += time.perf_counter() - begin
