"""Compare models of operator times with those of estimate-train-time, on their samples and the same rows.

``python benchmarks/regress.py FOLDER [--theirs | --only-theirs] [--seeds N] [--jobs N]``; FOLDER holds ``Perlmutter``
and ``Vista`` as their repository does. Needs scikit-learn, and XGBoost for their models. Their models are retrained
from the kinds and settings in their ``GPU.csv``, on raw microseconds. The errors are mean absolute percentages of the
test rows, averaged over seeds: ``random`` is their 80/20 split of rows, ``grouped`` an 80/20 split of their feature
vectors (they fold shapes into sizes, and a random split has a twin of most test rows in training), ``extrapolation``
trains where the product of their features is at most its 80th percentile and tests above.
"""

from __future__ import annotations

import argparse
import ast
import csv
import os
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import ceil
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from tracedb.regress import model
from tracedb.regress.features import multiprocessors

Array = NDArray[np.float64]
SEEDS = (42, 1, 2)
SPLITS = ("random", "grouped", "extrapolation")
BROKEN = ("Vista", "firstStage_optimizer")
"""Rows of tens of seconds among milliseconds, excluded from the means as in the baseline."""


@dataclass(frozen=True)
class Rows:
    """Samples of one target: shapes as recorded, features as computed by estimate-train-time, times in microseconds."""

    cluster: str
    gpu: str
    operator: str
    pass_: str
    shapes: list[dict[str, int]]
    features: Array
    times: Array
    kind: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class Result:
    """Mean errors of one target, in percent, by split: ours, theirs, and the share of test rows in our interval."""

    cluster: str
    operator: str
    pass_: str
    rows: int
    ours: dict[str, float]
    theirs: dict[str, float]
    covered: dict[str, float]


def vocabulary(ranks: int) -> int:
    """Return the rows of their embedding on one rank."""
    return ceil(50257 / (128 * ranks)) * 128


def their_features(operator: str, s: dict[str, int]) -> list[float]:
    """Return the feature vector of a shape as computed by estimate-train-time."""
    ranks, dim = s.get("mp", 1), s.get("dim", 0)
    if operator.startswith("linear"):
        tokens = s["b"] * s["l"]
        into, out = {
            "linear1": (dim, 3 * dim / ranks),
            "linear2": (dim / ranks, dim),
            "linear3": (dim, 4 * dim / ranks),
            "linear4": (4 * dim / ranks, dim),
            "linear_final": (dim, vocabulary(ranks)),
        }[operator]
        return [tokens, into, out]
    if operator == "embedding":
        return [s["b"] * s["l"], vocabulary(ranks), dim]
    if operator.endswith("optimizer"):
        return [ranks, dim, s["encoders"]]
    if operator == "parallel_cross_entropy_128":
        return [s["b"], s["l"], vocabulary(ranks)]
    if operator == "gelu":
        return [s["l"], s["b"], 4 * dim / ranks]
    if "h" not in s:
        return [s["b"], s["l"], dim]
    heads, batch, length = s["h"] / ranks, s["b"] * s["h"] / ranks, s["l"]
    return {
        "baddbmm": [batch, length, dim / s["h"], length],
        "bmm": [batch, length, length, dim / s["h"]],
        "flash_atten": [s["b"], length, heads, dim / s["h"]],
        "RoPE": [length, s["b"], heads, dim / s["h"]],
        "softmax": [s["b"], heads, length, length],
        "ScaledUpperTriangMaskedSoftmax": [batch, length, length],
        "fillmask": [s["b"], heads, length, dim],
    }[operator]


def targets(folder: Path) -> Iterator[Rows]:
    """Yield the targets that estimate-train-time has a model for."""
    for cluster in ("Perlmutter", "Vista"):
        (chosen,) = (path for path in (folder / cluster / "operator").glob("*.csv") if "_" not in path.stem)
        with chosen.open(encoding="utf-8") as file:
            for line in csv.DictReader(file):
                path = chosen.with_name(f"{line['GPU']}_{line['Function']}_{line['Precision']}.csv")
                if path.exists():
                    yield _target(cluster, path, line)


def _target(cluster: str, path: Path, chosen: dict[str, str]) -> Rows:
    with path.open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    column = {"fwd": "F_dur(us)", "bwd": "B_dur(us)"}.get(chosen["Propagation"], "dur(us)")
    shapes = [{name: int(float(line[name])) for name in line if "dur" not in name} for line in lines]
    return Rows(
        cluster,
        chosen["GPU"],
        chosen["Function"],
        chosen["Propagation"] if column != "dur(us)" else "step",
        shapes,
        np.array([their_features(chosen["Function"], shape) for shape in shapes], dtype=np.float64),
        np.array([float(line[column]) for line in lines]),
        chosen["Best_model"],
        ast.literal_eval(chosen["Best_config"]),
    )


