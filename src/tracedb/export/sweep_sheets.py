"""The workbooks of ROCm/aorta's sweep scripts, made from the database (``sql/export/sweep_*.sql``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tracedb.errors import NotCaptured
from tracedb.export import answers, queries
from tracedb.output import refuse_overwriting, write
from tracedb.output.workbook import Sheet, write_workbook
from tracedb.output.write import writing
from tracedb.storage.statements import set_variables

if TYPE_CHECKING:
    import duckdb

    from tracedb.report.filters import Filters

TIMELINE_SHEETS = ("All_Data", "Pivot_Time_ms", "Pivot_Percent", "Summary_By_Config")
COLLECTIVE_SHEETS = ("NCCL_Data",)
TIMELINE = "gpu_timeline_all_configs_{mean}"
COLLECTIVES = "nccl_master_all_configs"


class Written(NamedTuple):
    """The written files, and remarks about them."""

    files: list[Path]
    warnings: list[str]
    missing: str | None
    """Why there are no collectives; None if there are."""


def write_set(
    connection: duckdb.DuckDBPyConnection, db: Path, filters: Filters, out: Path, is_geometric: bool
) -> Written:
    """Write all sheets into one workbook if ``out`` ends in ``.xlsx``, else the set of files into that folder.

    Raises ``NotCaptured`` if there is no GPU activity.
    """
    set_variables(connection, geo_mean=is_geometric)
    ground = answers.take(connection, db, "tracelens-gpu-timeline", filters)
    queries.run(connection, "sweep_configuration")
    queries.run(connection, "sweep_timeline")
    warnings = list(ground.warnings)
    timeline = [Sheet(name, answers.of_view(connection, name, ground)) for name in TIMELINE_SHEETS]
    missing = None
    collectives: list[Sheet] = []
    try:
        ground = answers.take(connection, db, "collectives", filters)
        queries.run(connection, "sweep_collectives")
        collectives = [Sheet(name, answers.of_view(connection, name, ground)) for name in COLLECTIVE_SHEETS]
        warnings += [text for text in ground.warnings if text not in warnings]
    except NotCaptured as error:
        missing = str(error)
        timeline[0].answer.warnings = [*timeline[0].answer.warnings, f"no sheet NCCL_Data: {missing}"]
    if out.suffix.lower() == ".xlsx":
        _book([*timeline, *collectives], out)
        return Written([out], warnings, missing)
    files = _into_folder(connection, db, timeline, collectives, out, "geomean" if is_geometric else "mean")
    return Written(files, warnings, missing)


def _into_folder(
    connection: duckdb.DuckDBPyConnection,
    db: Path,
    timeline: list[Sheet],
    collectives: list[Sheet],
    folder: Path,
    mean: str,
) -> list[Path]:
    books = {folder / f"{TIMELINE.format(mean=mean)}.xlsx": timeline}
    if collectives:
        books[folder / f"{COLLECTIVES}.xlsx"] = collectives
    table = folder / f"{COLLECTIVES}.csv"
    files = [*books, *([table] if collectives else [])]
    for path in files:
        refuse_overwriting(path, db)
    for path, sheets in books.items():
        _book(sheets, path)
    if collectives:
        write(answers.of_view(connection, "NCCL_Data", collectives[0].answer), "csv", table)
    return files


def _book(sheets: list[Sheet], path: Path) -> None:
    with writing(path) as aside:
        write_workbook(sheets, aside)
