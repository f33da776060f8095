"""``tracedb sql-dialect``: the views in the SQL of another engine."""

from __future__ import annotations

from pathlib import Path

import click

from tracedb.cli.options import counted, note
from tracedb.dialect.engines import ENGINES
from tracedb.errors import TracedbError


@click.command("sql-dialect")
@click.argument("engine", type=click.Choice(ENGINES))
@click.option("--view", "views", multiple=True, metavar="NAME", help="Only this view, with those it reads; repeatable.")
@click.option("--list", "is_list", is_flag=True, help="List the views that are declared for the engine.")
@click.option(
    "-o",
    "--output",
    "--out",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write to this file instead of stdout.",
)
def sql_dialect(engine: str, views: tuple[str, ...], is_list: bool, out: Path | None) -> None:
    """Print the views as SQL of Spark, ClickHouse or Trino.

    DuckDB's views are the definition. A view is offered for an engine only if it and all views that it reads were run
    there and gave the same rows; Trino's were only parsed, never run. The views read the tables of a lake.
    """
    from tracedb.dialect import script

    text = "\n".join(script.declared(engine)) + "\n" if is_list else script.script(engine, views)
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TracedbError(f"{out}: cannot be written ({error.strerror}); name another file with -o") from error
    note(f"{counted(len(views or script.declared(engine)), 'view')} for {engine} in {out}")
