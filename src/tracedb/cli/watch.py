"""``tracedb watch``: run a command and write down clocks, power and temperature of the GPUs meanwhile."""

from __future__ import annotations

from pathlib import Path

import click

from tracedb.cli.options import counted, note, warn


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "-o",
    "--output",
    "--out",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the readings here. [default: conditions-DATE-TIME.csv]",
)
@click.option(
    "--hertz",
    type=click.FloatRange(min=0.1, max=1000),
    default=20.0,
    show_default=True,
    metavar="N",
    help="Readings per second of each GPU.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND…")
@click.pass_context
def watch(context: click.Context, out: Path | None, hertz: float, command: tuple[str, ...]) -> None:
    """Run COMMAND and write SM and memory clock, power, temperature and throttle reasons of the GPUs to a file.

    The exit code is that of COMMAND. `tracedb ingest FILE` loads the readings into table device_condition, beside a
    trace of the same run. NVIDIA GPUs are read by NVML (pip install 'tracedb-gpu[conditions]'), AMD GPUs by amdsmi.
    """
    import time

    from tracedb.conditions.watch import watch as run

    path = out or Path(time.strftime("conditions-%Y%m%d-%H%M%S.csv"))
    found = run(command, path, hertz)
    if found.missing is not None:
        warn(f"no GPU was read: {found.missing}")
    readings = counted(found.readings, "reading")
    if found.fault is not None:
        warn(f"{path}: cannot be written: {found.fault}; it ends after {readings}")
    note(f"{readings} in {path}; next: tracedb ingest {path}")
    context.exit(found.exit_code)
