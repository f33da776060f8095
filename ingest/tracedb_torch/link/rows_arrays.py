"""Schema rows of a trace whose staged rows are held in memory: linked in numpy and yielded as Arrow tables.

Does the same as ``link_sql``. In SQL, planning takes as long as everything else for a small trace, and a large one
needs memory for temporary tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from tracedb.ingester import Rows
from tracedb.ingester.issues import Account
from tracedb.storage.schema import ROW_GROUP
from tracedb_torch.int_columns import WORDS
from tracedb_torch.link import frames, match_arrays, rules
from tracedb_torch.link.link_sql import GROUPS
from tracedb_torch.link.match_arrays import Links, Messages
from tracedb_torch.link.numpy_columns import Column, Held, Mask, Places, Texts, extracted, having
from tracedb_torch.link.rules import Rules, Seen

Named = tuple[str, Column]
ALL = slice(None)
NO_STREAM = (1 << 32) - 1
"""-1 in 32 bits, which the profiler writes where there is no stream or event."""
MEMCPY = WORDS["kind"].to_pylist().index("memcpy")
PROJECTION = WORDS["style"].to_pylist().index("gpu_projection")
AS_RECORDED = ("context_id", "graph_id", "graph_node_id", "shared_bytes", "bytes")


class HeldLinker:
    """Yields the held rows as schema rows, and frees each table's memory before its last rows are yielded."""

    def __init__(self, held: Held, texts: Texts, found: Links, given: Rules, account: Account) -> None:
        self._held = held
        self._texts = texts
        self._links = found
        self._rules = given
        self._account = account
        self._seen = _seen(held)

    def seen(self) -> Seen:
        """Return statistics of the GPU rows."""
        return self._seen

    def rows(self, part: int) -> Iterator[Rows]:
        """Yield the event rows."""
        if self._links.external_is_correlation:
            rules.note_ids(self._account, self._links.external_is_correlation)
        found = match_arrays.messages(self._held, self._texts, self._links) if self._held.rows("message") else None
        kernels = self._kernels(found)
        calls = None if found is None else _table({name: column.array(ALL) for name, column in self._calls(found)})
        self._held.release("gpu", "message")
        while kernels:
            yield _rows("kernel_event", kernels.pop(0), part)
        if calls is not None and calls.num_rows:
            yield Rows("collective_call", calls, part)
        for table, columns in (("launch", self._launches), ("op", self._operators), ("annotation", self._annotations)):
            if self._held.rows(table):
                yield _rows(table, self._whole(table, columns()), part)
        if self._held.rows("frame"):
            made = frames.table(self._held, self._texts)
            self._held.release("frame")
            yield _rows("frame", made, part)
        if self._held.rows("memory"):
            yield Rows("memory_event", self._whole("memory", self._allocations()), part)
        if self._held.rows("sync"):
            yield Rows("synchronization", self._whole("sync", self._syncs()), part)

    def _whole(self, table: str, columns: Iterable[Named]) -> pa.Table:
        made = _table({name: column.array(ALL) for name, column in columns})
        self._held.release(table)
        return made

    def _kernels(self, found: Messages | None) -> list[pa.Table]:
        """Return the rows by device and time, a few row groups per table, built column by column."""
        order = self._order()
        size = GROUPS * ROW_GROUP
        slices = [order[first : first + size] for first in range(0, len(order), size)]
        made: list[dict[str, pa.Array]] = [{} for _ in slices]
        for name, column in self._kernel_columns(found):
            if column.is_there.any():
                for columns, places in zip(made, slices, strict=True):
                    columns[name] = column.array(places)
        return [_table(columns) for columns in made]

    def _order(self) -> Places:
        """Return the rows by device and time, long names last."""
        device = _device(self._held)
        keys = (self._held.column("gpu", name).values for name in ("event_id", "start_ns"))
        known = () if device.there is None else (np.where(device.there, device.values, 0), ~device.there)
        is_long = having(self._texts.column(self._held.column("gpu", "name")), rules.is_long)
        return np.lexsort((*keys, *(known or (device.values,)), *((is_long,) if is_long.any() else ())))

    def _kernel_columns(self, found: Messages | None) -> Iterator[Named]:
        gpu = self._gpu
        for name in ("event_id", "kind", "start_ns", "duration_ns", *AS_RECORDED):
            yield name, gpu(name)
        names = self._texts.column(gpu("name"))
        yield "name", names
        yield "copy_kind", extracted(names.only(gpu("kind").values == MEMCPY), rules.copy_kind)
        yield "device_id", _device(self._held)
        yield "stream_id", _natural(gpu("stream_id").or_else(gpu("tid")))
        yield "correlation_id", _natural(gpu("correlation_id"))
        yield "launch_id", self._held.column("launch", "launch_id").at(self._links.call)
        yield "op_id", self._held.column("op", "op_id").at(self._links.op)
        yield "registers_per_thread", gpu("registers").integer()
        yield "occupancy_percent", gpu("occupancy")
        yield from self._sizes()
        if found is not None:
            yield from self._messages(found.of_gpu)
            yield "call_id", self._held.column("message", "event_id").at(found.call)

    def _gpu(self, name: str) -> Column:
        return self._held.column("gpu", name)

    def _sizes(self) -> Iterator[Named]:
        """Yield grid and block in blocks and threads, whatever the ROCm release wrote."""
        if not self._rules.is_amd:
            yield from ((f"{what}_{axis}", self._gpu(f"{what}_{axis}")) for what in ("grid", "block") for axis in "xyz")
            return
        is_swapped = self._is_any_too_large()
        if is_swapped:
            rules.note_grids(self._account, int(self._gpu("grid_x").is_there.sum()))
        by_items = self._is_by_work_items()
        for axis in "xyz":
            grid, block = self._gpu(f"grid_{axis}"), self._gpu(f"block_{axis}")
            if is_swapped:
                yield f"grid_{axis}", _groups(block, grid)
                yield f"block_{axis}", grid
            else:
                yield f"grid_{axis}", _where(by_items, _groups(grid, block), grid)
                yield f"block_{axis}", block

    def _is_any_too_large(self) -> bool:
        x, y, z = (self._gpu(f"block_{axis}") for axis in "xyz")
        # Compared as integers: no float is rounded across the limit, and nothing overflows.
        threads = x.values.astype(np.float64) * y.values * z.values
        return bool(((threads > rules.MOST_THREADS) & x.is_there & y.is_there & z.is_there).any())

    def _is_by_work_items(self) -> Mask:
        names = self._texts.column(self._held.column("launch", "name")).at(self._links.call)
        return having(names, rules.BY_WORK_ITEMS.__eq__)

    def _calls(self, found: Messages) -> Iterator[Named]:
        """Yield the columns of ``collective_call``: of each operator with metadata, and of kernels without one."""
        places = np.unique(np.concatenate([found.of_op[found.of_op >= 0], found.call[found.call >= 0]]))
        yield "call_id", self._held.column("message", "event_id").at(places)
        yield from self._messages(places)
        yield "message_out_splits", self._message_text("out_splits", places)
        for name in ("source_rank", "destination_rank"):
            yield name, self._held.column("message", name).integer().at(places)
        yield "rank_in_group", self._held.column("message", "peer").integer().at(places)

    def _message_text(self, name: str, places: Places) -> Column:
        return Column(np.maximum(places, 0).astype(np.int32), places >= 0, self._held.words("message", name))

    def _messages(self, places: Places) -> Iterator[Named]:
        texts = {name: name for name in ("collective", "dtype", "group_name", "group_ranks")}
        for name, source in ({**texts, "message_in_splits": "in_splits"}).items():
            yield name, self._message_text(source, places)
        for name, source in (("message_in_elements", "message_in"), ("message_out_elements", "message_out")):
            yield name, self._held.column("message", source).at(places)
        yield "group_size", self._held.column("message", "group_size").integer().at(places)
        yield "sequence", self._held.column("message", "sequence").at(places)

    def _launches(self) -> Iterator[Named]:
        for name in ("launch_id", "start_ns", "duration_ns"):
            yield name, self._held.column("launch", name)
        yield "correlation_id", _natural(self._held.column("launch", "correlation_id"))
        yield from self._lanes_and_name("launch")
        kernel = self._held.column("launch", "kernel")
        if kernel.is_there.any():
            has_work = np.zeros(len(kernel.values), np.bool_)
            has_work[self._links.call[self._links.call >= 0]] = True
            yield "kernel_name", self._texts.column(kernel).only(~has_work)
        node = self._held.column("launch", "graph_node_id")
        if node.is_there.any():
            yield "graph_node_id", node

    def _operators(self) -> Iterator[Named]:
        for name in ("op_id", "start_ns", "duration_ns", "sequence_number", "forward_thread_id"):
            yield name, self._held.column("op", name)
        yield from self._lanes_and_name("op")
        yield "parent_op_id", self._held.column("op", "op_id").at(self._links.parent)
        for name in ("input_dims", "input_types", "input_strides", "concrete_inputs"):
            yield name, self._texts.column(self._held.column("op", name))

    def _lanes_and_name(self, table: str) -> Iterator[Named]:
        process = self._held.column(table, "pid")
        yield "process_id", process.only(process.values >= 0)
        yield "thread_id", self._held.column(table, "tid")
        yield "name", self._texts.column(self._held.column(table, "name"))

    def _annotations(self) -> Iterator[Named]:
        style, duration = self._held.column("annotation", "style"), self._held.column("annotation", "duration_ns")
        for name in ("annotation_id", "start_ns", "stream_id"):
            yield name, self._held.column("annotation", name)
        for name, column in self._lanes_and_name("annotation"):
            yield name, column if name == "name" else column.only(style.values != PROJECTION)
        yield "style", style
        yield "duration_ns", duration
        yield "device_id", self._held.column("annotation", "device_id").integer()
        yield "is_open", Column(~duration.is_there)

    def _allocations(self) -> Iterator[Named]:
        memory = partial(self._held.column, "memory")
        for name in ("memory_event_id", "bytes", "start_ns"):
            yield name, memory(name)
        for name in ("device_type", "device_id"):
            yield name, memory(name).integer()
        address, process = memory("address"), memory("pid")
        yield "address", address._replace(values=address.values.astype(np.uint64)).only(address.values >= 0)
        yield "total_allocated_bytes", memory("allocated")
        yield "total_reserved_bytes", memory("reserved")
        yield "process_id", process.only(process.values >= 0)
        yield "thread_id", memory("tid")

    def _syncs(self) -> Iterator[Named]:
        sync = partial(self._held.column, "sync")
        for name in ("sync_id", "start_ns", "duration_ns"):
            yield name, sync(name)
        for name in ("correlation_id", "record_correlation_id"):
            yield name, _natural(sync(name))
        words = self._held.words("sync", "sync_kind")
        yield "kind", Column(np.arange(len(words), dtype=np.int32), None, words)
        yield "device_id", _natural(sync("device_id")).or_else(_natural(sync("pid"))).integer()
        for name in ("context_id", "stream_id", "waited_stream_id", "cuda_event_id"):
            column = sync(name)
            yield name, column.only((column.values >= 0) & (column.values < NO_STREAM))


