"""The variance files of the sweep scripts of ROCm/aorta (``sql/export/variance.sql``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.export import answers, queries
from tracedb.output import Answer, refuse_overwriting, write
from tracedb.storage.statements import set_variables

if TYPE_CHECKING:
    import duckdb

    from tracedb.report.filters import Filters

FILES = ("time_variance", "time_variance_with_timestamps", "time_variance_with_collective_overlap")
"""Views, each with the columns of the previous one and more; the file names end in the same words."""


def prepare(connection: duckdb.DuckDBPyConnection, db: Path, filters: Filters, top: int) -> Answer:
    """Select the ``top`` GEMMs of each capture, 0 for all; return the widest answer.

    Raises ``NotCaptured`` if there are no GEMMs.
    """
    ground = answers.take(connection, db, "gemm-variance", filters)
    set_variables(connection, variance_top=top)
    queries.run(connection, "variance")
    return answers.of_view(connection, FILES[-1], ground)


def write_files(connection: duckdb.DuckDBPyConnection, db: Path, ground: Answer, folder: Path, top: int) -> list[Path]:
    """Write the three files into a folder, under the names of the original."""
    which = f"top{top}" if top else "all"
    files = {name: folder / f"{which}_gemm_kernels_{name}.csv" for name in FILES}
    for path in files.values():
        refuse_overwriting(path, db)
    for name, path in files.items():
        write(answers.of_view(connection, name, ground), "csv", path)
    return list(files.values())
