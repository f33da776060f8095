"""``tracedb export xlsx`` and ``export variance-csv``: what the sweep scripts of ROCm/aorta write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracedb.cli.filter_options import event_filter_options
from tracedb.cli.options import database_option, note, output_option, warn

PER_CAPTURE = 5


@click.command()
@database_option
@event_filter_options
@click.option("--geo-mean", is_flag=True, help="Average over ranks by the geometric mean.")
@output_option("A folder for the set of files, or FILE.xlsx for one workbook with all sheets.")
def xlsx(db: Path, geo_mean: bool, out: Path | None, **chosen: Any) -> None:
    """Write the workbooks of a sweep: GPU timeline, collectives.

    Each has every configuration of the sweep.
    gpu_timeline_all_configs_mean.xlsx holds All_Data, Pivot_Time_ms, Pivot_Percent and Summary_By_Config;
    nccl_master_all_configs.xlsx, and .csv, hold NCCL_Data. Each workbook ends with notes: units, meanings, warnings.
    `tracedb report NAME -o FILE.xlsx` writes any other report as a sheet.
    """
    from tracedb.errors import UsageError
    from tracedb.export import sweep_sheets
    from tracedb.output import workbook
    from tracedb.report import run as engine
    from tracedb.report.filters import Filters
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    if out is None:
        raise UsageError("name a folder with -o, or one workbook with -o FILE.xlsx")
    workbook.require()
    filters = Filters(**chosen)
    target = out if out.suffix.lower() == ".xlsx" and not out.is_dir() else _folder(out)
    with database.open_read_only(db) as connection, engine.explained(connection, db), interruptible(connection):
        written = sweep_sheets.write_set(connection, db, filters, target, geo_mean)
    for text in written.warnings:
        warn(text)
    if written.missing:
        note(f"without collectives: {written.missing}")
    note(f"wrote {', '.join(map(str, written.files))}")


@click.command("variance-csv")
@database_option
@event_filter_options
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=PER_CAPTURE,
    metavar="N",
    help=f"The N GEMMs of each capture that vary most; 0 is all. [default: {PER_CAPTURE}]",
)
@output_option("A folder for the three files, or FILE.csv for the widest of them; stdout without it.")
def variance_csv(db: Path, top: int, out: Path | None, **chosen: Any) -> None:
    """Write the time variance of GEMMs as CSV.

    The columns are kernel_time_min_us, kernel_time_max_us, time_diff_us and more. -o FOLDER writes three files:
    top5_gemm_kernels_time_variance.csv, the same with the times of the shortest and longest call
    (…_with_timestamps.csv), and with the collectives that overlap them (…_with_collective_overlap.csv).
    """
    from tracedb.export import variance
    from tracedb.output import write
    from tracedb.report import run as engine
    from tracedb.report.filters import Filters
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    filters = Filters(**chosen)
    folder = None if out is None or _is_csv(out) else _folder(out)
    with database.open_read_only(db) as connection, engine.explained(connection, db), interruptible(connection):
        answer = variance.prepare(connection, db, filters, top)
        for text in answer.warnings:
            warn(text)
        if folder is None:
            write(answer, "csv", out)
            return
        files = variance.write_files(connection, db, answer, folder, top)
    note(f"wrote {', '.join(map(str, files))}")


@click.command("stacks")
@database_option
@event_filter_options
@output_option("Write to this file instead of stdout.")
def stacks(db: Path, out: Path | None, **chosen: Any) -> None:
    """Write kernel time by Python stack, as folded stacks.

    speedscope and flamegraph.pl draw them. There is one line for each stack: the stage, the frames from the outermost
    on, the operator and the kernel with semicolons between, then the time in ns. The lines add up to the kernel time.
    """
    from tracedb.export import stacks as folded
    from tracedb.output import refuse_overwriting, write_text
    from tracedb.report import run as engine
    from tracedb.report.filters import Filters
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    refuse_overwriting(out, db)
    filters = Filters(**chosen)
    with database.open_read_only(db) as connection, engine.explained(connection, db), interruptible(connection):
        lines, warnings = folded.text(connection, db, filters)
    for text in warnings:
        warn(text)
    if out is None:
        click.echo(lines, nl=False)
    else:
        write_text(lines, out)


@click.command("samples-csv")
@database_option
@click.option(
    "--parts",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Files for each sweep.",
)
@output_option("A folder for the files.")
def samples_csv(db: Path, parts: int, out: Path | None) -> None:
    """Write sampled operators as CSV files.

    There is one file for each GPU, operator and element type (and part), named GPU_OPERATOR_DTYPE_PARTS_PART.csv, with
    one line per shape. The columns are those of estimate-train-time: the shape, then F_dur(us) and B_dur(us), or
    dur(us) of optimizers and collectives. `tracedb ingest` reads these files again.
    """
    from tracedb.errors import UsageError
    from tracedb.export import samples
    from tracedb.report import run as engine
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    if out is None:
        raise UsageError("name a folder with -o")
    folder = _folder(out)
    with database.open_read_only(db) as connection, engine.explained(connection, db), interruptible(connection):
        written = samples.write_files(connection, db, folder, parts)
    if written.left_out:
        warn(f"{written.left_out} shapes left out: only one of their passes was sampled")
    note(f"wrote {', '.join(map(str, written.files))}")


def _is_csv(out: Path) -> bool:
    """Whether it is one file, or a pipe or device."""
    return not out.is_dir() and (out.suffix.lower() == ".csv" or out.exists())


def _folder(out: Path) -> Path:
    """Return the folder, creating it if needed. Raises ``TracedbError`` if that fails."""
    from tracedb.errors import TracedbError, UsageError

    if out.suffix and not out.is_dir():
        raise UsageError(f"{out}: neither a folder nor a file of a type that this command writes")
    try:
        out.mkdir(exist_ok=True)
    except OSError as error:
        raise TracedbError(f"{out}: cannot be created: {error.strerror}") from error
    return out
