"""Makes the package ``tracedb.report`` callable, since its name is also that of the public function.

Importing any module of the package binds ``tracedb.report`` to the package, which would hide a function of that name.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracedb.report.relation import ReportRelation


class CallableModule(ModuleType):
    """A module that can be called; the function is imported at the first call."""

    def __call__(self, *arguments: Any, **named: Any) -> ReportRelation:
        """Return a report as a DuckDB relation; see ``tracedb.report.relation.report``."""
        from tracedb.report.relation import report

        return report(*arguments, **named)
