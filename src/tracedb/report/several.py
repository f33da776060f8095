"""Run several reports one after the other; those that cannot answer give their reason instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.errors import NotCaptured, UsageError
from tracedb.output.several import Part
from tracedb.report import run as engine
from tracedb.report.definition import Report
from tracedb.report.filters import Filters
from tracedb.report.query import plan

if TYPE_CHECKING:
    import duckdb


def parts(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    reports: Sequence[Report],
    filters: Filters,
    version: str,
    top: int,
    is_wide: bool = False,
    tell: Callable[[Part], None] = lambda part: None,
) -> Iterator[Part]:
    """Yield each report's answer, or why it has none; an answer's rows must be read before the next one is run.

    ``tell`` gets each part before it is yielded. Raises ``UsageError`` if the filters do not apply to any report.
    """
    misused: list[UsageError] = []
    for report in reports:
        try:
            query = plan(connection, report, filters, version, is_wide)
            part = Part(report.name, report.title, engine.run(connection, path, query, top, is_wide).answer)
        except NotCaptured as error:
            part = Part(report.name, report.title, None, str(error))
        except UsageError as error:
            misused.append(error)
            if len(misused) == len(reports):
                raise
            part = Part(report.name, report.title, None, str(error))
        tell(part)
        yield part


def answered(made: Iterable[Part], path: Path) -> Iterator[Part]:
    """Yield the parts. Raises ``NotCaptured`` before it yields any if none of them has an answer."""
    held: list[Part] = []
    is_any = False
    for part in made:
        is_any = is_any or part.answer is not None
        held.append(part)
        if is_any:
            yield from held
            held = []
    if not is_any:
        reason = held[0].reason if held else "no report was asked for"
        raise NotCaptured(f"{path}: none of {len(held)} reports has an answer: {reason}")
