"""Ctrl-C that lets the running shape finish, so that what was sampled is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on_interrupt(say: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Yield what tells whether SIGINT has come; ``say`` is called when it comes. A second one interrupts at once.

    Where signals are handled by somebody else (in another thread, or by a caller's own handler), it is never true.
    """
    stopped = threading.Event()
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )

    def stop(number: int, frame: object) -> None:
        stopped.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        say()

    if is_ours:
        signal.signal(signal.SIGINT, stop)
    try:
        yield stopped.is_set
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
