"""``tracedb.predict_step``: whole training steps from Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import overload

from tracedb.regress.model_folder import Models, load
from tracedb.training_step import configuration, prediction
from tracedb.training_step.predicted_step import Prediction


@overload
def predict_step(
    models: str | Path | Models, step: Mapping[str, object], *, link_gbps: float | None = None
) -> Prediction: ...


@overload
def predict_step(
    models: str | Path | Models, step: str | Path, *, link_gbps: float | None = None
) -> list[Prediction]: ...


def predict_step(
    models: str | Path | Models, step: Mapping[str, object] | str | Path, *, link_gbps: float | None = None
) -> Prediction | list[Prediction]:
    """Return the predicted time of a training step: predicted_ns, low_ns, high_ns, and parts that add up to it.

    ``models``: a folder, or what ``tracedb.fit`` returns. ``step``: its keys as in docs/steps.md, or a file, whose
    steps are returned as a list. ``link_gbps``: bandwidth of the link for collectives without samples. Raises
    ``tracedb.errors.TracedbError`` if the step is faulty or the models lack what it needs.
    """
    loaded = models if isinstance(models, Models) else load(models)
    if isinstance(step, Mapping):
        return prediction.predict(configuration.from_mapping(step), loaded, link_gbps)
    return [prediction.predict(item, loaded, link_gbps) for item in configuration.read(Path(step))]
