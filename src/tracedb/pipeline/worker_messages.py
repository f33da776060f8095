"""What a parent and its worker processes tell each other: a line of JSON for each message."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import IO, TypeVar

import msgspec

from tracedb.pipeline.task import Request

T = TypeVar("T")


@dataclass(frozen=True)
class Setup:
    """The first message to a worker; after it come lists of tasks."""

    request: Request
    known: dict[int, set[str]]
    """Digests of the captures that are loaded, by size in bytes."""
    wait_seconds: float
    """How long to wait for the database while another process has it open."""


def text(message: object) -> str:
    """Return a message as a line. Paths may hold bytes that are no UTF-8, which only ``json`` passes on."""
    return json.dumps(msgspec.to_builtins(message, enc_hook=str))


def built(fields: object, kind: type[T]) -> T:
    """Return a part of a message as what it was made of. Raises ``msgspec.ValidationError``."""
    return msgspec.convert(fields, kind, str_keys=True, dec_hook=lambda path, text: path(text))


def send(stream: IO[str] | None, line: str) -> None:
    """Write a line to the other side. Raises BrokenPipeError where that has ended."""
    assert stream is not None
    stream.write(line + "\n")
    stream.flush()
