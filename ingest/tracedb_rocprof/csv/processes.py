"""The process of each row of a set of CSV files: one file may hold several processes."""

from __future__ import annotations

import numpy as np

from tracedb_rocprof.csv.chunks import Block
from tracedb_rocprof.csv.row_groups import Numbers
from tracedb_rocprof.metadata import Place
from tracedb_rocprof.staging import Stage, numbers

TABLES = ("kernel", "counter", "copy", "call", "marker")


class Processes:
    """Numbers the processes of a set by Guid, else by process id; rows without either belong to the first."""

    def __init__(self, stage: Stage, places: dict[int, Place]) -> None:
        """``places`` gets the process ids."""
        self._stage = stage
        self._places = places
        self._numbers: dict[int, int] = {}
        """Process number by process id; the first is that of rows without one."""
        self._unowned: set[str] = set()
        """Staging tables with such rows."""

    def of(self, table: str, block: Block) -> Numbers:
        """Return the number of each row's process in a staging table."""
        pids = numbers(block.columns["process_id"], block.rows) if "process_id" in block.columns else None
        if "guid" in block.columns:
            found = self._stage.processes.of(block.columns["guid"])
            for proc in np.unique(found).tolist() if pids is not None else ():
                self._places.setdefault(proc, Place(int(pids[found == proc][0])) if pids is not None else Place())
            return found
        if pids is None:
            self._unowned.add(table)
            return np.full(block.rows, self._stage.processes.number(""), np.int64)
        different, firsts, places = np.unique(pids, return_index=True, return_inverse=True)
        made = np.empty(len(different), np.int64)
        for at in np.argsort(firsts):  # in order of appearance, however the file is split into blocks
            made[at] = self._number(int(different[at]))
        return made[places]

    def _number(self, pid: int) -> int:
        first = self._stage.processes.number("")
        if pid < 0:
            return first
        if pid not in self._numbers:
            self._numbers[pid] = self._stage.processes.number(str(pid)) if self._numbers else first
            self._places[self._numbers[pid]] = Place(pid)
        return self._numbers[pid]

    def separate_unowned_rows(self) -> None:
        """Move rows without a process id out of the first process if there are several: their process is unknown."""
        if len(self._numbers) < 2 or not self._unowned:
            return
        pid, proc = next(iter(self._numbers.items()))
        new = self._stage.processes.number(str(pid))
        self._stage.move([table for table in TABLES if table not in self._unowned], proc, new)
        self._places[new] = self._places.pop(proc)
        self._stage.account.warned(
            "process_unknown",
            sum(self._stage.count(table) for table in self._unowned),
            f"rows without process id ({', '.join(sorted(self._unowned))}) beside {len(self._numbers)} processes; they "
            "are a capture of their own",
        )
