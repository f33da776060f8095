"""What a table shows for the names of compared kernels and GEMMs: short forms, and shapes as in other reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.output.shorten import brief, dims
from tracedb.storage import views

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb


def words(connection: duckdb.DuckDBPyConnection) -> Mapping[str, str]:
    """Return the text of each name in ``temp.answer`` that is one of a kernel; different names stay different."""
    rows = connection.execute(
        """SELECT DISTINCT kind = 'gemm', name FROM temp.answer WHERE kind IN ('gemm', 'kernel', 'collective')
           ORDER BY ALL"""
    ).fetchall()
    parts = {name: _parts(name) if is_gemm else (name, "") for is_gemm, name in rows}
    kernels = list(dict.fromkeys(kernel for kernel, _ in parts.values()))
    for text in views.macros("_short_name"):
        connection.execute(text.replace("CREATE MACRO", "CREATE MACRO IF NOT EXISTS"))
    found = connection.execute("SELECT n.name, v1._short_name(n.name) FROM (SELECT unnest(?) AS name) AS n", [kernels])
    short = dict(zip(kernels, brief(kernels, dict(found.fetchall())), strict=True))
    made = {name: f"{short[kernel]} {dims(shapes)}".rstrip() for name, (kernel, shapes) in parts.items()}
    shown = list(made.values())
    return {name: text for name, text in made.items() if shown.count(text) == 1}


def _parts(name: str) -> tuple[str, str]:
    """Return a GEMM's kernel and its shapes, which are JSON."""
    kernel, mark, shapes = name.partition(" [[")
    return kernel, mark.strip() + shapes
