"""Databases of rocprofv3 (rocpd, schema 3): one or several processes, tables with or without the suffix of their guid.

The views that the tool puts over the tables may be missing and need JSON in SQLite, so only tables are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from tracedb_rocprof.gather import NONE
from tracedb_rocprof.recording import Recording
from tracedb_rocprof.rocpdpart import Part, mapped
from tracedb_rocprof.rocpdregions import RegionReader
from tracedb_rocprof.sqlitefile import DECIMAL, NUMBER, TEXT, SqliteFile, quoted
from tracedb_rocprof.stage import Stage

TABLE = re.compile(
    r"rocpd_(?:info_process|kernel_dispatch|region|memory_copy|metadata)(?P<suffix>_[0-9a-f][0-9a-f_-]*)?"
)


class RocpdReader:
    """Reads a database into the staging tables."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.found = Recording(source="rocpd", metadata={"format": "rocpd"})

    def read(self, path: Path) -> Recording:
        """Read the database. Raises ``ReadError`` where it is damaged or of another schema."""
        file = SqliteFile(path)
        matches = [match for table in file.tables if (match := TABLE.fullmatch(table))]
        suffixes = sorted({match["suffix"] or "" for match in matches})
        for suffix in suffixes:
            self._part = Part(file, suffix, self._stage, self.found)
            self._dispatches()
            self._counters()
            self._copies()
            regions = RegionReader(self._part)
            regions.regions()
            regions.samples()
            self._allocations()
        return self.found

    def _dispatches(self) -> None:
        if not self._part.has("kernel_dispatch"):
            return
        names = {
            "agent": "agent_id", "kernel": "kernel_id", "dispatch": "dispatch_id", "queue": "queue_id",
            "stream": "stream_id", "shared_bytes": "group_segment_size", "graph": "graph_exec_id",
            "graph_node": "graph_node_id",
        }  # fmt: skip
        for axis in "xyz":
            names |= {f"block_{axis}": f"workgroup_size_{axis}", f"grid_{axis}": f"grid_size_{axis}"}
        columns = {name: self._part.column("kernel_dispatch", "d", column) for name, column in names.items()}
        for batch in self._part.file.batches(self._part.events("kernel_dispatch", "d", columns)):
            self._part.put(
                "kernel", batch, {**{name: batch[name] for name in names if name != "kernel"}, **self._kernel(batch)}
            )

    def _kernel(self, batch: Mapping[str, pa.Array]) -> dict[str, Any]:
        """Return agent, name and what its symbol says of a kernel."""
        shape = self._part.shapes.get
        return {
            "agent": mapped(
                batch["agent"], lambda number: self._part.stage.agents.reserved((self._part.suffix, number))
            ),
            "name": mapped(
                batch["kernel"], lambda number: self._part.stage.texts.reserved((self._part.suffix, "kernel", number))
            ),
            "static_bytes": mapped(batch["kernel"], lambda number: shape(number, (NONE, NONE))[0]),
            "vgprs": mapped(batch["kernel"], lambda number: shape(number, (NONE, NONE))[1]),
        }

    def _counters(self) -> None:
        """Stage the counters of dispatches, the values of the parts of the device summed."""
        if not (self._part.has("pmc_event") and self._part.has("info_pmc") and self._part.has("kernel_dispatch")):
            return
        source = (
            f'(SELECT d.pid, d.agent_id, d.kernel_id, d.dispatch_id, d.queue_id, d.start, d."end", i.name, '
            f"sum(p.value) AS value FROM {quoted(self._part.table('pmc_event'))} AS p "
            f"JOIN {quoted(self._part.table('kernel_dispatch'))} AS d ON d.event_id = p.event_id "
            f"JOIN {quoted(self._part.table('info_pmc'))} AS i ON i.id = p.pmc_id GROUP BY d.id, i.name)"
        )
        columns = [(name, name, NUMBER) for name in ("pid", "start")]
        columns += [("end", '"end"', NUMBER), ("stack", "NULL", NUMBER), ("agent", "agent_id", NUMBER)]
        columns += [("kernel", "kernel_id", NUMBER), ("dispatch", "dispatch_id", NUMBER), ("queue", "queue_id", NUMBER)]
        columns += [("counter", "name", TEXT), ("value", "value", DECIMAL)]
        for batch in self._part.file.batches((source, columns)):
            made = {name: batch[name] for name in ("dispatch", "queue", "value")}
            counter = self._part.stage.texts.of(batch["counter"].dictionary_encode())
            self._part.put("counter", batch, {**made, **self._kernel(batch), "counter": counter})

    def _copies(self) -> None:
        if not self._part.has("memory_copy"):
            return
        names = {"name": "name_id", "source": "src_agent_id", "target": "dst_agent_id", "bytes": "size",
                 "queue": "queue_id", "stream": "stream_id"}  # fmt: skip
        columns = {name: self._part.column("memory_copy", "m", column) for name, column in names.items()}
        for batch in self._part.file.batches(self._part.events("memory_copy", "m", columns)):
            made: dict[str, Any] = {name: batch[name] for name in ("bytes", "queue", "stream")}
            for name in ("source", "target"):
                made[name] = mapped(
                    batch[name], lambda number: self._part.stage.agents.reserved((self._part.suffix, number))
                )
            made["name"] = mapped(batch["name"], self._part.string)
            self._part.put("copy", batch, made)

    def _allocations(self) -> None:
        count = self._part.file.count(self._part.table("memory_allocate"))
        self._part.stage.events_read += count
        self._part.stage.account.left_aside(
            "memory_allocation_events", count, "allocations and releases of device memory; left aside"
        )
