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
from tracedb_rocprof.stage import NARROW, STAGED, Stage, numbers

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
        self._texts = pa.array([], pa.string())
        self.devices: dict[str, int] = {}
        """Device by the label of its agent, for the agents met so far."""

    def rows(self, batch: pa.Table, recording: Recording) -> Rows:
        """Return the rows of kernels; they are to be taken before the next are asked for.

        Raises ``ReadAgain`` where a new agent changes which GPU an earlier one is.
        """
        connection = self._stage.connection
        made = batch.append_column("text", self._names(batch)).append_column(
            "device_id", self._devices(batch, recording)
        )
        feed = made  # noqa: F841 - found by its name; what is registered would live as long as the transaction
        connection.execute(link.TOTALS)
        return Rows("kernel_event", connection.sql(link.straight(_columns(batch))), 0, is_ordered=False)

    def _names(self, batch: pa.Table) -> pa.DictionaryArray:
        """Return the names; texts are numbered from 1 in the order in which they were met."""
        new = self._stage.texts.table(len(self._texts))["value"]
        if len(new):
            self._texts = pa.concat_arrays([self._texts, *new.chunks])
        places = numbers(batch["name"], batch.num_rows) - 1
        return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32), mask=places < 0), self._texts)

    def _devices(self, batch: pa.Table, recording: Recording) -> pa.Array:
        """Return the device of each kernel."""
        if "agent" not in batch.column_names:
            return pa.nulls(batch.num_rows, pa.int32())
        agents = np.maximum(numbers(batch["agent"], batch.num_rows), 0)
        self._meet(np.flatnonzero(np.bincount(agents)).tolist(), recording)
        of_agent = np.full(self._stage.agents.count + 1, -1, np.int32)
        for label, device in self.devices.items():
            of_agent[self._stage.agents.number(label)] = device
        found = of_agent[agents]
        return pa.array(found, mask=found < 0)

    def _meet(self, agents: list[int], recording: Recording) -> None:
        """Say which devices agents are, where there is a new one."""
        labels = {self._stage.agents.text(number): number for number in agents if number > 0}
        if labels.keys() <= self.devices.keys():
            return
        known = recording.agents_of(self._stage.processes.text(1))
        found, _ = gpus_of({**self.devices, **labels}, known)
        self.check(found)
        self.devices = found

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
