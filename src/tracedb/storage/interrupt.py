"""Ctrl-C ends a query at once, also while DuckDB's own code runs and Python cannot look."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from tracedb.errors import QUERY_INTERRUPTED


@contextmanager
def interruptible(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Interrupt the connection's query when SIGINT comes; what ends the block then is ``KeyboardInterrupt``."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals come to the main thread only
        return
    bell, rope = socket.socketpair()
    rope.setblocking(False)
    before = signal.set_wakeup_fd(rope.fileno(), warn_on_full_buffer=False)
    listener = threading.Thread(target=_listen, args=(bell, connection), daemon=True)
    listener.start()
    try:
        yield
    except duckdb.InterruptException as error:
        raise KeyboardInterrupt from error
    except RuntimeError as error:
        if str(error) != QUERY_INTERRUPTED:
            raise
        raise KeyboardInterrupt from error
    finally:
        signal.set_wakeup_fd(before)
        rope.close()
        listener.join()
        bell.close()


def _listen(bell: socket.socket, connection: duckdb.DuckDBPyConnection) -> None:
    while rung := bell.recv(1):
        if rung[0] == signal.SIGINT:
            connection.interrupt()
