"""Read the set of CSV files of one process into the staging tables."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb.errors import ReadError
from tracedb.ingester.decompress import opened
from tracedb.ingester.issues import Account
from tracedb_rocprof import unstaged_kernels
from tracedb_rocprof.agents import agent_of
from tracedb_rocprof.csv import headers
from tracedb_rocprof.csv.chunks import Block, Parser, parsed
from tracedb_rocprof.csv.headers import Header, header_of
from tracedb_rocprof.csv.processes import Processes
from tracedb_rocprof.csv.row_groups import Gathered, Numbers
from tracedb_rocprof.metadata import Recording
from tracedb_rocprof.missing import NONE
from tracedb_rocprof.staging import Stage, numbers

ORDER = (headers.AGENT, headers.CALL, headers.KERNEL, headers.LEGACY, headers.COUNTER, headers.COPY)
LEFT_ASIDE = {
    headers.ALLOCATION: ("memory_allocation_events", "allocations and releases of device memory; not stored"),
    headers.SCRATCH: ("scratch_memory_events", "scratch memory of kernels; not stored"),
}
AHEAD = 24
"""How many blocks are parsed ahead if kernels skip staging."""
NEEDED = (headers.KERNEL, headers.LEGACY, headers.COUNTER)
"""Files without which a set is useless."""
TIMES = "Start_Timestamp and End_Timestamp"
MOST_NAMES, MAX_MESSAGE_CHARS = 30, 400
MARK, RANGE = "mark", "push_pop"


class SetReader:
    """Reads a set into the staging tables."""

    def __init__(
        self, stage: Stage, cores: int, progress: Callable[[int], None], may_bypass_staging: bool = False
    ) -> None:
        self._may_bypass_staging = may_bypass_staging
        self._stage = stage
        self._cores = cores
        self._progress = progress
        self._handlers: dict[str, Callable[[Header, Block], None]] = {
            headers.KERNEL: self._kernels,
            headers.LEGACY: self._kernels,
            headers.COUNTER: self._counters,
            headers.COPY: self._copies,
            headers.CALL: self._calls,
        }
        self.recording = Recording(metadata={"format": "csv"})
        self._processes = Processes(stage, self.recording.places)

    def read(self, files: Sequence[Path]) -> Iterator[Gathered]:
        """Read agents, calls, kernels, then counters and copies; yields the kernels that skip staging.

        Calls come before kernels because kernels that calls are joined to must be staged.
        """
        headed = [(path, self._header(path)) for path in files]
        known = [(path, header) for path, header in headed if header is not None]
        sizes = [(path.stat().st_size, header) for path, header in known]
        is_possible = self._may_bypass_staging and unstaged_kernels.is_possible(sizes)
        for path, header in sorted(known, key=lambda item: _reading_order(item[1].domain)):
            if header.domain == headers.LEGACY:
                self.recording.source = "rocprofv2" if header.has("grid_size") else "rocprofv1"
            if header.domain in (headers.KERNEL, headers.LEGACY):
                self._stage.bypasses_staging = is_possible and not self._stage.count("call")
            if header.domain == headers.AGENT:
                self._agents(path)
            elif header.domain == headers.STATS:
                self._stats(path, header)
            else:
                yield from self._events(path, header)
        yield from self._stage.unstaged(is_last=True)
        self._processes.separate_unowned_rows()

    def _header(self, path: Path) -> Header | None:
        with opened(path) as file:
            line = headers.first_line(file)
        header = header_of(line)
        if header is None and line.strip():
            self._progress(path.stat().st_size)
            self._unknown_header(path, line)
        return header

    def _unknown_header(self, path: Path, line: bytes) -> None:
        """Reject kernels or counters with an unknown header; warn of other files."""
        names = headers.names_of(line)
        said = ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
        is_needed = re.search(r"kernel_trace|counter_collection", path.name, re.IGNORECASE)
        wanted = "Counter_Name, Counter_Value and Dispatch_Id" if "counter" in path.name.lower() else TIMES
        if is_needed:
            raise ReadError(
                f"{path.name}: its columns are {said[:MAX_MESSAGE_CHARS]}; expected Kernel_Name, {wanted}, as "
                "rocprofv3 writes them"
            )
        self._stage.account.warned(
            "header_unknown", 1, f"{path.name} is not read; its columns are {said[:MAX_MESSAGE_CHARS]}"
        )

    def _events(self, path: Path, header: Header) -> Iterator[Gathered]:
        """Read a file of events in blocks."""
        parser = Parser(header)
        unreadable, rows, example, fields, ends_unreadable = 0, 0, "", 0, False
        damages: list[str] = []
        with opened(path, self._progress, damages) as file:
            headers.first_line(file)
            ahead = AHEAD if self._stage.bypasses_staging else 1
            for block in parsed(file, parser, self._cores, ahead):
                if header.domain in LEFT_ASIDE:
                    self._left_aside(header.domain, block.rows)
                elif block.rows:
                    self._handlers[header.domain](header, block)
                rows += block.rows
                unreadable += block.unreadable
                example, fields = example or block.example, fields or block.fields
                ends_unreadable = block.ends_unreadable
                yield from self._stage.unstaged()
        self._stage.texts.settle(self._stage.account)
        self._stage.damaged(damages)
        self.recording.is_cut = self.recording.is_cut or bool(damages)
        self._stage.events_read += unreadable
        columns = len(header.columns)
        counted = f"the header has {columns} columns, the first unreadable line has {fields} fields: "
        counted = "" if fields == columns else counted
        complete = unreadable - ends_unreadable
        if complete and not rows and header.domain in NEEDED:
            raise ReadError(f"{path.name}: none of its {unreadable:,} lines is a record; {counted}{example}")
        if ends_unreadable:  # not an error if it is the only line: a recording may end there
            self.recording.is_cut = True
            self._stage.account.lost("event_cut", 1, f"{path.name} ends inside a line")
        self._stage.account.lost(
            "line_unreadable", complete, f"lines of {path.name} that are not records: {counted}{example}"
        )

    def _left_aside(self, domain: str, rows: int) -> None:
        code, detail = LEFT_ASIDE[domain]
        self._stage.events_read += rows
        self._stage.account.left_aside(code, rows, detail)

    def _common(self, table: str, block: Block, text: str) -> dict[str, Any]:
        correlation = {"correlation": block.columns["correlation_id"]} if "correlation_id" in block.columns else {}
        return {
            "proc": self._processes.of(table, block),
            "name": self._stage.texts.of(block.columns[text], block.is_undecided),
            **correlation,
        }

    def _agent(self, block: Block, column: str = "agent_id") -> Numbers:
        """Return the number of the agent of each row."""
        if column not in block.columns:
            return np.full(block.rows, NONE, np.int64)
        values = block.columns[column]
        if not pa.types.is_dictionary(values.type):
            values = values.cast(pa.string()).dictionary_encode()
        return self._stage.agents.of(values)

    def _kernels(self, header: Header, block: Block) -> None:
        columns = self._common("kernel", block, "kernel_name")
        columns["agent"] = self._agent(block)
        for target, source in KERNEL_COLUMNS.items():
            if source in block.columns:
                columns[target] = block.columns[source]
        for axis in "xyz":
            for target, source in (("block", "workgroup_size"), ("grid", "grid_size")):
                if f"{source}_{axis}" in block.columns:
                    columns[f"{target}_{axis}"] = block.columns[f"{source}_{axis}"]
        self._put("kernel", block, columns)

    def _counters(self, header: Header, block: Block) -> None:
        columns = self._common("counter", block, "kernel_name")
        columns["agent"] = self._agent(block)
        columns["dispatch"] = block.columns["dispatch_id"]
        for target in ("queue", "vgprs", "accum_vgprs", "sgprs", "scratch_bytes", "static_bytes"):
            if KERNEL_COLUMNS[target] in block.columns:
                columns[target] = block.columns[KERNEL_COLUMNS[target]]
        columns["counter"] = self._stage.texts.of(block.columns["counter_name"])
        columns["value"] = block.columns["counter_value"]
        self._put("counter", block, columns)

    def _copies(self, header: Header, block: Block) -> None:
        columns = self._common("copy", block, "direction")
        columns["source"] = self._agent(block, "source_agent_id")
        columns["target"] = self._agent(block, "destination_agent_id")
        if "stream_id" in block.columns:
            columns["stream"] = block.columns["stream_id"]
        self._put("copy", block, columns)

    def _calls(self, header: Header, block: Block) -> None:
        """Stage API calls and markers; files converted from a database hold both."""
        domains = block.columns["domain"]
        names = domains.dictionary.to_pylist()
        which = np.array([_kind_of_call(name) for name in names], np.int8)[domains.indices.to_numpy()]
        columns = self._common("call", block, "function")
        columns["tid"] = numbers(block.columns.get("thread_id"), block.rows)
        columns["pid"] = numbers(block.columns.get("process_id"), block.rows)
        start, end = _times(block)
        controls = int((which == CONTROLS).sum())
        self._stage.events_read += controls
        self._stage.account.left_aside(
            "profiler_control", controls, "profiler control calls (pause, resume, name); not stored as ranges"
        )
        for wanted, table in ((CALLS, "call"), (MARKERS, "marker")):
            mine = which == wanted
            if not mine.any():
                continue
            chosen = {name: _chosen(values, mine) for name, values in columns.items()}
            if table == "marker":
                chosen["style"] = np.where(start[mine] == end[mine], MARK, RANGE)
            self._stage.put(table, int(mine.sum()), chosen, start[mine], end[mine])

    def _put(self, table: str, block: Block, columns: dict[str, Any]) -> None:
        self._stage.put(
            table, block.rows, columns, *_times(block), is_settled=not block.is_undecided, is_plain=block.is_plain
        )

    def _agents(self, path: Path) -> None:
        for row in self._rows(path):
            agent = agent_of(row)
            if agent is not None:
                self.recording.agents.setdefault(row.get("guid", ""), []).append(agent)

    def _stats(self, path: Path, header: Header) -> None:
        """Keep the tool's own statistics, with names as numbers of texts."""
        parser = Parser(header)
        said: dict[int, tuple[int, int]] = {}
        with opened(path, self._progress) as file:
            headers.first_line(file)
            for block in parsed(file, parser, 1):
                names = self._stage.texts.of(block.columns["name"], block.is_undecided).tolist()
                calls = block.columns["calls"].to_pylist()
                totals = block.columns["totaldurationns"].to_pylist()
                for name, count, total in zip(names, calls, totals, strict=True):
                    if count is not None and total is not None:
                        said[name] = (count, total)
        self._stage.texts.settle(Account())
        self.recording.stats.append((path.name, said))

    def _rows(self, path: Path) -> list[dict[str, str]]:
        """Return the rows of a small file by column."""
        with opened(path, self._progress) as file:
            text = file.read(MOST_SMALL_BYTES).decode("utf-8-sig", errors="replace").lstrip()
        lines = csv.reader(io.StringIO(text, newline=""))
        names = [name.strip().lower() for name in next(lines, [])]
        return [dict(zip(names, values, strict=False)) for values in lines]


