"""Ingesters that yield what a test tells them to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tracedb import ingester
from tracedb.ingester import Capture, Options, Registered, Rows


class Fake:
    """An ingester that claims every file with a given ending, and yields what it is told to."""

    def __init__(
        self, name: str, ending: str, rows: Sequence[Rows] | Callable[[duckdb.DuckDBPyConnection], list[Rows]] = ()
    ) -> None:
        self.name = name
        self._ending = ending
        self._rows = rows

    def find(self, files: Sequence[Path]) -> Iterable[Capture]:
        return [Capture((path,)) for path in files if path.suffix == self._ending]

    def read(self, capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
        yield from self._rows(scratch) if callable(self._rows) else self._rows


class FakeEntry:
    """What an entry point gives."""

    def __init__(self, found: Any) -> None:
        self._found = found
        self.value = "fake:ingester"

    def load(self) -> Any:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


def register(monkeypatch: pytest.MonkeyPatch, *found: tuple[str, Any]) -> None:
    """Have ingesters found beside the shipped ones, for one test."""
    known = ingester.registered()
    fakes = [Registered(name, "fakes", "1.0", FakeEntry(item)) for name, item in found]  # type: ignore[arg-type]
    monkeypatch.setattr("tracedb.ingester.registered", lambda: [*known, *fakes])
