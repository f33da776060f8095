"""Entries of a lake whose files are missing or damaged: ingesting their traces again replaces them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tracedb.errors import TracedbError
from tracedb.storage import lake_manifest
from tracedb.storage.lake_manifest import COMPACTED, FOLDER, DamagedEntry, HeldCapture, LakeFile
from tracedb.storage.lake_store import Store


@dataclass(frozen=True)
class Faulty:
    """An entry that cannot be read, or some of whose files are missing or damaged."""

    name: str
    captures: list[HeldCapture]
    """Its captures; none if it cannot be read."""
    sources: set[tuple[int, str]]
    """Size and SHA-256 of each of its traces."""
    paths: frozenset[str] = frozenset()
    """Its files."""


def is_as_written(lake: Store, file: LakeFile) -> bool:
    """Whether a file is there with its size and SHA-256."""
    try:
        return lake_manifest.has_its_size(lake, file) and lake.sha256(file.path) == file.sha256
    except FileNotFoundError:
        return False


def faulty_entries(lake: Store, sizes: Collection[int]) -> list[Faulty]:
    """Return the faulty entries among those of traces of these sizes in bytes.

    Reads the files of these entries only. Files of a compacted entry are read only if ``sizes`` has all its traces, as
    only then can they be written again; else their sizes are compared, so that a job of an array, which brings one
    trace, does not read those of all others.

    Raises ``TracedbError`` for an entry of a newer tracedb, or if it cannot be opened.
    """
    return [faulty for name in lake.names(FOLDER) if (faulty := _faulty(lake, name, sizes)) is not None]


def _faulty(lake: Store, name: str, sizes: Collection[int]) -> Faulty | None:
    single = lake_manifest.source_of(name)
    if not (name.startswith(COMPACTED) if single is None else single[0] in sizes):
        return None
    try:
        entry = lake_manifest.read_entry(lake, name)
    except FileNotFoundError:
        return None
    except DamagedEntry:
        return None if single is None else Faulty(name, [], {single})
    sources = {(item.size_bytes or 0, item.sha256) for item in entry.captures}
    if not any(size in sizes for size, _ in sources):
        return None
    is_sound = is_as_written if all(size in sizes for size, _ in sources) else lake_manifest.has_its_size
    if all(is_sound(lake, file) for file in entry.files) or name not in lake.names(FOLDER):  # it has been compacted
        return None
    return Faulty(name, entry.captures, sources, frozenset(file.path for file in entry.files))


def forget(known: dict[int, set[str]], faulty: Collection[Faulty]) -> None:
    """Remove the traces of faulty entries from those that need not be loaded."""
    for size, digest in set[tuple[int, str]]().union(*(item.sources for item in faulty)):
        known.get(size, set()).discard(digest)


def remove_replaced(lake: Store, faulty: Collection[Faulty]) -> None:
    """Remove faulty compacted entries whose traces now all have entries of their own, and files only they name.

    An entry of a single trace has been overwritten. Raises ``TracedbError`` if other traces must be loaded first.
    """
    there = set(lake.names(FOLDER))
    replaced = [item for item in faulty if lake_manifest.source_of(item.name) is None and item.name in there]
    if not replaced:
        return
    lacking = {item.name: [held for held in item.captures if _name(held) not in there] for item in replaced}
    gone = [item for item in replaced if not lacking[item.name]]
    for item in gone:
        lake.remove(f"{FOLDER}/{item.name}")
    if gone:
        lake_manifest.remove_unnamed(lake, {path for item in gone for path in item.paths})
    for name, captures in lacking.items():
        if captures:
            raise TracedbError(
                f"{lake}/{FOLDER}/{name}: is faulty and holds captures of other traces too; ingest all of them in one "
                f"call (`tracedb lake verify {lake}` prints the command)"
            )


def _name(held: HeldCapture) -> str:
    return lake_manifest.source_name(held.sha256, held.size_bytes or 0)