def parts(rows: Rows, split: str, seed: int) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Return training and test rows."""
    from sklearn.model_selection import GroupShuffleSplit, train_test_split

    count = np.arange(len(rows.times))
    if split == "random":
        train, test = train_test_split(count, test_size=0.2, random_state=seed)
        return train, test
    if split == "grouped":
        _, groups = np.unique(rows.features, axis=0, return_inverse=True)
        train, test = next(GroupShuffleSplit(1, test_size=0.2, random_state=seed).split(count, groups=groups.ravel()))
        return train, test
    work = rows.features.prod(axis=1)
    large = work > np.percentile(work, 80)
    return np.flatnonzero(~large), np.flatnonzero(large)


def ours(rows: Rows, train: NDArray[np.int_], test: NDArray[np.int_], learner: str) -> tuple[float, float]:
    """Return our mean error and the share of test rows in the interval, both in percent."""
    target = model.Target(rows.gpu, rows.operator, rows.pass_, "fp16")
    shapes = [rows.shapes[row] for row in train]
    fitted = model.fit(target, shapes, rows.times[train] * 1e3, multiprocessors(rows.gpu, None), learner)
    found = fitted.predict([rows.shapes[row] for row in test])
    middle, low, high = (
        np.array(column) / 1e3 for column in zip(*((i.predicted_ns, i.low_ns, i.high_ns) for i in found), strict=True)
    )
    wanted = rows.times[test]
    return float(np.mean(np.abs(middle - wanted) / wanted) * 100), float(
        np.mean((low <= wanted) & (wanted <= high)) * 100
    )


def theirs(rows: Rows, train: NDArray[np.int_], test: NDArray[np.int_]) -> float:
    """Return the mean error of their kind of model with their settings, in percent."""
    if rows.kind == "rforest":
        from sklearn.ensemble import RandomForestRegressor as Regressor
    else:
        from xgboost import XGBRegressor as Regressor
    fitted = Regressor(**rows.settings, random_state=42, n_jobs=1).fit(rows.features[train], rows.times[train])
    wanted = rows.times[test]
    return float(np.mean(np.abs(fitted.predict(rows.features[test]) - wanted) / wanted) * 100)


def judged(task: tuple[Rows, int, bool, bool, str]) -> Result:
    """Return the errors of one target."""
    rows, seeds, with_ours, with_theirs, learner = task
    mine: dict[str, float] = {}
    other: dict[str, float] = {}
    covered: dict[str, float] = {}
    for split in SPLITS:
        draws = [parts(rows, split, seed) for seed in (SEEDS[:seeds] if split != "extrapolation" else SEEDS[:1])]
        if with_ours:
            found = [ours(rows, train, test, learner) for train, test in draws]
            mine[split], covered[split] = (float(value) for value in np.mean(found, axis=0))
        if with_theirs:
            other[split] = float(np.mean([theirs(rows, train, test) for train, test in draws]))
    return Result(rows.cluster, rows.operator, rows.pass_, len(rows.times), mine, other, covered)


def table(results: list[Result]) -> Iterator[str]:
    """Yield the lines of a Markdown table: one row per target, then the means of each cluster."""
    yield (
        "| cluster | operator | pass | rows | random | grouped | extrapolation "
        "| theirs, random | theirs, grouped | theirs, extrapolation | in interval, grouped |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for item in results:
        yield _line([item], f"{item.cluster} | {item.operator} | {item.pass_} | {item.rows}")
    for cluster in ("Perlmutter", "Vista"):
        mine = [item for item in results if item.cluster == cluster and (cluster, item.operator) != BROKEN]
        if mine:
            yield _line(mine, f"**{cluster}** | mean of {len(mine)} targets | | {sum(item.rows for item in mine)}")


def _line(items: list[Result], start: str) -> str:
    mine = " | ".join(_mean([item.ours for item in items], split) for split in SPLITS)
    other = " | ".join(_mean([item.theirs for item in items], split) for split in SPLITS)
    return f"| {start} | {mine} | {other} | {_mean([item.covered for item in items], 'grouped')} |"


def _mean(items: list[dict[str, float]], split: str) -> str:
    """Return the mean over targets; an empty text if it was not requested."""
    return f"{np.mean([item[split] for item in items]):.2f}" if items[0] else ""


def main() -> None:
    """Print the table and the CPU time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--theirs", action="store_true", help="fit their models too")
    parser.add_argument("--only-theirs", action="store_true", help="fit their models alone")
    parser.add_argument("--seeds", type=int, default=3, choices=(1, 2, 3))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--learner", default="blend")
    parser.add_argument("--operator", action="append", help="only this one")
    said = parser.parse_args()
    start = time.perf_counter()
    wanted = [rows for rows in targets(said.folder) if not said.operator or rows.operator in said.operator]
    with_theirs = said.theirs or said.only_theirs
    tasks = [(rows, said.seeds, not said.only_theirs, with_theirs, said.learner) for rows in wanted]
    with ProcessPoolExecutor(said.jobs, mp_context=get_context("spawn")) as pool:
        print("\n".join(table(list(pool.map(judged, tasks)))))
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\n{spent.ru_utime + spent.ru_stime:.0f} s of processor time, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
