"""Databases of rocprofv3 (rocpd, schema 3): one or several processes; table names may end in their guid.

The tool's views over the tables may be missing and need JSON support in SQLite, so only tables are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tracedb.errors import ReadError
from tracedb_rocprof.metadata import Recording
from tracedb_rocprof.missing import NONE
from tracedb_rocprof.rocpd.process_tables import SYMBOL, Part, mapped
from tracedb_rocprof.rocpd.regions import RegionReader
from tracedb_rocprof.rocpd.sqlite import DECIMAL, NUMBER, TEXT, SqliteFile, quoted
from tracedb_rocprof.staging import Stage

TABLE = re.compile(
    r"rocpd_(?:info_process|kernel_dispatch|region|memory_copy|metadata)(?P<suffix>_[0-9a-f][0-9a-f_-]*)?"
)


VALUE = "CASE typeof(p.value) WHEN 'text' THEN 9e999 WHEN 'blob' THEN 9e999 ELSE p.value END"
"""A counter's value; a non-number makes the sum infinite, which marks it as bad."""


class RocpdReader:
    """Reads a database into the staging tables."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.recording = Recording(source="rocpd", metadata={"format": "rocpd"})

    def read(self, path: Path) -> Recording:
        """Read the database. Raises ``ReadError`` if it is damaged or has another schema."""
        file = SqliteFile(path)
        matches = [match for table in file.tables if (match := TABLE.fullmatch(table))]
        suffixes = sorted({match["suffix"] or "" for match in matches})
        self._check_names(file, suffixes)
        for suffix in suffixes:
            self._part = Part(file, suffix, self._stage, self.recording)
            self._dispatches()
            self._counters()
            self._copies()
            regions = RegionReader(self._part)
            regions.regions()
            regions.samples()
            self._allocations()
            self._part.leave()
        return self.recording

    def _check_names(self, file: SqliteFile, suffixes: Sequence[str]) -> None:
        """Raise ``ReadError`` if dispatches are in a table of another name: otherwise they would seem absent."""
        known = {f"rocpd_kernel_dispatch{suffix}" for suffix in suffixes}
        for table, columns in file.tables.items():
            if "kernel_dispatch" in table.lower() and table not in known and {"start", "end"}.issubset(columns):
                raise ReadError(
                    f"dispatches are in table {table}, which is not known; expected rocpd_kernel_dispatch with the "
                    "suffix of the other tables; convert it with the rocpd tool of its release"
                )

    def _dispatches(self) -> None:
        if not self._part.has("kernel_dispatch"):
            return
        names = {
            "agent": "agent_id", "kernel": "kernel_id", "dispatch": "dispatch_id", "queue": "queue_id",
            "stream": "stream_id", "shared_bytes": "group_segment_size", "graph": "graph_exec_id",
            "graph_node": "graph_node_id", "replay": "replay_pass", "scratch_bytes": "private_segment_size",
        }  # fmt: skip
        for axis in "xyz":
            names |= {f"block_{axis}": f"workgroup_size_{axis}", f"grid_{axis}": f"grid_size_{axis}"}
        columns = {name: self._part.column("kernel_dispatch", "d", column) for name, column in names.items()}
        read = 0
        for batch in self._part.file.batches(self._part.events("kernel_dispatch", "d", columns)):
            read += len(batch["start"])
            self._part.put(
                "kernel", batch, {**{name: batch[name] for name in names if name != "kernel"}, **self._kernel(batch)}
            )

        self._part.held("kernel_dispatch", read)

    def _kernel(self, batch: Mapping[str, pa.Array]) -> dict[str, Any]:
        """Return the agent, name and symbol data of a kernel."""
        unknown = (NONE,) * len(SYMBOL)

        def value(place: int, number: int) -> int:
            return self._part.shapes.get(number, unknown)[place]

        return {
            "agent": mapped(batch["agent"], self._part.agent),
            "name": mapped(
                batch["kernel"], lambda number: self._part.stage.texts.reserved((self._part.suffix, "kernel", number))
            ),
            **{name: mapped(batch["kernel"], partial(value, place)) for place, name in enumerate(SYMBOL)},
        }

    def _counters(self) -> None:
        """Stage the counters of dispatches; values of the device's parts are summed."""
        if not (self._part.has("pmc_event") and self._part.has("info_pmc") and self._part.has("kernel_dispatch")):
            return
        source = (
            f'(SELECT d.pid, d.agent_id, d.kernel_id, d.dispatch_id, d.queue_id, d.start, d."end", i.name, '
            f"sum({VALUE}) AS value, count(*) AS parts FROM {quoted(self._part.table('pmc_event'))} AS p "
            f"JOIN {quoted(self._part.table('kernel_dispatch'))} AS d ON d.event_id = p.event_id "
            f"JOIN {quoted(self._part.table('info_pmc'))} AS i ON i.id = p.pmc_id GROUP BY d.id, i.name)"
        )
        columns = [(name, name, NUMBER) for name in ("pid", "start")]
        columns += [("end", '"end"', NUMBER), ("stack", "NULL", NUMBER), ("agent", "agent_id", NUMBER)]
        columns += [("kernel", "kernel_id", NUMBER), ("dispatch", "dispatch_id", NUMBER), ("queue", "queue_id", NUMBER)]
        columns += [("counter", "name", TEXT), ("value", "value", DECIMAL), ("parts", "parts", NUMBER)]
        read = 0
        for batch in self._part.file.batches((source, columns)):
            read += sum(batch["parts"].to_pylist())
            made = {name: batch[name] for name in ("dispatch", "queue", "value")}
            counter = self._part.stage.texts.of(batch["counter"].dictionary_encode())
            self._part.put("counter", batch, {**made, **self._kernel(batch), "counter": counter})
        self._other_counters(read)

    def _other_counters(self, read: int) -> None:
        """Report values without a dispatch: device samples, and values of nothing that is recorded."""
        others = self._part.file.count(self._part.table("pmc_event")) - read
        sampled = 0
        if others and self._part.has("sample"):
            pmc, sample = quoted(self._part.table("pmc_event")), quoted(self._part.table("sample"))
            query = f"SELECT count(*) FROM {pmc} WHERE event_id IN (SELECT event_id FROM {sample})"
            sampled = min(others, self._part.file.ask(query)[0][0])
        account = self._part.stage.account
        self._part.stage.events_read += others
        account.left_aside("counter_samples", sampled, "counters sampled over time, without a dispatch; not stored")
        account.lost("counter_without_dispatch", others - sampled, "counters whose dispatch or name is not recorded")

    def _copies(self) -> None:
        if not self._part.has("memory_copy"):
            return
        names = {"name": "name_id", "source": "src_agent_id", "target": "dst_agent_id", "bytes": "size",
                 "queue": "queue_id", "stream": "stream_id"}  # fmt: skip
        columns = {name: self._part.column("memory_copy", "m", column) for name, column in names.items()}
        read = 0
        for batch in self._part.file.batches(self._part.events("memory_copy", "m", columns)):
            read += len(batch["start"])
            made: dict[str, Any] = {name: batch[name] for name in ("bytes", "queue", "stream")}
            for name in ("source", "target"):
                made[name] = mapped(batch[name], self._part.agent)
            made["name"] = mapped(batch["name"], self._part.string)
            self._part.put("copy", batch, made)
        self._part.held("memory_copy", read)

    def _allocations(self) -> None:
        count = self._part.file.count(self._part.table("memory_allocate"))
        self._part.stage.events_read += count
        self._part.stage.account.left_aside(
            "memory_allocation_events", count, "allocations and releases of device memory; not stored"
        )
