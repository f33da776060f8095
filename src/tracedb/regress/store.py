"""Store models as files: descriptions in ``models.json``, arrays in ``models.npz``. They contain no code."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracedb.errors import TracedbError
from tracedb.output.destination import replacing
from tracedb.regress import learners
from tracedb.regress.model import COVERAGE, Model, Target
from tracedb.regress.monotonic import Guard

FORMAT = 1
DESCRIPTION, NUMBERS = "models.json", "models.npz"


def files(folder: Path) -> list[Path]:
    """Return the files that models are stored in."""
    return [folder / DESCRIPTION, folder / NUMBERS]


def save(folder: Path, models: Sequence[Model], facts: Mapping[str, Any]) -> None:
    """Write models; ``facts``: those about all models. Each file is replaced as a whole."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, NDArray[np.generic]] = {}
    described = []
    for number, model in enumerate(models):
        described.append(_described(model))
        arrays |= {f"{number}/{name}": array for name, array in _arrays(model).items()}
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **arrays)
    _replace(folder / NUMBERS, packed.getvalue())
    said = {
        "format": FORMAT,
        **facts,
        "interval_coverage": COVERAGE,
        "numbers_sha256": hashlib.sha256(packed.getvalue()).hexdigest(),
        "models": described,
    }
    _replace(folder / DESCRIPTION, (json.dumps(said, indent=1, allow_nan=False) + "\n").encode())


def read(folder: Path) -> tuple[list[Model], dict[str, Any]]:
    """Return the models of a folder and the facts about all. Raises ``TracedbError`` if there are none or damaged."""
    try:
        said = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        packed = (folder / NUMBERS).read_bytes()
    except FileNotFoundError as error:
        raise TracedbError(
            f"{folder}: holds no models ({Path(error.filename).name} is missing); "
            f"`tracedb fit --models {folder}` makes them"
        ) from error
    except (OSError, ValueError) as error:
        raise TracedbError(f"{folder}: its models cannot be read ({error}); fit them again") from error
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise TracedbError(f"{folder}: its models are not of format {FORMAT}, which this tracedb reads; fit them again")
    if hashlib.sha256(packed).hexdigest() != said.get("numbers_sha256"):
        raise TracedbError(f"{folder}: {NUMBERS} is not the file that {DESCRIPTION} was written with; fit them again")
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        described = said.pop("models")
        return [_restored(item, _of(arrays, number)) for number, item in enumerate(described)], said
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise TracedbError(f"{folder}: its models are damaged ({error}); fit them again") from error


def _described(model: Model) -> dict[str, Any]:
    target = model.target
    return {
        "gpu": target.gpu,
        "operator": target.operator,
        "pass": target.pass_,
        "dtype": target.dtype,
        "parameters": list(model.parameters),
        "sm_count": model.sm_count,
        "learner": model.learner,
        "interval_spreads": model.quantile,
        "allowed_fall": model.guard.allowed,
        **model.facts,
    }


_OWN = ("gpu", "operator", "pass", "dtype", "parameters", "sm_count", "learner", "interval_spreads", "allowed_fall")


def _arrays(model: Model) -> dict[str, NDArray[np.generic]]:
    own = {
        "rates": model.rates,
        "kept": model.kept,
        "guard_sizes": model.guard.sizes,
        "guard_times": model.guard.times,
        "guard_signs": model.guard.signs,
    }
    return {**own, **{f"learned/{name}": array for name, array in model.learned.arrays().items()}}


def _of(arrays: Mapping[str, NDArray[np.generic]], number: int) -> dict[str, NDArray[np.generic]]:
    start = f"{number}/"
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def _restored(said: Mapping[str, Any], arrays: Mapping[str, Any]) -> Model:
    learned = {name.removeprefix("learned/"): array for name, array in arrays.items() if name.startswith("learned/")}
    return Model(
        target=Target(said["gpu"], said["operator"], said["pass"], said["dtype"]),
        parameters=tuple(said["parameters"]),
        sm_count=int(said["sm_count"]),
        learner=said["learner"],
        rates=arrays["rates"],
        kept=arrays["kept"],
        learned=learners.restore(said["learner"], learned),
        quantile=float(said["interval_spreads"]),
        guard=Guard(arrays["guard_sizes"], arrays["guard_times"], arrays["guard_signs"], float(said["allowed_fall"])),
        facts={key: value for key, value in said.items() if key not in _OWN},
    )


def _replace(path: Path, content: bytes) -> None:
    try:
        with replacing(path) as aside:
            aside.write_bytes(content)
    except OSError as error:
        raise TracedbError(f"{path}: cannot be written: {error.strerror}") from error
