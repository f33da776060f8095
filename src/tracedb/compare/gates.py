"""Gates of ``tracedb compare``: limits on growth, judged by SQL over ``temp.answer``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracedb.errors import UsageError
from tracedb.storage.connection import quoted

if TYPE_CHECKING:
    import duckdb

KINDS = ("total", "timeline", "class", "collective", "gemm", "kernel")
_METRICS = {"total_ns": ("base_mean_ns", "mean_ns"), "calls": ("base_calls_per_unit", "calls_per_unit"),
            "call_ns": ("base_call_mean_ns", "call_mean_ns")}  # fmt: skip
_GATE = re.compile(r"(?:(\w+)\[(.+)\](?:\.(\w+))?|(?:(\w+)\.)?(\w+))\s*>\s*([0-9.]+)\s*(%?)", re.DOTALL)
_STEP = re.compile(r"^step_ns(?=\s*>)")
"""The length of a step from its first to its last GPU work: the total of the timeline."""
FEWEST_UNITS = 4
"""Least number of independent units on a side for the test to decide (``sql/compare/answer.sql``)."""


@dataclass(frozen=True)
class Gate:
    """A limit on growth: of all kernel time, of every entry of a kind, or of a named entry."""

    text: str
    kind: str
    metric: str
    limit: float
    is_percent: bool
    name: str | None = None
    """The entry's name or a GLOB pattern; None for every entry."""

    @property
    def entries(self) -> str:
        """The condition that selects its rows of the answer."""
        named = "" if self.name is None else f" AND (name = {quoted(self.name)} OR name GLOB {quoted(self.name)})"
        return f"kind = {quoted(self.kind)}{named}"

    @property
    def exceeded(self) -> str:
        """The condition on rows of the answer in which growth exceeds the limit."""
        base, other = _METRICS[self.metric]
        growth = f"{other} - {base}"
        if self.is_percent:
            growth = f"100 * ({growth}) / nullif({base}, 0)"
        return f"{self.entries} AND {growth} > {self.limit!r}"


@dataclass(frozen=True)
class Verdict:
    """The verdict of a gate: it passed, it failed, or it cannot be judged."""

    gate: Gate
    failed: str = ""
    """What exceeds the limit, in words."""
    undecided: str = ""
    """Why it can neither pass nor fail, in words."""


def gate(text: str) -> Gate:
    """Return the gate that ``[KIND.]METRIC>LIMIT[%]`` or ``KIND[NAME][.METRIC]>LIMIT[%]`` means.

    Raises ``UsageError``.
    """
    match = _GATE.fullmatch(_STEP.sub("timeline[total].total_ns", text.strip()))
    kind = "total" if match is None else match[1] or match[4] or "total"
    metric = "" if match is None else match[5] or match[3] or "total_ns"
    if match is None or metric not in _METRICS or kind not in KINDS:
        raise UsageError(
            f"--fail-on {text!r}: expected [KIND.]METRIC>LIMIT[%] or KIND[NAME][.METRIC]>LIMIT[%], such as "
            "'step_ns>5%', 'total_ns>5%', 'kernel.call_ns>20%' or 'timeline[idle]>5%'; "
            f"metrics: step_ns, {', '.join(_METRICS)}; kinds: {', '.join(KINDS)}"
        )
    try:
        limit = float(match[6])
    except ValueError as error:
        raise UsageError(f"--fail-on {text!r}: {match[6]} is no number") from error
    return Gate(text, kind, metric, limit, bool(match[7]), match[2])


def judge(
    connection: duckdb.DuckDBPyConnection, gates: Sequence[Gate], incomparable: str, beyond_noise: bool
) -> list[Verdict]:
    """Return the verdict of each gate.

    ``incomparable``: why sides cannot be compared; times per call always can be. ``beyond_noise``: growth counts only
    if the rank test finds that the values of the units differ; ``temp.side_noise`` (noise.sql) has the p-values.
    """
    return [_judged(connection, item, incomparable, beyond_noise) for item in gates]


