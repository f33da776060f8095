"""``tracedb lake verify``: does a lake hold what its manifest says?"""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tracedb.errors import TracedbError
from tracedb.output import Answer, Column, Show, from_rows
from tracedb.storage import lake_manifest, lake_tables
from tracedb.storage.lake_manifest import COMPACTED, FOLDER, DamagedEntry, Held, LakeFile, Manifest
from tracedb.storage.lake_store import HIDDEN, Store, name_before

FAULTS = ("damaged_entry", "missing_file", "wrong_size", "wrong_content")
"""States that are faults; the others are notes."""


@dataclass(frozen=True)
class Finding:
    """A file that is not as it should be, or that no entry needs."""

    state: str
    file: str
    detail: str
    entry: str | None = None
    """The entry that names the file; the first, if several do."""
    advice: str | None = None
    """What repairs a fault: a command, perhaps with a remark."""

    @property
    def is_fault(self) -> bool:
        """Whether the lake lacks something that its manifest promises."""
        return self.state in FAULTS


def verify(root: Path, is_quick: bool = False) -> tuple[Manifest, list[Finding]]:
    """Compare the files of a lake with its manifest. Raises ``TracedbError`` if there is no lake.

    ``is_quick``: by their sizes only, without reading them.
    """
    lake = lake_manifest.opened(root)
    return lake_manifest.undisturbed(lake, lambda: _verified(lake, is_quick))


def _verified(lake: Store, is_quick: bool) -> tuple[Manifest, list[Finding]] | None:
    """Return what ``verify`` does; None if a compaction has removed files meanwhile."""
    sizes = lake.sizes("")  # before the manifest: of a file that is not in it then, no entry was written before
    findings = _damaged_entries(lake)
    damaged = {finding.file for finding in findings}
    manifest = lake_manifest.read(lake, damaged)
    wanted = {file.path: (file, held) for held in reversed(manifest.entries()) for file in held.entry.files}
    hidden = {name_before(path) for path in sizes}
    faults = {}
    for path, (file, held) in sorted(wanted.items()):
        if (found := _judged(lake, file, sizes.get(path), is_quick)) is not None:
            faults[path] = Finding(
                found[0], path, found[1], f"{FOLDER}/{held.name}", _advice(lake, held, path in hidden)
            )
    if faults and not faults.keys() <= lake_manifest.read(lake, damaged).named():  # compacted meanwhile
        return None
    findings += faults.values()
    spare = {file.path for held in manifest.superseded for file in held.entry.files} - wanted.keys()
    unnamed = (_unnamed(path, spare, bool(damaged)) for path in sorted(sizes.keys() - wanted.keys()))
    findings += [finding for finding in unnamed if finding is not None]
    findings += [
        Finding("superseded_entry", f"{FOLDER}/{held.name}", "earlier entries hold its captures")
        for held in manifest.superseded
    ]
    findings += [
        Finding("unaligned_run", run, "captures were added since `tracedb lake align`") for run in manifest.unaligned()
    ]
    return manifest, findings


def _unnamed(path: str, spare: Collection[str], is_damaged: bool) -> Finding | None:
    """Return what to say of a file that no entry needs; nothing of files that are none of tracedb's.

    ``spare``: files of superseded entries. ``is_damaged``: whether there are entries that cannot be read.
    """
    was_being_written = path.rpartition("/")[2].startswith(HIDDEN)
    if not lake_manifest.is_named_as_written(path) and not was_being_written:
        is_read = path.endswith(".parquet") and path.partition("/")[0] in lake_tables.declared()
        detail = "tracedb has not written it; engines that read the folder of the table read it, too"
        return Finding("foreign_file", path, detail) if is_read else None
    if path in spare:
        return Finding("unused_file", path, "compacted files hold its rows")
    if is_damaged:
        return Finding("unclaimed_file", path, "an entry that cannot be read may name it")
    return Finding("unused_file", path, "no entry names it: a process was killed, or loads now")


