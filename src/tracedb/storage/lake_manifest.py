"""The manifest of a lake: which captures it holds, and in which files.

``manifest/`` has a file of JSON for each ingested trace, written after its Parquet files: a trace is in the lake once
that file is there. Entries are independent of each other, so any number of processes may add traces at once. Compacted
entries hold several traces. Facts about the captures of a run (clock alignment, graph links) are entries of their own.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import quote

import msgspec

from tracedb.errors import TracedbError
from tracedb.storage import lake_tables
from tracedb.storage.lake_store import MARK, Store, is_lake, is_remote, name_before, shown, store

FOLDER = "manifest"
COMPACTED = "compact-"
"""Prefix of the names of entries that hold several traces."""
FORMAT = 1
COORDINATES = ("rank", "tp", "dp", "pp", "ep", "cp", "sp", "mp", "dcp", "pcp", "edp", "etp", "vpp")
"""Labels that tell the ranks of one run apart (those of ``v1._capture_configuration``), not its setting."""
UNLABELLED = "unlabelled"
LONGEST_RUN = 120
MOST_BYTES = 512 << 20
"""A manifest entry is never larger."""
DISTURBED = 40
"""How often something is repeated that a compaction disturbed: for about half a minute."""
FIRST_PAUSE, LONGEST_PAUSE = 0.001, 1.0
_FILE = re.compile(r"([a-z][a-z_]*)/(?:run=[A-Za-z0-9_.,%~-]+/)?part-([0-9a-f]{64})\.parquet")
_SOURCE = re.compile(r"([0-9a-f]{64})-(\d+)\.json")

Kind = Literal["captures", "facts", "settings", "general"]
T = TypeVar("T")


class DamagedEntry(TracedbError):
    """An entry is not what tracedb writes."""


class LakeFile(msgspec.Struct, frozen=True):
    """A Parquet file: rows of one table."""

    table: str
    path: str
    sha256: str
    bytes: int
    rows: int


class HeldCapture(msgspec.Struct, frozen=True):
    """A capture in the lake."""

    capture_id: int
    sha256: str
    part: int
    run: str
    labels: dict[str, str]
    rank: int | None
    source: str
    path: str | None
    size_bytes: int | None = None
    ingested_at: str | None = None
    """UTC, ISO 8601. It is here instead of in Parquet so that equal traces give equal files."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What one file of the manifest says."""

    kind: Kind
    layout: str
    """Digest of the tables' declaration with which the files were written."""
    schema: int
    captures: list[HeldCapture] = msgspec.field(default_factory=list)
    """The captures whose rows the files hold; of facts, those from which they were derived."""
    files: list[LakeFile] = msgspec.field(default_factory=list)
    run: str | None = None
    """Of facts."""
    format: int = FORMAT


@dataclass(frozen=True)
class Held:
    """An entry and what of it counts."""

    name: str
    entry: Entry
    ids: frozenset[int]
    """Captures that no earlier entry holds."""

    @property
    def is_whole(self) -> bool:
        """Whether all its captures count."""
        return len(self.ids) == len({item.capture_id for item in self.entry.captures})


@dataclass(frozen=True)
class Manifest:
    """All entries of a lake."""

    captures: list[Held] = field(default_factory=list)
    facts: dict[str, Held] = field(default_factory=dict)
    """Entry of facts of each run."""
    settings: Held | None = None
    general: list[Held] = field(default_factory=list)
    superseded: list[Held] = field(default_factory=list)
    """Entries whose captures are all in earlier ones."""

    def held(self) -> list[HeldCapture]:
        """Return every capture once."""
        return [item for held in self.captures for item in held.entry.captures if item.capture_id in held.ids]

    def runs(self) -> dict[str, list[HeldCapture]]:
        """Return the captures of each run."""
        found: dict[str, list[HeldCapture]] = {}
        for item in self.held():
            found.setdefault(item.run, []).append(item)
        return dict(sorted(found.items()))

    def entries(self) -> list[Held]:
        """Return all entries that count."""
        settings = [] if self.settings is None else [self.settings]
        return [*self.captures, *self.facts.values(), *self.general, *settings]

    def named(self) -> set[str]:
        """Return the files that any entry names."""
        return {file.path for held in (*self.entries(), *self.superseded) for file in held.entry.files}

    @property
    def size_bytes(self) -> int:
        """Return the size of all files of the entries that count."""
        return sum(file.bytes for held in self.entries() for file in held.entry.files)

    def unaligned(self) -> list[str]:
        """Return the runs of several captures whose facts are missing, or of other captures."""
        return [
            run
            for run, captures in self.runs().items()
            if len(captures) > 1 and (run not in self.facts or not is_current(self.facts[run], captures))
        ]


def is_current(facts: Held, captures: Iterable[HeldCapture]) -> bool:
    """Whether facts were derived from exactly these captures."""
    return {item.capture_id for item in facts.entry.captures} == {item.capture_id for item in captures}


