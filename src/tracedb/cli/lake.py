"""``tracedb lake``: steps that a lake needs besides ingest."""

from __future__ import annotations

from pathlib import Path

import click

from tracedb.cli.options import Settings, detail, lake_option, note, patience_options, some


def _root(folder: Path | None) -> Path:
    context = click.get_current_context()
    found = folder or context.ensure_object(Settings).lake
    if found is None:
        raise click.UsageError(f"name the lake: tracedb lake {context.command.name} DIR")
    return found


@click.group()
def lake() -> None:
    """Keep a lake of Parquet files, which `ingest --lake` and `export lake` fill."""


@lake.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="[DIR]", required=False)
@click.option("--all", "is_all", is_flag=True, help="Also runs to which no capture was added since.")
@click.option("--memory-limit", default="2GB", metavar="SIZE", help="Memory for the database engine. [default: 2GB]")
@lake_option
@patience_options
def align(folder: Path | None, is_all: bool, memory_limit: str) -> None:
    """Derive facts about several captures: clock offsets between ranks, operators of graph replays.

    Run it once when all traces of a run are in the lake; until then, waiting times of ranks use the recorded clocks.
    """
    from tracedb.lake import align as steps

    root = _root(folder)
    done = steps.align(root, again=is_all, memory_limit=memory_limit, tell=lambda run: detail(f"run {run}"))
    note(f"{some(len(done), 'run')} aligned: {root}")
