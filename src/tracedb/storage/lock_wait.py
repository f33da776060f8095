"""Wait for a database that another process has open: how long, how often to retry, and what to print meanwhile."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from tracedb.errors import DatabaseBusy

READER_SECONDS = 10.0
"""For commands that read, unless ``--wait`` is given."""
WRITER_SECONDS = 600.0
"""For commands that write: giving up loses what they have read or measured."""
SILENT_SECONDS = 1.5
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 0.5

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """How long to wait for a database, in seconds, and how to report the wait."""

    seconds: float = READER_SECONDS
    say: Callable[[str], None] = lambda text: None


PATIENCE: ContextVar[Patience] = ContextVar("PATIENCE", default=Patience())  # noqa: B039 - it is frozen


def until_free(attempt: Callable[[], T]) -> T:
    """Retry ``attempt`` until it does not raise ``DatabaseBusy``; re-raises that when the time is up.

    The pauses are random, so that processes waiting for one another do not keep colliding.
    """
    patience = PATIENCE.get()
    began = time.monotonic()
    pause, is_said = FIRST_PAUSE, False
    while True:
        try:
            return attempt()
        except DatabaseBusy as error:
            waited = time.monotonic() - began
            if waited >= patience.seconds:
                raise
            if not is_said and waited >= SILENT_SECONDS:
                patience.say(f"waiting up to {patience.seconds:g} s (--wait): {error.holder}")
                is_said = True
        time.sleep(min(random.uniform(pause / 2, pause), patience.seconds - waited))
        pause = min(1.5 * pause, LONGEST_PAUSE)
