"""Gates of ``tracedb expected``: limits on lost time, judged by SQL over the report's rows (``temp.answer``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracedb.errors import NotCaptured, UsageError
from tracedb.report import gate_text
from tracedb.storage.connection import quoted

if TYPE_CHECKING:
    import duckdb

METRICS = {
    "slower": ("count(*) FILTER (a.verdict LIKE 'slower%')", "{:.0f} slower"),
    "lost": ("coalesce(sum(a.lost_ns) FILTER (a.verdict LIKE 'slower%'), 0)", "{:.0f} ns lost"),
    "ratio": ("sum(a.measured_ns) / sum(a.predicted_ns)", "{:.3f} times the predicted time"),
}
"""Metric → its SQL over operators with a prediction, and the words for its value."""
PERCENT = "100 * {} / nullif(sum(a.predicted_ns), 0)"


@dataclass(frozen=True)
class OperatorGate:
    """A limit on a metric, over all operators or over those of a name or pattern."""

    text: str
    metric: str
    name: str | None
    limit: float
    is_percent: bool

    def failure(self, connection: duckdb.DuckDBPyConnection) -> str:
        """Return in words what exceeds the limit; empty if nothing does.

        Raises ``NotCaptured`` if there is no prediction of an operator of the name.
        """
        sql, words = METRICS[self.metric]
        if self.is_percent:
            sql, words = PERCENT.format(sql), "{:.2f} % of the predicted time lost"
        named = "true" if self.name is None else f"(a.name = {quoted(self.name)} OR a.name GLOB {quoted(self.name)})"
        ((known, value, said),) = connection.execute(
            f"""SELECT count(*), {sql}, format({quoted(words)}, ({sql})::DOUBLE)
                FROM temp.answer AS a WHERE a.predicted_ns IS NOT NULL AND {named}"""
        ).fetchall()
        if not known:
            raise NotCaptured(f"--fail-on {self.text} can neither hold nor fail: no operator of that name is predicted")
        return str(said) if value > self.limit else ""


def operator_gate(text: str) -> OperatorGate:
    """Return the gate that ``METRIC[NAME]>LIMIT[%]`` means. Raises ``UsageError``."""
    given = gate_text.parse(text)
    if given is None or given.metric or given.subject not in METRICS or (given.is_percent and given.subject != "lost"):
        raise UsageError(
            f"--fail-on {text!r}: expected METRIC[NAME]>LIMIT, such as 'slower>0', 'lost>2%', 'lost>1000000' (ns) or "
            f"'ratio[aten::mm]>1.2'; metrics: {', '.join(METRICS)}"
        )
    return OperatorGate(text, given.subject, given.name, given.limit, given.is_percent)
