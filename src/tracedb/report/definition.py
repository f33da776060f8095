"""The definition of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tracedb.output import Show
from tracedb.report.needs import Needs

PLACE = Show(("labels", "rank"), kind="place")
"""Placeholder for the columns that identify a row's capture: --by columns, else varying labels and the rank."""
CONFIGURATION = Show(("labels",), kind="place")
"""Placeholder for the columns that identify a row's configuration, for rows about several ranks."""
GPUS = Show(("gpus",), "GPUs", "raw")
"""Shown if rows may sum several GPUs."""
RECORDINGS = Show(("straggler_recordings", "recordings"), "straggler in", "pair")
"""Shown if rows may pool several recordings."""
CYCLE = Show(("cycle",), kind="raw")
"""Shown if ranks recorded more than once."""


@dataclass(frozen=True)
class Report:
    """A report. ``order`` is SQL; ``{place}`` in it is replaced by the varying labels and the rank."""

    view: str
    title: str
    needs: Needs
    order: tuple[str, ...]
    names: tuple[str, ...]
    """Columns that break ties, before all others."""
    shows: tuple[Show, ...]
    """The columns of a table for terminals."""
    key: tuple[str, ...] = ()
    """Columns that identify a row. No others break ties, and a table reads no others than it shows. For reports with
    tens of thousands of rows: without it, all columns break ties, and a table reads all."""
    place: int = 0
    """Its position in the list of reports."""
    see: tuple[str, ...] = ()
    """Related reports and tables, for the documentation of a report named after a peer tool's."""
    has_rule: bool = False
    """Whether rule is one of its columns."""
    is_by_thread: bool = False
    """Whether rule thread is its default, as in the nsys stats report it corresponds to."""
    range_column: str | None = None
    """The column with the range's name, preceded by domain and colon if ``has_domain``."""
    has_domain: bool = False
    is_by_row: bool = False
    """Whether its rows are single events: too many for a temporary table, unless they have a summary."""
    is_by_span: bool = False
    """Whether its rows are worked out for each step at load, and on request for other ranges (--range)."""
    spans_ranks: bool = False
    """Whether it matches ranks with each other: obstacles to that are warnings, or an error."""
    text: str | None = None
    """The SELECT with hooks, if the view's own text has none."""
    answers: str = "count(*) > 0"
    """SQL over its rows: whether they answer the question at all."""
    counted: str | None = None
    """A SELECT with as many rows as the view, and faster to count. It serves where no option changes the rows."""
    summary: str | None = None
    """A SELECT over ``temp.answer`` that gives the summary, one line per row.

    In it, ``{by}`` is replaced by the --by columns, each followed by a comma, ``{group}`` by an expression for their
    values in words, ``{order}`` by their order, each followed by a comma, ``{setting}`` by an expression for the row's
    configuration: the --by columns, else the varying labels, ``{row}`` by one for the row's device: the --by columns,
    else the varying labels and rank, ``{whole}`` by what shares of step time are shares of.
    """

    also: tuple[str, ...] = ()
    """Further names of the report."""
    peers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names under which users of another tool look for it, by tool; ``words`` are plain words. They are suggestions:
    the other report may have other columns."""
    wide: Mapping[str, str] = field(default_factory=dict)
    """Maps of which ``--wide`` makes a column for each key, with what is appended to the key in its name."""
    jsonl: str | None = None
    """The SELECT that ``--format jsonl`` writes, if its keys are those of another tool's file; without it, all columns.

    ``{answer}`` in it is replaced by the rows with their place in ``answer_place``, ``{by}`` by the --by columns of
    ``a``, each followed by a comma.
    """
    summary_needs: tuple[str, ...] = ()
    """Columns the summary requires: --by may have replaced them."""
    summary_by: str | None = None
    """The summary where --by has replaced columns that ``summary`` requires."""

    @property
    def name(self) -> str:
        """The name on the command line."""
        return self.view.replace("_", "-")
