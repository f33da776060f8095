"""What a report is."""

from __future__ import annotations

from dataclasses import dataclass

from tracedb.output import Show
from tracedb.report.needs import Needs

PLACE = Show(("labels", "rank"), kind="place")
"""Stands for the columns that say which capture a row is about: --by columns, else labels that vary and the rank."""
CONFIGURATION = Show(("labels",), kind="place")
"""Stands for the columns that say which configuration a row is about, where a row is about several ranks."""
GPUS = Show(("gpus",), "GPUs", "raw")
"""Shown where rows may sum several GPUs."""
CYCLE = Show(("cycle",), kind="raw")
"""Shown where ranks recorded more than once."""


@dataclass(frozen=True)
class Report:
    """A report. ``order`` is SQL; ``{place}`` in it stands for the labels that vary and the rank."""

    view: str
    title: str
    needs: Needs
    order: tuple[str, ...]
    names: tuple[str, ...]
    """Columns that break ties, before all others do."""
    shows: tuple[Show, ...]
    """What eyes see."""
    place: int = 0
    """Where it stands in the list of reports."""
    see: tuple[str, ...] = ()
    """Reports and tables that say more, for the documentation of a report that stands for one of a peer."""
    has_rule: bool = False
    """Whether rule is a column of it."""
    is_by_thread: bool = False
    """Whether rule thread is its default, as in the report of nsys stats that it stands for."""
    range_column: str | None = None
    """The column that names the range of a row, with its domain before a colon if ``has_domain``."""
    has_domain: bool = False
    is_by_row: bool = False
    """Whether its rows are single events: millions of them, which are not kept aside."""
    spans_ranks: bool = False
    """Whether it matches ranks with each other: what stands in the way of that is said, or is an error."""
    text: str | None = None
    """The SELECT with hooks, where the view's own text has none."""
    answers: str = "count(*) > 0"
    """Whether its rows answer the question at all, as SQL over them."""
    summary: str | None = None
    """A SELECT over ``temp.answer`` that says the gist, a line each.

    In it, ``{by}`` stands for the --by columns, a comma after each, ``{group}`` for an expression that says their
    values in words, ``{order}`` for their order, a comma after each, ``{setting}`` for an expression that says which
    configuration a row is about: by the --by columns, else by the labels that vary.
    """

    summary_needs: tuple[str, ...] = ()
    """Columns without which there is no summary: --by may have taken their place."""

    @property
    def name(self) -> str:
        """The name on the command line."""
        return self.view.replace("_", "-")
