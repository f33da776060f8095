"""Read the JSON of rocprof v1: a Chrome trace with the recorded values, in nanoseconds, in its events' arguments.

Each kind of record has a pid of its own in the viewer, told by its name; the recorded process is in the arguments.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tracedb.errors import ReadError
from tracedb.ingester.decompress import opened
from tracedb_rocprof.csv.row_groups import LARGEST, Numbers
from tracedb_rocprof.json.stream import Incomplete, JsonStream
from tracedb_rocprof.metadata import Place, Recording
from tracedb_rocprof.missing import BAD, NONE
from tracedb_rocprof.rpd import DIRECTIONS
from tracedb_rocprof.staging import Stage

SECTIONS = {0: "Markers and Ranges", 1: "COPY", 2: "CPU HIP API", 3: "CPU HSA API"}
"""The viewer's process names if the file has none; GPUs start at 6."""
GPU = re.compile(r"GPU ?(\d{1,4})")
COPY = re.compile(
    r"(?:hc|hip)?(?:Copy|Memcpy)(?:Host|Device|Peer)To(?:Host|Device|Peer)\w*|async-copy|FillBuffer|Memset"
)
BARRIER = "barrier packet"
WHOLE = re.compile(r"-?\d{1,40}", re.ASCII)
FLOWS = ("s", "t", "f")
SHORTEST_RANGE = 2
"""Duration of a mark, which is written as a range."""


class Event(msgspec.Struct):
    """An event of the viewer; ``pid`` and ``tid`` are the viewer's, those of the recorded process are in ``args``."""

    ph: str = ""
    name: str = ""
    pid: Any = None
    tid: Any = None
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    section: str = ""
    """The name of its viewer process at this place in the file; not a member of the JSON."""


class ChromeReader:
    """Reads a document into the staging tables."""

    def __init__(self, stage: Stage, progress: Callable[[int], None]) -> None:
        self._stage = stage
        self._progress = progress
        self._sections = dict(SECTIONS)
        self._other: Counter[str] = Counter()
        self._pids: dict[int, int] = {}
        self.recording = Recording(source="rocprofv1", metadata={"format": "json"})

    def read(self, path: Path) -> Recording:
        """Read the document; of a truncated one, the complete part. Raises ``ReadError`` if it is something else."""
        damages: list[str] = []
        account = self._stage.account
        with opened(path, self._progress, damages) as file:
            stream = JsonStream(file, account)
            try:
                for key in stream.members():
                    if key != "traceEvents":
                        stream.skip()
                    elif stream.peek() != b"[":
                        raise ReadError("not the JSON that rocprof writes: its traceEvents is not a list")
                    else:
                        for batch in stream.batches(Event):
                            self._events(batch)
            except Incomplete as end:
                self.recording.end_early(end, account, self._stage.events_read)
        self._stage.events_read += stream.unreadable
        account.lost("event_unreadable", stream.unreadable, "items of traceEvents that are not objects")
        names = ", ".join(sorted(self._other))
        account.left_aside("region_events", self._other.total(), f"events of other kinds: {names}")
        self._stage.damaged(damages)
        return self.recording

    def _events(self, events: Sequence[Event]) -> None:
        """Stage events, each by the section that its viewer process has at its place in the file."""
        tables: dict[str, list[Event]] = {}
        aside: Counter[str] = Counter()
        for event in events:
            event.section = self._section(event)
            if event.ph == "X":
                tables.setdefault(self._table(event), []).append(event)
            elif event.ph in FLOWS:
                aside["flow_events"] += 1
            else:
                self._name(event)
                aside["metadata_events"] += 1
        for code, count in aside.items():
            self._stage.events_read += count
            self._stage.account.left_aside(code, count, "of the viewer")
        for table, found in tables.items():
            if table == "other":
                self._stage.events_read += len(found)
                self._other.update(event.section for event in found)
            elif table == "barrier":
                self._stage.events_read += len(found)
                self._stage.account.left_aside("other_gpu_events", len(found), "queue barriers, which are not kernels")
            else:
                self._put(table, found)

    def _name(self, event: Event) -> None:
        """Keep the name of a viewer process."""
        name, pid = event.args.get("name"), _whole(event.pid)
        if event.name == "process_name" and isinstance(name, str) and pid >= 0:
            self._sections[pid] = name

    def _section(self, event: Event) -> str:
        pid = _whole(event.pid)
        return self._sections.get(pid, f"process {pid}" if pid >= 0 else "no process")

    def _table(self, event: Event) -> str:
        """Return the staging table for an event."""
        section = event.section
        name = _text(event)
        if section.endswith("API"):
            return "call"
        if section.startswith("Markers"):
            return "marker"
        if BARRIER in name or section.startswith("GPU Barriers"):
            return "barrier"
        if section == "COPY" or COPY.fullmatch(name):
            return "copy"
        return "kernel" if GPU.fullmatch(section) or "dev-id" in event.args else "other"

    def _put(self, table: str, events: Sequence[Event]) -> None:
        number = self._stage.texts.number
        columns: dict[str, Any] = {
            "proc": np.array([self._proc(event) for event in events], np.int64),
            "name": np.array([number(_text(event)) for event in events], np.int64),
        }
        start, end = _column(events, "BeginNs"), _column(events, "EndNs")
        if table in ("call", "marker"):
            columns["pid"], columns["tid"] = _column(events, "pid"), _column(events, "tid")
        else:
            columns["queue"], columns["stream"] = _column(events, "queue-id"), _column(events, "stream-id")
            agents = np.array([self._agent(event) for event in events], np.int64)
            columns |= {"agent": agents} if table == "kernel" else {"source": agents, "target": agents}
        if table == "marker":
            columns["style"] = np.array([self._style(*item) for item in zip(events, start, end, strict=True)])
        else:  # HSA calls have their own correlation ids, which match no activity
            is_hsa = np.array(["HSA" in event.section for event in events], np.bool_)
            columns["correlation"] = np.where(is_hsa, NONE, _column(events, "Index"))
        self._stage.put(table, len(events), columns, start, end)

    def _proc(self, event: Event) -> int:
        """Return our number of the recorded process; events without one belong to the first."""
        pid = _whole(event.args.get("pid"))
        if pid < 0:
            return 1
        if pid not in self._pids:
            self._pids[pid] = self._stage.processes.number(str(pid))
            self.recording.places[self._pids[pid]] = Place(pid=pid)
        return self._pids[pid]

    def _agent(self, event: Event) -> int:
        device = _whole(event.args.get("dev-id"))
        match = GPU.fullmatch(event.section)
        if device == NONE and match:
            device = int(match[1])
        return device if device < 0 else self._stage.agents.number(f"GPU {device}")

    def _style(self, event: Event, start: int, end: int) -> str:
        if int(end) - int(start) < SHORTEST_RANGE:
            return "mark"
        return "start_end" if _whole(event.tid) == 0 != _whole(event.args.get("tid")) else "push_pop"


def _text(event: Event) -> str:
    name = event.args.get("Name")
    name = name if isinstance(name, str) and name else event.name
    return DIRECTIONS.get(name, name)


def _column(events: Sequence[Event], name: str) -> Numbers:
    return np.array([_whole(event.args.get(name)) for event in events], np.int64)


def _whole(value: Any) -> int:
    """Return a number, also from text; ``NONE`` if absent, ``BAD`` if it is something else."""
    if value is None or value == "":
        return NONE
    if isinstance(value, str) and WHOLE.fullmatch(value):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and NONE < value <= LARGEST else BAD