def remove_unused(root: Path, findings: list[Finding]) -> int:
    """Remove files and entries that nothing needs; returns their number.

    What another process loads meanwhile is not lost: see ``lake_manifest.remove_unnamed``. A superseded entry stays as
    long as anything is missing or damaged: it may hold what the entry before it lost.
    """
    lake = lake_manifest.opened(root)
    superseded = [finding.file for finding in findings if finding.state == "superseded_entry"]
    if any(finding.is_fault for finding in findings):
        superseded = []
    for path in superseded:
        lake.remove(path)
    damaged = {finding.file for finding in findings if finding.state == "damaged_entry"}
    unused = {finding.file for finding in findings if finding.state == "unused_file"}
    return len(superseded) + lake_manifest.remove_unnamed(lake, unused, damaged)


def answer(findings: list[Finding], root: Path) -> Answer:
    """Return the findings as rows."""
    columns = [
        Column("state", "VARCHAR", description="What is wrong, or unused."),
        Column("file", "VARCHAR", description="File or run in the lake."),
        Column("detail", "VARCHAR", description="What was found."),
        Column("entry", "VARCHAR", description="File of the manifest that names the file."),
        Column("advice", "VARCHAR", description="What repairs it; none if nothing is wrong."),
    ]
    rows = [(item.state, item.file, item.detail, item.entry, item.advice) for item in findings]
    found = from_rows(columns, rows)
    found.report, found.database = "lake verify", str(root)
    found.shows = [Show(("state",)), Show(("file",), kind="fold"), Show(("detail",), kind="fold")]
    return found


def _damaged_entries(lake: Store) -> list[Finding]:
    findings = []
    for name in lake.names(FOLDER):
        try:
            if name.endswith(".json"):
                lake_manifest.read_entry(lake, name)
        except FileNotFoundError:
            continue
        except TracedbError as error:
            path = f"{FOLDER}/{name}"
            advice = _advice_for_entry(lake, name) if isinstance(error, DamagedEntry) else None
            findings.append(Finding("damaged_entry", path, str(error), path, advice))
    return findings


def _judged(lake: Store, file: LakeFile, size: int | None, is_quick: bool) -> tuple[str, str] | None:
    """Return the state and what was found, if a file is not as its entry says. ``size``: if it was listed."""
    try:
        size = lake.size(file.path) if size is None else size
        if size != file.bytes:
            return "wrong_size", f"{size} bytes, should be {file.bytes}"
        if is_quick:
            return None
        digest = lake.sha256(file.path)
    except FileNotFoundError:
        return "missing_file", f"{file.rows} rows of {file.table} are lost"
    return None if digest == file.sha256 else ("wrong_content", f"its SHA-256 is {digest}")


def _advice(lake: Store, held: Held, is_hidden: bool) -> str:
    """Return the command that writes the files of an entry again. ``is_hidden``: it only has to be brought back."""
    place = shlex.quote(str(lake))
    if is_hidden:
        return f"tracedb lake verify {place} --remove-unused, which brings back what a killed process was removing"
    if held.entry.kind == "facts":
        return f"tracedb lake align {place} --all"
    if held.entry.kind != "captures":
        return f"export the database again from which they came: tracedb export lake {place} --db FILE"
    paths = dict.fromkeys(item.path or f"TRACE-{item.sha256}" for item in held.entry.captures)
    return f"tracedb ingest {' '.join(map(shlex.quote, paths))} --lake {place}"


def _advice_for_entry(lake: Store, name: str) -> str:
    """Return what replaces an entry that cannot be read."""
    place = shlex.quote(str(lake))
    if source := lake_manifest.source_of(name):
        size, digest = source
        return f"tracedb ingest TRACE --lake {place}, TRACE being the file of {size} bytes with SHA-256 {digest}"
    if name.startswith(COMPACTED):
        again = f"tracedb ingest TRACES --lake {place}, with the traces of the run and their labels"
    elif name.startswith("facts-"):
        again = f"tracedb lake align {place}"
    else:
        again = f"tracedb export lake {place} --db FILE, with the database from which it came"
    return f"remove {lake}/{FOLDER}/{name}; then {again}"


def repairs(findings: list[Finding]) -> list[str]:
    """Return a line for each entry with faults: what repairs it."""
    faults: dict[tuple[str | None, str | None], int] = {}
    for item in findings:
        if item.is_fault and item.advice:
            faults[item.entry, item.advice] = faults.get((item.entry, item.advice), 0) + 1
    return [
        f"{entry} ({count} {'fault' if count == 1 else 'faults'}): {advice}"
        for (entry, advice), count in faults.items()
    ]
