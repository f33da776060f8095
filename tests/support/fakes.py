"""Ingesters that yield what a test tells them to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tracedb import ingester
from tracedb.ingester import Capture, Options, Registered, Rows
from tracedb.storage import schema


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
    for place in ("tracedb.ingester.registered", "tracedb.ingester.registry.registered"):
        monkeypatch.setattr(place, lambda: [*known, *fakes])


class Failing(Fake):
    """An ingester that fails on files by their content and gives an empty capture for all others."""

    def __init__(self, name: str, errors: dict[str, BaseException], where: str) -> None:
        """``errors``: by content. ``where``: find, begin, first or later: which call fails."""
        super().__init__(name, f".{name}")
        self._errors = errors
        self._where = where

    def _fail(self, path: Path, where: str) -> None:
        error = self._errors.get(path.read_text())
        if where == self._where and error is not None:
            raise error

    def find(self, files: Sequence[Path]) -> Iterable[Capture]:
        for capture in super().find(files):
            self._fail(capture.files[0], "find")
            yield capture

    def begin(self, capture: Capture, options: Options) -> Any:
        self._fail(capture.files[0], "begin")

    def read(self, capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
        self._fail(capture.files[0], "first")
        yield Rows("launch", schema.arrow("launch").empty_table())
        self._fail(capture.files[0], "later")
        yield Rows("capture", pa.table({"events_read": [0], "events_skipped": [0], "rows_written": [0]}))
