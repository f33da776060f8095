"""Describe the installation, the file, and what its captures can and cannot answer."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import tracedb
from tracedb import ingester
from tracedb.catalog import describe
from tracedb.errors import DatabaseBusy
from tracedb.output import Answer, Column, Show, from_rows, from_sql
from tracedb.storage import schema
from tracedb.storage.connection import open_read_only
from tracedb.storage.database_file import STORAGE_VERSIONS, storage_version

if TYPE_CHECKING:
    import duckdb

PACKAGES = ("duckdb", "pyarrow", "sqlglot", "msgspec", "isal", "zstandard", "polars", "XlsxWriter")
_KEPT_LETTERS = 80
_FILE_LETTERS = 40
"""Width of the captures in the table of contents below which their file names may be wrapped."""

ABILITIES = {
    "kernels": "Kernels.",
    "copies": "Copies and memsets.",
    "graph_replays": "Graph replays recorded only as a whole.",
    "launches": "Runtime or driver API calls.",
    "launched_kernels": "Kernels whose launch is known.",
    "operators": "Framework operators.",
    "kernels_of_operators": "Kernels whose operator is known.",
    "shapes": "Operators with input shapes.",
    "ranges": "Ranges and marks.",
    "steps": "Marked steps (ProfilerStep#N).",
    "collectives": "Collective kernels.",
    "collective_sizes": "Collective kernels with message sizes.",
    "counters": "Hardware counter values.",
    "stacks": "Frames of Python functions.",
    "modules": "Calls of nn.Module, from recorded stacks.",
    "memory_events": "Events of the memory allocator.",
    "rank": "Rank of the process.",
    "clock": "World time of the capture's clock zero.",
}
"""Contents of a capture → meaning. Numbers are counts; rank and clock are themselves."""

_CAPTURES = """
WITH gpu AS (
    SELECT
        e.capture_id,
        count(*) FILTER (e.kind = 'kernel') AS kernels,
        count(*) FILTER (e.kind IN ('memcpy', 'memset')) AS copies,
        count(*) FILTER (e.kind = 'graph') AS graph_replays,
        count(e.launch_id) FILTER (e.kind = 'kernel') AS launched_kernels,
        count(e.op_id) FILTER (e.kind = 'kernel') AS kernels_of_operators,
        count(coalesce(e.message_in_elements, e.message_out_elements)) AS collective_sizes
    FROM main.kernel_event AS e
    GROUP BY e.capture_id
),
host_call AS (SELECT l.capture_id, count(*) AS launches FROM main.launch AS l GROUP BY l.capture_id),
operator AS (
    SELECT o.capture_id, count(*) AS operators, count(o.input_dims) AS shapes FROM main.op AS o GROUP BY o.capture_id
),
span AS (SELECT a.capture_id, count(*) AS ranges FROM main.annotation AS a GROUP BY a.capture_id),
step AS (SELECT t.capture_id, count(DISTINCT t.step) AS steps FROM v1._step AS t GROUP BY t.capture_id),
shared AS (
    SELECT k.capture_id, count(*) AS collectives FROM v1._gpu_event AS k
    WHERE k.kind = 'kernel' AND k.class = 'collective'
    GROUP BY k.capture_id
),
reading AS (SELECT n.capture_id, count(*) AS counters FROM main.counter AS n GROUP BY n.capture_id),
stack AS (
    SELECT
        f.capture_id,
        count(*) FILTER (f.kind = 'function') AS stacks,
        count(*) FILTER (f.kind = 'module') AS modules
    FROM main.frame AS f
    GROUP BY f.capture_id
),
allocator AS (SELECT m.capture_id, count(*) AS memory_events FROM main.memory_event AS m GROUP BY m.capture_id)
SELECT
    c.capture_id, c.source, c.path, c.status, c.labels,
    nullif(gpu.kernels, 0) AS kernels,
    nullif(gpu.copies, 0) AS copies,
    nullif(gpu.graph_replays, 0) AS graph_replays,
    host_call.launches,
    nullif(gpu.launched_kernels, 0) AS launched_kernels,
    operator.operators,
    nullif(gpu.kernels_of_operators, 0) AS kernels_of_operators,
    nullif(operator.shapes, 0) AS shapes,
    span.ranges,
    step.steps,
    shared.collectives,
    nullif(gpu.collective_sizes, 0) AS collective_sizes,
    reading.counters,
    nullif(stack.stacks, 0) AS stacks,
    nullif(stack.modules, 0) AS modules,
    allocator.memory_events,
    c.rank AS rank,
    c.clock_zero_unix_ns AS clock
FROM main.capture AS c
LEFT JOIN gpu ON gpu.capture_id = c.capture_id
LEFT JOIN host_call ON host_call.capture_id = c.capture_id
LEFT JOIN operator ON operator.capture_id = c.capture_id
LEFT JOIN span ON span.capture_id = c.capture_id
LEFT JOIN step ON step.capture_id = c.capture_id
LEFT JOIN shared ON shared.capture_id = c.capture_id
LEFT JOIN reading ON reading.capture_id = c.capture_id
LEFT JOIN stack ON stack.capture_id = c.capture_id
LEFT JOIN allocator ON allocator.capture_id = c.capture_id
"""

_ISSUES = """
SELECT
    i.severity,
    i.code,
    sum(i.count)::BIGINT AS events,
    count(DISTINCT i.capture_id) AS captures,
    min(i.detail) AS example
