"""Predictions as answers: for one shape, and for every sample of a database next to its measured time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracedb.errors import UsageError
from tracedb.output import Answer, Column, Show, from_rows
from tracedb.regress import dataset
from tracedb.regress.model_folder import Library, filled
from tracedb.storage import resources

if TYPE_CHECKING:
    import duckdb

PASSES = ("fwd", "bwd", "step", "comm")

COLUMNS = (
    Column("operator", "VARCHAR", description="Operator."),
    Column("pass", "VARCHAR", description="fwd, bwd, step or comm."),
    Column("shape", "MAP(VARCHAR, BIGINT)", description="Parameter name to value."),
    Column("dtype", "VARCHAR", description="Element type."),
    Column("gpu", "VARCHAR", description="GPU of the samples that the model was fitted to."),
    Column("measured_ns", "DOUBLE", "ns", "Measured time (operator_samples.target_ns), in ns."),
    Column("predicted_ns", "DOUBLE", "ns", "Predicted time, in ns."),
    Column("low_ns", "DOUBLE", "ns", "Lower end of the interval that is to hold nine of ten measurements, in ns."),
    Column("high_ns", "DOUBLE", "ns", "Upper end of that interval, in ns."),
    Column("error_percent", "DOUBLE", "percent", "Predicted less measured time over the measured one, in percent."),
    Column("outside", "VARCHAR[]", description="Parameters that lie beyond the samples of the model."),
)


@dataclass
class Beside:
    """Predictions next to measurements, and the samples that were left out."""

    answer: Answer
    times: list[tuple[float, float, float, float]] = field(default_factory=list)
    """Measured, predicted, lowest and highest time of each sample, in ns."""
    left_out: list[str] = field(default_factory=list)
    trained: int = 0
    """Number of samples that their models were fitted to, by the digest of each model's samples."""


def parse_shape(text: str) -> dict[str, int]:
    """Parse the parameters of ``b=4,h=32``. Raises ``UsageError``."""
    shape: dict[str, int] = {}
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if not equals or not key or not value.strip().isdecimal():
            raise UsageError(f"--shape: {part.strip()!r} is not KEY=NUMBER; write b=4,h=32,l=4096")
        if key in shape:
            raise UsageError(f"--shape: {key} is given twice")
        shape[key] = int(value)
    return shape


def of_shape(
    models: Library, operator: str, shape: Mapping[str, int], gpu: str | None, dtype: str | None, pass_: str | None
) -> Answer:
    """Return the prediction for one shape, for one pass or for every pass with a model."""
    passes = [pass_] if pass_ else _passes(models, operator, gpu)
    rows = []
    for item in passes:
        model = models.find(gpu, operator, item, dtype)
        (found,) = models.predict_many(gpu, operator, item, dtype, [shape])
        times = (None, found.predicted_ns, found.low_ns, found.high_ns, None)
        rows.append(
            (operator, item, filled(model, shape), model.target.dtype, model.target.gpu, *times, list(found.outside))
        )
    return _answer(rows, is_measured=False)


def _passes(models: Library, operator: str, gpu: str | None) -> list[str]:
    there = {target.pass_ for target in models.targets if target.operator == operator}
    if not there:
        models.find(gpu, operator, PASSES[0], None)  # raises with the list of what there is
    return sorted(there, key=PASSES.index)


def of_database(models: Library, connection: duckdb.DuckDBPyConnection) -> Beside:
    """Return the predictions of all samples of a database that have a model, next to their measured times."""
    places: list[tuple[object, ...]] = []
    outside: list[list[str]] = []
    times: list[tuple[float, float, float, float]] = []
    left_out: list[str] = []
    trained = 0
    for table in dataset.tables(connection):
        target = table.target
        try:
            model = models.find(target.gpu, target.operator, target.pass_, target.dtype)
            found = models.predict_many(target.gpu, target.operator, target.pass_, target.dtype, table.shapes)
        except UsageError as error:
            left_out.append(f"{target}: {len(table.shapes)} samples left out: {error}")
            continue
        if getattr(model, "facts", {}).get("data_sha256") == table.digest():
            trained += len(table.shapes)
        for shape, measured, item in zip(table.shapes, table.times, found, strict=True):
            times.append((measured, item.predicted_ns, item.low_ns, item.high_ns))
            places.append((target.operator, target.pass_, shape, target.dtype, target.gpu))
            outside.append(list(item.outside))
    errors = _errors(connection, times)
    rows = [
        (*place, *found, error, beyond)
        for place, found, error, beyond in zip(places, times, errors, outside, strict=True)
    ]
    return Beside(_answer(rows), times, left_out, trained)


def _errors(
    connection: duckdb.DuckDBPyConnection, times: Sequence[tuple[float, float, float, float]]
) -> list[float | None]:
    """Return the error of each prediction in percent; None if the measured time is 0."""
    import pyarrow as pa

    columns = {
        "place": pa.array(range(len(times)), pa.int64()),
        "measured_ns": pa.array([item[0] for item in times], pa.float64()),
        "predicted_ns": pa.array([item[1] for item in times], pa.float64()),
    }
    connection.register("prediction", pa.table(columns))
    try:
        found = connection.execute(resources.text("sql", "predict", "row_errors.sql")).fetchall()
    finally:
        connection.unregister("prediction")
    return [error for (error,) in found]


def _answer(rows: Sequence[Sequence[object]], is_measured: bool = True) -> Answer:
    answer = from_rows(COLUMNS, rows)
    answer.report = "predict"
    answer.shows = [
        Show(("operator",), floor=12),
        Show(("pass",)),
        Show(("shape",), kind="labels", floor=24),
        Show(("dtype",), drop=3),
        *([Show(("measured_ns",), "measured", scale="time")] if is_measured else []),
        Show(("predicted_ns",), "predicted", scale="time"),
        Show(("low_ns",), "low", drop=1, scale="time"),
        Show(("high_ns",), "high", drop=1, scale="time"),
        *([Show(("error_percent",), "error", drop=2)] if is_measured else []),
    ]
    return answer
