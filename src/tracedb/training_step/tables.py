"""Predicted steps as answers: one row per step, stage or part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracedb.output import Answer, Column, Show, from_rows
from tracedb.training_step.predicted_step import Prediction

_INTERVAL = (
    Column("predicted_ns", "DOUBLE", "ns", "Predicted time, in ns."),
    Column("low_ns", "DOUBLE", "ns", "Lower end of the interval, in ns."),
    Column("high_ns", "DOUBLE", "ns", "Upper end of the interval, in ns."),
)
_MEASURED = (
    Column("measured_ns", "DOUBLE", "ns", "Measured time, in ns; none if unknown."),
    Column("error_percent", "DOUBLE", "percent", "Predicted less measured time over the measured one, in percent."),
)
_SHOW_MEASURED = (Show(("measured_ns",), "measured", scale="time"), Show(("error_percent",), "error"))


def _config(found: Sequence[Prediction]) -> Column:
    whole = all(isinstance(item.step.key, int) for item in found)
    return Column("config", "BIGINT" if whole else "VARCHAR", description="The step: its key, or its file's name.")


def _error(predicted: float, measured: float | None) -> float | None:
    return 100 * (predicted / measured - 1) if measured else None


def by_step(found: Sequence[Prediction]) -> Answer:
    """Return a row for each step."""
    columns = [
        _config(found),
        *_INTERVAL,
        Column("parts", "MAP(VARCHAR, DOUBLE)", description="Part to its share of predicted_ns, in ns."),
        *_MEASURED,
        Column("estimated", "MAP(VARCHAR, VARCHAR)", description="Part without samples to what it was estimated by."),
    ]
    rows = [
        (
            item.step.key,
            *(item.ns, item.low, item.high),
            item.parts,
            item.step.measured_ns,
            _error(item.ns, item.step.measured_ns),
            item.estimated,
        )
        for item in found
    ]
    shows = [
        Show(("config",)),
        Show(("predicted_ns",), "predicted", scale="time"),
        Show(("low_ns",), "low", scale="time"),
        Show(("high_ns",), "high", scale="time"),
        *(_SHOW_MEASURED if any(item.step.measured_ns for item in found) else ()),
    ]
    return _named(columns, rows, shows)


def by_stage(found: Sequence[Prediction]) -> Answer:
    """Return a row for each pipeline stage of each step."""
    columns = [
        _config(found),
        Column("stage", "BIGINT", description="Pipeline stage, from 0."),
        Column("layers", "BIGINT", "count", "Layers of the stage."),
        Column("weights", "BIGINT", "count", "Weights on one rank of the stage."),
        Column("forward_ns", "DOUBLE", "ns", "Forward pass of one micro-batch, in ns."),
        Column("backward_ns", "DOUBLE", "ns", "Backward pass of one micro-batch, recomputation included, in ns."),
        Column("allreduce_ns", "DOUBLE", "ns", "All-reduce of the gradients over the replicas, in ns."),
        Column("optimizer_ns", "DOUBLE", "ns", "Optimizer's step, in ns."),
        Column("allgather_ns", "DOUBLE", "ns", "All-gather of the weights over the replicas, in ns."),
    ]
    rows = [
        (
            *(item.step.key, at.stage.number, at.stage.layers, at.stage.weights),
            *(at.forward, at.backward, at.allreduce, at.optimizer, at.allgather),
        )
        for item in found
        for at in item.stages
    ]
    shows = [
        *(Show((name,)) for name in ("config", "stage", "layers", "weights")),
        *(Show((column.name,)) for column in columns if column.unit == "ns"),
    ]
    return _named(columns, rows, shows)


def by_part(found: Sequence[Prediction], measured: Mapping[str, Mapping[str, float]]) -> Answer:
    """Return a row for each part of each step, with its measured time."""
    columns = [
        _config(found),
        Column("part", "VARCHAR", description="Operator and pass, or another part of the step."),
        Column("predicted_ns", "DOUBLE", "ns", "Its share of the predicted step, in ns."),
        *_MEASURED,
        Column("basis", "VARCHAR", description="model, or what a part without samples was estimated by."),
    ]
    rows: list[tuple[object, ...]] = []
    for item in found:
        recorded = dict(measured.get(item.step.name, {}))
        if recorded and item.step.measured_ns:
            recorded["launch_gaps"] = item.step.measured_ns - sum(recorded.values())
        names = sorted(item.parts, key=lambda name, parts=item.parts: (-parts[name], name))  # type: ignore[misc]
        for name in [*names, *sorted(set(recorded) - set(item.parts))]:
            predicted = item.parts.get(name, 0.0)
            basis = (
                "constant"
                if name == "launch_gaps"
                else item.estimated.get(name, "model" if name in item.parts else None)
            )
            error = _error(predicted, recorded.get(name))
            rows.append((item.step.key, name, predicted, recorded.get(name), error, basis))
    shows = [
        Show(("config",)),
        Show(("part",), floor=18),
        Show(("predicted_ns",), "predicted", scale="time"),
        *(_SHOW_MEASURED if measured else ()),
        Show(("basis",), drop=1, floor=12),
    ]
    return _named(columns, rows, shows)


def _named(columns: Sequence[Column], rows: Sequence[Sequence[object]], shows: list[Show]) -> Answer:
    answer = from_rows(columns, rows)
    answer.report = "predict"
    answer.shows = shows
    return answer
