"""Access to a small number of Arrow rows one by one in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa


def column(rows: pa.RecordBatch | pa.Table, name: str, default: object = None) -> list[Any]:
    """Return the values of a column; ``default`` in every row if there is no such column."""
    return rows.column(name).to_pylist() if name in rows.schema.names else [default] * rows.num_rows


def are_integers(schema: pa.Schema, names: Sequence[str]) -> bool:
    """Whether these columns, where present, are integer or null columns: other types need DuckDB's conversion."""
    kinds = [schema.field(name).type for name in names if name in schema.names]
    return all(pa.types.is_integer(kind) or pa.types.is_null(kind) for kind in kinds)
