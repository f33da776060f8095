"""The section of a page that compares runs with a baseline, as ``tracedb compare`` does."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tracedb import compare as comparison
from tracedb.errors import UsageError
from tracedb.output.shorten import visible
from tracedb.page.contents import Figure, Section
from tracedb.page.tables import table

_TITLES = {
    "timeline": "Where the time of a step goes",
    "total": "All kernels",
    "class": "Classes of kernels",
    "collective": "Collectives",
    "gemm": "GEMMs, by kernel and shapes",
    "kernel": "Kernels",
}


_ORDER = ("side", "kind", "name", "base_mean_ns", "mean_ns", "difference_mean_ns", "ratio", "verdict", "p_value",
          "base_calls_per_unit", "by_calls_mean_ns", "by_time_mean_ns", "status")  # fmt: skip
"""Columns by how soon a reader wants them: on a narrow screen the last ones are out of sight."""


def section(sides: Sequence[str], path: Path, steps: comparison.Steps, top: int) -> Section:
    """Return the comparison of sides with the first one: for each kind of entry a table of the largest differences.

    Raises ``UsageError`` for fewer than two sides, ``NotCaptured`` where a side has nothing to compare.
    """
    if len(sides) < 2:
        raise UsageError("--compare needs two sides or more, as --compare A B; the first is the baseline")
    named = [comparison.side(text, path) for text in sides]
    statements: list[str] = []
    with comparison.compared(named, 0, steps, statements) as connection:
        answers = [(kind, comparison.answer(connection, [kind], top)) for kind in _TITLES]
        made = Section("comparison", "Comparison: " + visible(", ".join(sides)))
        made.notes = [
            visible(comparison.about(connection, sides, 0)),
            f"the {top} largest differences of each kind",
            *map(visible, comparison.tested(connection)),
        ]
        made.gist = [visible(text) for text in comparison.gist(connection)]
        said = [text for _, text in comparison.remarks(connection)] + comparison.warnings(connection)
        made.warnings = [visible(text) for text in said]
        for kind, answer in answers:
            shows = sorted(answer.shows or [], key=lambda show: _ORDER.index(show.columns[0]))
            made.tables.append(table(replace(answer, shows=shows), _TITLES[kind]))
    made.tables = [each for each in made.tables if each.rows]
    words = " ".join(map(shlex.quote, [*sides, "--db", path.name]))
    made.command = visible(f"tracedb compare {words}")
    selects = [f"-- {_TITLES[kind]}\n{comparison.select([kind], top)};" for kind in _TITLES]
    made.sql = "\n\n".join([*statements, *selects])
    made.sql_said = (
        "It runs in a DuckDB shell that was started without a database, in the folder that holds the databases."
    )
    return made


def pictures(sections: Sequence[Section]) -> list[Figure]:
    """Return the pictures of the page that show all captures side by side, which are those of the sides."""
    return [
        figure for item in sections for figure in item.figures if figure.command.startswith("tracedb plot timeline ")
    ]
