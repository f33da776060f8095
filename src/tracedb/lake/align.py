"""``tracedb lake align``: derive the facts about several captures, run by run.

A process that adds one capture knows nothing of the others. So clock offsets between ranks, and which operators the
kernels of graph replays come from, are derived in a step of its own, for runs to which captures were added since.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import duckdb

from tracedb.derive import clock_alignment, graph_links
from tracedb.errors import TracedbError
from tracedb.lake.write import LakeWriter
from tracedb.storage import lake_catalog, lake_manifest
from tracedb.storage.connection import ALIAS, STORAGE, in_memory, quoted, transaction
from tracedb.storage.error_lines import engine_words
from tracedb.storage.lake_manifest import Manifest, is_current
from tracedb.storage.lake_store import ATTEMPTS, Store
from tracedb.storage.spill_folder import temporary_folder

MEMORY_LIMIT = "2GB"


def align(
    root: Path,
    only: Collection[str] | None = None,
    again: bool = False,
    memory_limit: str = MEMORY_LIMIT,
    tell: Callable[[str], None] = lambda text: None,
) -> list[str]:
    """Derive what is missing; returns the runs for which it was derived.

    ``only``: these runs. ``again``: also where nothing was added. Raises ``TracedbError`` if memory runs out or the
    lake is damaged.
    """
    lake = lake_manifest.opened(root)
    done: dict[str, None] = {}
    for attempt in range(ATTEMPTS):
        manifest = lake_manifest.read(lake)
        wanted = {
            run: [item.capture_id for item in captures]
            for run, captures in manifest.runs().items()
            if (only is None or run in only)
            and ((again and not attempt) or run not in manifest.facts or not is_current(manifest.facts[run], captures))
        }
        if not wanted:
            return list(done)
        for run, captures in wanted.items():
            tell(run)
            _align_as_read(lake, manifest, run, captures, memory_limit)
            done[run] = None
        # Meanwhile captures may have been added, or another process has written facts that it began to derive earlier.
    raise TracedbError(f"{lake}: other processes keep adding captures; align it when they are done")


def _align_as_read(lake: Store, manifest: Manifest, run: str, captures: Collection[int], memory_limit: str) -> None:
    """Derive the facts of a run, unless another process replaces its files, so that it has to be done again."""
    try:
        align_run(lake, run, captures, memory_limit)
    except duckdb.OutOfMemoryException as error:
        raise TracedbError(
            f"{lake}: run {run}: matching its collectives takes more than {memory_limit}; raise it with --memory-limit"
        ) from error
    except duckdb.IOException as error:
        if manifest.named() <= lake_manifest.read(lake).named():
            raise TracedbError(
                f"{lake}: run {run}: cannot be read: {engine_words(error)}; `tracedb lake verify {lake}` lists what is "
                "missing or damaged"
            ) from error


def align_run(lake: Store, run: str, captures: Collection[int], memory_limit: str) -> None:
    """Derive the facts of one run from its captures."""
    with temporary_folder() as folder:
        made = Path(folder) / "run.duckdb"
        lake_catalog.build(lake, made, captures, with_facts=False)
        with in_memory({"memory_limit": memory_limit, "temp_directory": folder, "threads": 1}) as connection:
            lake.register(connection)
            connection.execute(f"ATTACH {quoted(str(made))} AS {ALIAS} ({STORAGE})")
            connection.execute(f"USE {ALIAS}")
            with transaction(connection):
                clock_alignment.align(connection)
                graph_links.link(connection)
            writer = LakeWriter(connection, lake, Path(folder))
            writer.write_facts(run, writer.captures)
