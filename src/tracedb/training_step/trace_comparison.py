"""A trace's operators by shape: predicted next to measured times."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.errors import NotCaptured, TracedbError, UsageError
from tracedb.output import Answer, Column, Show, from_rows
from tracedb.pipeline import run as pipeline
from tracedb.regress.model_folder import Ambiguous, Library, plain
from tracedb.regress.work_model import PRODUCTS
from tracedb.storage import resources
from tracedb.storage.spill_folder import temporary_folder
from tracedb.training_step import recorded_effects, trace_operators
from tracedb.training_step.trace_operators import Recorded

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

HEAD_WIDTH = 128
"""Head width in sweeps whose shapes have no dim."""
Asked = tuple[str, str, dict[str, int]]
"""Operator, pass and shape to look up in the models."""

COLUMNS = (
    Column("operator", "VARCHAR", description="Framework operator."),
    Column(
        "pass", "VARCHAR", description="fwd, bwd (inside autograd), step (inside the optimizer) or comm (collective)."
    ),
    Column("input_dims", "VARCHAR", description="Shapes of its inputs."),
    Column("dtype", "VARCHAR", description="Element type; none if it was not recorded."),
    Column("calls", "BIGINT", "count", "Calls that launched GPU work."),
    Column("measured_ns", "BIGINT", "ns", "Sum of its kernels' durations, in ns."),
    Column("predicted_ns", "DOUBLE", "ns", "Predicted time of all calls, in ns; none if no model covers it."),
    Column("error_percent", "DOUBLE", "percent", "Predicted less measured time over the measured one, in percent."),
    Column("model", "VARCHAR", description="Operator and pass of the model that covers it."),
)


PREDICTED, MODEL = ([column.name for column in COLUMNS].index(name) for name in ("predicted_ns", "model"))


@dataclass
class Compared:
    """The answer and its sums."""

    answer: Answer
    left_out: list[str]
    """What the models do not cover because of its element type or GPU, in words."""
    measured_ms: float
    busy_ms: float
    known_ms: float
    """Measured time of the operators that the models cover."""
    predicted_ms: float
    known_percent: float | None
    """None if nothing was measured."""


def compare(path: Path, models: Library, gpu: str | None, dtype: str | None, most: int = 0) -> Compared:
    """Return a trace's operators next to the models. The trace is loaded into a temporary database, or is a database.

    An operator is only compared with models of its own element type; ``dtype`` is that of operators whose type was not
    recorded, and leaves out all others. ``most``: number of rows, 0 for all. Raises ``TracedbError`` if it cannot be
    read, ``NotCaptured`` if it has no operators with GPU work, or none of an element type that the models know.
    """
    from tracedb.storage.connection import open_read_only

    with temporary_folder() as folder:
        database = path
        if path.suffix != ".duckdb":
            database = Path(folder) / "trace.duckdb"
            for outcome in pipeline.ingest(path, db=database):
                if outcome.error is not None:
                    raise TracedbError(f"{path}: {outcome.error}")
            if not database.exists():
                raise TracedbError(f"{path}: no ingester recognises it")
        with open_read_only(database) as connection:
            return _compare(connection, models, gpu, dtype, most)


def _compare(
    connection: duckdb.DuckDBPyConnection, models: Library, gpu: str | None, dtype: str | None, most: int
) -> Compared:
    captures = connection.execute(
        "SELECT c.capture_id FROM main.capture AS c WHERE c.status <> 'no_gpu_activity' ORDER BY 1"
    ).fetchall()
    if not captures:
        raise NotCaptured("no GPU activity was captured")
    predictions = [
        row
        for (capture_id,) in captures
        for row in _predictions(capture_id, trace_operators.operators(connection, capture_id), models, gpu, dtype)
    ]
    connection.register("operator_prediction", _table(predictions))
    rows = connection.execute(resources.text("sql", "predict", "trace_operators.sql")).fetchall()
    (sums,) = connection.execute(resources.text("sql", "predict", "trace_sums.sql")).fetchall()
    left_out = _left_out(connection, models, dtype)
    if left_out and not any(row[PREDICTED] is not None for row in rows):
        raise NotCaptured(f"no operator can be compared: {'; '.join(left_out)}")
    left_out += _other_cards(connection, models, gpu)
    if _are_as_in_sweep(models, {str(row[MODEL]).split(" ")[0] for row in rows if row[MODEL]}):
        left_out.append(recorded_effects.of_sweeps())
    compared = Compared(from_rows(COLUMNS, rows[:most] if most else rows), left_out, *sums)
    compared.answer.warnings = left_out
    compared.answer.report = "predict"
    compared.answer.shows = [
        Show(("operator",), kind="name", floor=18),
        Show(("pass",)),
        Show(("input_dims",), "input shapes", drop=1, floor=17),
        Show(("dtype",), "type", drop=2),
        Show(("calls",)),
        Show(("measured_ns",), "measured"),
        Show(("predicted_ns",), "predicted"),
        Show(("error_percent",), "error"),
        Show(("model",), drop=2),
    ]
    return compared


def _left_out(connection: duckdb.DuckDBPyConnection, models: Library, dtype: str | None) -> list[str]:
    """Say which operators were not compared because the models are of another element type."""
    known = dtype or ", ".join(models.dtypes) or "none"
    found = []
    for other, operators, measured_ms in connection.execute(
        resources.text("sql", "predict", "trace_left_out.sql")
    ).fetchall():
        what = f"{operators} operator{'' if operators == 1 else 's'} ({measured_ms:.3f} ms)"
        if other is None:
            found.append(f"{what} without a recorded element type left out; --dtype says which it was")
        else:
            found.append(f"{what} of {other} left out: the models are of {known}")
    return found


def _other_cards(connection: duckdb.DuckDBPyConnection, models: Library, gpu: str | None) -> list[str]:
    """Say that the trace is of another GPU than the models, unless ``gpu`` chose them."""
    rows = connection.execute(
        "SELECT DISTINCT d.name FROM main.device AS d WHERE d.is_used AND d.name IS NOT NULL ORDER BY d.name"
    ).fetchall()
    cards = [name for (name,) in rows if plain(name) not in {plain(known) for known in models.gpus}]
    if gpu is not None or not cards:
        return []
    return [f"recorded on {', '.join(cards)}, but the models are of {', '.join(models.gpus)}"]


def _are_as_in_sweep(models: Library, operators: Collection[str]) -> bool:
    """Whether matrix products are among these operators, and were sampled in a sweep without a regime."""
    return any(
        models.find(target.gpu, target.operator, target.pass_, target.dtype).conditions.regime is None
        for target in models.targets
        if target.operator in PRODUCTS and target.operator in operators
    )


def _predictions(
    capture_id: int, recorded: Sequence[Recorded], models: Library, gpu: str | None, dtype: str | None
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of ``operator_prediction`` for the operators of a capture."""
    for item in recorded:
        asked = of_models(item)
        call_ns = (
            _ask(models, gpu, item.dtype or dtype, asked) if asked and dtype in (None, item.dtype or dtype) else None
        )
        is_other = call_ns is None and asked is not None and _is_known(models, gpu, asked)
        dims = " ".join("x".join(map(str, size)) for size in item.dims if size)
        yield (
            capture_id,
            item.name or "(no operator)",
            item.pass_,
            dims or None,
            item.dtype,
            item.calls,
            item.total_ns,
            call_ns,
            f"{asked[0]} {asked[1]}" if asked and call_ns is not None else None,
            is_other,
        )


