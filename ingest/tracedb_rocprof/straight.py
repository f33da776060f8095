"""Kernels of a large file as rows of the schema while the file is still read, past the staging table.

Staging costs as much as parsing. It is needed where rows of other files are joined to kernels or where names are
settled only at the end of a file; the rest can go straight. Which GPU an agent is, is then said as soon as it appears.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tracedb.ingester import ReadAgain, Rows
from tracedb_rocprof import headers, link
from tracedb_rocprof.agents import gpus_of
from tracedb_rocprof.headers import Header
from tracedb_rocprof.recording import Recording
from tracedb_rocprof.stage import NARROW, STAGED, Stage

SMALLEST_BYTES = 32 << 20


def is_possible(headed: list[tuple[int, Header]]) -> bool:
    """Whether the kernels of a set, given as size in bytes and header of each file, can go straight.

    Those that calls are joined to cannot; that is known when the calls have been read.
    """
    kernels = [(size, header) for size, header in headed if header.domain in (headers.KERNEL, headers.LEGACY)]
    return (
        sum(size for size, _ in kernels) >= SMALLEST_BYTES
        and not any(header.domain == headers.COUNTER for _, header in headed)
        and not any(header.has("guid") for _, header in kernels)
    )


class Straight:
    """Makes rows of the schema from tables of kernels as the stage releases them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._texts = 0
        self.devices: dict[str, int] = {}
        """Device by the label of its agent, for the agents met so far."""

    def rows(self, batch: pa.Table, recording: Recording) -> Rows:
        """Return the rows of kernels; they are to be taken before the next are asked for.

        Raises ``ReadAgain`` where a new agent changes which GPU an earlier one is.
        """
        connection = self._stage.connection
        feed = batch  # noqa: F841 - found by its name; what is registered would live as long as the transaction
        self._name()
        self._place(batch, recording)
        connection.execute(link.TOTALS)
        return Rows("kernel_event", connection.sql(link.straight(_columns(batch))), 0, is_ordered=False)

    def _name(self) -> None:
        """Put down the texts that are new."""
        texts = self._stage.texts.table(self._texts)
        self._texts += texts.num_rows
        if texts.num_rows:
            self._stage.connection.execute("INSERT INTO straight_text SELECT * FROM texts")

    def _place(self, batch: pa.Table, recording: Recording) -> None:
        """Say which devices the agents are, where there is a new one."""
        if "agent" not in batch.column_names:
            return
        agents = batch["agent"]
        numbers = np.unique((agents.fill_null(-1) if agents.null_count else agents).to_numpy()).tolist()
        labels = {self._stage.agents.text(number): number for number in numbers if number > 0}
        if labels.keys() <= self.devices.keys():
            return
        known = recording.agents_of(self._stage.processes.text(1))
        found, _ = gpus_of({**self.devices, **labels}, known)
        self.check(found)
        self.devices = found
        rows = [(self._stage.agents.number(label), device) for label, device in found.items()]
        self._stage.connection.execute("DELETE FROM link_device")
        self._stage.connection.executemany("INSERT INTO link_device VALUES (?, ?)", rows)

    def check(self, found: dict[str, int]) -> None:
        """Raise ``ReadAgain`` unless devices known now are those that rows were given."""
        if any(found.get(label) != device for label, device in self.devices.items()):
            raise ReadAgain


def _columns(batch: pa.Table) -> str:
    """Return the select list that gives a batch the columns and types of the staging table."""
    made = []
    for column in STAGED["kernel"].split(","):
        name, kind = column.split()
        if name not in batch.column_names:
            made.append(f"NULL::{kind} AS {name}")
        else:
            made.append(f"TRY_CAST({name} AS INTEGER) AS {name}" if name in NARROW else name)
    return ", ".join(made)
