"""Errors of predictions against measured times, computed by ``sql/predict``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tracedb.storage import resources
from tracedb.storage.connection import in_memory


class Errors(NamedTuple):
    """Errors of predictions, in percent of the measured times; None without predictions."""

    number: int
    mean: float | None
    median: float | None
    inside: float | None
    """Share of measured times in the predicted interval, in percent."""


def errors(predictions: Iterable[tuple[float, float, float, float]]) -> Errors:
    """Return the errors of predictions, each given as its measured, predicted, lowest and highest time in ns."""
    import pyarrow as pa

    columns = list(zip(*predictions, strict=True)) or [(), (), (), ()]
    names = ("measured_ns", "predicted_ns", "low_ns", "high_ns")
    table = pa.table({name: pa.array(values, pa.float64()) for name, values in zip(names, columns, strict=True)})
    with in_memory() as connection:
        connection.register("prediction", table)
        (row,) = connection.execute(resources.text("sql", "predict", "prediction_errors.sql")).fetchall()
    return Errors(*row)
