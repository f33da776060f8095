"""Regions and samples of a rocpd database: calls, ranges and marks, told apart by the category of their event."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb_rocprof.missing import NONE
from tracedb_rocprof.rocpd.process_tables import Part, mapped, object_of
from tracedb_rocprof.rocpd.sqlite import NUMBER, TEXT, quoted
from tracedb_rocprof.staging import numbers

CALLS = re.compile(r"(?:HIP|HSA|RCCL|ROCDECODE|ROCJPEG)_")
SYSTEMS_CALLS = re.compile(r"ROCM_(?:HIP|HSA|RCCL|ROCDECODE|ROCJPEG)_API")
SYSTEMS_MARKERS = "ROCM_MARKER_API"
MARKERS = ("MARKER_CORE_API", "MARKER_CORE_RANGE_API")
STYLES = {"roctxMarkA": "mark", "roctxProcessRangeA": "start_end", "roctxRangeStartA": "start_end"}
CALL, MARKER, CONTROL, OTHER = range(4)


class RegionReader:
    """Stages the regions of a part."""

    def __init__(self, part: Part) -> None:
        self._part = part
        rows = part.file.rows(part.table("info_thread"), {"id": int, "tid": int})
        self._threads = {number: NONE if tid is None else tid for number, tid in rows}

    def regions(self) -> None:
        """Stage API calls, and ranges and marks of roctx and others, by the category of their event."""
        if not self._part.has("region"):
            return
        names = {"tid": self._part.column("region", "r", "tid"), "name": self._part.column("region", "r", "name_id")}
        category = self._part.column("event", "e", "category_id")
        source, columns = self._part.events("region", "r", {**names, "category": category})
        kinds = {number: _kind_of(text) for number, text in self._part.strings.items()}
        other: Counter[str] = Counter()
        read = 0
        for batch in self._part.file.batches((source, columns)):
            which = mapped(batch["category"], lambda number: kinds.get(number, CALL), CALL)
            self._spans("call", batch, which == CALL)
            read += int((which != MARKER).sum())
            for wanted in (CONTROL, OTHER):
                found = batch["category"].filter(pa.array(which == wanted)).to_pylist()
                other.update(self._part.strings.get(number, "?") for number in found)
        marks = [number for number, kind in kinds.items() if kind == MARKER]
        if marks and category != "NULL":
            message = ("message", self._part.column("event", "e", "extdata"), TEXT)
            where = f"{source} WHERE {category} IN ({', '.join(map(str, marks))})"
            for batch in self._part.file.batches((where, [*columns, message])):
                read += len(batch["start"])
                self._markers(batch)
        self._part.held("region", read)
        self._categories(other)

    def _spans(self, table: str, batch: Mapping[str, pa.Array], mask: npt.NDArray[np.bool_], **more: Any) -> None:
        if not mask.any():
            return
        mine = {name: column.filter(pa.array(mask)) for name, column in batch.items()}
        made = {
            "tid": mapped(mine["tid"], lambda number: self._threads.get(number, NONE if self._threads else number)),
            "pid": mapped(mine["pid"], lambda number: self._part.pids.get(number, NONE if self._part.pids else number)),
            "name": mapped(mine["name"], self._part.string),
        }
        self._part.put(table, mine, {**made, **more})

    def _markers(self, batch: Mapping[str, pa.Array]) -> None:
        """Stage ranges: the event has their text, the region only the name of the called function."""
        everything = np.ones(len(batch["start"]), np.bool_)
        functions = [self._part.strings.get(number, "") for number in batch["name"].to_pylist()]
        texts = [object_of(text).get("message") for text in batch["message"].to_pylist()]
        given = [text if isinstance(text, str) else name for text, name in zip(texts, functions, strict=True)]
        is_mark = numbers(batch["start"], len(given)) == numbers(batch["end"], len(given))
        styles = [
            "mark" if mark else STYLES.get(name, "push_pop") for mark, name in zip(is_mark, functions, strict=True)
        ]
        name = np.array([self._part.stage.texts.number(text) for text in given], np.int64)
        mine = {key: column for key, column in batch.items() if key != "message"}
        self._spans("marker", mine, everything, name=name, style=np.array(styles))

    def samples(self) -> None:
        """Stage marks, which are samples of a roctx category; other samples are skipped."""
        if not (self._part.has("sample") and self._part.has("event") and self._part.has("track")):
            return
        marks = [number for number, text in self._part.strings.items() if _kind_of(text) == MARKER]
        among = f"e.category_id IN ({', '.join(map(str, marks)) or 'NULL'})"
        source = (
            f"{quoted(self._part.table('sample'))} AS s "
            f"JOIN {quoted(self._part.table('event'))} AS e ON e.id = s.event_id "
            f"LEFT JOIN {quoted(self._part.table('track'))} AS t ON t.id = s.track_id WHERE {among}"
        )
        columns = [("pid", "t.pid", NUMBER), ("start", "s.timestamp", NUMBER), ("end", "s.timestamp", NUMBER)]
        columns += [("stack", "NULL", NUMBER), ("tid", "t.tid", NUMBER), ("name", "NULL", NUMBER)]
        found = 0
        for batch in self._part.file.batches((source, [*columns, ("message", "e.extdata", TEXT)])):
            found += len(batch["start"])
            self._markers(batch)
        others = self._part.file.count(self._part.table("sample")) - found
        self._part.stage.events_read += others
        self._part.stage.account.left_aside("sample_events", others, "samples that are not roctx marks")

    def _categories(self, other: Counter[str]) -> None:
        """Report regions that are neither calls nor ranges."""
        controls = sum(count for text, count in other.items() if _kind_of(text) == CONTROL)
        self._part.stage.events_read += other.total()
        self._part.stage.account.left_aside(
            "profiler_control", controls, "profiler control calls (pause, resume, name); not stored as ranges"
        )
        rest = {text: count for text, count in other.items() if _kind_of(text) == OTHER}
        named = ", ".join(sorted(rest))
        self._part.stage.account.left_aside(
            "region_events", sum(rest.values()), f"regions of other categories: {named}"
        )


def _kind_of(category: str) -> int:
    """Return the kind of a category's regions; rocprofiler-systems writes ``rocm_hip_api`` for ``HIP_RUNTIME_API``."""
    word = category.upper()
    if CALLS.match(word) or SYSTEMS_CALLS.fullmatch(word):
        return CALL
    if word == SYSTEMS_MARKERS:
        return MARKER
    if word.startswith("MARKER_"):
        return MARKER if word in MARKERS else CONTROL
    return OTHER
