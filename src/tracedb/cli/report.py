"""``tracedb report``: print one view, filtered, grouped and ordered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracedb.cli import completion_candidates
from tracedb.cli.filter_options import attention_option, filter_options
from tracedb.cli.memory_option import memory_limit_option
from tracedb.cli.options import (
    counted,
    database_option,
    detail,
    detail_lines,
    note,
    output_options,
    rows_shown,
    sort_option,
    top_option,
    warn,
)
from tracedb.cli.window_option import window_option
from tracedb.distribute.engines import ENGINES

if TYPE_CHECKING:
    from tracedb.report.definition import Report
    from tracedb.report.filters import Filters


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME…]", shell_complete=completion_candidates.reports)
@click.option("--list", "is_list", is_flag=True, help="List the reports.")
@click.option("--all", "is_all", is_flag=True, help="All reports, into one file or a folder; needs -o.")
@database_option
@filter_options
@attention_option
@sort_option
@top_option
@output_options
@click.option(
    "--wide",
    is_flag=True,
    help="Show every column of the view, however wide a table gets; hardware counters are a column each.",
)
@click.option(
    "--measured", is_flag=True, help="Add a column with the times that the program itself measured (range-time only)."
)
@window_option("Only this period after the first GPU event of a run, such as 10ms:12.5ms (critical-path only).")
@click.option(
    "--across-ranks",
    is_flag=True,
    help="Continue a critical path on the rank that a collective or message waited for (critical-path only).",
)
@click.option(
    "--engine",
    type=click.Choice(list(ENGINES)),
    help="Run the report on Spark or Ray, in one task (with DuckDB) per run in the lake; needs --lake.",
)
@memory_limit_option("Memory for the database engine, which spills to disk beyond it. [default: 80 % of the machine's]")
@click.option("--version", default="v1", metavar="VN", help="View version. [default: v1]")
@click.option("--show-sql", is_flag=True, help="Print the SELECT instead of running it.")
def report(
    names: tuple[str, ...],
    is_list: bool,
    is_all: bool,
    db: Path,
    top: int | None,
    format_name: str | None,
    out: Path | None,
    version: str,
    wide: bool,
    measured: bool,
    engine: str | None,
    memory_limit: str | None,
    show_sql: bool,
    **chosen: Any,
) -> None:
    """Print one view, filtered, grouped and ordered; or several.

    Without NAME, list the reports. Filters and --by apply to the events that the view aggregates, not to its result;
    --show-sql prints the query. With --by, --top counts rows within each group.

    Several reports go into one file, a section or sheet each (-o all.html, .md, .xlsx, .json, .txt), or into a folder
    (-o FOLDER). A folder gets an index and, for each report, one file over all captures and one per capture.
    """
    from tracedb.output import choose_format, write
    from tracedb.report import registry
    from tracedb.report.filters import Filters

    if is_list or not (names or is_all):
        write(registry.listing(), choose_format(format_name, out), out)
        return
    if measured:
        if not {"range-time", "range_time"} & set(names):
            raise click.UsageError("--measured goes with report range-time")
        names = tuple("range-measured" if name in ("range-time", "range_time") else name for name in names)
    filters = Filters(**chosen)
    reports = registry.every() if is_all else [registry.find(name) for name in dict.fromkeys(names)]
    if is_all and out is None and not show_sql:
        raise click.UsageError("name a folder for all reports with -o FOLDER, or a file with -o FILE.html")
    if engine is not None:
        from tracedb.cli import report_engine

        if len(reports) > 1:
            raise click.UsageError("--engine takes one report")
        report_engine.check(engine, db)
    if len(reports) > 1 and out is not None and (out.is_dir() or not out.suffix) and not show_sql:
        form = format_name or "html"
        _write_folder(db, reports, filters, version, rows_shown(form, top), form, out, memory_limit)
        return
    form = choose_format(format_name, out)
    top = rows_shown(form, top)
    if len(reports) > 1:
        _run_several(db, reports, filters, version, top, None if show_sql else form, out, wide, memory_limit)
    else:
        _run(db, reports[0], filters, version, top, None if show_sql else form, out, wide, engine, memory_limit)


def _run_several(
    db: Path,
    reports: Sequence[Report],
    filters: Filters,
    version: str,
    top: int,
    form: str | None,
    out: Path | None,
    is_wide: bool,
    memory_limit: str | None,
) -> None:
    """Run reports and write their answers into one file, or print their SELECTs if there is no format."""
    from tracedb.output import several as files
    from tracedb.report import run as engine
    from tracedb.report import several, shared_work
    from tracedb.report.query import plan
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    def tell(part: files.Part) -> None:
        detail(f"report {part.name}")
        if part.answer is None:
            note(f"no answer: {part.name}: {part.reason}")

    if form is not None:
        files.check_form(form)
    opened = database.open_read_only(db, memory_limit)
    with opened as connection, engine.explained(connection, db), interruptible(connection):
        if form is None:
            for report in reports:
                click.echo(f"-- {report.name}\n{plan(connection, report, filters, version, is_wide).text(top)};\n")
            return
        with shared_work.shared():
            made = several.parts(connection, db, reports, filters, version, top, is_wide, tell)
            files.write_several(several.answered(made, db), form, out, f"Reports on {db.name}")
    _tell_written(out)


def _tell_written(out: Path | None) -> None:
    if out is not None and out.is_file():  # no device, and no pipe
        note(f"wrote {out}")


def _write_folder(
    db: Path,
    reports: Sequence[Report],
    filters: Filters,
    version: str,
    top: int,
    form: str,
    folder: Path,
    memory_limit: str | None,
) -> None:
    """Write a folder of files: the reports of each capture and of all, with an index."""
    from tracedb.export.report_folder import write_folder
    from tracedb.report import run as engine
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    opened = database.open_read_only(db, memory_limit)
    with opened as connection, engine.explained(connection, db), interruptible(connection):
        groups = write_folder(connection, db, reports, filters, version, top, form, folder, detail)
    files = sum(len(group.files) for group in groups)
    note(f"wrote {counted(files, 'file')} in {counted(len(groups), 'folder')}: {folder / 'index.html'}")


def _run(
    db: Path,
    report: Report,
    filters: Filters,
    version: str,
    top: int,
    form: str | None,
    out: Path | None,
    is_wide: bool,
    engine_name: str | None,
    memory_limit: str | None,
) -> None:
    """Run a report and write its answer, or print its SELECT where there is no form to write it in."""
    from tracedb.output import write
    from tracedb.report import run as engine
    from tracedb.report.capture_counts import number
    from tracedb.report.query import plan
    from tracedb.storage import connection as database
    from tracedb.storage import views
    from tracedb.storage.interrupt import interruptible

    settings = database.FRUGAL if report.key else None
    opened = database.open_read_only(db, memory_limit, settings)
    with opened as connection, engine.explained(connection, db), interruptible(connection):
        query = plan(connection, report, filters, version, is_wide)
        if form is None:
            click.echo(query.text(top) + ";")
            return
        if form == "table" and not is_wide:
            query = query.for_table()
        detail_lines("runs:", query.text(top))
        rows = None
        if engine_name is not None:
            from tracedb.cli import report_engine

            rows = report_engine.rows_by(engine_name, db, query, connection, top)
        found = engine.run(connection, db, query, top, is_wide, rows)
        if form == "jsonl" and report.jsonl:
            found.answer = engine.renamed(connection, query, top, found.answer)
        for text in found.answer.warnings:
            warn(text)
        for text in found.notes:
            note(text)
        left = write(found.answer, form, out)
        if left and views.find(report.view, version).topic == "nsys_stats":  # whose columns others expect
            note(f"{number(left, 'column')} of nsys stats did not fit; --wide shows all")
    _tell_written(out)
