"""Counts of the selected captures from which ``no_answer`` finds why a report has no answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tracedb.report.capture_counts import SELECTED, count, number, row
from tracedb.report.filters import Filters, Scope, described

if TYPE_CHECKING:
    import duckdb


class Events(NamedTuple):
    """Counts of GPU events with valid times, by kind."""

    kernels: int
    """Excluding those measured while hardware counters were read, unless requested."""
    graphs: int
    others: int
    counted: int
    """Dispatches measured while hardware counters were read."""


@dataclass(frozen=True)
class Search:
    """The scope in which causes are searched."""

    connection: duckdb.DuckDBPyConnection
    scope: Scope
    path: Path

    @cached_property
    def events(self) -> Events:
        """The GPU events of the selected captures."""
        plain = f"(e.is_counted IS NOT TRUE OR {self.scope.filters.counted})"
        return Events(
            *row(
                self.connection,
                f"""SELECT
                        count(*) FILTER (e.kind = 'kernel' AND {plain}),
                        count(*) FILTER (e.kind = 'graph'), count(*) FILTER (e.kind NOT IN ('kernel', 'graph')),
                        count(*) FILTER (e.is_counted)
                    FROM main.kernel_event AS e {SELECTED} WHERE e.time_fault IS NULL""",
            )
        )

    @cached_property
    def calls(self) -> int:
        """Number of API calls."""
        return count(self.connection, "main.launch")

    @property
    def kernels(self) -> str:
        """The number of kernels in words."""
        return number(self.events.kernels, "kernel")

    @property
    def filters(self) -> str:
        """The filters in words."""
        return _left_out(self.scope.filters)


def _left_out(filters: Filters) -> str:
    said = [described(filters)] if filters.on_captures else []
    said += [f"--device {device}" for device in filters.devices]
    said += [f"--class {name!r}" for name in filters.classes]
    said += [f"--range {pattern!r}" for pattern in filters.range]
    said += [f"--skip-warmup {filters.skip_warmup}"] if filters.skip_warmup else []
    said += [f"--step-range {filters.step_range!r}"] if filters.step_range is not None else []
    said += ["--window"] if filters.window is not None else []
    return f" with {', '.join(said)}" if said else ""
