"""``tracedb merge``: several databases put together into a new one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracedb.cli.options import FORMATS, counted, note, patience_options, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracedb.output.answer import Answer
    from tracedb.pipeline.merge import Merged


@click.command()
@click.argument("databases", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DATABASE…")
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="The new database.",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice([name for name in FORMATS if name not in ("parquet", "xlsx")]),
    default="table",
    help="Format of the summary on stdout. [default: table]",
)
@patience_options
def merge(databases: tuple[Path, ...], target: Path, format_name: str) -> None:
    """Put the captures of several databases together into a new one.

    For samples from several machines, or ranks that were ingested separately. A capture that is in several databases
    (the same bytes) is kept once. Captures are numbered anew, and clocks aligned again. The new file appears only when
    it is complete; `tracedb ingest OTHER.duckdb --db FILE` adds to an existing one.
    """
    from tracedb.output import write
    from tracedb.pipeline import merge as engine
    from tracedb.storage.heeded_interrupt import heeded

    with heeded():
        merged = engine.merge(databases, target)
    for item in merged:
        for text in engine.differing_settings(item):
            warn(f"{item.path}: {text}")
    new = sum(not capture.is_known for item in merged for capture in item.captures)
    note(f"{counted(new, 'capture')} of {counted(len(merged), 'database')} in {target}")
    write(account(merged, target), format_name, None)


def account(merged: Sequence[Merged], target: Path) -> Answer:
    """Return the captures of the inputs, a row each."""
    from tracedb.output.answer import Column, from_rows

    columns = [
        Column("database", "VARCHAR", description="Database that holds it."),
        Column("number", "INTEGER", description="Number of the capture there."),
        Column("capture_id", "INTEGER", description="Number of the capture in the new database."),
        Column("path", "VARCHAR", description="First file of the capture."),
        Column("rank", "INTEGER", description="Rank."),
        Column("labels", "MAP(VARCHAR, VARCHAR)", description="Labels."),
        Column("status", "VARCHAR", description="merged, or known: a database before it holds the same capture."),
    ]
    rows: list[tuple[object, ...]] = []
    for item in merged:
        for one in item.captures:
            status = "known" if one.is_known else "merged"
            there = one.loaded
            rows.append((str(item.path), one.number, there.capture_id, one.path, there.rank, there.labels, status))
    answer = from_rows(columns, rows)
    answer.report, answer.database = "merge", str(target)
    return answer
