"""Databases of RPD (rocmProfileData): kernels, copies, calls and user markers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tracedb.errors import ReadError
from tracedb_rocprof.metadata import Place, Recording
from tracedb_rocprof.rocpd.sqlite import NUMBER, TEXT, Query, SqliteFile
from tracedb_rocprof.staging import Stage, numbers

KERNELS = ("Task", "KernelExecution")
MARKER = "UserMarker"
DIRECTIONS = {
    "CopyHostToDevice": "MEMORY_COPY_HOST_TO_DEVICE",
    "CopyDeviceToHost": "MEMORY_COPY_DEVICE_TO_HOST",
    "CopyDeviceToDevice": "MEMORY_COPY_DEVICE_TO_DEVICE",
}
"""RPD's names of copies → rocprofv3's."""
OPS = """rocpd_op AS o
LEFT JOIN rocpd_string AS t ON t.id = o.opType_id
LEFT JOIN rocpd_string AS d ON d.id = o.description_id
LEFT JOIN (SELECT op_id, min(api_id) AS api_id FROM rocpd_api_ops GROUP BY op_id) AS x ON x.op_id = o.id
LEFT JOIN rocpd_api AS a ON a.id = x.api_id"""
CALLS = """rocpd_api AS a
LEFT JOIN rocpd_string AS n ON n.id = a.apiName_id
LEFT JOIN rocpd_string AS t ON t.id = a.args_id"""
CALL_NUMBERS = {"start": "a.start", "end": 'a."end"', "pid": "a.pid", "tid": "a.tid", "api": "a.id"}
OP_NUMBERS = {
    **{"start": "o.start", "end": 'o."end"', "gpu": "o.gpuId", "queue": "o.queueId"},
    **{"pid": "a.pid", "api": "a.id"},
}
NEEDED = ("rocpd_op", "rocpd_api", "rocpd_api_ops", "rocpd_string")


class RpdReader:
    """Reads a database of RPD into the staging tables."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.recording = Recording(source="rpd", metadata={"format": "rpd"})

    def read(self, path: Path) -> Recording:
        """Read the database. Raises ``ReadError`` if it is damaged."""
        file = SqliteFile(path)
        missing = [table for table in NEEDED if table not in file.tables]
        if missing:
            raise ReadError(f"an RPD database without its table {missing[0]}; record it again")
        for batch in file.batches(_query(CALLS, CALL_NUMBERS, {"name": "n.string", "text": "t.string"})):
            self._calls(batch)
        for batch in file.batches(_query(OPS, OP_NUMBERS, {"type": "t.string", "text": "d.string"})):
            self._ops(batch)
        return self.recording

    def _process(self, batch: Mapping[str, pa.Array]) -> Any:
        """Return the process of each row; rows without one belong to the first."""
        give = []
        different, places = np.unique(numbers(batch["pid"].fill_null(-1), len(batch["pid"])), return_inverse=True)
        for pid in different.tolist():
            proc = 1 if pid < 0 else self._stage.processes.number(str(pid))
            if pid >= 0:
                self.recording.places.setdefault(proc, Place(pid=pid))
            give.append(proc)
        return np.array(give, np.int64)[places]

    def _calls(self, batch: Mapping[str, pa.Array]) -> None:
        names = batch["name"].to_pylist()
        is_marker = np.array([name == MARKER for name in names], np.bool_)
        for table, mask in (("call", ~is_marker), ("marker", is_marker)):
            if not mask.any():
                continue
            mine = {name: column.filter(pa.array(mask)) for name, column in batch.items()}
            text = mine["text" if table == "marker" else "name"].fill_null("").dictionary_encode()
            made = {"name": self._stage.texts.of(text), "tid": mine["tid"], "pid": mine["pid"]}
            if table == "marker":
                is_mark = numbers(mine["start"], int(mask.sum())) == numbers(mine["end"], int(mask.sum()))
                made["style"] = np.where(is_mark, "mark", "push_pop")
            self._put(table, mine, made)

    def _ops(self, batch: Mapping[str, pa.Array]) -> None:
        """Stage GPU rows; an empty description falls back to the operation's name."""
        types = [text or "" for text in batch["type"].to_pylist()]
        names = [text or kind for text, kind in zip(batch["text"].to_pylist(), types, strict=True)]
        is_copy = np.array([kind in DIRECTIONS for kind in types], np.bool_)
        is_kernel = np.array([kind in KERNELS for kind in types], np.bool_)
        number, agent = self._stage.texts.number, self._stage.agents.number
        gpus = np.array([agent(f"GPU {gpu}") for gpu in batch["gpu"].to_pylist()], np.int64)
        for table, mask in (("kernel", is_kernel), ("copy", is_copy)):
            if not mask.any():
                continue
            mine = {name: column.filter(pa.array(mask)) for name, column in batch.items()}
            chosen = [DIRECTIONS.get(name, name) for name, is_wanted in zip(names, mask, strict=True) if is_wanted]
            made: dict[str, Any] = {"name": np.array([number(name) for name in chosen], np.int64)}
            made["queue"] = mine["queue"]
            made |= {"agent": gpus[mask]} if table == "kernel" else {"source": gpus[mask], "target": gpus[mask]}
            self._put(table, mine, made)
        others = int((~is_copy & ~is_kernel).sum())
        self._stage.events_read += others
        self._stage.account.left_aside("other_gpu_events", others, "GPU operations that are neither kernels nor copies")

    def _put(self, table: str, batch: Mapping[str, pa.Array], columns: dict[str, Any]) -> None:
        rows = len(batch["start"])
        common = {"proc": self._process(batch), "correlation": batch["api"]}
        start, end = numbers(batch["start"], rows), numbers(batch["end"], rows)
        self._stage.put(table, rows, {**common, **columns}, start, end)


def _query(source: str, integers: Mapping[str, str], texts: Mapping[str, str]) -> Query:
    columns = [(name, text, NUMBER) for name, text in integers.items()]
    return source, columns + [(name, text, TEXT) for name, text in texts.items()]
