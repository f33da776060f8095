"""``tracedb replay``: run the unique operators of a capture again and compare their times."""

from __future__ import annotations

from pathlib import Path

import click

from tracedb.cli.options import (
    FORMATS,
    database_option,
    listed,
    note,
    output_options,
    rows_shown,
    top_option,
    warn,
)


@click.command()
@database_option
@click.option("--capture", metavar="ID|PATHPART", help="The capture to replay. [default: the lowest rank's]")
@click.option("--step", type=click.IntRange(min=0), metavar="N", help="Only this step (ProfilerStep#N).")
@click.option("--range", "range_glob", metavar="GLOB", help="Take each range with a matching name as one pass.")
@click.option("--device", metavar="NAME", help="cuda, cuda:N or cpu. [default: the current GPU]")
@click.option(
    "--mode",
    type=click.Choice(["compare", "isolated", "full"]),
    default="compare",
    show_default=True,
    help="isolated: each unique operator alone; full: a pass in its recorded order; compare: both.",
)
@click.option(
    "--cache",
    type=click.Choice(["cold", "warm"]),
    default="warm",
    show_default=True,
    help="warm: inputs may lie in the device's cache from the call before; cold: other data was read in between.",
)
@click.option(
    "--clock",
    type=click.Choice(["sustained", "rested"]),
    default="sustained",
    show_default=True,
    help="sustained: operators take turns without a pause; rested: a pause before each sample.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Samples of each operator.",
)
@click.option(
    "--operator",
    "operators",
    multiple=True,
    callback=listed,
    metavar="GLOB,…",
    help="Only operators with matching names; with a leading '!', all others.",
)
@click.option(
    "--library",
    "libraries",
    multiple=True,
    metavar="MODULE",
    help="Import this module, which registers operators with PyTorch, and replay these too. May be repeated.",
)
@click.option(
    "--energy",
    type=click.FloatRange(min=0.2),
    metavar="SECONDS",
    help="Also measure energy (NVML): run each operator in a loop for this many seconds.",
)
@click.option(
    "--measured",
    metavar="TIME|CSV",
    help="Measured wall time of a pass without the profiler: 12.5ms, or a CSV with a column duration_s.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Threads of the CPU for each operator, which a trace does not record. [default: PyTorch's]",
)
@click.option(
    "--keep-traces", type=click.Path(path_type=Path), metavar="DIR", help="Keep the profiler's traces of the replay."
)
@top_option
@output_options
def replay(
    db: Path,
    capture: str | None,
    step: int | None,
    range_glob: str | None,
    device: str | None,
    mode: str,
    cache: str,
    clock: str,
    samples: int,
    operators: tuple[str, ...],
    libraries: tuple[str, ...],
    energy: float | None,
    measured: str | None,
    threads: int | None,
    keep_traces: Path | None,
    top: int | None,
    format_name: str | None,
    out: Path | None,
) -> None:
    """Run the unique operators of a capture again, and put their times beside the recorded ones.

    An operator is called by its recorded name, shapes, strides, element types and values, on random tensors of these.
    What cannot be replayed is listed with its share of the time. Results go into the table replay; `tracedb report
    replay` prints them again, `report replay-passes` what they predict for a whole pass.
    """
    from tracedb.errors import UsageError
    from tracedb.output import choose_format
    from tracedb.replay import measured_pass, runner

    if step is not None and range_glob is not None:
        raise UsageError("--step and --range exclude each other: both say what a pass is")
    form = choose_format(format_name, out)
    assert form in FORMATS
    request = runner.Request(
        db,
        capture,
        step,
        range_glob,
        device,
        mode,
        cache,
        clock,
        samples,
        operators,
        libraries,
        energy or 0.0,
        measured_pass.read(measured, range_glob) if measured is not None else None,
        threads,
        keep_traces,
    )
    number = runner.run(request, note)
    _print(db, number, form, rows_shown(form, top), out)


def _print(db: Path, number: int, form: str, top: int, out: Path | None) -> None:
    """Print the report of the replay that was just stored; JSON has the passes beside the rows."""
    from tracedb.output import write
    from tracedb.replay import comparison
    from tracedb.report import registry
    from tracedb.report import run as engine
    from tracedb.report.filters import Filters
    from tracedb.report.query import plan
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    with database.open_read_only(db) as connection, engine.explained(connection, db), interruptible(connection):
        query = plan(connection, registry.find("replay"), Filters(), "v1")
        found = engine.run(connection, db, query, top)
        found.answer.extra = {"comparison": comparison.of(connection, number)}
        for text in found.answer.warnings:
            warn(text)
        for text in found.notes:
            note(text)
        write(found.answer, form, out)
