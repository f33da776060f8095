"""The metadata of a recording: agents, processes, the tool's own statistics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracedb.errors import ReadError
from tracedb.ingester.issues import Account
from tracedb_rocprof.agents import Agent

if TYPE_CHECKING:
    from tracedb_rocprof.json.stream import Incomplete


@dataclass
class Place:
    """A process with its host and rank."""

    pid: int | None = None
    host: str | None = None
    rank: int | None = None
    world_size: int | None = None

    def __post_init__(self) -> None:
        """Reject impossible process ids."""
        if self.pid is not None and not 0 <= self.pid < 1 << 63:
            self.pid = None


@dataclass
class Recording:
    """Everything read from a capture's files except the staged rows."""

    source: str = "rocprofv3"
    vendor: str | None = "AMD"
    """Vendor of GPUs without a recorded one: ROCm's tools only see AMD GPUs."""
    tool_version: str | None = None
    agents: dict[str, list[Agent]] = field(default_factory=dict)
    """Agents by process key; those under the empty key belong to all."""
    places: dict[int, Place] = field(default_factory=dict)
    """Process by its number."""
    stats: list[tuple[str, dict[int, tuple[int, int]]]] = field(default_factory=list)
    """File → its statistics by name (as text number): calls and sum of durations."""
    metadata: dict[str, Any] = field(default_factory=dict)
    is_cut: bool = False

    def end_early(self, end: Incomplete, account: Account, events_read: int) -> None:
        """Record that a document ended early. Raises ``ReadError`` if the damage precedes the first event."""
        from tracedb_rocprof.json.stream import Damaged  # imports a JSON decoder

        said = str(end)
        if isinstance(end, Damaged):
            if not events_read:
                raise ReadError(f"damaged, {said}; copy the file again, or record again") from end
            said += "; nothing after it is read"
        self.is_cut = True
        account.warned(end.code, 1, said)

    def agents_of(self, process: str) -> Sequence[Agent]:
        """Return the agents visible to a process."""
        return self.agents.get(process) or self.agents.get("", [])

    @property
    def metadata_text(self) -> str:
        """The metadata as JSON text."""
        return json.dumps({key: value for key, value in self.metadata.items() if value is not None})