def _table(rows: Sequence[tuple[object, ...]]) -> pa.Table:
    import pyarrow as pa

    text, number = pa.string(), pa.int64()
    types = {
        **{"capture_id": number, "operator": text, "pass": text, "input_dims": text, "dtype": text},
        **{"calls": number, "measured_ns": number, "call_ns": pa.float64(), "model": text, "is_other_type": pa.bool_()},
    }
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(values, types[name]) for name, values in zip(types, columns, strict=True)})


def _ask(models: Library, gpu: str | None, dtype: str | None, asked: Asked) -> float | None:
    """Return the predicted time of a call; None if the element type is unknown or no model covers it."""
    operator, pass_, shape = asked
    if dtype is None:
        return None
    try:
        names = models.find(gpu, operator, pass_, dtype).parameters
    except Ambiguous:
        raise
    except UsageError:
        return None
    if not set(names) <= set(shape):
        return None
    return models.predict(gpu, operator, pass_, dtype, {name: shape[name] for name in names})[0]


def _is_known(models: Library, gpu: str | None, asked: Asked) -> bool:
    """Whether there is a model of the operator, of whatever element type, that takes the shape."""
    return any(_takes(models, gpu, dtype, asked) for dtype in models.dtypes)


def _takes(models: Library, gpu: str | None, dtype: str, asked: Asked) -> bool:
    operator, pass_, shape = asked
    try:
        return set(models.find(gpu, operator, pass_, dtype).parameters) <= set(shape)
    except UsageError:
        return False


