"""The sampling files of estimate-train-time (``sql/export/samples.sql``): ``GPU_OPERATOR_DTYPE_PARTS_PART.csv``."""

from __future__ import annotations

import csv
import io
import re
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tracedb.errors import NotCaptured
from tracedb.export import queries
from tracedb.output import refuse_overwriting, write_text

if TYPE_CHECKING:
    import duckdb

COLLECTIVE = {"elements": "shape", "nodes": "nodes", "gpus_per_node": "GPUsPerNode"}


class Written(NamedTuple):
    """The files written, and the number of shapes left out because only one of their passes was sampled."""

    files: list[Path]
    left_out: int


def write_files(connection: duckdb.DuckDBPyConnection, db: Path, folder: Path, parts: int) -> Written:
    """Write a file for each GPU, operator, element type and part; ``tracedb ingest`` reads them again.

    The k-th shape (from 1) belongs to part p where k mod parts = p - 1. Raises ``NotCaptured`` without samples.
    """
    queries.run(connection, "samples")
    connection.execute("FROM temp.sample_line")
    files: list[Path] = []
    left_out = 0
    for (gpu, operator, dtype), lines in groupby(queries.rows(connection), key=lambda line: tuple(line[:3])):
        found = list(lines)
        header, rows = _table(found)
        left_out += len(found) - len(rows)
        if not rows:
            continue
        named = re.sub(r"[^A-Za-z0-9.+-]", "", gpu.replace("_", "-")), re.sub(r"[^A-Za-z0-9_.-]", "_", operator), dtype
        start = "_".join(named)
        if header[0] == "shape":
            pieces: dict[str, list[list[Any]]] = {f"{nodes}_{gpus}": [] for _, nodes, gpus, _ in rows}
            for row in rows:
                pieces[f"{row[1]}_{row[2]}"].append(row)
        else:
            pieces = {
                f"{parts}_{part}": [row for k, row in enumerate(rows, 1) if k % parts == part - 1]
                for part in range(1, parts + 1)
            }
        for piece, of_part in pieces.items():
            path = folder / f"{start}_{piece}.csv"
            refuse_overwriting(path, db)
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([header, *of_part])
            write_text(text.getvalue(), path)
            files.append(path)
    if not files:
        raise NotCaptured("no sampled operators with a measured time; `tracedb sample` records some")
    return Written(files, left_out)


def _table(lines: list[Any]) -> tuple[list[str], list[list[Any]]]:
    """Return the header and the rows of an operator; shapes have the parameters of the first, or are left out."""
    names = list(lines[0][3])
    is_collective = set(names) == set(COLLECTIVE) and lines[0][7]
    names = list(COLLECTIVE) if is_collective else names
    has_passes = any(line[4] is not None for line in lines)
    header = [COLLECTIVE[name] if is_collective else name for name in names]
    rows = []
    for _, _, _, shape, forward, backward, whole, _ in lines:
        times = [forward, backward] if has_passes else [whole]
        if set(shape) == set(names) and None not in times:
            rows.append([*(shape[name] for name in names), *times])
    return [*header, *(["F_dur(us)", "B_dur(us)"] if has_passes else ["dur(us)"])], rows
