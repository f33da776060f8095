"""One trace read by the compiled reader and by the one in Python, before anything is linked."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from tracedb.errors import ReadError
from tracedb.ingester import Options, decompress
from tracedb.ingester.native_library import CHOICE
from tracedb_torch.int_columns import joined
from tracedb_torch.split import blocks, scan_ahead
from tracedb_torch.trace_reader import Reader

PIECES, EARLY_PIECES, FILE, EARLY_FILE = WAYS = ("pieces", "early pieces", "file", "early file")
"""How a reader comes to the bytes: pieces of them, or the file, which the library reads by itself."""
FILES, EARLY = (FILE, EARLY_FILE), (EARLY_PIECES, EARLY_FILE)
FILLED = 2000
"""Bytes of a block of a file at least: the library hands back a file in which no event ends in so many."""
TEXTS = ("name", "kernel", "input_dims", "input_types", "input_strides", "concrete_inputs")


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


def outcome(content: bytes, block: int = blocks.BLOCK, way: str = PIECES, **options: Any) -> dict[str, Any]:
    """Everything that a reading gives: rows, account, what it keeps of the text around; or why it was refused."""
    collected = Collected()
    with sizes(max(block, FILLED) if way in FILES else block), TemporaryDirectory() as folder:
        reader = Reader(collected, Options(**options))  # type: ignore[arg-type]
        try:
            reader.read(_source(content, way, Path(folder), Options(**options)))
        except ReadError as error:
            return {"refused": str(error)}
    account = asdict(reader.account)
    trace = asdict(reader.trace)
    trace["tail"] = b"".join(bytes(reader.trace.tail).split())  # blanks between blocks are not kept everywhere
    return {"rows": collected.rows(), "fractions": reader.has_fractions, **account, **trace}


@contextmanager
def sizes(block: int) -> Iterator[None]:
    """Have a trace cut into blocks of this size, and read by half as much."""
    before = blocks.BLOCK, scan_ahead.EARLY_BLOCK, decompress.PIECE
    blocks.BLOCK, scan_ahead.EARLY_BLOCK, decompress.PIECE = block, 2 * block, max(block // 2, 1)
    try:
        yield
    finally:
        blocks.BLOCK, scan_ahead.EARLY_BLOCK, decompress.PIECE = before


def _source(content: bytes, way: str, folder: Path, options: Options) -> Iterator[bytes] | scan_ahead.Ahead:
    """Have a trace scanned in a way; early: for a while, before anything is taken."""
    pieces = (content[place : place + decompress.PIECE] for place in range(0, len(content), decompress.PIECE))
    if way == PIECES:
        return pieces
    scanners = scan_ahead.scanners_of(options)
    assert scanners
    source: Iterator[bytes] | decompress.Plain = pieces
    if way in FILES:
        (folder / "trace.json").write_bytes(content)
        plain = decompress.Stream(folder / "trace.json").plain()
        assert plain is not None
        source = plain
    scanned = scan_ahead.Ahead(scanners, source, is_early=way in EARLY)
    if way in EARLY:
        scanned._threads[0].join(0.01)
    return scanned


def assert_same(
    content: bytes, block: int = blocks.BLOCK, ways: Sequence[str] = WAYS, **options: Any
) -> dict[str, Any]:
    """Both readers must give the same, in one thread and in several, of pieces and of a file, begun early or not.

    ``ways``: those in which several threads read it. Returns what they give of pieces.
    """
    with python_reader():
        expected = {False: outcome(content, block, cores=1, **options)}
        expected[True] = outcome(content, max(block, FILLED), cores=1, **options) if block < FILLED else expected[False]
    assert outcome(content, block, cores=1, **options) == expected[False]
    for way in ways if _is_plain(content) else sorted({*ways} - {*FILES}):
        assert outcome(content, block, way, cores=2, **options) == expected[way in FILES]
    return expected[False]


def _is_plain(content: bytes) -> bool:
    return not content.startswith((decompress.GZIP, decompress.ZSTD))
