"""``tracedb report``: one view, filtered, grouped, ordered, printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracedb.cli.options import (
    capture_option,
    database_option,
    detail,
    note,
    output_options,
    rows_shown,
    top_option,
    warn,
)

if TYPE_CHECKING:
    from tracedb.report.definition import Report
    from tracedb.report.filters import Filters


def _pairs(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return labels by key; the same key twice means either value."""
    found: dict[str, tuple[str, ...]] = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not equals or not key or key[-1] in "!<>~":
            hint = "; labels are compared for equality only" if any(sign in text for sign in "!<>~") else ""
            raise click.BadParameter(f"{text!r} is not KEY=VALUE{hint}", ctx, parameter)
        found[key] = (*found.get(key, ()), value)
    return found


@click.command()
@click.argument("name", required=False)
@click.option("--list", "is_list", is_flag=True, help="List the reports.")
@database_option
@click.option("--rank", "ranks", type=int, multiple=True, metavar="N", help="Only this rank. May be repeated.")
@click.option("--device", "devices", type=int, multiple=True, metavar="N", help="Only this device. May be repeated.")
@click.option("--source", "sources", multiple=True, metavar="NAME", help="Only captures of this profiler.")
@capture_option
@click.option(
    "--where",
    multiple=True,
    callback=_pairs,
    metavar="K=V",
    help="Only this label; the same key twice means either.",
)
@click.option(
    "--class",
    "classes",
    multiple=True,
    metavar="CLASS",
    help="Only kernels of this class (matmul, attention …), or with '!' before it all but these. May be repeated.",
)
@click.option("--range", metavar="GLOB", help="Only kernels launched inside ranges of such a name (forward*, NCCL:*).")
@click.option(
    "--rule",
    type=click.Choice(["thread", "process", "time"]),
    help="What is inside a range: launched there on its thread, on any thread of its process, or started meanwhile."
    " [default: thread, else time where no launches were recorded]",
)
@click.option(
    "--skip-warmup",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Leave out the first N steps of each capture, and whatever is in no step.",
)
@click.option(
    "--step-range",
    metavar="GLOB",
    help="Take each instance of the ranges of such a name for a step. [default: what is marked ProfilerStep#N]",
)
@click.option(
    "--counted",
    is_flag=True,
    help="Take in dispatches measured while hardware counters were read, whose durations are not those of a plain run.",
)
@click.option(
    "--attention-as-matmul",
    is_flag=True,
    help="Count kernels of fused attention, which is made of matrix products, as class matmul (matmul-fraction).",
)
@click.option(
    "--by",
    multiple=True,
    callback=lambda ctx, parameter, values: tuple(dict.fromkeys(values)),
    metavar="COL",
    help="Group by a label, rank, device, source, vendor, range or step. May be repeated.",
)
@top_option
@output_options
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
    show_sql: bool,
    **chosen: Any,
) -> None:
    """Print one view, filtered, grouped and ordered.

    NAME is a report; without it, they are listed. Filters and --by go into the view's own SELECT, over its events,
    never over an aggregated result; --show-sql prints what runs. With --by, --top counts rows within each group.
    """
    from tracedb.output import choose_format, write
    from tracedb.report import registry
    from tracedb.report.filters import Filters

    form = choose_format(format_name, out)
    if is_list or name is None:
        write(registry.listing(), form, out)
        return
    top = rows_shown(form, top)
    _run(db, registry.find(name), Filters(**chosen), version, top, None if show_sql else form, out)


def _run(
    db: Path, report: Report, filters: Filters, version: str, top: int, form: str | None, out: Path | None
) -> None:
    """Run a report and write its answer, or print its SELECT where there is no form to write it in."""
    from tracedb.output import write
    from tracedb.report import query as engine
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    with database.open_read_only(db) as connection, engine.explained(connection, db), interruptible(connection):
        query = engine.plan(connection, report, filters, version)
        if form is None:
            click.echo(query.text(top) + ";")
            return
        detail("runs:\n" + query.text(top))
        found = engine.run(connection, db, query, top)
        for text in found.answer.warnings:
            warn(text)
        for text in found.notes:
            note(text)
        write(found.answer, form, out)
