"""Let Ctrl-C end a query at once, even while DuckDB's native code runs and Python cannot check signals."""

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
    """Interrupt the connection's query on SIGINT; the block then ends with ``KeyboardInterrupt``."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
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
