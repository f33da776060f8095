"""How a view is divided: which captures each task reads, what it sends, how the answers become one."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
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
SENT = "kernel_times"
"""Query whose rows the parts of a merged view send."""


@dataclass(frozen=True)
class Task:
    """What one task reads, and its query."""

    lake: str
    captures: tuple[int, ...] | None
    """None for all."""
    query: str


@dataclass(frozen=True)
class Plan:
    """The tasks of a view, and how their answers are put together."""

    view: str
    unit: Unit
    tasks: tuple[Task, ...]

    def put_together(self, answers: Sequence[pa.Table]) -> pa.Table:
        """Return the view's rows, from the tasks' answers in any order."""
        import pyarrow as pa

        rows = pa.concat_tables(answers)
        if self.unit != "merged":
            return rows
        with in_memory() as connection:
            views.create(connection, "_sample_stddev")
            connection.register("part", rows)
            return connection.sql(resources.text("sql", "distribute", f"{self.view}.sql")).to_arrow_table()


def plan(lake: str | Path, report: str) -> Plan:
    """Divide a view over a lake. ``report`` is a view's or a report's name.

    Raises ``UsageError`` if there is no such view, ``TracedbError`` if ``lake`` is none, or is damaged.
    """
    view = views.find(report.replace("-", "_").removeprefix(f"{views.CURRENT}.")).name
    unit = unit_of(view)
    query = resources.text("sql", "distribute", f"{SENT}.sql") if unit == "merged" else f"FROM v1.{view}"
    store = lake_manifest.opened(Path(lake))
    runs = lake_manifest.read(store).runs()
    if not runs:
        raise UsageError(f"{lake}: holds no capture; run `tracedb ingest PATH --lake {lake}` first")
    if unit == "whole":
        return Plan(view, unit, (Task(str(lake), None, query),))
    tasks = (Task(str(lake), tuple(item.capture_id for item in held), query) for held in runs.values())
    return Plan(view, unit, tuple(tasks))


def unit_of(view: str) -> Unit:
    """Return how a view may be divided."""
    declared = _declared()
    if view in declared["merged"]:
        return "merged"
    return "runs" if view in declared["runs"] else "whole"


@cache
def _declared() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads(resources.text("sql", "ENGINES.toml"))["distribution"]
    return found
