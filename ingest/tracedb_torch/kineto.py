"""The torch-profiler ingester: which files are traces.

What reads them is imported when one is read: to look at a folder neither DuckDB nor Arrow is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.ingester import Capture, Options, Rows
from tracedb_torch import native
from tracedb_torch.ahead import Reading
from tracedb_torch.blocks import BOM, EVENTS_KEY
from tracedb_torch.stream import PIECE, start_of

if TYPE_CHECKING:
    import duckdb

SNIFF = 64 << 10
FIRST_KEYS = re.compile(rb'^\[\s*\{\s*"(?:ph|cat|name|pid|tid|ts)"\s*:')
TRACE_KEYS = re.compile(rb'(?<!\\)"(schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:')
SUFFIXES = (".gz", ".zst", ".zstd")


class TorchIngester:
    """Reads torch.profiler traces of every era."""

    name = "torch"
    reads_all_first = True

    def describe(self) -> dict[str, str]:
        """Say which reader is in use."""
        return {"reader": native.state()}

    def find(self, files: Sequence[Path]) -> Iterable[Capture]:
        """Claim files that begin like a Kineto trace; of one trace packed and unpacked, the unpacked."""
        found = [path for path in files if _is_trace(path)]
        by_stem: dict[Path, list[Path]] = {}
        for path in found:
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
        from tracedb_torch.rows import rows_of

        yield from rows_of(capture, scratch, options)


def _is_trace(path: Path) -> bool:
    for size in (SNIFF, PIECE):
        try:
            start = start_of(path, size)
        except OSError:
            return False
        text = start.removeprefix(BOM).lstrip()
        if FIRST_KEYS.match(text):
            return True
        if not text.startswith(b"{"):
            return False
        if EVENTS_KEY.search(text):
            return True
        if len(start) < size:
            break
    # No events in sight: a long header, or a trace that is cut. Other formats have a schemaVersion, too.
    keys = set(TRACE_KEYS.findall(text))
    return len(keys) > 1 or b'"traceEvents"' in text or (bool(keys) and len(start) == size)
