"""Load sampling files of estimate-train-time into ``operator_sample``: one row per time.

A sweep is one file or several pieces (``_PARTS_PART``; for collectives ``_NODES_GPUS``), or both: then the whole file
repeats the pieces line by line, and only what they lack is loaded from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.errors import ReadError
from tracedb.ingester import Capture, Options, Rows
from tracedb_samples import conditions, measured_times
from tracedb_samples.file_names import NAME, Header, Sweep, header_of, sweep_of

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

FIRST_BYTES = 4096
STATISTIC = "span_trimmed_mean"

LONGEST_LINE = 1 << 16
"""A longer line is split into pieces of this length, each counted as a line that is no record."""
BATCH_LINES = 50_000

LINES = """
INSERT INTO sample_line
SELECT
    line, $is_whole AS is_whole, len(field) AS fields, {columns} AS columns,
    CASE WHEN len(field) = {columns} THEN {shape} ELSE {no_shape} END AS shape,
    CASE WHEN len(field) = {columns} THEN {times} ELSE {no_times} END AS times
FROM (SELECT line, string_split(text, ',') AS field FROM sample_text)
"""
SORTED = """
CREATE OR REPLACE TEMP TABLE sample_time AS
WITH line AS (
    SELECT
        *,
        is_whole AND row_number() OVER (PARTITION BY is_whole, shape, times ORDER BY line)
            <= count(*) FILTER (NOT is_whole) OVER (PARTITION BY shape, times) AS is_repeated
    FROM sample_line
)
SELECT
    line, is_whole, fields, columns, shape, entry.key AS pass, round(entry.value * 1000) AS time_ns,
    coalesce(entry.value > 0 AND entry.value < 1e15, false)
        AND NOT list_contains([v IS NULL FOR v IN map_values(shape)], true) AS is_sound,
    is_repeated AND is_sound AS is_repeated
FROM (SELECT * EXCLUDE (times), unnest(map_entries(times)) AS entry FROM line)
"""
SAMPLES = """
SELECT
    row_number() OVER (ORDER BY is_whole, line, pass DESC) AS sample_id,
    $gpu AS gpu, $operator AS operator, pass, $dtype AS dtype, shape,
    $statistic AS statistic, time_ns::BIGINT AS time_ns
FROM sample_time WHERE is_sound AND NOT is_repeated
"""
ISSUES = """
SELECT
    'line_unreadable' AS code, 'warning' AS severity, count(*) AS count, count(*) AS skipped,
    'times or shapes that are no numbers' || coalesce(
        '; the header has ' || arg_min(columns, line) FILTER (fields <> columns) || ' columns, line '
        || min(line) FILTER (fields <> columns) || ' has ' || arg_min(fields, line) FILTER (fields <> columns)
        || ' fields', ''
    ) AS detail
FROM sample_time WHERE NOT is_sound HAVING count(*) > 0
UNION ALL
SELECT
    'sample_repeated' AS code, 'note' AS severity, count(*) AS count, count(*) AS skipped,
    'times of the whole file that its pieces hold too' AS detail
FROM sample_time WHERE is_repeated HAVING count(*) > 0
"""
ACCOUNT = """
SELECT
    CASE WHEN coalesce(bool_and(is_sound), true) THEN 'complete' ELSE 'repaired' END AS status,
    'estimate-train-time' AS tool_version,
    count(*) AS events_read,
    count(*) FILTER (is_repeated OR NOT is_sound) AS events_skipped,
    count(*) FILTER (is_sound AND NOT is_repeated) AS rows_written