def linker(held: Held, given: Rules, account: Account) -> HeldLinker | None:
    """Link held rows; None if only SQL can."""
    texts = Texts(held)
    found = match_arrays.find(held, texts, given)
    return None if found is None else HeldLinker(held, texts, found, given, account)


def _rows(table: str, data: pa.Table, part: int) -> Rows:
    """Yield rows. More than one row group is written by both cores in whole groups, each in order."""
    return Rows(table, data, part, is_ordered=data.num_rows <= ROW_GROUP)


def _table(columns: dict[str, pa.Array]) -> pa.Table:
    """Return rows in batches of one row group each: DuckDB gives each batch to one thread."""
    return pa.Table.from_batches(pa.table(columns).to_batches(max_chunksize=ROW_GROUP))


def _seen(held: Held) -> Seen:
    device = _known_device(held)
    devices = np.unique(device.values[device.is_there]).tolist()
    return Seen(held.rows("gpu"), int(held.column("gpu", "start_ns").values.min()), devices)


def _known_device(held: Held) -> Column:
    process = held.column("gpu", "pid")
    return _natural(held.column("gpu", "device_id").or_else(_natural(process)))


def _natural(numbers: Column) -> Column:
    """Return the column with NULL for negative values, which no row may have."""
    return numbers.only(numbers.values >= 0)


def _device(held: Held) -> Column:
    return _known_device(held).integer()


def _groups(items: Column, each: Column) -> Column:
    """Return how many groups of ``each`` hold the items; NULL for groups of zero."""
    sized = each.only(each.values != 0)
    groups = np.ceil(items.values / np.where(sized.is_there, sized.values, 1)).astype(np.int64)
    return Column(groups, items.is_there & sized.is_there)


def _where(wanted: Mask, one: Column, other: Column) -> Column:
    return Column(np.where(wanted, one.values, other.values), np.where(wanted, one.is_there, other.is_there))
