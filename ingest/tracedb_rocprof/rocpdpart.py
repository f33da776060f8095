"""The tables of one process of a rocpd database, or of several that share a suffix, and what they say beside events."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tracedb.errors import ReadError
from tracedb_rocprof.agents import Agent
from tracedb_rocprof.gather import NONE, Numbers
from tracedb_rocprof.recording import Place, Recording
from tracedb_rocprof.sqlitefile import NUMBER, Query, SqliteFile, quoted
from tracedb_rocprof.stage import Stage, numbers

RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS")


class Part:
    """The tables with one suffix. Its header is read at once."""

    def __init__(self, file: SqliteFile, suffix: str, stage: Stage, found: Recording) -> None:
        """Raises ``ReadError`` where the schema is another one."""
        self.file = file
        self.suffix = suffix
        self.stage = stage
        self.found = found
        self.pids: dict[int, int] = {}
        self.shapes: dict[int, tuple[int, int]] = {}
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
        """Return a column as SQL, or what stands for it where the table lacks it."""
        known = self.file.tables.get(self.table(table), ())
        return f"{alias}.{quoted(column)}" if column in known else absent

    def _check_version(self) -> None:
        said = dict(self.file.rows(self.table("metadata"), ("tag", "value")))
        version = str(said.get("schema_version", "3"))
        if version.partition(".")[0] != "3":
            raise ReadError(f"rocpd schema version {version}; version 3 is read, convert it with the rocpd tool")
        self.found.metadata["schema"] = version
        self.found.tool_version = f"rocpd schema {version}"

    def _read_processes(self) -> None:
        hosts = dict(self.file.rows(self.table("info_node"), ("id", "hostname")))
        rows = self.file.rows(self.table("info_process"), ("id", "nid", "pid", "environment"))
        for number, node, pid, environment in rows:
            proc = self.process(number)
            self.pids[number] = pid
            rank, size = _place_in_job(environment)
            self.found.places[proc] = Place(pid=pid, host=hosts.get(node), rank=rank, world_size=size)

    def process(self, number: int) -> int:
        """Return our number of a process."""
        if number not in self._processes:
            self._processes[number] = self.stage.processes.number(f"{self.suffix}/{number}")
        return self._processes[number]

    def _read_names(self) -> None:
        """Keep the strings that rows can name, and the kernels' names."""
        self.strings = dict(self.file.rows(self.table("string"), ("id", "string")))
        columns = ("id", "display_name", "kernel_name", "group_segment_size", "arch_vgpr_count")
        for number, display, name, static, vgprs in self.file.rows(self.table("info_kernel_symbol"), columns):
            self.stage.texts.define((self.suffix, "kernel", number), display or name or "")
            self.shapes[number] = (NONE if static is None else static, NONE if vgprs is None else vgprs)

    def _read_agents(self) -> None:
        columns = (
            "id",
            "pid",
            "type",
            "absolute_index",
            "logical_index",
            "type_index",
            "name",
            "product_name",
            "extdata",
        )
        for number, pid, kind, absolute, logical, place, name, product, extra in self.file.rows(
            self.table("info_agent"), columns
        ):
            more = object_of(extra)
            label = f"{kind} {place}"
            self.stage.agents.define((self.suffix, number), label)
            agent = Agent(
                is_gpu=kind == "GPU",
                node_id=absolute or 0,
                logical_id=logical or 0,
                name=name or None,
                product=product or None,
                cu_count=more.get("cu_count") or None,
                clock_mhz=more.get("max_engine_clk_fcompute") or None,
                gpu=place,
            )
            self.found.agents.setdefault(self.stage.processes.text(self.process(pid)), []).append(agent)

    def put(self, table: str, batch: Mapping[str, pa.Array], columns: dict[str, Any]) -> None:
        rows = len(batch["start"])
        correlation = numbers(batch["stack"], rows)
        common = {
            "proc": mapped(batch["pid"], self.process),
            "correlation": np.where(correlation == 0, NONE, correlation),
        }
        start, end = numbers(batch["start"], rows), numbers(batch["end"], rows)
        self.stage.put(table, rows, {**common, **columns}, start, end)

    def events(self, table: str, alias: str, columns: Mapping[str, str]) -> Query:
        """Return the query for rows of a table with what their event says: the stack id joins calls and GPU rows."""
        source = f"{quoted(self.table(table))} AS {alias}"
        stack = "NULL"
        if self.has("event") and self.column(table, alias, "event_id") != "NULL":
            source += f" LEFT JOIN {quoted(self.table('event'))} AS e ON e.id = {alias}.event_id"
            ids = (self.column("event", "e", name) for name in ("stack_id", "correlation_id"))
            stack = "coalesce(nullif({}, 0), {})".format(*ids)
        common = {"pid": f"{alias}.pid", "start": f"{alias}.start", "end": f'{alias}."end"', "stack": stack}
        return source, [(name, text, NUMBER) for name, text in {**common, **columns}.items()]

    def string(self, number: int) -> int:
        return self.stage.texts.number(self.strings.get(number, f"(string {number})"))


def mapped(column: pa.Array, give: Callable[[int], int], absent: int = NONE) -> Numbers:
    """Return what a function gives for each number, asking it once for each that is different."""
    different, places = np.unique(numbers(column, len(column)), return_inverse=True)
    given = [absent if number == NONE else give(number) for number in different.tolist()]
    found: Numbers = np.array([absent if number is None else number for number in given], np.int64)[places]
    return found


def object_of(text: str | None) -> dict[str, Any]:
    """Return the object that a text of JSON is; an empty one where it is none."""
    if not text or not isinstance(text, str):
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _place_in_job(environment: str | None) -> tuple[int | None, int | None]:
    """Return rank and world size as the environment of the process says them; nothing else of it is looked at."""
    said = object_of(environment)

    def first(names: tuple[str, ...]) -> int | None:
        return next((int(said[name]) for name in names if re.fullmatch(r"\d{1,7}", str(said.get(name, "")))), None)

    return first(RANKS), first(SIZES)
