"""Begin and end events (``ph`` B and E): which end belongs to which beginning.

They are collected over the file and matched by time on each thread, since a file need not be in the order of time.
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

MOST = 200_000  # edges that are held; then those are matched that can be, as in a file in the order of time


@dataclass(slots=True)
class Edge:
    """A beginning or an end. A beginning with its duration makes a row, as an event does."""

    shape: ev.Shape
    is_begin: bool
    name: str | None
    pid: int | str | None
    tid: int | str | None
    start_ns: int
    args: Any
    """A struct of arguments; of an end without a category JSON text; None where there are none."""
    ordinal: int
    dur: int | None = None
    """Duration in ns; None while no end is known."""

    @property
    def lane(self) -> tuple[object, object]:
        """The thread, also where one event has its number as text."""
        pid, tid = number(self.pid), number(self.tid)
        return (self.pid if pid is None else pid), (self.tid if tid is None else tid)


@dataclass
class Matched:
    """What became of edges."""

    closed: list[Edge] = field(default_factory=list)
    """Beginnings whose end was found."""
    opened: list[Edge] = field(default_factory=list)
    """Beginnings without an end."""
    strays: list[Edge] = field(default_factory=list)
    """Ends without a beginning."""
    bad_args: int = 0
    """Ends whose arguments could not be read."""


class Pairs:
    """Collects edges and matches them."""

    def __init__(self) -> None:
        self._edges: list[Edge] = []

    def add(self, edges: Iterable[Edge], first: int) -> None:
        """Take edges of a block, whose numbers count from ``first``."""
        for edge in edges:
            edge.ordinal += first
            edge.args = _kept(edge.args)
            self._edges.append(edge)

    @property
    def is_full(self) -> bool:
        """Whether it is time to ``match`` some."""
        return len(self._edges) >= MOST

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._edges

    def match(self, is_last: bool) -> Matched:
        """Match what was collected. Before the last time, beginnings without an end go on waiting for one."""
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
    """Take the innermost open range that an end may close off the stack: by name and category, where it has them."""
    for place in range(len(stack) - 1, -1, -1):
        begin = stack[place]
        if end.name and begin.name != end.name:
            continue
        if end.shape.category and begin.shape.category != end.shape.category:
            continue
        return stack.pop(place)
    return None


def _take_args(begin: Edge, end: Edge) -> bool:
    """Give a beginning the arguments that only its end has; False where those cannot be read."""
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
    """Return arguments that do not keep the text alive which they were decoded from."""
    if isinstance(args, Raw):
        return None if args == ev.NOTHING else args.copy()
    for name in getattr(args, "__struct_fields__", ()):
        value = getattr(args, name)
        if isinstance(value, Raw):
            setattr(args, name, ev.NOTHING if value == ev.NOTHING else value.copy())
    return args
