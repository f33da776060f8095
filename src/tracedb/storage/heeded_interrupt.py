"""Ctrl-C that is not lost: Python and extension modules may drop the exception that it raises.

Python prints and drops an exception raised in a destructor, in a callback of the garbage collector or of native code;
extension modules drop one while they look for optional modules during import. Without a record of the signal, an
ingest would then go on as if nobody had interrupted it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tracedb.storage.error_lines import STOPPED


@contextmanager
def heeded() -> Iterator[None]:
    """End the block with ``KeyboardInterrupt`` after a SIGINT, whatever became of the exception that it raised.

    Does nothing where signals are handled by somebody else: in another thread, or by a caller's own handler.
    """
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not is_ours:
        yield
        return
    signal.signal(signal.SIGINT, _stop)
    try:
        yield
        raise_if_stopped()
    except Exception as error:
        if STOPPED.is_set():  # a consequence of the interrupt
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        STOPPED.clear()


def raise_if_stopped() -> None:
    """Raise ``KeyboardInterrupt`` if a signal has asked this process to stop. Call it before work is made to last."""
    if STOPPED.is_set():
        raise KeyboardInterrupt


def _stop(number: int, frame: object) -> None:
    STOPPED.set()
    raise KeyboardInterrupt
