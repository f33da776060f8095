"""Start reading a large capture while DuckDB and Arrow are still being imported."""

from __future__ import annotations

from collections.abc import Callable

from tracedb import ingester
from tracedb.ingester import Begun
from tracedb.pipeline.task import Request, Task, options_of
from tracedb.storage.error_lines import is_interrupt

EARLY_FROM = 4 << 20
"""File size in bytes from which a thread for early reading pays off."""


def begin(task: Task, request: Request, progress: Callable[[int], None]) -> Begun | None:
    """Start reading a capture if it is large and its ingester supports it; the caller closes the result."""
    if task.size_bytes < EARLY_FROM:
        return None
    ((_, source),) = ingester.load(task.source)
    if not isinstance(source, ingester.Eager):
        return None
    try:
        return source.begin(task.capture, options_of(request, progress))
    except Exception as error:  # the load itself fails in the same way and reports it
        if is_interrupt(error):
            raise KeyboardInterrupt from error
        return None
