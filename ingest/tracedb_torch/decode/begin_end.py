"""Match begin and end events (``ph`` B and E).

They are collected over the whole file and matched by time per thread, since a file need not be in time order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from tracedb_torch.decode import event_types as ev
from tracedb_torch.decode.values import number

MOST = 200_000  # edges held before those that can be matched are; enough for a file in time order


@dataclass(slots=True)
class Edge:
    """A begin or end event. A begin event with its duration makes a row, as a complete event does."""

    shape: ev.Shape
    is_begin: bool
    name: str | None
    pid: int | str | None
    tid: int | str | None
    start_ns: int
    args: Any
    """Decoded arguments; JSON text for an end event without a category; None if there are none."""
    ordinal: int
    dur: int | None = None
    """Duration in ns; None until the end is found."""

    @property
    def lane(self) -> tuple[object, object]:
        """The thread, whether events give its number as a number or as text."""
        pid, tid = number(self.pid), number(self.tid)
        return (self.pid if pid is None else pid), (self.tid if tid is None else tid)


@dataclass
class Matched:
    """The outcome of matching."""

    closed: list[Edge] = field(default_factory=list)
    """Begin events whose end was found."""
    opened: list[Edge] = field(default_factory=list)
    """Begin events without an end."""
    strays: list[Edge] = field(default_factory=list)
    """End events without a begin."""
    bad_args: int = 0
    """End events whose arguments could not be read."""


class Pairs:
    """Collects edges and matches them."""

    def __init__(self) -> None:
        self._edges: list[Edge] = []

    def add(self, edges: Iterable[Edge], first: int) -> None:
        """Add the edges of a block, numbered from ``first``."""
        for edge in edges:
            edge.ordinal += first
            edge.args = _kept(edge.args)
            self._edges.append(edge)

    @property
    def is_full(self) -> bool:
        """Whether enough edges are held to ``match`` some."""
        return len(self._edges) >= MOST

    @property
    def is_empty(self) -> bool:
        """Whether no edge is held."""
        return not self._edges

    def match(self, is_last: bool) -> Matched:
        """Match the collected edges. Unless ``is_last``, begin events without an end are kept for a later call."""
        found = Matched()
        stacks: dict[tuple[object, object], list[Edge]] = defaultdict(list)
        for edge in sorted(self._edges, key=lambda edge: (edge.start_ns, edge.ordinal)):
            stack = stacks[edge.lane]
            if edge.is_begin:
                stack.append(edge)
            elif (begin := _begin_of(edge, stack)) is None:
                found.strays.append(edge)
            else:
                begin.dur = edge.start_ns - begin.start_ns
                found.bad_args += not _take_args(begin, edge)
                found.closed.append(begin)
        waiting = [begin for stack in stacks.values() for begin in stack]
        self._edges = [] if is_last else waiting
        found.opened = waiting if is_last else []
        return found


def _begin_of(end: Edge, stack: list[Edge]) -> Edge | None:
    """Pop the innermost open range that an end may close; name and category must agree, where it has them."""
    for place in range(len(stack) - 1, -1, -1):
        begin = stack[place]
        if end.name and begin.name != end.name:
            continue
        if end.shape.category and begin.shape.category != end.shape.category:
            continue
        return stack.pop(place)
    return None


def _take_args(begin: Edge, end: Edge) -> bool:
    """Copy arguments that only the end event has to its begin event; False if they cannot be read."""
    args = end.args
    if isinstance(args, Raw):
        kind = ev.ARGS.get(begin.shape.kind)
        try:
            args = None if kind is None else msgspec.json.decode(args, type=kind | None)
        except ev.NOT_SOUND:
            return False
    if args is None or begin.shape.kind == ev.LEFT:
        return True
    if begin.args is None:
        begin.args = args
        return True
    for name in args.__struct_fields__:
        if getattr(begin.args, name) in (None, ev.NOTHING):
            setattr(begin.args, name, getattr(args, name))
    return True


def _kept(args: Any) -> Any:
    """Copy arguments so that they do not keep the decoded text alive."""
    if isinstance(args, Raw):
        return None if args == ev.NOTHING else args.copy()
    for name in getattr(args, "__struct_fields__", ()):
        value = getattr(args, name)
        if isinstance(value, Raw):
            setattr(args, name, ev.NOTHING if value == ev.NOTHING else value.copy())
    return args
