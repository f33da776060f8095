"""``tracedb plot``: one view as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracedb.cli import completion_candidates
from tracedb.cli.filter_options import filter_options
from tracedb.cli.options import database_option, detail_lines, note, output_option, warn
from tracedb.cli.window_option import window_option

if TYPE_CHECKING:
    from tracedb.plot.definition import Choice, Picture
    from tracedb.report.filters import Filters


@click.command()
@click.argument("name", required=False, shell_complete=completion_candidates.pictures)
@click.option("--list", "is_list", is_flag=True, help="List the pictures.")
@database_option
@filter_options
@click.option(
    "--kernel", metavar="NAME", help="The kernel of kernel-histogram and kernel-pace: name, part of it or GLOB."
)
@click.option("--step", type=int, metavar="N", help="Only this step (gantt).")
@window_option("Only this period after the first event of a run (gantt), such as 10ms:12.5ms.")
@output_option("The picture: FILE.png, FILE.svg or FILE.html, a page that needs no network.")
@click.option("--version", default="v1", metavar="VN", help="View version. [default: v1]")
@click.option("--show-sql", is_flag=True, help="Print the SELECT instead of drawing.")
def plot(
    name: str | None,
    is_list: bool,
    db: Path,
    kernel: str | None,
    step: int | None,
    window: tuple[int, int] | None,
    out: Path | None,
    version: str,
    show_sql: bool,
    **chosen: Any,
) -> None:
    """Draw one view as a picture.

    Without NAME, list the pictures. Filters work as in `tracedb report`. SQL computes every number in a picture;
    --show-sql prints it.
    """
    from tracedb.output import write
    from tracedb.plot import registry
    from tracedb.plot.definition import Choice
    from tracedb.report.filters import Filters

    if is_list or name is None:
        write(registry.listing(), "table", None)
        return
    picture = registry.find(name)
    if out is None and not show_sql:
        raise click.UsageError("name the picture's file with -o FILE.png, FILE.svg or FILE.html")
    _run(db, picture, Filters(**chosen), Choice(kernel, step, window), version, None if show_sql else out)


def _run(db: Path, picture: Picture, filters: Filters, choice: Choice, version: str, out: Path | None) -> None:
    """Draw a picture into a file, or print its SELECT where there is none."""
    from tracedb.output.write import write_bytes
    from tracedb.plot import draw, render, rows
    from tracedb.report import run as engine
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    form = None if out is None else render.form_of(out)
    if form is not None:
        render.require()
    with database.open_read_only(db) as connection, engine.explained(connection, db), interruptible(connection):
        query, select = rows.plan(connection, picture, filters, choice, version)
        sql = rows.statement(query, select)
        if out is None or form is None:
            click.echo(sql.rstrip() + ";")
            return
        detail_lines("runs:", sql)
        table, found = rows.read(connection, db, picture, query, select, choice, filters)
    drawn = draw.draw(picture, table, found.answer, db)
    for text in found.answer.warnings:
        warn(text)
    for text in [*found.notes, *drawn.left_out]:
        note(text)
    write_bytes(render.as_bytes(drawn.specification, form, drawn.title, sql), out)
    note(f"{drawn.title}: {out}")
