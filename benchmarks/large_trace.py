"""Build a large trace from a real one by repeating its events with new ids and later times."""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

NUMBERS = re.compile(rb'"(ts|External id|correlation|id)": (\d+)')
EVENTS = b'"traceEvents": ['
SEPARATOR = b"\n  },\n  {"


def make(source: Path, target: Path, size_bytes: int) -> None:
    """Write a trace of about ``size_bytes`` to ``target``. ``source`` is a Kineto trace in its native layout."""
    opened = gzip.open if source.suffix == ".gz" else open
    with opened(source, "rb") as file:
        text: bytes = file.read()
    start = text.index(EVENTS) + len(EVENTS)
    end = text.rindex(SEPARATOR) + len(b"\n  }")
    head, events, tail = text[:start], text[start:end], b'\n  ],\n  "traceName": "repeated"\n}\n'
    times = [int(match[2]) for match in NUMBERS.finditer(events) if match[1] == b"ts"]
    ids = [int(match[2]) for match in NUMBERS.finditer(events) if match[1] != b"ts"]
    span, most = max(times) - min(times) + 1000, max(ids) + 1
    with target.open("wb") as out:
        out.write(head)
        written = repeat = 0
        while written < size_bytes:
            piece = events[: max(size_bytes - written, 1)]
            if len(piece) < len(events):
                piece = piece[: piece.rfind(SEPARATOR) + len(b"\n  }")] if SEPARATOR in piece else b""
                if not piece:
                    break
            moved = _moved(piece, repeat * span, repeat * most) if repeat else piece
            out.write(b"," + moved if written else moved)
            written += len(moved)
            repeat += 1
        out.write(tail)


def _moved(events: bytes, later: int, further: int) -> bytes:
    def shifted(match: re.Match[bytes]) -> bytes:
        return b'"%s": %d' % (match[1], int(match[2]) + (later if match[1] == b"ts" else further))

    return NUMBERS.sub(shifted, events)


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]), int(float(sys.argv[3]) * 1e6))
