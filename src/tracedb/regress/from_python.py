"""``tracedb.fit`` and ``tracedb.predict``: models of operator times from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tracedb.errors import UsageError
from tracedb.regress import own_features, training
from tracedb.regress.model import Prediction
from tracedb.regress.model_folder import Models, load
from tracedb.regress.own_features import Features
from tracedb.regress.predict import PASSES, parse_shape


def fit(
    databases: str | Path | Sequence[str | Path],
    models: str | Path,
    *,
    source: str = "samples",
    operators: Sequence[str] = (),
    learner: str = "blend",
    repeats: int = 1,
    jobs: int | None = None,
    seed: int = 0,
    features: Mapping[str, Features] | None = None,
) -> Models:
    """Fit models of operator times, write them to the folder ``models`` and return them, as ``tracedb fit`` does.

    ``databases``: one file or several. ``source``: ``samples`` (sampled operators) or ``traces`` (operators of ordinary
    traces). ``features``: functions by operator from a shape to its FLOPs, bytes and sizes; the same must be given to
    ``predict``. Raises ``tracedb.errors.NotCaptured`` if there is nothing to fit.
    """
    if source not in training.SOURCES:
        raise UsageError(f"source is {source!r}, expected one of {', '.join(training.SOURCES)}")
    paths = [Path(databases)] if isinstance(databases, str | Path) else [Path(item) for item in databases]
    if not paths:
        raise UsageError("fit needs a database")
    plan = training.Plan(source, learner, tuple(operators), repeats, jobs, seed)
    with own_features.using(features):
        training.fit(paths, Path(models), plan)
    return load(models)


def predict(
    models: str | Path | Models,
    operator: str,
    shape: Mapping[str, int] | str,
    *,
    gpu: str | None = None,
    dtype: str | None = None,
    pass_: str | None = None,
    features: Mapping[str, Features] | None = None,
) -> Prediction:
    """Return the predicted time of an operator at a shape, with its interval: predicted_ns, low_ns, high_ns.

    ``models``: a folder, or what ``fit`` and ``tracedb.regress.load`` return, which is quicker for many predictions.
    ``shape``: sizes by name, or text such as ``b=4,h=32``. ``gpu`` and ``dtype`` are needed if there are models for
    several. ``pass_``: fwd, bwd, step or comm; by default the only one that the models have, else fwd. Raises
    ``tracedb.errors.UsageError`` if there is no model.
    """
    loaded = models if isinstance(models, Models) else load(models)
    sizes = parse_shape(shape) if isinstance(shape, str) else shape
    there = {target.pass_ for target in loaded.targets if target.operator == operator}
    chosen = pass_ or min(there, key=PASSES.index, default=PASSES[0])
    with own_features.using(features):
        (found,) = loaded.predict_many(gpu, operator, chosen, dtype, [sizes])
    return found
