"""Boosted trees (XGBoost): five members, each trained without one fold of the samples. Stored as XGBoost's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracedb.errors import UsageError
from tracedb.regress.folds import MEMBERS, folds, left_out
from tracedb.regress.learners import Samples

if TYPE_CHECKING:
    from types import ModuleType

Array = NDArray[np.float64]

ROUNDS = 250
PARAMETERS = {"max_depth": 6, "eta": 0.1, "subsample": 0.9, "objective": "reg:squarederror", "nthread": 1}


@dataclass
class Trees:
    """Trained members."""

    members: list[Any]
    off: float
    left_out: tuple[Array, Array]

    def predict(self, values: Array) -> tuple[Array, Array]:
        """Return the members' mean, and the spread of their held-out errors."""
        xgboost = _library()
        found = np.stack([member.predict(xgboost.DMatrix(values)) for member in self.members]).astype(np.float64)
        return found.mean(axis=0), np.sqrt(self.off**2 + found.var(axis=0))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return everything that ``restore`` needs."""
        kept: dict[str, NDArray[np.generic]] = {"off": np.array([self.off])}
        for number, member in enumerate(self.members):
            kept[f"member{number}"] = np.frombuffer(bytes(member.save_raw("json")), dtype=np.uint8)
        return kept


def restore(arrays: Mapping[str, NDArray[np.generic]]) -> Trees:
    """Restore stored trees. Raises ``UsageError`` if XGBoost is not installed."""
    xgboost = _library()
    members = []
    for number in range(MEMBERS):
        member = xgboost.Booster()
        member.load_model(bytearray(arrays[f"member{number}"].tobytes()))
        members.append(member)
    return Trees(members, float(np.asarray(arrays["off"])[0]), (np.zeros(0), np.zeros(0)))


def fit(samples: Samples, seed: int) -> Trees:
    """Train the members. Raises ``UsageError`` if XGBoost is not installed."""
    xgboost = _library()
    fold = folds(len(samples.residuals), seed)
    members = []
    for number in range(MEMBERS):
        seen = fold != number
        data = xgboost.DMatrix(samples.values[seen], label=samples.residuals[seen], weight=1 / samples.noise[seen])
        members.append(xgboost.train({**PARAMETERS, "seed": seed}, data, num_boost_round=ROUNDS))
    found = Trees(members, 0.0, (np.zeros(0), np.zeros(0)))
    found.left_out = left_out(
        samples, fold, lambda member, values: np.asarray(members[member].predict(xgboost.DMatrix(values)), np.float64)
    )
    found.off = float(found.left_out[1][0])
    return found


def _library() -> ModuleType:
    try:
        import xgboost
    except ModuleNotFoundError as error:
        raise UsageError(
            "models of --learner trees need XGBoost, which is not installed: pip install 'tracedb-gpu[trees]'"
        ) from error
    module: ModuleType = xgboost
    return module
