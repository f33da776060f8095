"""A progress bar in bytes on stderr, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(total_bytes: int, wanted: bool = True) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the number of bytes newly read.

    The bar shows amount, rate and remaining time. It is shown only if stderr is a terminal and ``wanted`` is true.
    """
    if not wanted or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("reading"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=total_bytes)
        yield lambda done: progress.update(task, advance=done)
