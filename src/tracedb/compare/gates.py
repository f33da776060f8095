"""Gates of ``tracedb compare``: limits on growth, judged by SQL over ``temp.answer``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracedb.errors import UsageError
from tracedb.report import gate_text
from tracedb.report.gate_text import GateText
from tracedb.storage.connection import quoted

if TYPE_CHECKING:
    import duckdb

KINDS = ("total", "timeline", "class", "collective", "gemm", "kernel")
_METRICS = {"total_ns": ("base_mean_ns", "mean_ns"), "calls": ("base_calls_per_unit", "calls_per_unit"),
            "call_ns": ("base_call_mean_ns", "call_mean_ns")}  # fmt: skip
_STEP = re.compile(r"^step_ns(?=\s*>)")
"""The length of a step from its first to its last GPU work: the total of the timeline."""
_PARTS = ("computation", "exposed collective", "exposed copy", "busy", "idle", "total")
"""Entries of the timeline (``sql/compare/timeline.sql``). Reports spell them with an underscore, and gates may."""
FEWEST_UNITS = 4
"""Least number of runs, or steps of one run, on a side for the test to decide (``sql/compare/answer.sql``)."""


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
    def growth(self) -> str:
        """SQL for the growth of a row of the answer, in the limit's unit."""
        base, other = _METRICS[self.metric]
        return f"100 * ({other} - {base}) / nullif({base}, 0)" if self.is_percent else f"{other} - {base}"

    @property
    def exceeded(self) -> str:
        """The condition on rows of the answer in which growth exceeds the limit."""
        return f"{self.entries} AND {self.growth} > {self.limit!r}"


@dataclass(frozen=True)
class Verdict:
    """The verdict of a gate: it passed, it failed, or it cannot be judged."""

    gate: Gate
    failed: str = ""
    """What exceeds the limit, in words."""
    undecided: str = ""
    """Why it can neither pass nor fail, in words."""
    passed: str = ""
    """The largest growth of a gate that passed, in words."""


def gate(text: str) -> Gate:
    """Return the gate that ``[KIND.]METRIC>LIMIT[%]`` or ``KIND[NAME][.METRIC]>LIMIT[%]`` means.

    Raises ``UsageError``.
    """
    given = gate_text.parse(_STEP.sub("timeline[total].total_ns", text.strip()))
    if given is None:
        raise UsageError(_unknown(text))
    is_plain = given.name is None and given.metric is None
    kind = "total" if is_plain else given.subject
    metric = given.subject if is_plain else given.metric or "total_ns"
    if metric not in _METRICS or kind not in KINDS:
        raise UsageError(_unknown(text, "" if metric in _METRICS else _meant(metric, given)))
    name = given.name.replace("_", " ") if kind == "timeline" and given.name else given.name
    return Gate(text, kind, metric, given.limit, given.is_percent, name)


def _meant(metric: str, given: GateText) -> str:
    """Return what a gate may mean whose metric is a kind or a part of the timeline; empty if neither."""
    entry = re.sub(r"_(ns|percent)$", "", metric).replace("_", " ")
    words = f"timeline[{entry}]" if entry in _PARTS else f"{metric}.total_ns" if metric in KINDS else ""
    return f"did you mean '{words}>{given.limit_text}'? " if words else ""