FROM sample_time
"""


class SamplesIngester:
    """Reads the sampling files of one GPU, operator and element type as one capture, in SQL."""

    name = "samples"

    def find(self, files: Sequence[Path]) -> Iterable[Capture]:
        """Claim files by their header; files of one sweep in one folder are one capture."""
        sweeps: dict[tuple[Path, str, str, str], list[Path]] = {}
        for path in files:
            if conditions.is_conditions(path):
                yield Capture((path,))
                continue
            if _header(path) is None:
                if measured_times.header(path) is not None:
                    yield Capture((path,))
                continue
            match = NAME.fullmatch(path.name)
            if match is None:
                yield Capture((path,))  # reading it reports what is wrong with the name
            else:
                key = (path.parent, match["gpu"], match["operator"], match["dtype"])
                sweeps.setdefault(key, []).append(path)
        for pieces in sweeps.values():
            yield Capture(tuple(sorted(pieces)))

    def read(self, capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
        """Yield the times of a sweep, then its counts. Raises ``ReadError`` if a name or header is incomplete."""
        if conditions.is_conditions(capture.files[0]):
            yield from conditions.read(capture.files[0])
            options.progress(capture.files[0].stat().st_size)
            return
        if _header(capture.files[0]) is None:
            yield from measured_times.read(capture.files[0])
            options.progress(capture.files[0].stat().st_size)
            return
        sweeps = [sweep_of(path) for path in capture.files]
        scratch.execute(
            """CREATE OR REPLACE TEMP TABLE sample_line
            (line BIGINT, is_whole BOOLEAN, fields BIGINT, columns BIGINT, shape MAP(VARCHAR, BIGINT),
            times MAP(VARCHAR, DOUBLE))"""
        )
        for path, sweep in zip(capture.files, sweeps, strict=True):
            _load(scratch, path, sweep)
            options.progress(path.stat().st_size)
        scratch.execute(SORTED)
        said = {
            "gpu": sweeps[0].gpu,
            "operator": sweeps[0].operator,
            "dtype": sweeps[0].dtype,
            "statistic": STATISTIC,
        }
        yield Rows("operator_sample", scratch.sql(SAMPLES, params=said))
        yield Rows("ingest_issue", scratch.sql(ISSUES))
        yield Rows("capture", scratch.sql(ACCOUNT))


def _header(path: Path) -> Header | None:
    """Return the header of a sampling file; None for any other or unreadable file."""
    if path.suffix.lower() != ".csv":
        return None
    try:
        with path.open("rb") as file:
            first = file.readline(FIRST_BYTES)
    except OSError:
        return None
    return header_of(first.decode("utf-8-sig", errors="replace"))


def _load(scratch: duckdb.DuckDBPyConnection, path: Path, sweep: Sweep) -> None:
    """Store every line, also invalid ones. No CSV reader is used, since it may skip lines."""
    header = _header(path)
    if header is None:
        raise ReadError("its first line is no longer that of a sampling file")
    value = """try_cast(regexp_replace(field[{}], '^"(.*)"$', '\\1') AS DOUBLE)"""
    place = {column: number for number, column in enumerate(header.columns, 1)}
    shape = {name: f"try_cast({value.format(place[column])} AS BIGINT)" for column, name in header.parameters}
    times = {name: value.format(place[column]) for column, name in header.times}
    text = LINES.format(
        columns=len(header.columns),
        shape=_map(shape),
        times=_map(times),
        no_shape=_map(dict.fromkeys(shape, "NULL::BIGINT")),
        no_times=_map(dict.fromkeys(times, "NULL::DOUBLE")),
    )
    for batch in _lines(path):
        scratch.register("sample_text", batch)
        scratch.execute(text, {"is_whole": not sweep.piece})
        scratch.unregister("sample_text")


def _map(values: Mapping[str, str]) -> str:
    """Return a map in SQL."""
    entries = ", ".join(f"'{name}': {value}" for name, value in values.items())
    return f"MAP {{{entries}}}"


def _lines(path: Path) -> Iterator[pa.Table]:
    """Yield the numbered lines after the header; bytes that are not UTF-8 are replaced, empty lines skipped."""
    import pyarrow as pa

    with path.open("rb") as file:
        file.readline(FIRST_BYTES)
        numbered = enumerate(iter(partial(file.readline, LONGEST_LINE), b""), 2)
        filled = ((number, line.decode(errors="replace").strip()) for number, line in numbered)
        records = ((number, text) for number, text in filled if text)
        while batch := list(islice(records, BATCH_LINES)):
            numbers, texts = zip(*batch, strict=True)
            yield pa.table({"line": pa.array(numbers, pa.int64()), "text": pa.array(texts, pa.string())})
