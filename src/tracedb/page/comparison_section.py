"""The section of a page that compares runs with a baseline, as ``tracedb compare`` does."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tracedb import compare as comparison
from tracedb.errors import UsageError
from tracedb.output.shorten import visible
from tracedb.page.contents import Section
from tracedb.page.tables import table

_TITLES = {
    "total": "All kernels",
    "timeline": "Parts of the GPU's time",
    "class": "Classes of kernels",
    "collective": "Collectives",
    "gemm": "GEMMs, by kernel and shapes",
    "kernel": "Kernels",
}


def section(sides: Sequence[str], path: Path, steps: comparison.Steps, top: int) -> Section:
    """Return the comparison of sides with the first one: for each kind of entry a table of the largest differences.

    Raises ``UsageError`` for fewer than two sides, ``NotCaptured`` where a side has nothing to compare.
    """
    if len(sides) < 2:
        raise UsageError("--compare needs two sides or more, as --compare A B; the first is the baseline")
    named = [comparison.side(text, path) for text in sides]
    statements: list[str] = []
    with comparison.compared(named, 0, steps, statements) as connection:
        answers = [(kind, comparison.answer(connection, [kind], top)) for kind in comparison.KINDS]
        made = Section("comparison", "Comparison: " + visible(", ".join(sides)))
        made.notes = [
            f"baseline: {visible(sides[0])}; times are means per unit, a step of a rank where steps are marked",
            f"the {top} largest differences of each kind",
            *map(visible, comparison.tested(connection)),
        ]
        said = [text for _, text in comparison.remarks(connection)] + comparison.warnings(connection)
        made.warnings = [visible(text) for text in said]
        for kind, answer in answers:
            shows = [show for show in answer.shows or [] if show.columns != ("kind",)]
            made.tables.append(table(replace(answer, shows=shows), _TITLES[kind]))
    made.tables = [each for each in made.tables if each.rows]
    words = " ".join(map(shlex.quote, [*sides, "--db", path.name]))
    made.command = visible(f"tracedb compare {words}")
    selects = [f"-- {_TITLES[kind]}\n{comparison.select([kind], top)};" for kind in comparison.KINDS]
    made.sql = "\n\n".join([*statements, *selects])
    made.sql_said = (
        "It runs in a DuckDB shell that was started without a database, in the folder that holds the databases."
    )
    return made
