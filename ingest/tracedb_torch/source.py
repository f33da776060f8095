"""The torch-profiler ingester: which files are traces.

The readers are imported only when a file is read: looking through a folder needs neither DuckDB nor Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.ingester import Begun, Capture, Options, Rows
from tracedb_torch.scan import native_scanner
from tracedb_torch.split.scan_ahead import Reading
from tracedb_torch.trace_kinds import Claim, claim_of

if TYPE_CHECKING:
    import duckdb

SUFFIXES = (".gz", ".zst", ".zstd")


class TorchIngester:
    """Reads torch.profiler traces of every era."""

    name = "torch"
    reads_all_first = True

    def describe(self) -> dict[str, str]:
        """Say which reader is in use."""
        return {"reader": native_scanner.state()}

    def find(self, files: Sequence[Path]) -> Iterable[Capture]:
        """Claim memory snapshots, and Chrome traces except those of rocprof; unpacked files before packed ones.

        Chrome traces of other tools are rejected with a message that names the tool.
        """
        by_stem: dict[Path, list[Path]] = {}
        for path in files:
            claim, what = claim_of(path)
            if claim is Claim.OTHER:
                yield Capture((path,), refused=what)
            if claim not in (Claim.TORCH, Claim.UNKNOWN, Claim.SNAPSHOT):
                continue
            stem = path.with_suffix("") if path.suffix in SUFFIXES else path
            by_stem.setdefault(stem, []).append(path)
        for paths in by_stem.values():
            paths.sort(key=lambda path: (path.suffix in SUFFIXES, str(path)))
            yield Capture(files=(paths[0],), duplicates=tuple(paths[1:]))

    def begin(self, capture: Capture, options: Options) -> Begun:
        """Start reading and scanning, within a memory limit; a memory snapshot is not begun early."""
        if claim_of(capture.files[0])[0] is Claim.SNAPSHOT:
            return Unread()
        return Reading(capture.files[0], options, is_early=True)

    def read(self, capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
        """Yield the rows of a trace or memory snapshot; a merged trace gives one part per process."""
        if claim_of(capture.files[0])[0] is Claim.SNAPSHOT:
            from tracedb_torch.snapshot import capture as snapshot

            yield from snapshot.rows_of(capture, options)
            return
        from tracedb_torch.capture import rows_of

        yield from rows_of(capture, scratch, options)


class Unread:
    """A read that has not begun."""

    def close(self) -> None:
        """Do nothing."""
