"""One trace read by the compiled reader and by the one in Python, before anything is linked."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from tracedb.compiled import CHOICE
from tracedb.errors import ReadError
from tracedb.ingester import Options
from tracedb_torch import blocks
from tracedb_torch.ahead import Ahead, scanner_of
from tracedb_torch.narrow import joined
from tracedb_torch.reader import Reader

TEXTS = ("name", "input_dims", "input_types", "input_strides", "concrete_inputs")


class Collected:
    """Takes the batches that a stage would insert."""

    def __init__(self) -> None:
        self.batches: dict[str, list[pa.RecordBatch]] = defaultdict(list)

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Take a batch."""
        self.batches[table].append(batch)

    def finish(self) -> None:
        """Nothing waits here."""

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows, sorted, with texts in place of their numbers. Raises KeyError for a number that has no text."""
        tables = {name: joined(batches) for name, batches in self.batches.items()}
        texts = tables.pop("text", pa.table({"id": [], "value": []})).to_pydict()
        words = {None: None, **dict(zip(texts["id"], texts["value"], strict=True))}
        assert len(words) == len(texts["id"]) + 1
        found = {}
        for name, table in tables.items():
            columns = {column: table.column(column).to_pylist() for column in table.column_names}
            if name != "process":
                columns |= {key: [words[code] for code in columns[key]] for key in TEXTS if key in columns}
            found[name] = sorted(zip(*columns.values(), strict=True), key=repr)
        return {name: rows for name, rows in found.items() if rows}


@contextmanager
def python_reader() -> Iterator[None]:
    """Have traces read without the library."""
    before = os.environ.get(CHOICE)
    os.environ[CHOICE] = "python"
    try:
        yield
    finally:
        if before is None:
            del os.environ[CHOICE]
        else:
            os.environ[CHOICE] = before


def outcome(content: bytes, block: int = blocks.BLOCK, is_early: bool = False, **options: Any) -> dict[str, Any]:
    """Everything that a reading gives: rows, account, what it keeps of the text around; or why it was refused."""
    collected = Collected()
    before, blocks.BLOCK = blocks.BLOCK, block
    piece = max(block // 2, 1)
    try:
        reader = Reader(collected, Options(**options))  # type: ignore[arg-type]
        pieces = (content[place : place + piece] for place in range(0, len(content), piece))
        reader.read(_begun(pieces, Options(**options)) if is_early else pieces)
    except ReadError as error:
        return {"refused": str(error)}
    finally:
        blocks.BLOCK = before
    account = asdict(reader.account)
    trace = asdict(reader.trace)
    trace["tail"] = b"".join(bytes(reader.trace.tail).split())  # blanks between blocks are not kept everywhere
    return {"rows": collected.rows(), "fractions": reader.has_fractions, **account, **trace}


def _begun(pieces: Iterator[bytes], options: Options) -> Ahead:
    """Have the trace scanned, for a while, before anything is taken."""
    scanner = scanner_of(options)
    assert scanner is not None
    ahead = Ahead(scanner, pieces, is_early=True)
    ahead._thread.join(0.01)
    return ahead


def assert_same(content: bytes, block: int = blocks.BLOCK, **options: Any) -> None:
    """Both readers must give the same, in one thread and in several, begun early or not."""
    with python_reader():
        expected = outcome(content, block, cores=1, **options)
    for cores, is_early in ((1, False), (2, False), (2, True)):
        assert outcome(content, block, is_early, cores=cores, **options) == expected