def capture_number(sha256: str, part: int) -> int:
    """Return the number of a capture in a lake: 63 bits of the digest of its file's digest and its part, never 0."""
    digest = hashlib.sha256(f"{sha256}/{part}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1 or 1


def run_name(labels: dict[str, str]) -> str:
    """Return the name of the run that labels describe, fit for a folder on any system.

    Labels that tell ranks apart are left out, so that the ranks of a configuration are in one run. Names end with a
    digest, because escaped, shortened or differently capitalised labels could otherwise be taken for each other.
    """
    kept = sorted((key, value) for key, value in labels.items() if key not in COORDINATES)
    if not kept:
        return UNLABELLED
    said = ",".join(f"{key}-{value}" for key, value in kept)
    escaped = quote(said.encode("utf-8", "surrogateescape"), safe=",")
    digest = hashlib.sha256(json.dumps(kept).encode()).hexdigest()[:8]
    return f"{re.sub('%[0-9A-F]?$', '', escaped[:LONGEST_RUN])}-{digest}"


def source_name(sha256: str, size: int) -> str:
    """Return the name of the entry of a trace. It has the size, so that a list of names tells what may be known."""
    return f"{sha256}-{size}.json"


def source_of(name: str) -> tuple[int, str] | None:
    """Return the size in bytes and SHA-256 of the trace whose entry has this name; None for other entries."""
    found = _SOURCE.fullmatch(name)
    return None if found is None else (int(found[2]), found[1])


def facts_name(run: str) -> str:
    """Return the name of the entry with the facts of a run."""
    return f"facts-{hashlib.sha256(run.encode()).hexdigest()[:32]}.json"


def is_named_as_written(path: str) -> bool:
    """Whether a path is one that tracedb gives to a file of rows."""
    found = _FILE.fullmatch(path)
    return found is not None and found[1] in lake_tables.declared()


def undisturbed(lake: Store, attempt: Callable[[], T | None]) -> T:
    """Repeat an attempt until it returns something: a compaction that runs meanwhile makes it return None.

    A compaction of thousands of traces removes their entries one by one, so there may be many. Raises ``TracedbError``
    if there is no end to it.
    """
    pause = FIRST_PAUSE
    for _ in range(DISTURBED):
        if (found := attempt()) is not None:
            return found
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    raise TracedbError(f"{lake}: other processes keep removing entries of its manifest; try again when they are done")


def has_its_size(lake: Store, file: LakeFile) -> bool:
    """Whether a file is there with its size."""
    try:
        return lake.size(file.path) == file.bytes
    except FileNotFoundError:
        return False


def known_sources(lake: Store) -> dict[int, set[str]]:
    """Return the digests of the traces in the lake, by size in bytes. Entries of single traces are not opened."""
    return undisturbed(lake, lambda: _known_sources(lake))


def _known_sources(lake: Store) -> dict[int, set[str]] | None:
    known: dict[int, set[str]] = {}
    for name in lake.names(FOLDER):
        if found := source_of(name):
            known.setdefault(found[0], set()).add(found[1])
        elif name.startswith(COMPACTED):
            try:
                captures = read_entry(lake, name).captures
            except FileNotFoundError:  # it has just been replaced
                return None
            for item in captures:
                known.setdefault(item.size_bytes or 0, set()).add(item.sha256)
    return known


def find(lake: Store, sha256: str, size: int) -> HeldCapture | None:
    """Return the first capture of a trace that the lake holds; None if it does not."""

    def names() -> Iterator[str]:
        yield source_name(sha256, size)
        yield from (name for name in lake.names(FOLDER) if name.startswith(COMPACTED))  # listed after the first is read

    for name in names():
        try:
            captures = read_entry(lake, name).captures
        except FileNotFoundError:
            continue
        if found := next((item for item in captures if item.sha256 == sha256), None):
            return found
    return None


def create(path: Path) -> Store:
    """Return the lake at a path; make it one if there is nothing yet.

    Raises ``TracedbError`` if it holds other things, or the lake is of a newer tracedb.
    """
    lake = store(path)
    try:
        if not is_remote(path):
            # The content first: a lake that another process makes meanwhile has its mark before anything else.
            if _holds_anything(path) and not is_lake(path):
                raise TracedbError(f"{path}: is neither a lake nor an empty folder; name another folder with --lake")
            path.mkdir(parents=True, exist_ok=True)
        if MARK not in lake.names(""):
            lake.write(MARK, json.dumps({"tracedb": "lake", "format": FORMAT}).encode() + b"\n")
    except OSError as error:
        raise TracedbError(f"{lake}: cannot be written ({error.strerror or error})") from error
    check(lake)
    return lake


def _holds_anything(path: Path) -> bool:
    """Whether there is a file, or a folder with visible content."""
    try:
        return any(not item.name.startswith(".") for item in path.iterdir())
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        return True


def opened(path: Path) -> Store:
    """Return the lake at a path for reading. Raises ``TracedbError`` if there is none."""
    if not is_lake(path):
        raise TracedbError(
            f"{shown(path)}: not a lake (it has no {MARK}); run `tracedb ingest PATH --lake {shown(path)}` first"
        )
    lake = store(path)
    check(lake)
    return lake


def check(lake: Store) -> None:
    """Raise ``TracedbError`` unless the lake has a format that this tracedb knows."""
    try:
        said = json.loads(lake.read(MARK))
        form = said["format"]
    except FileNotFoundError as error:
        raise TracedbError(
            f"{lake}: not a lake (it has no {MARK}); run `tracedb ingest PATH --lake {lake}` first"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise TracedbError(f"{lake}/{MARK}: is not what tracedb writes there; the lake is damaged") from error
    except OSError as error:
        raise TracedbError(f"{lake}: cannot be read ({error.strerror or error})") from error
    if not isinstance(form, int) or form > FORMAT:
        raise TracedbError(f"{lake}: has format {form}, this tracedb knows up to {FORMAT}; install a newer tracedb")


def write_entry(lake: Store, name: str, entry: Entry) -> None:
    """Write an entry; what it holds is in the lake from then on."""
    lake.write(f"{FOLDER}/{name}", msgspec.json.format(msgspec.json.encode(entry), indent=1) + b"\n")


def read_entry(lake: Store, name: str) -> Entry:
    """Return an entry. Raises ``TracedbError`` if it is damaged or of a newer tracedb."""
    where = f"{lake}/{FOLDER}/{name}"
    try:
        content = lake.read(f"{FOLDER}/{name}")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TracedbError(f"{where}: cannot be read ({error.strerror or error})") from error
    try:
        if len(content) > MOST_BYTES:
            raise ValueError(f"larger than {MOST_BYTES >> 20} MB")
        entry = msgspec.json.decode(content, type=Entry)
        for file in entry.files:
            found = _FILE.fullmatch(file.path)
            if found is None or found[1] != file.table:
                raise ValueError(f"names a file {file.path[:80]!r}")
    except (msgspec.DecodeError, ValueError) as error:
        raise DamagedEntry(
            f"{where}: is damaged ({' '.join(str(error).split())}); `tracedb lake verify {lake}` lists what is"
        ) from error
    if entry.format > FORMAT:
        raise TracedbError(f"{where}: has format {entry.format}, this tracedb knows up to {FORMAT}")
    return entry


def remove_unnamed(lake: Store, paths: Collection[str], without: Collection[str] = ()) -> int:
    """Remove those files that no entry names; returns their number. ``without``: as for ``read``.

    Another process may be about to write an entry that names one: it found the file there and did not write it again.
    So the files are hidden before the manifest is read, and brought back if an entry names them. A writer looks for its
    files after it has written the entry (``LakeWriter``): whichever comes last sees what the other did. A process that
    is killed in between leaves a hidden file that an entry names: the next one brings it back.
    """
    named = read(lake, without).named()
    back = {path: name for path in paths if (name := name_before(path)) in named and name is not None}
    for path, name in back.items():
        with suppress(FileNotFoundError):
            lake.rename(path, name)
    unnamed = sorted(set(paths) - named - back.keys())
    hidden = {path: new for path in unnamed if (new := lake.hide(path)) is not None}
    named = read(lake, without).named() if hidden else named
    for path, new in hidden.items():
        if path in named:
            lake.rename(new, path)
        else:
            lake.remove(new)
    return len(hidden.keys() - named)


def read(lake: Store, without: Collection[str] = ()) -> Manifest:
    """Read the manifest. A capture counts in the first entry that holds it, compacted ones first.

    ``without``: names of files (in the lake) that are not read. Raises ``TracedbError`` for a damaged entry.
    """
    return undisturbed(lake, lambda: _read(lake, without))


def _read(lake: Store, without: Collection[str]) -> Manifest | None:
    found = Manifest()
    settings: Held | None = None
    taken: set[int] = set()
    listed = lake.names(FOLDER)
    names = [name for name in listed if name.endswith(".json") and f"{FOLDER}/{name}" not in without]
    for name in sorted(names, key=lambda name: (not name.startswith(COMPACTED), name)):
        try:
            entry = read_entry(lake, name)
        except FileNotFoundError:  # it has just been compacted; its successor may be missing from the list
            return None
        ids = frozenset(item.capture_id for item in entry.captures)
        if entry.kind == "captures":
            held = Held(name, entry, ids - taken)
            taken |= ids
            (found.captures if held.ids else found.superseded).append(held)
        elif entry.kind == "facts" and entry.run is not None:
            found.facts[entry.run] = Held(name, entry, ids)
        elif entry.kind == "settings":
            settings = Held(name, entry, ids)
        else:
            found.general.append(Held(name, entry, ids))
    # A list made during a compaction may lack the new entry and those that it replaced.
    if any(name.startswith(COMPACTED) for name in set(lake.names(FOLDER)) - set(listed)):
        return None
    return Manifest(found.captures, found.facts, settings, found.general, found.superseded)
