"""The SELECT of a view with its hooks filled in, as ``tracedb report`` does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tracedb.report.view_template import By, Edits, resolve
from tracedb.storage.views import View


def filled(
    view: str,
    columns: str,
    by: Mapping[str, str] | None = None,
    where: Mapping[str, str] | None = None,
    join: Mapping[str, str] | None = None,
    is_part: bool = False,
) -> str:
    """Return a query: ``by={name: SQL over {base}}``, ``where={base: condition}``, ``join={base: text}``, sorted."""
    groups = [By(name, _over(column)) for name, column in (by or {}).items()]
    filters = {base: [condition] for base, condition in (where or {}).items()}
    part = View("v1", "_reached_event").select if is_part else None
    text = resolve(View("v1", view).select, Edits(groups, filters, join or {}, part=part))
    return f"SELECT {columns} FROM ({text}) ORDER BY ALL"


def _over(column: str) -> Callable[[str], str]:
    return lambda base: column.format(base=base)
