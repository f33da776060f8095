"""Rows of ``main.memory_event`` from a snapshot: its events, and before them the blocks that are older.

A snapshot has no totals. They follow from the sizes: what is in use at its end is known, and what was released without
an allocation among the events was in use before them. Sizes are those that were asked for, before rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec import Raw

from tracedb.ingester.issues import Account
from tracedb_torch.snapshot.document import NOTHING, Event

GROWS = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
LATEST_US = (1 << 63) // 1_000 - 1
Blocks = dict[int, tuple[int, Raw]]
"""Address → bytes and stack."""


@dataclass(frozen=True)
class MemoryRow:
    """A row of ``main.memory_event``. ``size`` is negative for a release, 0 if only the reserved bytes changed."""

    address: int | None
    size: int
    allocated: int
    reserved: int | None
    time: int
    """ns"""
    frames: Raw


@dataclass
class Device:
    """What the snapshot says of a device."""

    events: list[Event] = field(default_factory=list)
    blocks: Blocks = field(default_factory=dict)
    """In use at the time of the snapshot."""
    reserved: int | None = None
    """Bytes of all segments at that time; None if the snapshot has none."""


@dataclass(frozen=True)
class _Step:
    """An event that changes a total."""

    address: int | None
    size: int
    grown: int
    time: int
    frames: Raw


def rows(device: Device, account: Account) -> Iterator[MemoryRow]:
    """Yield the rows of a device in their order."""
    steps = list(_steps(device.events, account))
    live, released = _balance(steps)
    older = {address: block for address, block in device.blocks.items() if address not in live}
    if device.blocks and (missing := live - device.blocks.keys()):
        account.noted("blocks_unknown", len(missing), "blocks that were allocated, not released, and are in no segment")
    grown = sum(step.grown for step in steps)
    reserved = None if device.reserved is None and not grown else (device.reserved or max(grown, 0)) - grown
    allocated, first = released, steps[0].time if steps else 0
    for address, (size, frames) in older.items():
        allocated += size
        yield MemoryRow(address, size, allocated, reserved, first, frames)
    for step in steps:
        allocated += step.size
        reserved = None if reserved is None else reserved + step.grown
        yield MemoryRow(step.address, step.size, allocated, reserved, step.time, step.frames)


def _balance(steps: Iterable[_Step]) -> tuple[set[int], int]:
    """Return the addresses that are in use in the end, and the bytes released without an allocation."""
    live: set[int] = set()
    released = 0
    for step in steps:
        if step.address is None:
            continue
        if step.size >= 0:
            live.add(step.address)
        elif step.address in live:
            live.discard(step.address)
        else:
            released -= step.size
    return live, released


def _steps(events: list[Event], account: Account) -> Iterator[_Step]:
    """Yield the events that change a total, and count the others.

    A release is two events: the request, after which the block no longer counts as allocated, and its completion.
    Where a snapshot has no requests, completions take their place.
    """
    release = "free_requested" if any(event.action == "free_requested" for event in events) else "free_completed"
    if events and all(event.time_us is None for event in events):
        account.warned("times_unknown", len(events), "events without times (before PyTorch 2.2); their order is kept")
    time = 0
    for number, event in enumerate(events):
        time = max(time, _time(event, number))
        size = event.size if event.size is not None and event.size >= 0 else None
        if event.action in GROWS and size is not None:
            yield _Step(None, 0, GROWS[event.action] * size, time, NOTHING)
        elif event.action in ("alloc", release) and size is not None and event.addr is not None and event.addr >= 0:
            is_new = event.action == "alloc"
            yield _Step(event.addr, size if is_new else -size, 0, time, event.frames if is_new else NOTHING)
        else:
            _leave(event, account)


def _time(event: Event, number: int) -> int:
    if event.time_us is None:
        return number
    return int(event.time_us * 1_000) if 0 <= event.time_us <= LATEST_US else 0


def _leave(event: Event, account: Account) -> None:
    if event.action == "oom":
        what = f"failed allocations, one of {event.size} bytes with {event.device_free} free"
        account.not_read("out_of_memory", 1, what)
    elif event.action in ("free_requested", "free_completed", "snapshot"):
        account.left_aside("allocator_steps", 1, "completions of releases, and marks of snapshots")
    else:
        account.not_read("action_unknown", 1, f"events of an action that is not read, such as {event.action[:40]}")
