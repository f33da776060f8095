"""Fit and evaluate models of the training tables, and build the answer with their errors."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from itertools import repeat
from multiprocessing import get_context
from typing import Any

import numpy as np

from tracedb.output import Answer, Column, Show, from_rows
from tracedb.regress import model as models
from tracedb.regress import own_features
from tracedb.regress.dataset import VIEW, Table
from tracedb.regress.evaluate import Score, noise_floor, scores
from tracedb.regress.features import features

FEWEST = 12
"""Targets with fewer distinct shapes are left out …"""
FEWEST_ALONG_ONE = 6
"""… or with fewer than this if only one parameter varies, as the sizes of a collective do."""


def judged(table: Table, learner: str, repeats: int, seed: int) -> models.Model:
    """Return the model of all samples of a target; its facts include the errors of models fitted to parts of them."""

    def fit(part: Table) -> models.Model:
        return models.fit(part.target, part.shapes, part.target_ns, part.sm_count, learner, seed)

    found = fit(table)
    known = features(table.target.operator, table.target.pass_, table.shapes, table.sm_count)
    judgement = scores(table, fit, repeats, seed)
    widened = next((score.shortfall for score in judgement if score.split == "grouped"), 1.0)
    found.quantile *= widened
    found.facts = {
        "samples": len(table.shapes),
        "conditions": table.conditions.facts(),
        "data_sha256": table.digest(),
        "ranges": {
            name: [min(shape[name] for shape in table.shapes), max(shape[name] for shape in table.shapes)]
            for name in found.parameters
        },
        "own_features": own_features.function(table.target.operator) is not None,
        "features": [name for name, is_kept in zip(known.names, found.kept, strict=True) if is_kept],
        "noise_floor_percent": noise_floor(table),
        "scores": {score.split: _numbers(score) for score in judgement},
        "interval_widened": round(widened, 4),
    }
    return found


def judge_all(tables: Sequence[Table], learner: str, repeats: int, seed: int, jobs: int) -> Iterator[models.Model]:
    """Yield the evaluated models of targets in order, computed by ``jobs`` processes."""
    if min(jobs, len(tables)) <= 1 or own_features.are_given():
        yield from (judged(table, learner, repeats, seed) for table in tables)
        return
    with ProcessPoolExecutor(min(jobs, len(tables)), mp_context=get_context("spawn")) as pool:
        try:
            yield from pool.map(judged, tables, repeat(learner), repeat(repeats), repeat(seed))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _numbers(score: Score) -> dict[str, float]:
    return {
        "rows": score.rows,
        "mean_percent": round(score.mean_percent, 4),
        "median_percent": round(score.median_percent, 4),
        "p90_percent": round(score.p90_percent, 4),
        "covered_percent": round(score.covered_percent, 2),
    }


def fewest(table: Table) -> int:
    """Return how many distinct shapes a target needs for training and evaluation."""
    varying = sum(len(set(values)) > 1 for values in zip(*(shape.values() for shape in table.shapes), strict=True))
    return FEWEST if varying > 1 else FEWEST_ALONG_ONE


def is_enough(table: Table) -> bool:
    """Whether a target has enough distinct shapes."""
    return len({tuple(shape.values()) for shape in table.shapes}) >= fewest(table)


def facts(learner: str, repeats: int, seed: int) -> dict[str, Any]:
    """Return the facts about all models together."""
    from tracedb import __version__

    return {
        "tracedb": __version__,
        "view": VIEW,
        "learner": learner,
        "seed": seed,
        "split_repeats": repeats,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "fitted_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


_SPLITS = (("random", "random"), ("grouped", "grouped"), ("extrapolation", "extrapolation"))
_NUMBERS: Sequence[tuple[str, Callable[[str], str]]] = (
    ("mean_percent", lambda name: f"Mean error on the {name} split, in percent of the measured time."),
    ("median_percent", lambda name: f"Median error on the {name} split, in percent of the measured time."),
    ("p90_percent", lambda name: f"Error that nine of ten test rows of the {name} split stay below, in percent."),
    ("covered_percent", lambda name: f"Test rows of the {name} split that lie in the interval, in percent."),
)


def answer(fitted: Sequence[models.Model], only_seen: Sequence[Table] = ()) -> Answer:
    """Return the errors of models as rows; without errors for targets known only at the shapes seen."""
    columns = [
        Column("gpu", "VARCHAR", description="GPU of the samples."),
        Column("operator", "VARCHAR", description="Operator."),
        Column("pass", "VARCHAR", description="fwd, bwd, step or comm."),
        Column("dtype", "VARCHAR", description="Element type."),
        Column("samples", "BIGINT", "count", "Samples that the model was fitted to."),
        Column("noise_floor_percent", "DOUBLE", "percent", "Error of predicting a sample by others of the same work."),
    ]
    columns += [
        Column(f"{split}_{number}", "DOUBLE", "percent", said(split))
        for split, _ in _SPLITS
        for number, said in _NUMBERS
    ]
    columns.append(
        Column(
            "interval_widened",
            "DOUBLE",
            description="How many times as wide the interval was made, since it held too few rows of the grouped "
            "split; 1 if it was not. The coverage is that before.",
        )
    )
    rows = [_row(model) for model in fitted]
    blank = (None,) * (len(columns) - 5)
    for table in only_seen:
        target = table.target
        rows.append((target.gpu, target.operator, target.pass_, target.dtype, len(table.shapes), *blank))
    made = from_rows(columns, rows)
    made.report = "fit"
    made.shows = [
        Show(("operator",), floor=12),
        Show(("pass",)),
        Show(("dtype",), drop=2),
        Show(("gpu",), "GPU", kind="gpu", floor=8, drop=1),
        Show(("samples",), "samples"),
        Show(("noise_floor_percent",), "noise"),
        *(
            Show((f"{split}_{number}",), f"{short} {word}")
            for split, short in (("random", "rand."), ("grouped", "group."), ("extrapolation", "extr."))
            for number, word in (("mean_percent", "mean"), ("median_percent", "med."))
        ),
        Show(("grouped_p90_percent",), "group. p90", drop=3),
        Show(("grouped_covered_percent",), "in interval", drop=4),
    ]
    return made


def widened(fitted: Sequence[models.Model]) -> str | None:
    """Say which intervals were made wider than those of the printed coverage; None if none was."""
    named = [
        f"{model.target.operator} {model.target.pass_} {model.target.dtype} "
        f"({model.facts['scores']['grouped']['covered_percent']:.1f} %, {model.facts['interval_widened']:.1f} times)"
        for model in fitted
        if model.facts["interval_widened"] > 1
    ]
    if not named:
        return None
    return (
        "intervals that held too few held-out samples (in interval %) were made wider, so that they would have held "
        f"nine of ten: {', '.join(named)}"
    )


def _row(model: models.Model) -> tuple[object, ...]:
    target, said = model.target, model.facts
    numbers = [said["scores"].get(split, {}).get(number) for split, _ in _SPLITS for number, _ in _NUMBERS]
    row = (target.gpu, target.operator, target.pass_, target.dtype, said["samples"], said["noise_floor_percent"])
    return (*row, *numbers, said.get("interval_widened"))
