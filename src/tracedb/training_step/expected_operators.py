"""Predict the time of each operator of a database by models of its GPU, and store it for the view ``expected``."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracedb.errors import NotCaptured
from tracedb.pipeline import writable_database
from tracedb.pipeline.task import MEMORY_LIMIT
from tracedb.regress import recorded_calls, store
from tracedb.regress.model import Model, Prediction
from tracedb.regress.model_folder import Models, plain
from tracedb.regress.recorded_calls import Seen, physical_shape
from tracedb.storage.connection import attached, transaction, workbench

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]
"""An operator of a capture at some shapes: a row of ``recorded_calls.calls``."""


@dataclass(frozen=True)
class Expected:
    """The predicted time of one call of an operator of a capture, in ns."""

    row: Row
    time: Prediction
    basis: str
    """recorded, model or others, as in the table ``expected_time``."""
    samples: int


def predict(database: Path, folder: Path, models: Models) -> int:
    """Store the predictions of models for all operators of a database, instead of earlier ones; return their number.

    Raises ``NotCaptured`` if the models know none of them.
    """
    table = recorded_calls.calls(database)
    rows = table.to_pylist()
    found = list(_by_models(rows, models))
    if not found:
        raise NotCaptured(f"{database}: {_unknown(rows, models)}")
    digest = hashlib.sha256((folder / store.DESCRIPTION).read_bytes()).hexdigest()
    _write(database, found, digest)
    return len(found)


def predict_by_others(database: Path) -> int:
    """Store for each capture of a database what the other captures on the same kind of GPU took; return the number.

    Raises ``NotCaptured`` if no operator with the same shapes is in two captures.
    """
    table = recorded_calls.calls(database)
    found = list(_by_others(table))
    if not found:
        raise NotCaptured(
            f"{database}: no operator was recorded at the same shapes by two captures on the same kind of GPU; "
            "name models of other traces with --models"
        )
    _write(database, found, None)
    return len(found)


def _by_others(table: pa.Table) -> Iterator[Expected]:
    rows = {(row["capture"], _key(row)): row for row in table.to_pylist()}
    for item in recorded_calls.of_others(table):
        row = rows[item.for_capture, _seen_key(item)]
        yield Expected(row, Prediction(item.time_ns, item.low_ns, item.high_ns), "others", item.calls)


def _by_models(rows: Sequence[Row], models: Models) -> Iterator[Expected]:
    """Yield the predictions: times recorded at the same shapes, else by a model of the operator."""
    seen = {_seen_key(item): item for item in map(_restored, models.facts.get("calls", ()))}
    left: defaultdict[int, list[tuple[Row, dict[str, int]]]] = defaultdict(list)
    by_number: dict[int, Model] = {}
    for row in rows:
        if item := seen.get(_key(row)):
            yield Expected(row, Prediction(item.time_ns, item.low_ns, item.high_ns), "recorded", item.calls)
            continue
        model, shape = models.exact(row["gpu"] or "unknown", row["name"], row["pass"], row["dtype"]), _shape(row)
        if model is not None and shape is not None and set(shape) == set(model.parameters):
            by_number[id(model)] = model
            left[id(model)].append((row, shape))
    for number, asked in left.items():
        model = by_number[number]
        for (row, _), time in zip(asked, model.predict([shape for _, shape in asked]), strict=True):
            yield Expected(row, time, "model", int(model.facts.get("samples", 0)))


def _shape(row: Row) -> dict[str, int] | None:
    return physical_shape(row["input_dims"], row["bytes"], (row["batch"], row["m"], row["n"], row["k"]))


def _key(row: Row) -> tuple[object, ...]:
    return plain(row["gpu"] or ""), row["name"], row["input_dims"], row["input_types"], row["dtype"], row["pass"]


def _seen_key(item: Seen) -> tuple[object, ...]:
    return plain(item.gpu or ""), item.name, item.input_dims, item.input_types, item.dtype, item.pass_


def _restored(said: Mapping[str, Any]) -> Seen:
    optional = dict.fromkeys(("gpu", "input_types", "dtype", "sm_count"))
    return Seen(**{**optional, **said})


def _unknown(rows: Sequence[Row], models: Models) -> str:
    """Say why models know none of the operators."""
    if not rows:
        return "no operators with shapes and GPU work; record with torch.profiler.profile(record_shapes=True)"
    gpus = _listed(row["gpu"] or "an unknown GPU" for row in rows)
    known = _listed([*models.gpus, *(str(item.get("gpu")) for item in models.facts.get("calls", ()))])
    types = _listed(row["dtype"] for row in rows)
    calls = models.facts.get("calls", ())
    known_types = _listed([*models.dtypes, *(item.get("dtype") for item in calls)])
    kind = "operators of traces" if calls else "sampled operators"
    return (
        f"the models know none of its operators: it was recorded on {gpus} with {types}, they are of {known} with "
        f"{known_types}, fitted to {kind}; "
        "fit models with `tracedb fit --from traces` to traces of the same kind of GPU"
    )


def _listed(names: Iterable[str | None]) -> str:
    return ", ".join(sorted({name for name in names if name is not None})) or "none"


def _write(database: Path, found: Sequence[Expected], digest: str | None) -> None:
    import pyarrow as pa

    names = ("gpu", "name", "input_dims", "input_types", "math_dtype", "pass")
    values: dict[str, Any] = {
        "capture_id": pa.array([item.row["capture"] for item in found], pa.int32()),
        **{
            name: pa.array([item.row["dtype" if name == "math_dtype" else name] for item in found], pa.string())
            for name in names
        },
        "predicted_ns": [item.time.predicted_ns for item in found],
        "low_ns": [item.time.low_ns for item in found],
        "high_ns": [item.time.high_ns for item in found],
        "basis": [item.basis for item in found],
        "samples": pa.array([item.samples for item in found], pa.int64()),
        "models_sha256": pa.array([digest] * len(found), pa.string()),
    }
    with (
        workbench(MEMORY_LIMIT, 1, database) as connection,
        attached(connection, database),
        transaction(connection),
    ):
        writable_database.prepare(connection, database)
        connection.register("predicted", pa.table(values))
        connection.execute("DELETE FROM main.expected_time")
        connection.execute(
            """INSERT INTO main.expected_time BY NAME
               SELECT p.*, current_timestamp::TIMESTAMP AS predicted_at FROM predicted AS p"""
        )
