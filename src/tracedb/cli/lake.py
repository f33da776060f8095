"""``tracedb lake``: steps that a lake needs besides ingest."""

from __future__ import annotations

from pathlib import Path

import click

from tracedb.cli.memory_option import memory_limit_option
from tracedb.cli.options import Settings, counted, detail, lake_option, note, output_options, patience_options
from tracedb.errors import TracedbError


def _root(folder: Path | None) -> Path:
    context = click.get_current_context()
    found = folder or context.ensure_object(Settings).lake
    if found is None:
        raise click.UsageError(f"name the lake: tracedb lake {context.command.name} DIR")
    return found


@click.group()
def lake() -> None:
    """Keep a lake of Parquet files: align, compact, verify.

    A lake has the tables of many captures as Parquet files, in a folder or an object store, so that many processes can
    load traces at once and other engines can read them. `ingest --lake` and `export lake` fill it.
    """


@lake.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="[DIR]", required=False)
@click.option("--all", "is_all", is_flag=True, help="Align all runs again, also those without new captures.")
@memory_limit_option("Memory for the database engine. [default: 2GB]", default="2GB")
@lake_option
@patience_options
def align(folder: Path | None, is_all: bool, memory_limit: str) -> None:
    """Derive facts about several captures, such as clock offsets.

    They are the offsets of the ranks' clocks, and which operators a replayed graph belongs to.
    Run it once when all traces of a run are in the lake; until then, waiting times of ranks use the recorded clocks.
    """
    from tracedb.lake import align as steps

    root = _root(folder)
    done = steps.align(root, again=is_all, memory_limit=memory_limit, tell=lambda run: detail(f"run {run}"))
    note(f"{counted(len(done), 'run')} aligned: {root}")


@lake.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="[DIR]", required=False)
@memory_limit_option("Memory for the database engine. [default: 2GB]", default="2GB")
@lake_option
@patience_options
def compact(folder: Path | None, memory_limit: str) -> None:
    """Put the small files of many traces together, run by run.

    The old files are removed, so nothing should read the lake meanwhile.
    """
    from tracedb.lake import compact as steps

    root = _root(folder)
    done = steps.compact(root, memory_limit=memory_limit, tell=detail)
    note(f"{counted(done, 'manifest file')} replaced: {root}")


@lake.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="[DIR]", required=False)
@click.option("--quick", is_flag=True, help="Compare sizes only, without reading the files.")
@click.option("--remove-unused", is_flag=True, help="Remove files that nothing needs.")
@lake_option
@patience_options
@output_options
def verify(folder: Path | None, quick: bool, remove_unused: bool, format_name: str | None, out: Path | None) -> None:
    """Compare the files of a lake with its manifest.

    They are compared by size and SHA-256. stdout gets a row for each file that is missing, damaged or unused; stderr
    gets, for each damaged entry, the command that repairs it. Exit code 1 if anything is missing or damaged.
    """
    from tracedb.lake import verify as steps
    from tracedb.output import choose_format, write

    root = _root(folder)
    manifest, findings = steps.verify(root, quick)
    write(steps.answer(findings, root), choose_format(format_name, out), out)
    if remove_unused:
        note(f"{counted(steps.remove_unused(root, findings), 'unused file')} removed")
    held = manifest.held()
    files = sum(len(entry.entry.files) for entry in manifest.entries())
    rows = sum(file.rows for entry in manifest.entries() for file in entry.entry.files)
    note(
        f"{counted(len(held), 'capture')} of {counted(len(manifest.runs()), 'run')} in "
        f"{counted(files, 'file')}, {rows:,} rows"
    )
    faults = [item for item in findings if item.is_fault]
    if faults:
        for text in steps.repairs(findings):
            note(f"to repair {text}")
        first = faults[0]
        raise TracedbError(
            f"{root}: {counted(len(faults), 'fault')}, the first: {first.file}: {first.state} ({first.detail})"
        )
