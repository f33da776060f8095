"""The tables of a rocpd database with one suffix, for one or several processes, and the metadata in them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tracedb.errors import ReadError
from tracedb_rocprof.agents import MOST_GPUS, Agent
from tracedb_rocprof.csv.row_groups import Numbers
from tracedb_rocprof.metadata import Place, Recording
from tracedb_rocprof.missing import BAD, NONE
from tracedb_rocprof.rocpd.sqlite import NUMBER, Query, SqliteFile, quoted
from tracedb_rocprof.staging import Stage, numbers

SYMBOL = {
    "static_bytes": "group_segment_size",
    "vgprs": "arch_vgpr_count",
    "accum_vgprs": "accum_vgpr_count",
    "sgprs": "sgpr_count",
}
"""Staged column → column of a kernel's symbol."""
NO_EVENT = BAD + 1
"""Stands for the stack id of a row whose event is missing."""
KNOWN = "3"
"""Major schema version that this reader supports."""
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS")


class Part:
    """The tables with one suffix. Their metadata is read at once."""

    def __init__(self, file: SqliteFile, suffix: str, stage: Stage, found: Recording) -> None:
        """Raises ``ReadError`` if required tables or columns have other names."""
        self.file = file
        self.suffix = suffix
        self.stage = stage
        self.recording = found
        self.pids: dict[int, int] = {}
        self.shapes: dict[int, tuple[int, ...]] = {}
        """Values of ``SYMBOL`` by kernel."""
        """Static shared memory and registers by kernel."""
        self._processes: dict[int, int] = {}
        self._check_version()
        self._read_processes()
        self._read_names()
        self._read_agents()

    def table(self, name: str) -> str:
        return f"rocpd_{name}{self.suffix}"

    def has(self, name: str) -> bool:
        return self.table(name) in self.file.tables

    def column(self, table: str, alias: str, column: str, absent: str = "NULL") -> str:
        """Return the SQL of a column, or its replacement if the table lacks it."""
        known = self.file.tables.get(self.table(table), ())
        return f"{alias}.{quoted(column)}" if column in known else absent

    def _check_version(self) -> None:
        said = dict(self.file.rows(self.table("metadata"), {"tag": str, "value": str}))
        version = said.get("schema_version") or KNOWN
        if version.partition(".")[0] != KNOWN:
            self.stage.account.warned(
                "schema_unknown",
                1,
                f"rocpd schema version {version}, known is {KNOWN}; read by the names of its columns",
            )
        self.recording.metadata["schema"] = version
        self.recording.tool_version = f"rocpd schema {version}"

    def _read_processes(self) -> None:
        hosts = dict(self.file.rows(self.table("info_node"), {"id": int, "hostname": str}))
        columns = {"id": int, "nid": int, "pid": int, "environment": object}
        rows = self.file.rows(self.table("info_process"), columns)
        self.pids = {number: NONE if pid is None else pid for number, _, pid, _ in rows}
        for number, node, pid, environment in rows:
            rank, size = _place_in_job(environment)
            place = Place(pid=pid, host=hosts.get(node), rank=rank, world_size=size)
            self.recording.places[self.process(number)] = place

    def process(self, number: int) -> int:
        """Return our number of a process; an unlisted one counts as the only listed one."""
        if number not in self.pids and len(self.pids) == 1:
            (number,) = self.pids
        if number not in self._processes:
            self._processes[number] = self.stage.processes.number(f"{self.suffix}/{number}")
        return self._processes[number]

    def _read_names(self) -> None:
        """Keep the strings that rows can refer to, and the kernels' names."""
        rows = self.file.rows(self.table("string"), {"id": int, "string": str})
        self.strings: dict[int, str] = {number: text for number, text in rows if text is not None}
        columns = {"id": int, "display_name": str, "kernel_name": str, **dict.fromkeys(SYMBOL.values(), int)}
        for number, display, name, *values in self.file.rows(self.table("info_kernel_symbol"), columns):
            if display or name:
                self.stage.texts.define((self.suffix, "kernel", number), display or name)
            self.shapes[number] = tuple(NONE if value is None else value for value in values)

    def _read_agents(self) -> None:
        columns = {
            **{"id": int, "pid": int, "type": str, "absolute_index": int, "logical_index": int, "type_index": int},
            **{"name": str, "product_name": str, "vendor_name": str, "extdata": object},
        }
        for number, pid, kind, absolute, logical, place, name, product, vendor, extra in self.file.rows(
            self.table("info_agent"), columns
        ):
            more = object_of(extra)
            place = place if place is not None and 0 <= place < MOST_GPUS else None
            self._define_agent(number, kind, place, logical)
            agent = Agent(
                is_gpu=kind == "GPU",
                node_id=absolute or 0,
                logical_id=logical or 0,
                name=name or None,
                product=product or None,
                vendor=vendor or None,
                cu_count=more.get("cu_count"),
                clock_mhz=more.get("max_engine_clk_fcompute"),
                gpu=place,
            )
            self.recording.agents.setdefault(self.stage.processes.text(self.process(pid)), []).append(agent)

    def _define_agent(self, number: int, kind: str | None, place: int | None, logical: int | None) -> None:
        """Label an agent; one that is neither CPU nor GPU gets no label."""
        if kind not in ("CPU", "GPU"):
            return
        given = f"{kind} {place}" if place is not None else None
        label = given or (f"Agent {logical}" if logical is not None else None)
        if label is not None:
            self.stage.agents.define((self.suffix, "agent", number), label)

    def agent(self, number: int) -> int:
        return self.stage.agents.reserved((self.suffix, "agent", number))

    def put(self, table: str, batch: Mapping[str, pa.Array], columns: dict[str, Any]) -> None:
        rows = len(batch["start"])
        stack = numbers(batch["stack"], rows)
        has_no_event = stack == NO_EVENT
        self.stage.account.warned("event_unknown", int(has_no_event.sum()), "rows whose event is not in rocpd_event")
        pids = numbers(batch["pid"], rows)
        if len(self.pids) > 0:
            strangers = int((~np.isin(pids, list(self.pids))).sum())
            self.stage.account.warned("process_unknown", strangers, "rows of a process that rocpd_info_process lacks")
        different, places = np.unique(pids, return_inverse=True)
        common = {
            "proc": np.array([self.process(number) for number in different.tolist()], np.int64)[places],
            "correlation": np.where(has_no_event, NONE, stack),
        }
        start, end = numbers(batch["start"], rows), numbers(batch["end"], rows)
        self.stage.put(table, rows, {**common, **columns}, start, end)

    def events(self, table: str, alias: str, columns: Mapping[str, str]) -> Query:
        """Return the query for a table's rows with their events: the stack id joins calls and GPU rows."""
        missing = {"start", "end"} - set(self.file.tables[self.table(table)])
        if missing:
            raise ReadError(
                f"{self.table(table)} has the columns {', '.join(self.file.tables[self.table(table)])}, not "
                f"{' and '.join(sorted(missing))}; convert it with the rocpd tool of its release"
            )
        source = f"{quoted(self.table(table))} AS {alias}"
        stack = "NULL"
        if self.has("event") and self.column(table, alias, "event_id") != "NULL":
            source += f" LEFT JOIN {quoted(self.table('event'))} AS e ON e.id = {alias}.event_id"
            ids = (self.column("event", "e", name) for name in ("stack_id", "correlation_id"))
            lost = f"CASE WHEN {alias}.event_id IS NOT NULL AND e.id IS NULL THEN {NO_EVENT} END"
            stack = "coalesce(nullif({}, 0), {}, {})".format(*ids, lost)
        common = {
            "pid": self.column(table, alias, "pid"),
            "start": f"{alias}.start",
            "end": f'{alias}."end"',
            "stack": stack,
        }
        return source, [(name, text, NUMBER) for name, text in {**common, **columns}.items()]

    def string(self, number: int) -> int:
        text = self.strings.get(number)
        if text is None:
            return self.stage.texts.reserved((self.suffix, "string", number))
        return self.stage.texts.number(text)

    def held(self, table: str, read: int) -> None:
        """Compare the rows read of a table with SQLite's own count; the difference is lost."""
        counted = self.file.count(self.table(table))
        self.stage.events_read += max(0, counted - read)
        said = f"{self.table(table)}: SQLite counts {counted:,} rows and gave {read:,}"
        self.stage.account.lost("rows_differ", max(0, counted - read), said)
        self.stage.account.warned("rows_differ", max(0, read - counted), said)

    def leave(self) -> None:
        """Report values of an unexpected type."""
        for place, count in self.file.faults.items():
            self.stage.account.mended(
                "field_unreadable", count, f"{place} of another type, or the least 64-bit number; left empty"
            )
        self.file.faults.clear()


def mapped(column: pa.Array, give: Callable[[int], int], absent: int = NONE) -> Numbers:
    """Return the function's result for each number, calling it once per distinct number."""
    different, places = np.unique(numbers(column, len(column)), return_inverse=True)
    given = [absent if number == NONE else BAD if number < 0 else give(number) for number in different.tolist()]
    found: Numbers = np.array([absent if number is None else number for number in given], np.int64)[places]
    return found


def object_of(text: object) -> dict[str, Any]:
    """Return a JSON text as an object; empty if it is not one."""
    if not text or not isinstance(text, str):
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _place_in_job(environment: object) -> tuple[int | None, int | None]:
    """Return rank and world size from the process's environment; nothing else in it is read."""
    said = object_of(environment)

    def first(names: tuple[str, ...]) -> int | None:
        return next((int(said[name]) for name in names if re.fullmatch(r"\d{1,7}", str(said.get(name, "")))), None)

    return first(RANKS), first(SIZES)
