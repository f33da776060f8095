"""Read pieces of a table ahead in several threads, and yield them in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa


def in_turn(
    read: Callable[[range], list[pa.RecordBatch]], pieces: Sequence[range], threads: int
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the batches of all pieces in order; at most ``threads`` + 1 pieces are in memory.

    DuckDB drains the parts of a union one by one, so a union alone would not read them in parallel.
    """
    waiting: deque[Future[list[pa.RecordBatch]]] = deque()
    with ThreadPoolExecutor(max(threads, 1), thread_name_prefix="tracedb-nsys") as pool:
        try:
            for piece in pieces:
                waiting.append(pool.submit(read, piece))
                if len(waiting) > threads:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