FROM main.ingest_issue AS i
GROUP BY i.severity, i.code
ORDER BY i.severity DESC, events DESC, i.code
"""

_ISSUE_TEXTS = {
    "severity": "note (not stored by design) or warning (the file is faulty).",
    "code": "Kind of issue.",
    "events": "Number of events that it concerns.",
    "captures": "Number of captures in which it was noted.",
    "example": "Description from one of these captures.",
}


@dataclass
class Examination:
    """The findings. The answers are empty if there is no database, or it is in use."""

    about: dict[str, Mapping[str, object]]
    captures: Answer
    abilities: Answer
    issues: Answer
    busy: DatabaseBusy | None = None


def examine(path: Path) -> Examination:
    """Examine the installation, the file and its captures. Raises ``TracedbError`` if the file is not tracedb's."""
    about: dict[str, Mapping[str, object]] = {"installation": installation(), "file": file_facts(path)}
    found = Examination(about, from_rows([], []), from_rows([], []), from_rows([], []))
    if path.exists():
        try:
            with open_read_only(path) as connection:
                about["contents"] = contents(connection)
                found.captures, found.abilities, found.issues = (
                    captures(connection),
                    abilities(connection),
                    issues(connection),
                )
        except DatabaseBusy as error:
            found.busy = error
    names = [column.name for column in found.issues.columns]
    noted = [dict(zip(names, row, strict=True)) for row in found.issues.rows]
    found.captures.report, found.captures.database = "doctor", str(path)
    found.captures.extra = {**about, "issues": noted}
    return found


def installation() -> dict[str, str | None]:
    """Return the versions of tracedb's dependencies; None for those not installed."""
    found: dict[str, str | None] = {"tracedb": tracedb.__version__, "python": platform.python_version()}
    found |= {package: _version(package) for package in PACKAGES}
    found |= {f"{name} {fact}": value for name, facts in ingester.descriptions() for fact, value in facts.items()}
    return found | {"duckdb shell": _shell()}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _shell() -> str | None:
    program = shutil.which("duckdb")
    if program is None:
        return None
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return f"{program} (does not run)"
    return f"{program} ({' '.join(said.split()[:1])})"


def file_facts(path: Path) -> dict[str, object]:
    """Return facts from the file itself, without opening it as a database."""
    facts: dict[str, object] = {"path": str(path), "exists": path.is_file()}
    if not path.is_file():
        return facts
    facts["bytes"] = path.stat().st_size
    number = storage_version(path)
    if number is not None:
        facts["storage"] = f"{number} (DuckDB {STORAGE_VERSIONS.get(number, 'newer than this tracedb knows')})"
    return facts


def contents(connection: duckdb.DuckDBPyConnection) -> dict[str, object]:
    """Return the versions stored in the file, and whether its views are the shipped ones."""
    ((schema_version, maker),) = connection.execute(
        "SELECT max(version), max(tracedb_version) FROM meta.schema_version"
    ).fetchall()
    states = [str(view[2]) for view in describe.verify(connection).rows]
    wrong = len([state for state in states if state != "ok"])
    return {
        "schema version": schema_version,
        "made by tracedb": maker,
        "views": f"{len(states)} as shipped"
        if not wrong
        else f"{wrong} of {len(states)} differ: see `tracedb views verify`",
    }


def captures(connection: duckdb.DuckDBPyConnection) -> Answer:
    """Return a row for each capture: counts of its contents, NULL for what was not captured."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE held AS {_CAPTURES}")
    described = {column.name: column.description for column in schema.columns(connection, "main", "capture")}
    answer = from_sql(connection, "FROM temp.held ORDER BY capture_id", described | ABILITIES)
    answer.rows = list(answer.rows)
    return answer


def abilities(connection: duckdb.DuckDBPyConnection) -> Answer:
    """Return ``captures``, called before, for terminals: a row for each group of captures with the same contents."""
    flags = ", ".join(f'"{name}" IS NOT NULL AS "{name}"' for name in ABILITIES)
    names = ", ".join(f'"{name}"' for name in ABILITIES)
    groups = connection.execute(
        f"""SELECT source, count(*), min(capture_id), arg_min(path, capture_id), {names}
            FROM (SELECT capture_id, path, source, {flags} FROM temp.held)
            GROUP BY source, {names} ORDER BY min(capture_id)"""
    ).fetchall()
    rows = [
        (source, _some_captures(first, path, count), _contents_of(held, True), _contents_of(held, False))
        for source, count, first, path, *held in groups
    ]
    answer = from_rows([Column(name, "VARCHAR") for name in ("source", "captures", "holds", "not captured")], rows)
    answer.shows = [
        Show((column.name,), column.name, "fold", floor=_FILE_LETTERS if column.name == "captures" else 12)
        for column in answer.columns
    ]
    return answer


def _some_captures(first: int, path: str | None, count: int) -> str:
    """Return the first capture of a group by number and file, and how many more there are."""
    named = f"{first}: {PurePath(path).name}" if path else str(first)
    return f"{named} and {count - 1} more" if count > 1 else named


def _contents_of(held: Sequence[bool], is_held: bool) -> str:
    named = [name.replace("_", " ") for name, has in zip(ABILITIES, held, strict=True) if has == is_held]
    return ", ".join(named) or "-"


def issues(connection: duckdb.DuckDBPyConnection) -> Answer:
    """Return the issues noted by ingest, by code."""
    answer = from_sql(connection, _ISSUES, _ISSUE_TEXTS)
    answer.rows = [(*row[:4], _brief(row[4])) for row in answer.rows]
    return answer


def _brief(text: object) -> object:
    if not isinstance(text, str) or len(text) <= _KEPT_LETTERS:
        return text
    return text[: _KEPT_LETTERS - 1] + "…"
