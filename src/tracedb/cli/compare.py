"""``tracedb compare``: runs beside a baseline, and gates for CI."""

from __future__ import annotations

from pathlib import Path

import click

from tracedb.cli.options import capture_option, database_option, note, output_options, warn


@click.command()
@click.argument("sides", nargs=-1, metavar="A B [C…]")
@database_option
@capture_option
@click.option("--baseline", metavar="A", help="Which of the sides the others are compared with. [default: the first]")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(["total", "timeline", "class", "collective", "gemm", "kernel"]),
    help="Only this kind of entry. May be repeated.",
)
@click.option("--skip-warmup", type=click.IntRange(min=0), default=0, metavar="N", help="Leave out the first N steps.")
@click.option("--step-range", metavar="GLOB", help="Ranges of such a name are the steps, not ProfilerStep#N.")
@click.option(
    "--fail-on",
    "limits",
    multiple=True,
    metavar="LIMIT",
    help="End with exit code 4 where this is exceeded: [KIND.]METRIC>LIMIT[%], such as 'total_ns>5%'. May be repeated.",
)
@click.option("--top", type=click.IntRange(min=0), metavar="N", help="The N largest differences of each kind; 0: all.")
@output_options
def compare(
    sides: tuple[str, ...],
    db: Path,
    captures: tuple[str, ...],
    baseline: str | None,
    kinds: tuple[str, ...],
    skip_warmup: int,
    step_range: str | None,
    limits: tuple[str, ...],
    top: int | None,
    format_name: str | None,
    out: Path | None,
) -> None:
    """Compare runs: kernels, classes, GEMMs, collectives, timeline.

    A side is a database file, labels (channels=16 or threads=256,channels=16), or a part of a capture's path or its
    number; all but files are looked up in --db, as is each --capture, which is one more side. Values are means over
    units: steps of ranks where steps are marked, else captures.
    """
    from tracedb import compare as comparison
    from tracedb.errors import UsageError
    from tracedb.output import choose_format, refuse, write

    named = [comparison.side(text, db) for text in sides] + comparison.capture_sides(captures, db)
    sides = tuple(item.name for item in named)
    if len(sides) < 2:
        raise UsageError("compare needs two sides or more")
    if baseline is not None and baseline not in sides:
        raise UsageError(f"--baseline {baseline} is none of the sides: {', '.join(sides)}")
    gates = [comparison.gate(text) for text in limits]
    form = choose_format(format_name, out)
    refuse(out, db, [Path(side) for side in sides])
    if top is None:
        top = 10 if form in ("table", "markdown", "html") else 0
    first = sides.index(baseline) if baseline is not None else 0
    steps = comparison.Steps(skip_warmup, step_range)
    with comparison.compared(named, first, steps) as connection:
        found = comparison.answer(connection, kinds, top)
        found.database = str(db)
        found.warnings += comparison.warnings(connection)
        found.filters = {"baseline": sides[first], "kind": list(kinds), "skip_warmup": skip_warmup}
        found.filters |= {} if step_range is None else {"step_range": step_range}
        note(f"baseline: {sides[first]}; times are means per unit, a step of a rank where steps are marked")
        for text in found.warnings:
            warn(text)
        write(found, form, out)
        failed = comparison.broken(connection, gates)
    for text in failed:
        click.echo(f"tracedb: gate failed: {text}", err=True)
    if failed:
        click.get_current_context().exit(4)
