"""Reading ahead: pieces in order whichever thread is first, few at a time, errors passed on."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest

from tracedb_nsys.export.read_ahead import in_turn

PIECES = [range(start, start + 10) for start in range(0, 200, 10)]


def batch(rows: range) -> list[pa.RecordBatch]:
    return [pa.record_batch({"row": [row]}) for row in rows]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_order(threads: int) -> None:
    def read(rows: range) -> list[pa.RecordBatch]:
        time.sleep(0.002 if rows.start % 20 else 0)
        return batch(rows)

    found = [item["row"][0].as_py() for item in in_turn(read, PIECES, threads)]
    assert found == list(range(200))


def test_several_threads_read_and_few_pieces_wait() -> None:
    begun: list[int] = []
    names: set[str] = set()
    both = threading.Barrier(2, timeout=120)

    def read(rows: range) -> list[pa.RecordBatch]:
        if rows.start < 20:
            both.wait()  # breaks unless two threads read at the same time
        begun.append(rows.start)
        names.add(threading.current_thread().name)
        return batch(rows)

    batches = in_turn(read, PIECES, 2)
    next(batches)
    time.sleep(0.05)
    assert len(begun) <= 3
    batches.close()
    assert len(begun) <= 4 and len(names) == 2


def test_an_error_comes_through() -> None:
    def read(rows: range) -> list[pa.RecordBatch]:
        if rows.start == 30:
            raise ValueError("torn page")
        return batch(rows)

    batches = in_turn(read, PIECES, 2)
    with pytest.raises(ValueError, match="torn page"):
        list(batches)
