"""Rows of SQLite queries as Arrow batches."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tracedb.errors import ReadError
from tracedb.ingester.sqlite_driver import batches


def fault(error: Exception) -> ReadError:
    return ReadError(f"damaged: {type(error).__name__}")


@pytest.fixture
def address(tmp_path: Path) -> str:
    """The URI of a file with five rows."""
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("CREATE TABLE t (number INTEGER, text TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(place, f"row {place}") for place in range(5)])
        connection.commit()
    return f"{(tmp_path / 'a.db').as_uri()}?mode=ro"


def test_rows_come_in_batches(address: str) -> None:
    found = list(batches(address, "SELECT number, text FROM t ORDER BY number", 2, fault))
    assert [batch.num_rows for batch in found] == [2, 2, 1]
    assert [row for batch in found for row in batch.to_pylist()] == [
        {"number": place, "text": f"row {place}"} for place in range(5)
    ]


def test_a_fault_of_the_driver_is_told_by_the_reader(address: str) -> None:
    with pytest.raises(ReadError, match="damaged: "):
        list(batches(address, "SELECT nothing FROM t", 2, fault))


def test_an_installation_without_the_driver_is_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_sqlite.dbapi", None)
    with pytest.raises(ReadError, match=r"adbc-driver-sqlite, which cannot be loaded .*; install it again"):
        list(batches(address, "SELECT number FROM t", 2, fault))
