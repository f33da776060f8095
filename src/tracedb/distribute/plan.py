"""How a view is divided: which captures each task reads, what it sends, how the answers become one."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tracedb.errors import UsageError
from tracedb.storage import lake_manifest, resources, views
from tracedb.storage.connection import in_memory

if TYPE_CHECKING:
    import pyarrow as pa

Unit = Literal["runs", "merged", "whole"]


@dataclass(frozen=True)
class Task:
    """What one task reads, and its query."""

    lake: str
    captures: tuple[int, ...] | None
    """None for all."""
    query: str
    before: tuple[str, ...] = ()
    """Statements that set variables which the query reads."""


@dataclass(frozen=True)
class Plan:
    """The tasks of a view, and how their answers are put together."""

    view: str
    unit: Unit
    tasks: tuple[Task, ...]
    merge: str = ""
    """Of a merged view: its SELECT over ``part``, the rows of all tasks."""

    def put_together(self, answers: Sequence[pa.Table]) -> pa.Table:
        """Return the view's rows, from the tasks' answers in any order."""
        import pyarrow as pa

        rows = pa.concat_tables(answers)
        if self.unit != "merged":
            return rows
        with in_memory() as connection:
            views.create(connection, "_sample_stddev")
            connection.register("part", rows)
            return connection.sql(self.merge).to_arrow_table()


def plan(lake: str | Path, report: str) -> Plan:
    """Divide a view over a lake; a view that cannot be divided is one task. ``report``: name of a view or report.

    Raises ``UsageError`` if there is no such view, ``TracedbError`` if ``lake`` is none, or is damaged.
    """
    view = views.find(report.replace("-", "_").removeprefix(f"{views.CURRENT}.")).name
    unit, query, runs = unit_of(view), f"FROM v1.{view}", _runs(lake)
    if unit == "whole":
        return Plan(view, unit, (Task(str(lake), None, query),))
    sent, merge = merged_texts(view) if unit == "merged" else (query, "")
    return Plan(view, unit, tuple(Task(str(lake), tuple(captures), sent) for captures in runs), merge)


def divided(
    lake: str | Path,
    view: str,
    texts: tuple[str, str],
    before: Sequence[str],
    chosen: Collection[int],
    together: Iterable[Collection[int]],
) -> Plan:
    """Divide a view with a report's filters over a lake.

    ``texts``: the SELECT of a task, and that of the merge (empty if the view is divided by runs). ``before``: as in
    ``Task``. ``chosen``: the captures that the filters leave. ``together``: sets of captures whose events one row may
    pool; each set is in one task. Raises ``UsageError`` if nothing is left to divide, ``TracedbError`` as ``plan``.
    """
    runs = [held for held in map(frozenset, _runs(lake)) if not held.isdisjoint(chosen)]
    parts = _joined(runs, [] if texts[1] else together)
    if len(parts) == 1 < len(runs):
        raise UsageError(
            "with this --by, rows pool captures of all runs, so the report cannot be divided; group by a "
            "label that differs between runs as well, or run it without --engine"
        )
    query, merge = texts
    tasks = tuple(Task(str(lake), tuple(sorted(part)), query, tuple(before)) for part in parts)
    return Plan(view, unit_of(view), tasks, merge)


def merged_texts(view: str) -> tuple[str, str]:
    """Return what the parts of a merged view send, and how that becomes its rows: texts with a report's hooks."""
    return resources.text("sql", "distribute", "kernel_times.sql"), resources.text("sql", "distribute", f"{view}.sql")


def unit_of(view: str) -> Unit:
    """Return how a view may be divided."""
    declared = _declared()
    if view in declared["merged"]:
        return "merged"
    return "runs" if view in declared["runs"] else "whole"


def _runs(lake: str | Path) -> list[list[int]]:
    """Return the numbers of the captures of each run."""
    runs = lake_manifest.read(lake_manifest.opened(Path(lake))).runs()
    if not runs:
        raise UsageError(f"{lake}: holds no capture; run `tracedb ingest PATH --lake {lake}` first")
    return [[item.capture_id for item in held] for held in runs.values()]


def _joined(runs: Iterable[frozenset[int]], together: Iterable[Collection[int]]) -> list[frozenset[int]]:
    """Return the runs, put together where an item of ``together`` has captures of several."""
    parts = list(runs)
    for pooled in together:
        touched = [part for part in parts if not part.isdisjoint(pooled)]
        if len(touched) > 1:
            parts = [part for part in parts if part.isdisjoint(pooled)] + [frozenset().union(*touched)]
    return parts


@cache
def _declared() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads(resources.text("sql", "ENGINES.toml"))["distribution"]
    return found
