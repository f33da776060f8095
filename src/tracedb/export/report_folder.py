"""A folder of reports: a file for each, in a folder for each capture and one for all of them, and an index."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.errors import NotCaptured, TracedbError
from tracedb.export import report_index
from tracedb.export.report_group import Group
from tracedb.output import write, write_text
from tracedb.report import captures, selection, shared_work
from tracedb.report.definition import Report
from tracedb.report.filters import Filters
from tracedb.report.several import parts

if TYPE_CHECKING:
    import duckdb

ENDINGS = {"table": ".txt", "markdown": ".md"}
"""Endings of files that are not the name of their format."""
POOLED = "all_captures"


def write_folder(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    reports: Sequence[Report],
    filters: Filters,
    version: str,
    top: int,
    form: str,
    folder: Path,
    tell: Callable[[str], None],
) -> list[Group]:
    """Write the reports of the captures that the filters choose; ``tell`` gets the name of each folder.

    A report without an answer over all captures is not asked of each of them. Raises ``NotCaptured`` if no report has
    an answer, ``TracedbError`` if writing fails.
    """
    groups = _groups(connection, path, filters, version)
    _make(folder)
    left = list(reports)
    for group in groups:
        tell(group.folder)
        with shared_work.shared():
            _write_group(connection, path, left, group, version, top, form, folder)
        if group is groups[0]:
            none = {name for names in group.reasons.values() for name in names}
            left = [report for report in reports if report.name not in none]
    if not any(group.files for group in groups):
        reason = next(iter(groups[0].reasons), "no report was asked for")
        raise NotCaptured(f"{path}: no report has an answer: {reason}")
    write_text(report_index.html_page(path, version, groups), folder / "index.html")
    write_text(report_index.markdown(path, version, groups), folder / "README.md")
    return groups


def _groups(connection: duckdb.DuckDBPyConnection, path: Path, filters: Filters, version: str) -> list[Group]:
    """Return what there is a folder of: all captures, if there are several, and each one."""
    selection.select(connection, filters, version, False, None)
    rows = connection.execute(
        """SELECT s.capture_id, s.path, s.rank, s.source,
               array_to_string([pair.key || '=' || pair.value FOR pair IN map_entries(s.labels)], ' ')
           FROM temp.selected_capture AS s ORDER BY s.capture_id"""
    ).fetchall()
    if not rows:
        raise NotCaptured(f"{path}: holds no captures; load some with `tracedb ingest PATH --db {path}`")
    names = captures.told_apart({number: file or "" for number, file, *_ in rows})
    places = len(str(rows[-1][0]))
    groups = [Group(POOLED, f"{len(rows)} captures", filters)] if len(rows) > 1 else []
    for number, file, rank, source, labels in rows:
        own = replace(filters, captures=(str(number),), paths=(), where={}, ranks=(), sources=())
        said = [file or "?", source, "" if rank is None else f"rank {rank}", labels]
        groups.append(Group(_folder_name(number, places, names[number]), ", ".join(filter(None, said)), own))
    return groups


def _folder_name(number: int, places: int, name: str) -> str:
    """Return a name that every file system takes: the capture's number, and what tells its path apart."""
    plain = re.sub(r"[^0-9A-Za-z._=-]+", "_", name).strip("._")[:80]
    return f"{number:0{places}}_{plain}".rstrip("_")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TracedbError(f"{folder}: the folder cannot be created: {error.strerror}") from error


def _write_group(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    reports: Sequence[Report],
    group: Group,
    version: str,
    top: int,
    form: str,
    folder: Path,
) -> None:
    _make(folder / group.folder)
    for part in parts(connection, path, reports, group.filters, version, top):
        if part.answer is None:
            group.reasons.setdefault(part.reason, []).append(part.name)
            continue
        name = part.name + ENDINGS.get(form, f".{form}")
        write(part.answer, form, folder / group.folder / name)
        group.files[part.name] = name
