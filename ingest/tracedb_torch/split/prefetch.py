"""Pieces of a file, read and decompressed by a thread ahead of the consumer."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator


def prefetched(pieces: Iterator[bytes], depth: int = 4) -> Generator[bytes]:
    """Yield the same pieces, produced by a background thread; its exceptions are raised here.

    Reading and decompression release the interpreter lock, so they run in parallel with decoding.
    """
    ready: queue.Queue[bytes | None] = queue.Queue(depth)
    stopped = threading.Event()
    faults: list[BaseException] = []

    def put(item: bytes | None) -> None:
        while not stopped.is_set():
            try:
                ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return

    def produce() -> None:
        try:
            for piece in pieces:
                put(piece)
                if stopped.is_set():
                    return
        except BaseException as error:  # noqa: BLE001 - raised again where the pieces are consumed
            faults.append(error)
        finally:
            put(None)

    # A daemon thread: at exit Python would wait for any other, and Ctrl-C may come before the consumer closes this.
    thread = threading.Thread(target=produce, name="tracedb-read", daemon=True)
    try:
        thread.start()
        while (item := ready.get()) is not None:
            yield item
    finally:
        stopped.set()
        thread.join()
    if faults:
        raise faults[0]
