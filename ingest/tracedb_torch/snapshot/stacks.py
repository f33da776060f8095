"""Stacks of allocations as rows of ``main.frame``: a function with its callers is one row, however often it occurs."""

from __future__ import annotations

from msgspec import Raw

from tracedb_torch.link.frames import FUNCTION, without_home
from tracedb_torch.snapshot.document import Frame, stack

NO_FILE = ("", "??")
COMPILED = (".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp")


class Stacks:
    """The frames met so far, as columns."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.parents: list[int | None] = []
        self.starts: list[int] = []
        self._known: dict[tuple[int | None, str], int] = {}
        self._leaves: dict[bytes, int | None] = {}

    def leaf(self, text: Raw, time: int) -> int | None:
        """Return the number of a stack's innermost frame, counted from 1; None if the stack is empty."""
        key = bytes(text)
        if key not in self._leaves:
            self._leaves[key] = self._add(stack(text), time)
        return self._leaves[key]

    def _add(self, frames: list[Frame], time: int) -> int | None:
        place: int | None = None
        for frame in reversed(frames):
            key = (place, name_of(frame))
            if key not in self._known:
                self.names.append(key[1])
                self.parents.append(place)
                self.starts.append(time)
                self._known[key] = len(self.names)
            place = self._known[key]
        return place

    def places(self) -> tuple[list[str | None], list[int | None]]:
        """Return the file and the line of each frame."""
        found = [FUNCTION.match(name) for name in self.names]
        files = [None if each is None else each["file"] for each in found]
        return files, [None if each is None else int(each["line"]) for each in found]


def name_of(frame: Frame) -> str:
    """Return the name of a frame in the profiler's form, ``file(line): function``; compiled code as ``<function>``."""
    name, file = frame.name or "?", frame.filename or ""
    if file in NO_FILE or file.endswith(COMPILED):
        return f"<{name}>"
    return without_home(f"{file}({max(frame.line or 0, 0)}): {name}")
