"""What was recorded: the unique operators of a capture's passes, and the order of their calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracedb.errors import NotCaptured, UsageError
from tracedb.storage import resources, statements

if TYPE_CHECKING:
    import duckdb

ACCUMULATE = "torch::autograd::AccumulateGrad"
"""The autograd node that stores a parameter's gradient; its input has the parameter's shape."""


@dataclass(frozen=True)
class Selection:
    """What is to be replayed: a capture, and of its passes a step, ranges of a name, or all."""

    capture_id: int
    step: int | None = None
    range_glob: str | None = None


@dataclass(frozen=True)
class Signature:
    """A unique operator as recorded. Shapes, types, strides and values are one entry per input."""

    signature_id: int
    hint: str
    """operator, memcpy, memset; or why it cannot be replayed (collective, graph_only, no_operator, no_shapes)."""
    name: str
    dims: Sequence[Any]
    types: Sequence[str]
    strides: Sequence[Any]
    values: Sequence[str]
    copy_kind: str | None
    bytes: int | None
    matrix_product: bool
    kernels: str | None
    """What one call launched: JSON text of [name, grid, block], as ``sql/replay`` writes it; None without a GPU."""
    recorded_ns: float
    share_percent: float


@dataclass(frozen=True)
class Recorded:
    """The unique operators by recorded time, and the calls of the first pass in order."""

    selection: Selection
    is_gpu: bool
    signatures: Sequence[Signature]
    sequence: Sequence[int]
    """Numbers of signatures, a call each."""
    parameters: Sequence[tuple[tuple[int, ...], str]]
    """Shape and type of each parameter whose gradient the first pass stores, in the order of the forward pass."""


def prepare(connection: duckdb.DuckDBPyConnection, selection: Selection) -> None:
    """Create the temporary tables ``replay_signature``, ``replay_order`` and ``replay_measure``.

    Raises ``UsageError`` if the capture has no such step or range, ``NotCaptured`` if it has no work to replay.
    """
    statements.set_variables(
        connection,
        replay_capture=selection.capture_id,
        replay_step=selection.step,
        replay_range=selection.range_glob,
    )
    statements.run(connection, resources.text("sql", "replay", "passes.sql"))
    if not _count(connection, "temp.replay_range"):
        wanted = f"--step {selection.step}" if selection.range_glob is None else f"--range {selection.range_glob!r}"
        raise UsageError(f"{wanted}: capture {selection.capture_id} has none; `tracedb report range-time` lists ranges")
    statements.run(connection, resources.text("sql", "replay", "activity.sql"))
    statements.run(connection, resources.text("sql", "replay", "signatures.sql"))
    if not _count(connection, "temp.replay_signature"):
        raise NotCaptured(
            f"nothing to replay: neither GPU activity nor operators in these passes of capture {selection.capture_id}; "
            "record with torch.profiler and record_shapes=True"
        )


def load(connection: duckdb.DuckDBPyConnection, selection: Selection) -> Recorded:
    """Return what is to be replayed. Raises as ``prepare`` does."""
    prepare(connection, selection)
    rows = connection.execute(
        """SELECT signature_id, hint, name, input_dims, input_types, input_strides, concrete_inputs, copy_kind, bytes,
               coalesce(class = 'matmul', false), kernels, recorded_median_ns, coalesce(share_percent, 0)
           FROM temp.replay_signature ORDER BY signature_id"""
    ).fetchall()
    order = connection.execute(
        "SELECT signature_id FROM temp.replay_order WHERE pass = 1 ORDER BY start_ns, signature_id"
    ).fetchall()
    signatures = [
        Signature(number, hint, name, _list(dims), _list(types), _list(strides), _list(values), *others)
        for number, hint, name, dims, types, strides, values, *others in rows
    ]
    is_gpu = any(signature.kernels is not None for signature in signatures)
    return Recorded(selection, is_gpu, signatures, [number for (number,) in order], _parameters(connection, selection))


def _parameters(connection: duckdb.DuckDBPyConnection, selection: Selection) -> Sequence[tuple[tuple[int, ...], str]]:
    rows = connection.execute(
        """SELECT o.input_dims, o.input_types FROM main.op AS o
           INNER JOIN temp.replay_bound AS b ON b.pass = 1
           WHERE o.capture_id = ? AND o.name = ? AND o.input_dims IS NOT NULL
             AND (b.start_ns IS NULL OR (o.start_ns >= b.start_ns AND o.start_ns < b.end_ns))
           ORDER BY o.start_ns DESC, o.op_id DESC""",
        [selection.capture_id, ACCUMULATE],
    ).fetchall()
    found = []
    for dims, types in rows:
        shapes, names = _list(dims), _list(types)
        if shapes and names and isinstance(shapes[0], list):
            found.append((tuple(shapes[0]), str(names[0])))
    return found


def _list(text: str | None) -> list[Any]:
    """Return a recorded JSON list; what is none is an empty list."""
    try:
        found = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def _count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    ((count,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(count)
