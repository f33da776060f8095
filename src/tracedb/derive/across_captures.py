"""Derive a fact about several captures for a whole file, once the captures of a call are committed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb

from tracedb.errors import TracedbError
from tracedb.storage import pending_facts
from tracedb.storage.connection import attached, transaction, workbench


def derive(
    database: Path,
    fact: str,
    work: Callable[[duckdb.DuckDBPyConnection], None],
    memory_limit: str,
    if_owed: bool,
    too_large: str,
) -> None:
    """Run ``work``, which also marks the fact as done; ``if_owed``: unless nothing was loaded since, by any process.

    ``too_large``: what takes more memory than the limit, and what to do then. Raises ``DatabaseBusy`` while another
    process holds the database, ``TracedbError`` if memory runs out; the database is unchanged in both cases.
    """
    try:
        # One thread: each has its own buffers, and the work is short.
        with (
            workbench(memory_limit, 1, database) as connection,
            attached(connection, database),
            transaction(connection),
        ):
            if not if_owed or fact in pending_facts.owed(connection):
                work(connection)
    except duckdb.OutOfMemoryException as error:
        raise TracedbError(f"{database}: the captures are loaded, but {too_large}") from error
