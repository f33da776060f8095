"""``tracedb compare``: compare runs with a baseline; can fail a CI job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracedb.cli.filter_options import capture_option
from tracedb.cli.options import database_option, gate_failed, note, output_options, say, warn

if TYPE_CHECKING:
    from tracedb.compare.gates import Verdict


@click.command()
@click.argument("sides", nargs=-1, metavar="[SIDE]…")
@database_option
@capture_option("A capture as a further side")
@click.option("--baseline", metavar="SIDE", help="The side that the others are compared with. [default: the first]")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(["total", "timeline", "class", "collective", "gemm", "kernel"]),
    help="Only this kind of entry. May be repeated.",
)
@click.option(
    "--skip-warmup", type=click.IntRange(min=0), default=0, metavar="N", help="Skip the first N steps of each capture."
)
@click.option("--step-range", metavar="GLOB", help="Use ranges with a matching name as steps, not ProfilerStep#N.")
@click.option(
    "--fail-on",
    "limits",
    multiple=True,
    metavar="LIMIT",
    help="A gate: exit with code 4 if this is exceeded: [KIND.]METRIC>LIMIT[%] or KIND[NAME][.METRIC]>LIMIT[%], such "
    "as 'step_ns>5%' (length of a step), 'total_ns>5%' (kernel time) or 'timeline[idle]>5%'. NAME may be a pattern. "
    "May be repeated.",
)
@click.option(
    "--beyond-noise",
    is_flag=True,
    help="With --fail-on, fail only if the growth is significant: beyond the spread between runs, or between steps of "
    "one run a side (rank test, p < 0.05; ranks of a step count once). Exit code 3 if there are too few to tell.",
)
@click.option(
    "--junit", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the gates as JUnit XML."
)
@click.option("--github", is_flag=True, help="Print failed gates and warnings as GitHub Actions annotations on stderr.")
@click.option(
    "--top", type=click.IntRange(min=0), metavar="N", help="Show the N largest differences of each kind; 0 shows all."
)
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
    beyond_noise: bool,
    junit: Path | None,
    github: bool,
    top: int | None,
    format_name: str | None,
    out: Path | None,
) -> None:
    """Compare runs: kernels, classes, GEMMs, collectives, timeline.

    A SIDE is a database file, labels (channels=16 or threads=256,channels=16), or a capture's number or part of its
    path; all but files are looked up in --db. Two or more are needed. Values are means per step and rank, or per
    capture if no steps are marked.
    """
    from tracedb import compare as comparison
    from tracedb.compare.gates import gate
    from tracedb.errors import UsageError
    from tracedb.output import choose_format, refuse_overwriting, write

    named = [comparison.side(text, db) for text in sides] + comparison.capture_sides(captures, db)
    sides = tuple(item.name for item in named)
    if len(sides) < 2:
        raise UsageError("compare needs two sides or more")
    if baseline is not None and baseline not in sides:
        raise UsageError(f"--baseline {baseline} is none of the sides: {', '.join(sides)}")
    if not limits and (beyond_noise or junit is not None):
        raise UsageError("--beyond-noise and --junit need a gate: name one with --fail-on")
    gates = [gate(text) for text in limits]
    form = choose_format(format_name, out)
    for path in (out, junit):
        refuse_overwriting(path, db, [Path(side) for side in sides])
    is_for_eyes = form in ("table", "markdown", "html")
    if top is None:
        top = 10 if is_for_eyes else 0
    first = sides.index(baseline) if baseline is not None else 0
    steps = comparison.Steps(skip_warmup, step_range)
    with comparison.compared(named, first, steps) as connection:
        shown = kinds or (comparison.kinds_for_eyes(connection) if is_for_eyes else ())
        found = comparison.answer(connection, shown, top)
        found.database = str(db)
        found.warnings += comparison.warnings(connection)
        found.filters = {"baseline": sides[first], "kind": list(kinds), "skip_warmup": skip_warmup}
        found.filters |= {} if step_range is None else {"step_range": step_range}
        found.notes = [comparison.about(connection, sides, first), *comparison.gist(connection)]
        found.notes += comparison.tested(connection)
        for text in found.notes:
            note(text)
        for text in found.warnings:
            warn(text)
        if found.left_out:
            note(found.left_out)
        write(found, form, out)
        verdicts = comparison.judged(connection, gates, first, beyond_noise)
    _tell(verdicts, found.warnings, junit, github)


def _tell(verdicts: Sequence[Verdict], warnings: Sequence[str], junit: Path | None, is_github: bool) -> None:
    """Report which gates failed or cannot be judged, also as JUnit or annotations if requested, and end the command."""
    from tracedb.errors import NotCaptured
    from tracedb.output import ci_reports, write_text

    if junit is not None:
        cases = [ci_reports.Case(item.gate.text, item.failed, item.undecided, item.passed) for item in verdicts]
        write_text(ci_reports.junit("tracedb compare", cases, warnings), junit)
    if is_github:
        for text in warnings:
            say(ci_reports.annotation("warning", "tracedb compare", text))
        for item in verdicts:
            if said := item.failed or item.undecided:
                say(ci_reports.annotation("error", f"tracedb compare: {item.gate.text}", said))
    failed = [item for item in verdicts if item.failed]
    undecided = [item for item in verdicts if item.undecided]
    for item in failed:
        gate_failed(item.gate.text, item.failed)
    if undecided:
        texts = ", ".join(item.gate.text for item in undecided)
        error = NotCaptured(f"--fail-on {texts} can neither hold nor fail: {undecided[0].undecided}")
        if not failed:
            raise error
        warn(str(error))
    for item in verdicts:
        if not item.failed and not item.undecided:
            note(f"passed: {item.gate.text}" + (f": {item.passed}" if item.passed else ""))
    if failed:
        click.get_current_context().exit(4)
