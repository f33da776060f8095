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
from tracedb.storage.lake_store import Store
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
    manifest = lake_manifest.read(lake)
    done = []
    for run, captures in manifest.runs().items():
        facts = manifest.facts.get(run)
        if (only is not None and run not in only) or (
            not again and facts is not None and lake_manifest.is_current(facts, captures)
        ):
            continue
        tell(run)
        try:
            align_run(lake, run, [item.capture_id for item in captures], memory_limit)
        except duckdb.OutOfMemoryException as error:
            raise TracedbError(
                f"{lake}: run {run}: matching its collectives takes more than {memory_limit}; "
                "raise it with --memory-limit"
            ) from error
        done.append(run)
    return done


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
