"""The rows of a memory snapshot: allocator events and the stacks of allocations."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from tracedb.ingester import Capture, Options, Rows
from tracedb.ingester.issues import Account
from tracedb.ingester.rows import CaptureRow, Device, capture_row, device_rows, issue_rows
from tracedb_torch.snapshot import document, events
from tracedb_torch.snapshot.events import MemoryRow
from tracedb_torch.snapshot.stacks import Stacks

SOURCE = "torch_memory"
CUDA = 1
EPOCH_FROM_US = 1e15
"""Times from here on, in microseconds, count from 1970."""
BATCH = 100_000


def rows_of(capture: Capture, options: Options) -> Iterator[Rows]:
    """Yield the rows of a snapshot. Raises ``ReadError`` if it cannot be used."""
    account = Account()
    devices = _devices(document.read(capture.files[0], options.progress), account)
    times = (event.time_us for device in devices.values() for event in device.events)
    is_epoch = next((time > EPOCH_FROM_US for time in times if time is not None), False)
    options.has_read()
    stacks, written = Stacks(), 0
    for number, device in devices.items():
        batch: list[MemoryRow] = []
        for row in events.rows(device, account):
            batch.append(row)
            if len(batch) == BATCH:
                yield _memory(batch, number, written, stacks if options.stacks else None)
                written += len(batch)
                batch = []
        if batch:
            yield _memory(batch, number, written, stacks if options.stacks else None)
            written += len(batch)
    if stacks.names:
        yield _frames(stacks)
    yield Rows("device", device_rows(Device(number, True) for number in devices))
    yield Rows("ingest_issue", issue_rows(account))
    yield Rows(
        "capture",
        capture_row(
            CaptureRow(
                "repaired" if account.is_repaired else "complete",
                written + account.skipped,
                account.skipped,
                written + len(stacks.names),
                clock_zero_unix_ns=0 if is_epoch else None,
                source=SOURCE,
            )
        ),
    )


def _devices(found: document.Document, account: Account) -> dict[int, events.Device]:
    devices: dict[int, events.Device] = {}
    for number, texts in enumerate(found.device_traces):
        if texts:
            devices[number] = events.Device(list(document.events(texts, account)))
    for segment in document.segments(found.segments, account):
        device = devices.setdefault(segment.device, events.Device())
        device.reserved = (device.reserved or 0) + segment.total_size
        device.blocks.update(
            (address, (size, frames)) for address, size, frames in document.allocated_blocks(segment, account)
        )
    return dict(sorted(devices.items()))


def _memory(batch: list[MemoryRow], device: int, before: int, stacks: Stacks | None) -> Rows:
    frames = [None if stacks is None else stacks.leaf(row.frames, row.time) for row in batch]
    columns = {
        "memory_event_id": pa.array(range(before + 1, before + 1 + len(batch)), pa.int64()),
        "device_type": pa.array([CUDA] * len(batch), pa.int32()),
        "device_id": pa.array([device] * len(batch), pa.int32()),
        "address": pa.array([row.address for row in batch], pa.uint64()),
        "bytes": pa.array([row.size for row in batch], pa.int64()),
        "total_allocated_bytes": pa.array([row.allocated for row in batch], pa.int64()),
        "total_reserved_bytes": pa.array([row.reserved for row in batch], pa.int64()),
        "start_ns": pa.array([row.time for row in batch], pa.int64()),
        "frame_id": pa.array(frames, pa.int64()),
    }
    return Rows("memory_event", pa.table(columns))


def _frames(stacks: Stacks) -> Rows:
    files, lines = stacks.places()
    columns = {
        "frame_id": pa.array(range(1, len(stacks.names) + 1), pa.int64()),
        "kind": pa.array(["function"] * len(stacks.names), pa.string()),
        "name": pa.array(stacks.names, pa.string()),
        "file": pa.array(files, pa.string()),
        "line": pa.array(lines, pa.int32()),
        "start_ns": pa.array(stacks.starts, pa.int64()),
        "parent_id": pa.array(stacks.parents, pa.int64()),
    }
    return Rows("frame", pa.table(columns))
