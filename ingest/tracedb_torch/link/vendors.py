"""The vendor of a device: by its name, by the libraries in the header, or by the names of API calls."""

from __future__ import annotations

import re

import duckdb
import numpy as np

from tracedb_torch.link.numpy_columns import Held, Texts
from tracedb_torch.staging import Stage

BY_NAME = (
    ("Intel", re.compile(r"\bIntel\b")),
    ("Meta", re.compile(r"\bMTIA\b")),
    ("AMD", re.compile(r"\bAMD\b|Radeon|Instinct")),
    ("NVIDIA", re.compile(r"NVIDIA|Tesla|GeForce|Quadro|\bTITAN\b|\bRTX\b")),
)
BY_CALL = (
    ("AMD", re.compile("hip[A-Z]")),
    ("NVIDIA", re.compile("cuda[A-Z]|cu[A-Z]")),
    ("Intel", re.compile("(?:ur|ze|pi|sycl)[A-Z]")),
)
CALLS = 1000  # calls whose names are examined


def of_name(name: str | None) -> str | None:
    """Return the vendor by a device's name."""
    return next((vendor for vendor, pattern in BY_NAME if name and pattern.search(name)), None)


def of_rows(stage: Stage, connection: duckdb.DuckDBPyConnection) -> str | None:
    """Return the vendor by the first calls, else by a kernel attribute that only CUPTI records."""
    for call in _calls(stage, connection):
        for vendor, pattern in BY_CALL:
            if pattern.match(call):
                return vendor
    return "NVIDIA" if _has_registers(stage, connection) else None


def _calls(stage: Stage, connection: duckdb.DuckDBPyConnection) -> list[str]:
    if stage.held is None:
        found = connection.execute(
            f"""SELECT DISTINCT t.value FROM (SELECT name FROM staged_launch LIMIT {CALLS}) AS l
            INNER JOIN staged_text AS t ON l.name = t.id ORDER BY t.value"""
        ).fetchall()
        return [name for (name,) in found]
    held = Held(stage.held)
    first = np.arange(min(held.rows("launch"), CALLS))
    if not len(first):
        return []
    names = Texts(held).column(held.column("launch", "name").at(first))
    return sorted(set(names.array(slice(None)).to_pylist()))


def _has_registers(stage: Stage, connection: duckdb.DuckDBPyConnection) -> bool:
    if stage.held is None:
        ((found,),) = connection.execute("SELECT count(registers) > 0 FROM staged_gpu").fetchall()
        return bool(found)
    return bool(Held(stage.held).column("gpu", "registers").is_there.any())