MOST_SMALL_BYTES = 16 << 20
KERNEL_COLUMNS = {
    "queue": "queue_id",
    "stream": "stream_id",
    "dispatch": "dispatch_id",
    "replay": "replay_pass",
    "graph": "graph_exec_id",
    "graph_node": "graph_node_id",
    "vgprs": "vgpr_count",
    "accum_vgprs": "accum_vgpr_count",
    "sgprs": "sgpr_count",
    "scratch_bytes": "scratch_size",
    "static_bytes": "lds_block_size",
    "shared_bytes": "group_segment_size",
}
CALLS, MARKERS, CONTROLS = range(3)


def _kind_of_call(domain: str) -> int:
    if not domain.startswith("MARKER"):
        return CALLS
    return MARKERS if domain in ("MARKER_CORE_API", "MARKER_CORE_RANGE_API") else CONTROLS


def _chosen(values: Any, mask: npt.NDArray[np.bool_]) -> Any:
    return values.filter(pa.array(mask)) if isinstance(values, pa.Array) else values[mask]


def _times(block: Block) -> tuple[Numbers, Numbers]:
    start, end = block.columns.get("start_timestamp"), block.columns.get("end_timestamp")
    return numbers(start, block.rows), numbers(end, block.rows)


def _reading_order(domain: str) -> int:
    return ORDER.index(domain) if domain in ORDER else len(ORDER)
