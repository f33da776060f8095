"""Training data from ordinary traces: rows of the view ``operator_calls``, by capture, from one or several files.

A trace repeats few shapes, so that what it teaches is first of all the time at each of them (``Seen``). Where an
operator occurs at many shapes, a model of its physical sizes is fitted to these, as to the samples of a sweep.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracedb.errors import NotCaptured
from tracedb.regress.dataset import Table, tabulated
from tracedb.regress.model import Target
from tracedb.report.view_template import By, Edits, resolve
from tracedb.storage import resources
from tracedb.storage.connection import in_memory, open_read_only
from tracedb.storage.views import View

if TYPE_CHECKING:
    import pyarrow as pa

VIEW = "v1.operator_calls"
ROWS = """
SELECT
    c.capture, c.gpu, c.sm_count, c.name, c.input_dims, c.input_types, c.math_dtype AS dtype, c.pass,
    c.alone_calls AS calls, c.alone_median_ns AS time_ns, c.alone_spread_percent AS spread_percent,
    c.flops, c.bytes, c.batch, c.product_m AS m, c.product_n AS n, c.product_k AS k
FROM ({by_capture}) AS c
WHERE c.pass <> 'comm' AND (
    regexp_matches(c.input_dims, '[0-9]')
    OR (c.input_types IS NOT NULL AND NOT regexp_matches(c.input_types, 'TensorList|GenericList'))
)
"""
"""Without collectives, and without operators over lists of tensors whose sizes were not recorded: the same text, such
as ``[[], []]``, may then stand for any amount of work."""
FOR_NONE = "SELECT NULL::INTEGER AS for_capture, c.* FROM capture_call AS c WHERE c.time_ns > 0"
FOR_EACH = """
SELECT a.capture AS for_capture, c.*
FROM capture_call AS a
INNER JOIN capture_call AS c
    ON c.name = a.name AND c.input_dims = a.input_dims AND c.pass = a.pass AND c.capture <> a.capture
    AND c.gpu IS NOT DISTINCT FROM a.gpu AND c.input_types IS NOT DISTINCT FROM a.input_types
    AND c.dtype IS NOT DISTINCT FROM a.dtype
WHERE c.time_ns > 0
"""
"""The calls of the other captures at the shapes of each capture."""


@dataclass(frozen=True)
class Seen:
    """The time of an operator at shapes that were recorded, in ns, with its interval."""

    gpu: str | None
    name: str
    input_dims: str
    input_types: str | None
    dtype: str | None
    pass_: str
    sm_count: int | None
    calls: int
    captures: int
    time_ns: float
    low_ns: float
    high_ns: float
    flops: int | None = None
    bytes: int | None = None
    batch: int | None = None
    m: int | None = None
    n: int | None = None
    k: int | None = None
    for_capture: int | None = None
    """The capture that the time is for, if it is that of the other ones."""

    @property
    def shape(self) -> dict[str, int] | None:
        """The sizes that a model of the operator takes (see ``physical_shape``)."""
        return physical_shape(self.input_dims, self.bytes, (self.batch, self.m, self.n, self.k))

    def described(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def seen(databases: Sequence[Path]) -> list[Seen]:
    """Return the times at each recorded shape, over the captures of all files.

    Raises ``NotCaptured`` if there is no operator with shapes and GPU work of its own.
    """
    rows = _statistics([calls(path) for path in databases], FOR_NONE)
    if not rows:
        raise NotCaptured(
            f"{', '.join(map(str, databases))}: no operators with shapes and GPU work beside which no collective ran; "
            "record with torch.profiler.profile(record_shapes=True)"
        )
    return rows


def of_others(table: pa.Table) -> list[Seen]:
    """Return the times of each capture's operators in the other captures on the same kind of GPU."""
    return _statistics([table], FOR_EACH)


def calls(path: Path) -> pa.Table:
    """Return the rows of the view ``operator_calls`` by capture, without collectives."""
    with open_read_only(path) as connection:
        return connection.sql(ROWS.format(by_capture=by_capture())).to_arrow_table()


def _statistics(tables: Sequence[pa.Table], chosen: str) -> list[Seen]:
    import pyarrow as pa

    with in_memory() as connection:
        connection.register("capture_call", pa.concat_tables(tables, promote_options="permissive"))
        connection.execute(f"CREATE TEMP VIEW recorded_call AS {chosen}")
        rows = connection.execute(resources.text("sql", "predict", "seen_shapes.sql")).fetchall()
    return [Seen(*row) for row in rows]


def by_capture() -> str:
    """Return the SELECT of the view ``operator_calls``, by capture."""
    capture = By("capture", lambda base: f"{base}.capture_id")
    return resolve(View("v1", "operator_calls").select, Edits([capture]))


def physical_shape(
    input_dims: str, bytes_: int | None, product: tuple[int | None, int | None, int | None, int | None]
) -> dict[str, int] | None:
    """Return the sizes that decide an operator's time; None if it has no inputs.

    Batch, m, n and k of a product, convolution or attention; else the bytes that it moves; else the elements of its
    first input and of the others. The last two with the length of a row of the first input.
    """
    batch, m, n, k = product
    if m and n and k:
        return {"batch": batch or 1, "m": m, "n": n, "k": k}
    sizes = [size for size in _sizes(input_dims) if size]
    if not sizes or min(min(size) for size in sizes) < 1:
        return None
    row = sizes[0][-1]
    if bytes_:
        return {"bytes": bytes_, "row": row}
    first, *others = map(math.prod, sizes)
    return {"first": first, "others": max(sum(others), 1), "row": row}


def _sizes(input_dims: str) -> list[list[int]]:
    """Return the sizes of all input tensors; a list of tensors is flattened."""
    try:
        found = json.loads(input_dims)
    except ValueError:
        return []
    flat: list[list[int]] = []
    for item in found if isinstance(found, list) else []:
        if isinstance(item, list) and item and all(isinstance(member, list) for member in item):
            flat += item
        elif isinstance(item, list):
            flat.append(item)
    return [size for size in flat if all(isinstance(number, int) for number in size)]


def tables(rows: Sequence[Seen]) -> list[Table]:
    """Return the training tables of the models: shapes of physical sizes by GPU, operator, pass and element type."""
    found: dict[Target, list[tuple[Mapping[str, int], float, int | None]]] = {}
    for row in rows:
        if (shape := row.shape) is not None:
            target = Target(row.gpu or "unknown", row.name, row.pass_, row.dtype)
            found.setdefault(target, []).append((shape, row.time_ns, row.sm_count))
    return [tabulated(target, samples) for target, samples in found.items()]
