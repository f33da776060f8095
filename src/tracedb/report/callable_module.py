"""The module ``tracedb.report`` is called as the function of that name.

``import tracedb.report`` puts the module where ``tracedb.report()`` would be found, so the two are one.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracedb.report.relation import ReportRelation


class CallableModule(ModuleType):
    """A module that passes calls on to ``tracedb.report.relation.report``, which is imported then."""

    def __call__(self, *arguments: Any, **named: Any) -> ReportRelation:
        """Return a report as a DuckDB relation; see ``tracedb.report.relation.report``."""
        from tracedb.report.relation import report

        return report(*arguments, **named)
