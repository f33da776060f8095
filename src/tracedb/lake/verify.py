"""``tracedb lake verify``: does a lake hold what its manifest says?"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from tracedb.errors import TracedbError
from tracedb.output import Answer, Column, from_rows
from tracedb.storage import lake_manifest
from tracedb.storage.lake_manifest import FOLDER, LakeFile, Manifest
from tracedb.storage.lake_store import Store

FAULTS = ("damaged_entry", "missing_file", "wrong_size", "wrong_content")
"""States that are faults; the others are notes."""


@dataclass(frozen=True)
class Finding:
    """A file that is not as it should be, or that no entry needs."""

    state: str
    file: str
    detail: str

    @property
    def is_fault(self) -> bool:
        """Whether the lake lacks something that its manifest promises."""
        return self.state in FAULTS


def verify(root: Path, is_quick: bool = False) -> tuple[Manifest, list[Finding]]:
    """Compare the files of a lake with its manifest. Raises ``TracedbError`` if there is no lake.

    ``is_quick``: by their sizes only, without reading them.
    """
    lake = lake_manifest.opened(root)
    findings = _damaged_entries(lake)
    damaged = {finding.file for finding in findings}
    manifest = lake_manifest.read(lake, damaged)
    sizes = lake.sizes("")
    wanted = {file.path: file for held in manifest.entries() for file in held.entry.files}
    for path, file in sorted(wanted.items()):
        if (finding := _judged(lake, file, sizes.get(path), is_quick)) is not None:
            findings.append(finding)
    spare = {file.path for held in manifest.superseded for file in held.entry.files} - wanted.keys()
    for path in sorted(path for path in sizes if path.endswith(".parquet") and path not in wanted):
        if path in spare:
            findings.append(Finding("unused_file", path, "compacted files hold its rows"))
        elif damaged:
            findings.append(Finding("unclaimed_file", path, "an entry that cannot be read may name it"))
        else:
            findings.append(Finding("unused_file", path, "no entry names it: a process was killed, or loads now"))
    findings += [
        Finding("superseded_entry", f"{FOLDER}/{held.name}", "earlier entries hold its captures")
        for held in manifest.superseded
    ]
    findings += [
        Finding("unaligned_run", run, "captures were added since `tracedb lake align`") for run in manifest.unaligned()
    ]
    return manifest, findings


def remove_unused(root: Path, findings: list[Finding]) -> int:
    """Remove files and entries that nothing needs; returns their number. Nothing may be loaded meanwhile."""
    lake = lake_manifest.opened(root)
    unused = [finding for finding in findings if finding.state in ("unused_file", "superseded_entry")]
    for finding in sorted(unused, key=lambda finding: finding.state):  # entries before their files
        lake.remove(finding.file)
    return len(unused)


def answer(findings: list[Finding], root: Path) -> Answer:
    """Return the findings as rows."""
    columns = [
        Column("state", "VARCHAR", description="What is wrong, or unused."),
        Column("file", "VARCHAR", description="File or run in the lake."),
        Column("detail", "VARCHAR", description="What was found."),
    ]
    found = from_rows(columns, [(item.state, item.file, item.detail) for item in findings])
    found.report, found.database = "lake verify", str(root)
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
            findings.append(Finding("damaged_entry", f"{FOLDER}/{name}", str(error)))
    return findings


def _judged(lake: Store, file: LakeFile, size: int | None, is_quick: bool) -> Finding | None:
    if size is None:
        return Finding(
            "missing_file", file.path, f"{file.rows} rows of {file.table} are lost: remove its entry and ingest again"
        )
    if size != file.bytes:
        return Finding("wrong_size", file.path, f"{size} bytes, should be {file.bytes}")
    if is_quick:
        return None
    digest = hashlib.sha256(lake.read(file.path)).hexdigest()
    return None if digest == file.sha256 else Finding("wrong_content", file.path, f"its SHA-256 is {digest}")
