"""The messages between a parent and its worker processes: one line of JSON each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import IO, TypeVar

import msgspec

from tracedb.pipeline.task import Request

T = TypeVar("T")


@dataclass(frozen=True)
class Setup:
    """The first message to a worker; lists of tasks follow."""

    request: Request
    known: dict[int, set[str]]
    """Digests of the loaded captures, by size in bytes."""
    wait_seconds: float
    """How long to wait for the database while another process has it open."""


def text(message: object) -> str:
    """Return a message as a line. Paths may contain bytes that are not UTF-8, which only ``json`` passes through."""
    return json.dumps(msgspec.to_builtins(message, enc_hook=str))


def built(fields: object, kind: type[T]) -> T:
    """Convert a part of a message to a type. Raises ``msgspec.ValidationError``."""
    return msgspec.convert(fields, kind, str_keys=True, dec_hook=lambda path, text: path(text))


def send(stream: IO[str] | None, line: str) -> None:
    """Write a line to the other side. Raises BrokenPipeError if it has ended."""
    assert stream is not None
    stream.write(line + "\n")
    stream.flush()