def _unknown(text: str, meant: str = "") -> str:
    """Return what is wrong with a gate."""
    return (
        f"--fail-on {text!r}: {meant}expected [KIND.]METRIC>LIMIT[%] or KIND[NAME][.METRIC]>LIMIT[%], such as "
        "'step_ns>5%', 'total_ns>5%', 'kernel.call_ns>20%' or 'timeline[idle]>5%'; "
        f"metrics: step_ns, {', '.join(_METRICS)}; kinds: {', '.join(KINDS)}; `tracedb compare A B --top 0` lists the "
        f"names of each kind, those of timeline are {', '.join(_PARTS)}"
    )


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
    ((entries, units, tested_over),) = connection.execute(
        f"""SELECT count(*), min(least(base_independent_units, independent_units)),
                arg_min(tested_over, least(base_independent_units, independent_units))
            FROM temp.answer WHERE {item.entries}"""
    ).fetchall()
    if not entries and item.name is not None:
        return Verdict(item, undecided=_unnamed(connection, item))
    if beyond_noise and entries and units < FEWEST_UNITS:
        return Verdict(item, undecided=_too_few(units, tested_over))
    rows = _grown(connection, item, beyond_noise, item.exceeded)
    beyond = [row for row in rows if row.p_value is not None and row.p_value < 0.05]
    if beyond:
        more = f", and {len(beyond) - 1} more" if beyond[1:] else ""
        return Verdict(item, failed=f"{beyond[0].side}: {beyond[0].said}" + beyond[0].evidence(beyond_noise) + more)
    untested = [row for row in rows if row.p_value is None]
    if untested:
        return Verdict(
            item,
            undecided=f"{untested[0].side}: {untested[0].said} cannot be told from noise: it occurs in "
            f"fewer than {FEWEST_UNITS} {untested[0].tested_over} of a side",
        )
    if rows:
        return Verdict(item, passed=f"{rows[0].side}: {rows[0].said}, but within the spread" + rows[0].evidence(True))
    below = _grown(connection, item, beyond_noise, item.entries)
    return Verdict(item, passed=f"{below[0].side}: {below[0].said}" if below else "")


def _too_few(units: int, tested_over: str) -> str:
    """Return why the test cannot decide, and what to record."""
    if tested_over == "steps":
        return (
            f"--beyond-noise needs {FEWEST_UNITS} steps a side (ranks of a step count once), and a side has {units}; "
            "record more steps"
        )
    return (
        f"--beyond-noise needs {FEWEST_UNITS} runs a side where a side has several runs or no steps are marked (steps "
        f"of one run are not independent), and a side has {units}; record more runs"
    )


@dataclass(frozen=True)
class _Growth:
    """How an entry of a side grew."""

    side: str
    said: str
    """The entry, both values and the growth in percent, in words."""
    p_value: float | None
    """Of the rank test; without the test 0."""
    tested_over: str
    base_units: int
    units: int

    def evidence(self, is_tested: bool) -> str:
        """Return the result of the test in words, empty without one."""
        if not is_tested:
            return ""
        numbers = f"{self.base_units} and {self.units} {self.tested_over}"
        return f", p = {self.p_value:.2g} over {numbers}" + (" of one run each" if self.tested_over == "steps" else "")


def _grown(connection: duckdb.DuckDBPyConnection, item: Gate, beyond_noise: bool, condition: str) -> list[_Growth]:
    """Return how the entries that fulfil a condition grew, the largest growth first."""
    base, other = _METRICS[item.metric]
    p_value, join = "0.0", ""
    if beyond_noise:
        p_value = "n.p_value"
        join = f"""LEFT JOIN temp.side_noise AS n ON n.side = a.side_number AND n.kind = a.kind AND n.name = a.name
            AND n.metric = {quoted(item.metric)}"""
    rows = connection.execute(
        f"""SELECT a.side, {_on_one_line("a.name")} || ': ' || {_change(item.metric, base, other)}
                    || coalesce(format(' ({{:+.1f}} %)', 100 * ({other} - {base}) / nullif({base}, 0)), ''),
                {p_value}::DOUBLE, a.tested_over, a.base_independent_units, a.independent_units
            FROM (FROM temp.answer WHERE {condition} AND {other} IS NOT NULL AND {base} IS NOT NULL) AS a {join}
            ORDER BY {item.growth} DESC NULLS LAST, {other} - {base} DESC, a.side, a.name"""
    ).fetchall()
    return [_Growth(*row) for row in rows]


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
