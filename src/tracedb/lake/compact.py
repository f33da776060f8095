"""``tracedb lake compact``: put the small files of many traces together.

Each rank of a run has its own files, some ten a trace. An engine opens every one; a few hundred ranks in a file are
read much faster. Old files are removed after the new ones are in place, so a query that runs meanwhile may miss them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import duckdb

from tracedb.errors import TracedbError
from tracedb.lake import repair
from tracedb.lake.write import LakeWriter
from tracedb.storage import lake_catalog, lake_manifest
from tracedb.storage.connection import ALIAS, in_memory, quoted
from tracedb.storage.lake_manifest import COMPACTED, FOLDER, Held, Manifest
from tracedb.storage.lake_store import Store
from tracedb.storage.spill_folder import temporary_folder

LARGEST = 256 << 20
"""Entries are put together up to this size, over all their files."""
MEMORY_LIMIT = "2GB"


def compact(
    root: Path,
    largest: int = LARGEST,
    memory_limit: str = MEMORY_LIMIT,
    tell: Callable[[str], None] = lambda text: None,
) -> int:
    """Replace entries of single traces by entries of many, run by run; returns the number of entries replaced.

    Nothing is lost if it is killed: what is not replaced yet stays. The next run removes entries that are left over;
    ``verify`` lists files that are. Raises ``TracedbError`` if the lake is damaged or cannot be written.
    """
    lake = lake_manifest.opened(root)
    manifest = lake_manifest.read(lake)
    replaced = _replaceable(lake, manifest)
    written = set()
    for run, held in _by_run(manifest.captures).items():
        for group in _groups(held, largest):
            if len(group) > 1:
                tell(f"run {run}: {len(group)} entries")
                try:
                    written.add(_put_together(lake, group, memory_limit))
                except (duckdb.IOException, TracedbError):
                    if _are_there(lake, group):
                        raise
                    tell(f"run {run}: another process has just compacted it")
                else:
                    replaced += group
    _remove(lake, replaced, written)
    return len(replaced)


def _replaceable(lake: Store, manifest: Manifest) -> list[Held]:
    """Return the superseded entries; none of those whose captures are in an entry that lacks a file.

    They may be all that is left of these captures, or written by an ingest that repairs the entry just now.
    """
    if not manifest.superseded:
        return []
    lacking = {
        item.capture_id
        for held in manifest.captures
        if not all(lake_manifest.has_its_size(lake, file) for file in held.entry.files)
        for item in held.entry.captures
    }
    return [held for held in manifest.superseded if lacking.isdisjoint(item.capture_id for item in held.entry.captures)]


def _are_there(lake: Store, group: Sequence[Held]) -> bool:
    return {held.name for held in group} <= set(lake.names(FOLDER))


def _by_run(entries: Sequence[Held]) -> dict[str, list[Held]]:
    found: dict[str, list[Held]] = {}
    for held in entries:
        found.setdefault(held.entry.captures[0].run, []).append(held)
    return found


def _groups(entries: Sequence[Held], largest: int) -> list[list[Held]]:
    groups: list[list[Held]] = []
    size = 0
    for held in entries:
        own = sum(file.bytes for file in held.entry.files)
        if not groups or size + own > largest:
            groups.append([])
            size = 0
        groups[-1].append(held)
        size += own
    return groups


def _put_together(lake: Store, group: Sequence[Held], memory_limit: str) -> str:
    """Write one entry with the captures of several; returns its name, which one of these may have already."""
    for file in (file for held in group for file in held.entry.files):
        if not repair.is_as_written(lake, file):  # else its rows would be written again as if they were right
            raise TracedbError(
                f"{lake}/{file.path}: is missing or damaged; `tracedb lake verify {lake}` says how to repair it"
            )
    ids = frozenset[int]().union(*(held.ids for held in group))
    with temporary_folder() as folder:
        made = Path(folder) / "group.duckdb"
        lake_catalog.build(lake, made, ids, with_facts=False)
        with in_memory({"memory_limit": memory_limit, "temp_directory": folder}) as connection:
            lake.register(connection)
            connection.execute(f"ATTACH {quoted(str(made))} AS {ALIAS} (READ_ONLY)")
            connection.execute(f"USE {ALIAS}")
            writer = LakeWriter(connection, lake, Path(folder))
            if ids != {item.held.capture_id for item in writer.captures}:
                raise TracedbError(f"{lake}: another process removes captures that are being compacted; try again")
            name = f"{COMPACTED}{hashlib.sha256(' '.join(sorted(map(str, ids))).encode()).hexdigest()}.json"
            writer.write_together(name, writer.captures)
    return name


def _remove(lake: Store, replaced: Sequence[Held], written: Collection[str]) -> None:
    """Remove entries, but for those of names just written, then the files that no entry names any more."""
    for held in replaced:
        if held.name not in written:
            lake.remove(f"{FOLDER}/{held.name}")
    lake_manifest.remove_unnamed(lake, {file.path for held in replaced for file in held.entry.files})
