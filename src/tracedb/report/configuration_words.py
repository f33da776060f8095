"""Names of configurations in a summary, and what else than their labels the ranked ones differ in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracedb.report import captures
from tracedb.report.filters import Scope
from tracedb.storage.connection import quoted

if TYPE_CHECKING:
    import duckdb

RATIO = "ratio_to_best"
"""Column of answers that rank configurations."""


def setting(connection: duckdb.DuckDBPyConnection, scope: Scope) -> str:
    """Return an expression over ``labels`` and ``source`` that names a row's configuration.

    It is the labels that differ between captures; without any of them, the captures that mark steps, else the source.
    """
    if not scope.varying:
        return "'source ' || source"
    items = ", ".join(f"{quoted(key + '=')} || labels[{quoted(key)}]" for key in scope.varying)
    words = [f"nullif(concat_ws(' ', {items}), '')"]
    named = [f"WHEN {quoted(source)} THEN {quoted(name)}" for source, name in _unlabelled(connection, scope).items()]
    words += [f"CASE source {' '.join(named)} END"] if named else []
    return f"coalesce({', '.join(words)}, 'source ' || source)"


def row(scope: Scope) -> str:
    """Return an expression over ``labels``, ``rank``, ``device_id`` and ``capture_id`` that names the row of a device.

    Parts that no row needs to be told apart are left out: labels that do not vary, and the device if captures have one.
    """
    items = [f"{quoted(key + '=')} || labels[{quoted(key)}]" for key in scope.varying] + ["'rank ' || rank"]
    capture = "'capture ' || capture_id"
    own = f"concat_ws(' ', {', '.join(items)})"
    name = f"concat_ws(' ', {own}, {capture})" if scope.names else f"coalesce(nullif({own}, ''), {capture})"
    device = (
        "CASE WHEN count(*) OVER (PARTITION BY capture_id) > 1 THEN 'device ' || coalesce(device_id::VARCHAR, '?') END"
    )
    return f"concat_ws(' ', {name}, {device})"


def _unlabelled(connection: duckdb.DuckDBPyConnection, scope: Scope) -> dict[str, str]:
    """Return for each source the captures with steps that have none of the varying labels, in words."""
    keys = ", ".join(map(quoted, scope.varying))
    rows = connection.execute(
        f"""SELECT s.source, min(s.capture_id), count(*) FROM temp.selected_capture AS s
            SEMI JOIN {scope.version}._step AS t ON t.capture_id = s.capture_id AND t.step IS NOT NULL
            WHERE NOT list_has_any(map_keys(s.labels), [{keys}])
            GROUP BY s.source ORDER BY s.source"""
    ).fetchall()
    if not rows:
        return {}
    names = captures.told_apart(captures.paths(connection))
    return {source: names[first] + (f" and {count - 1} more" if count > 1 else "") for source, first, count in rows}


def warnings(connection: duckdb.DuckDBPyConnection, scope: Scope, columns: Sequence[str]) -> list[str]:
    """Report what the ranked configurations in ``temp.answer`` differ in besides their labels."""
    if RATIO not in columns:
        return []
    ((count, ranks),) = connection.execute(
        "SELECT count(*), list(DISTINCT a.ranks ORDER BY a.ranks) FROM temp.answer AS a"
    ).fetchall()
    if count < 2:
        return []
    ((sources, gpus),) = connection.execute(
        f"""SELECT list(DISTINCT s.source ORDER BY s.source), list(DISTINCT d.name ORDER BY d.name)
            FROM temp.selected_capture AS s
            LEFT JOIN main.device AS d ON d.capture_id = s.capture_id
            SEMI JOIN {scope.version}._step AS t ON t.capture_id = s.capture_id AND t.step IS NOT NULL"""
    ).fetchall()
    differing = {"number of ranks": ranks, "GPU": gpus, "profiler": sources if "source" in columns else None}
    said = [f"{what} ({', '.join(map(str, values))})" for what, values in differing.items() if values and values[1:]]
    said += ["labels (some captures have none)"] if scope.varying and _unlabelled(connection, scope) else []
    if not said:
        return []
    return [
        f"the configurations ranked here may not be comparable, they differ in {'; '.join(said)}: "
        "--where, --capture or --source chooses which"
    ]
