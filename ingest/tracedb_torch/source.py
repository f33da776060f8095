"""The torch-profiler ingester: which files are traces.

What reads them is imported when one is read: to look at a folder neither DuckDB nor Arrow is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.ingester import Capture, Options, Rows
from tracedb_torch.scan import native_scanner
from tracedb_torch.split.prefetch import Reading
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
        """Claim Chrome traces except those of rocprof; of a trace packed and unpacked, the unpacked.

        Chrome traces of other tools are refused, with what they are.
        """
        by_stem: dict[Path, list[Path]] = {}
        for path in files:
            claim, what = claim_of(path)
            if claim is Claim.OTHER:
                yield Capture((path,), refused=what)
            if claim not in (Claim.TORCH, Claim.UNKNOWN):
                continue
            stem = path.with_suffix("") if path.suffix in SUFFIXES else path
            by_stem.setdefault(stem, []).append(path)
        for paths in by_stem.values():
            paths.sort(key=lambda path: (path.suffix in SUFFIXES, str(path)))
            yield Capture(files=(paths[0],), duplicates=tuple(paths[1:]))

    def begin(self, capture: Capture, options: Options) -> Reading:
        """Read and scan, until memory for that is used up."""
        return Reading(capture.files[0], options, is_early=True)

    def read(self, capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
        """Yield the rows of a trace; a merged trace of several processes gives a part for each."""
        from tracedb_torch.capture import rows_of

        yield from rows_of(capture, scratch, options)
