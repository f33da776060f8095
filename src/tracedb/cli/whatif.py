"""``tracedb whatif``: the time of a step if some work were faster or removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracedb.cli.filter_options import capture_filter_options
from tracedb.cli.options import counted, database_option, note, output_options, warn
from tracedb.cli.window_option import window_option


@click.command()
@database_option
@capture_filter_options
@click.option(
    "--scale",
    "scales",
    multiple=True,
    metavar="KEY=PATTERN:FACTOR",
    help="Work takes FACTOR times as long: class=CLASS (matmul, collective, copy …; host for work of the host), "
    "name=GLOB (kernels), op=GLOB or range=GLOB (host and GPU work within). May be repeated.",
)
@click.option(
    "--remove",
    "removes",
    multiple=True,
    metavar="KEY=PATTERN",
    help="Leave work out: range=GLOB, op=GLOB, name=GLOB or class=CLASS. May be repeated.",
)
@click.option("--launch-delay", type=click.IntRange(min=0), metavar="NS", help="Time from a launch to its GPU work.")
@click.option(
    "--ranks-equal",
    is_flag=True,
    help="No rank waits for another in collectives, and ranks slower than the median take as long as the median one.",
)
@click.option("--bandwidth", metavar="FACTOR", help="Collectives transfer FACTOR times as fast, such as 2x.")
@click.option("--no-sync", is_flag=True, help="The host waits for no GPU work.")
@click.option(
    "--gpu",
    metavar="NAME|FILE",
    help="Operators take as long as on another card: a product with a known data sheet (H200, MI300X), or a JSON file "
    "as for predict --gpu-spec.",
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="OLD=NEW,…",
    help="Operators take as long as with other sizes of tensors (8=16: a size of 8 becomes 16). May be repeated.",
)
@click.option(
    "--models",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="For --gpu and --shape, take times from these models (tracedb fit --from traces) where they know an operator.",
)
@click.option("--store", is_flag=True, help="Keep the rows in the table whatif (tracedb report whatif).")
@click.option("--step", type=int, metavar="N", help="Only this step. [default: from the first to the last]")
@click.option("--step-range", metavar="GLOB", help="Use ranges with a matching name as steps, not ProfilerStep#N.")
@window_option("Only this period after the first GPU event of a run, such as 10ms:12.5ms, instead of steps.")
@output_options
def whatif(
    db: Path,
    scales: tuple[str, ...],
    removes: tuple[str, ...],
    launch_delay: int | None,
    ranks_equal: bool,
    bandwidth: str | None,
    no_sync: bool,
    gpu: str | None,
    shapes: tuple[str, ...],
    models: Path | None,
    store: bool,
    step: int | None,
    step_range: str | None,
    window: tuple[int, int] | None,
    format_name: str | None,
    out: Path | None,
    **chosen: Any,
) -> None:
    """Estimate the step time if some work were faster or removed.

    The dependencies between host and GPU work stay as recorded. All changes are made together; several of them are
    also made one by one. Without any, the usual changes are compared: which single one is worth most? The column
    "at most" is the gain if the changed work took no time at all.
    """
    from tracedb.errors import NotCaptured, UsageError
    from tracedb.output import choose_format, refuse_overwriting, write
    from tracedb.regress import card_spec, load
    from tracedb.report import caveats, registry, selection, time_caveats
    from tracedb.report import run as engine
    from tracedb.report.filters import Filters
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible
    from tracedb.storage.lake_store import is_lake, shown
    from tracedb.what_if import answer as answers
    from tracedb.what_if import scenario as scenarios
    from tracedb.what_if import store as stored

    if store and is_lake(db):
        raise UsageError(
            f"--store: {shown(db)} is a lake, whose files are not changed; leave --store out, or use --db FILE"
        )
    parts = [*map(scenarios.scaled, scales), *map(scenarios.removed, removes)]
    parts += [] if launch_delay is None else [scenarios.launched_after(launch_delay)]
    parts += [scenarios.equal_ranks()] if ranks_equal else []
    parts += [] if bandwidth is None else [scenarios.faster_network(bandwidth)]
    parts += [scenarios.without_waiting()] if no_sync else []
    if models is not None and gpu is None and not shapes:
        raise UsageError("--models prices the operators for --gpu or --shape; name one of them")
    fitted = None if models is None else load(models)
    parts += [] if gpu is None else [scenarios.on_card(gpu, card_spec.named(gpu), fitted)]
    parts += [scenarios.resized(shapes, fitted)] if shapes else []
    asked = [*parts, scenarios.combined(parts)] if len(parts) > 1 else parts
    if window is not None and (step is not None or step_range is not None):
        raise UsageError("--window takes the place of --step and --step-range; give one of them")
    form = choose_format(format_name, out)
    refuse_overwriting(out, db)
    filters = Filters(step_range=step_range, **chosen)
    with database.open_read_only(db) as connection, engine.explained(connection, db), interruptible(connection):
        scope = selection.select(connection, filters, "v1", needs_rule=False, default_rule=None)
        if reason := time_caveats.all_impossible(connection):
            raise NotCaptured(reason)
        found = answers.answer(connection, asked, step, window)
        found.database = str(db)
        columns = [column.name for column in found.columns]
        # What makes the critical path doubtful makes its times under a change doubtful too.
        found.warnings += caveats.warnings(connection, registry.find("critical-path"), scope, columns)
        for caveat in found.warnings:
            warn(caveat)
        rows = list(found.rows)
        found.rows = rows
        found.notes += ["the dependencies between host and GPU work stay as recorded: see docs/what-if.md"]
        for text in found.notes:
            note(text)
        if left := write(found, form, out):
            note(f"{left} of {len(found.shows or ())} columns did not fit; --format csv shows all")
    if store:
        stored.write(db, found, rows)
        note(f"{counted(len(rows), 'row')} stored: tracedb report whatif --db {db}")