def _judged(connection: duckdb.DuckDBPyConnection, item: Gate, incomparable: str, beyond_noise: bool) -> Verdict:
    if incomparable and item.metric != "call_ns":
        return Verdict(item, undecided=incomparable)
    ((entries, units),) = connection.execute(
        f"SELECT count(*), min(least(base_independent_units, independent_units)) FROM temp.answer WHERE {item.entries}"
    ).fetchall()
    if not entries and item.name is not None:
        return Verdict(item, undecided=_unnamed(connection, item))
    if beyond_noise and entries and units < FEWEST_UNITS:
        return Verdict(
            item,
            undecided=f"--beyond-noise needs {FEWEST_UNITS} steps a side, or runs where no steps are marked (ranks of "
            f"a step count once), and a side has {units}; record more steps",
        )
    rows = _exceeding(connection, item, beyond_noise)
    beyond = [row for row in rows if row[3] is not None and row[3] < 0.05]
    if beyond:
        side, name, growth, p_value = beyond[0]
        said = f"{side}: {name}: {growth}" + (f", p = {p_value:.2g}" if beyond_noise else "")
        return Verdict(item, failed=said + (f", and {len(beyond) - 1} more" if len(beyond) > 1 else ""))
    untested = [row for row in rows if row[3] is None]
    if untested:
        return Verdict(
            item,
            undecided=f"{untested[0][0]}: {untested[0][1]}: {untested[0][2]} cannot be told from noise: it occurs in "
            f"fewer than {FEWEST_UNITS} steps or runs of a side",
        )
    return Verdict(item)


def _exceeding(
    connection: duckdb.DuckDBPyConnection, item: Gate, beyond_noise: bool
) -> list[tuple[str, str, str, float | None]]:
    """Return side, name, growth in words and p-value of each entry that exceeds the limit; without the test the p-value
    is 0."""
    base, other = _METRICS[item.metric]
    p_value, join = "0.0", ""
    if beyond_noise:
        p_value = "n.p_value"
        join = f"""LEFT JOIN temp.side_noise AS n ON n.side = a.side_number AND n.kind = a.kind AND n.name = a.name
            AND n.metric = {quoted(item.metric)}"""
    return connection.execute(
        f"""SELECT a.side, {_on_one_line("a.name")},
                {_change(item.metric, base, other)}
                    || coalesce(format(' ({{:+.1f}} %)', 100 * ({other} - {base}) / nullif({base}, 0)), ''),
                {p_value}::DOUBLE
            FROM (FROM temp.answer WHERE {item.exceeded}) AS a {join}
            ORDER BY {other} - {base} DESC, a.side, a.name"""
    ).fetchall()


def _change(metric: str, base: str, other: str) -> str:
    """Return SQL for both values of a metric in words, times in ns, µs or ms by the larger one."""
    if not metric.endswith("_ns"):
        whole = f"{base} = round({base}) AND {other} = round({other})"
        values = (f"format('{{:{form}}} → {{:{form}}}', {base}, {other})" for form in (".0f", ".6g"))
        return f"CASE WHEN {whole} THEN {next(values)} ELSE {next(values)} END"
    units = "".join(
        f"WHEN greatest({base}, {other}) >= {size} THEN "
        f"format('{{:.3f}} → {{:.3f}} {unit}', {base} / {size}, {other} / {size}) "
        for size, unit in ((1e6, "ms"), (1e3, "µs"))
    )
    return f"CASE {units} ELSE format('{{:.0f}} → {{:.0f}} ns', {base}, {other}) END"


def _on_one_line(column: str) -> str:
    """Return SQL for a name without control characters, which could break lines and control terminals."""
    return f"regexp_replace({column}, '[[:cntrl:]]+', ' ', 'g')"


def _unnamed(connection: duckdb.DuckDBPyConnection, item: Gate) -> str:
    rows = connection.execute(
        f"""SELECT {_on_one_line("name")} FROM temp.answer WHERE kind = ?
            GROUP BY name ORDER BY max(mean_ns) DESC, name LIMIT 6""",
        [item.kind],
    ).fetchall()
    there = ", ".join(name if len(name) <= 60 else f"{name[:59]}…" for (name,) in rows)
    return (
        f"no {item.kind} is named {item.name!r}; existing ones include: {there}"
        if there
        else f"there is no {item.kind}"
    )