def of_models(item: Recorded) -> Asked | None:
    """Return the model lookup for a recorded operator; None if no sampled operator does its work."""
    name = item.name.removeprefix("aten::")
    first = item.dims[0] if item.dims else ()
    if name in ("mm", "addmm") and len(item.dims) >= 2:
        (rows, depth), (_, columns) = item.dims[-2:] if name == "mm" else item.dims[1:3]
        return _product(rows, depth, columns)
    if name in ("_flash_attention_forward", "_flash_attention_backward") and len(first) == 4:
        offset = 1 if name.endswith("backward") else 0
        b, length, heads, head = item.dims[offset]
        shape = {"mp": 1, "b": b, "h": heads, "l": length, "dim": heads * head}
        return ("flash_atten", "bwd" if offset else "fwd", shape) if head == HEAD_WIDTH else None
    norms = {"native_layer_norm": "layernorm", "_fused_rms_norm": "RMSlayernorm"}
    base = name.removesuffix("_backward")
    if base in norms and len(first) == 3:
        return norms[base], "bwd" if name.endswith("_backward") else "fwd", _tokens(first)
    if base == "gelu" and len(first) == 3 and first[2] % 4 == 0:
        shape = {"mp": 1, "b": first[0], "l": first[1], "dim": first[2] // 4}
        return "gelu", "bwd" if name.endswith("_backward") else "fwd", shape
    if name in ("add", "add_") and len(first) == 3 and item.dims[1:2] == (first,):
        return "res_add", "fwd", _tokens(first)
    if name in ("_softmax", "_softmax_backward_data") and len(first) == 4 and first[2] == first[3]:
        shape = {"mp": 1, "b": first[0], "h": first[1], "l": first[2]}
        return "softmax", "bwd" if name.endswith("data") else "fwd", shape
    return None


def _tokens(size: tuple[int, ...]) -> dict[str, int]:
    return {"b": size[0], "l": size[1], "dim": size[2]}


def _product(rows: int, depth: int, columns: int) -> Asked:
    """Return the linear layer whose forward is this product; if there is none, the square one of equal work."""
    sizes: Mapping[str, tuple[int, int, int]] = {
        "linear2": (columns, depth, columns),
        "linear1": (3 * depth, columns, depth),
        "linear3": (4 * depth, columns, depth),
        "linear4": (4 * columns, depth, columns),
    }
    exact = [
        (whole // part, operator, dim)
        for operator, (whole, part, dim) in sizes.items()
        if whole >= part and whole % part == 0
    ]
    if not exact:
        return "linear2", "fwd", {"mp": 1, "b": 1, "l": rows, "dim": max(round((depth * columns) ** 0.5), 1)}
    ranks, operator, dim = min(exact)
    return operator, "fwd", {"mp": ranks, "b": 1, "l": rows, "dim": dim}
