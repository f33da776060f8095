"""``tracedb report``: print one view, filtered, grouped and ordered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracedb.cli import completion
from tracedb.cli.filter_options import filter_options
from tracedb.cli.options import database_option, detail, note, output_options, rows_shown, sort_option, top_option, warn

if TYPE_CHECKING:
    from tracedb.report.definition import Report
    from tracedb.report.filters import Filters


@click.command()
@click.argument("name", required=False, shell_complete=completion.reports)
@click.option("--list", "is_list", is_flag=True, help="List the reports.")
@database_option
@filter_options
@sort_option
@top_option
@output_options
@click.option("--wide", is_flag=True, help="Show every column of the view in a table, however wide it gets.")
@click.option(
    "--measured", is_flag=True, help="Put times measured outside of traces beside the ranges (range-time only)."
)
@click.option("--version", default="v1", metavar="VN", help="View version. [default: v1]")
@click.option("--show-sql", is_flag=True, help="Print the SELECT instead of running it.")
def report(
    name: str | None,
    is_list: bool,
    db: Path,
    top: int | None,
    format_name: str | None,
    out: Path | None,
    version: str,
    wide: bool,
    measured: bool,
    show_sql: bool,
    **chosen: Any,
) -> None:
    """Print one view, filtered, grouped and ordered.

    Without NAME, list the reports. Filters and --by apply to the events that the view aggregates, not to its result;
    --show-sql prints the query. With --by, --top counts rows within each group.

    \b
    tracedb report top-kernels --class matmul,attention --by capture --top 5
    tracedb report gemm-variance --where channels=4,8 --by sweep,channels --sort -cv_percent
    tracedb report kernels --path '*rank0*' --range 'forward*' --range 'backward*' --wide
    """
    from tracedb.output import choose_format, write
    from tracedb.report import registry
    from tracedb.report.filters import Filters

    form = choose_format(format_name, out)
    if is_list or name is None:
        write(registry.listing(), form, out)
        return
    if measured:
        from tracedb.errors import UsageError

        if name not in ("range-time", "range_time"):
            raise UsageError("--measured goes with report range-time")
        name = "range-measured"
    top = rows_shown(form, top)
    _run(db, registry.find(name), Filters(**chosen), version, top, None if show_sql else form, out, wide)


def _run(
    db: Path,
    report: Report,
    filters: Filters,
    version: str,
    top: int,
    form: str | None,
    out: Path | None,
    is_wide: bool,
) -> None:
    """Run a report and write its answer, or print its SELECT where there is no form to write it in."""
    from tracedb.output import write
    from tracedb.report import run as engine
    from tracedb.report.query import plan
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    with database.open_read_only(db) as connection, engine.explained(connection, db), interruptible(connection):
        query = plan(connection, report, filters, version)
        if form is None:
            click.echo(query.text(top) + ";")
            return
        detail("runs:\n" + query.text(top))
        found = engine.run(connection, db, query, top, is_wide)
        if form == "jsonl" and report.jsonl:
            found.answer = engine.renamed(connection, query, top, found.answer)
        for text in found.answer.warnings:
            warn(text)
        for text in found.notes:
            note(text)
        write(found.answer, form, out)
