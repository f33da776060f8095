"""``tracedb export``: files for other tools."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from tracedb.cli.export_perfetto import perfetto
from tracedb.cli.export_sheets import samples_csv, stacks, variance_csv, xlsx
from tracedb.cli.filter_options import filter_options
from tracedb.cli.options import counted, database_option, listed, note, output_option, sort_option

PER_CAPTURE = 5
LIST_SUFFIX = "_kernel_list.txt"


@click.group()
def export() -> None:
    """Write files for other tools: timelines, sheets, input files."""


for _command in (perfetto, xlsx, variance_csv, samples_csv, stacks):
    export.add_command(_command)


@export.command("lake")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@partial(database_option, lake_help="Copy from this lake instead of the database.")
def lake(folder: Path, db: Path) -> None:
    """Copy the captures into a lake of Parquet files.

    Other engines can read a lake, too. DIR is a new folder, an existing lake, or an address (s3://…). Captures that are
    there already are not copied again.
    """
    from tracedb.lake import export as lakes

    done = lakes.export(db, folder)
    note(f"{counted(done.written, 'capture')} written, {done.known} known before: {folder}")


@export.command("rocprof-yaml")
@database_option
@click.option(
    "--report",
    "report_name",
    default="gemm-variance",
    metavar="NAME",
    help="The report whose kernels are counted, in its order.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=PER_CAPTURE,
    metavar="N",
    help=f"The first N kernels, of each capture if the report has captures. [default: {PER_CAPTURE}]",
)
@filter_options
@sort_option
@click.option(
    "--families", is_flag=True, help="Match every instantiation of a kernel's template, not only the one that ran."
)
@click.option(
    "--counters",
    multiple=True,
    callback=listed,
    metavar="A,B",
    help="Counters to read. [default: SQ_BUSY_CU_CYCLES,SQ_WAVES,SQ_WAVE_CYCLES,SQ_INSTS_MFMA]",
)
@click.option(
    "--output-format",
    "formats",
    multiple=True,
    callback=listed,
    metavar="A,B",
    help="Output formats of rocprofv3. [default: csv,json]",
)
@output_option(f"Write to this file instead of stdout; the kernels' names go into FILE's stem with {LIST_SUFFIX}.")
def rocprof_yaml(
    db: Path,
    report_name: str,
    top: int,
    families: bool,
    counters: tuple[str, ...],
    formats: tuple[str, ...],
    out: Path | None,
    **chosen: Any,
) -> None:
    """Write an input file of rocprofv3 that counts kernels.

    They are those of a report, by default the GEMMs of each capture whose time varies most. Each kernel is matched by
    its full name, so that counting slows down no other kernel. Run it with `rocprofv3 -i FILE -- PROGRAM`.
    """
    from tracedb.errors import NotCaptured
    from tracedb.export import rocprofv3
    from tracedb.output import refuse_overwriting, write_text
    from tracedb.report import registry
    from tracedb.report import run as engine
    from tracedb.report.filters import Filters
    from tracedb.report.query import plan
    from tracedb.storage import connection as database

    found = registry.find(report_name)
    with database.open_read_only(db) as connection, engine.explained(connection, db):
        query = plan(connection, found, Filters(**chosen), "v1")
        names = engine.kernel_names(connection, query, top)
    if not names:
        raise NotCaptured(f"report {found.name} has no kernels here")
    job = rocprofv3.job(names, counters or rocprofv3.GUIDE_COUNTERS, formats or ("csv", "json"), families)
    text = rocprofv3.text(job, f"{len(names)} kernels of report {found.name}, the first {top}; by tracedb")
    if out is None:
        click.echo(text, nl=False)
        return
    beside = out.with_name(out.stem + LIST_SUFFIX)
    refuse_overwriting(beside, db, [out])
    for path, content in ((out, text), (beside, "".join(f"{name}\n" for name in names))):
        write_text(content, path)
    note(f"{len(names)} kernels: {out}, names in {beside}; run rocprofv3 -i {out} -- PROGRAM")
