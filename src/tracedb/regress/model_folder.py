"""A folder of models, looked up by GPU, operator, pass, element type and shape."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tracedb.errors import UsageError
from tracedb.regress import own_features, store
from tracedb.regress.conditions import Conditions
from tracedb.regress.model import Model, Prediction, Target

Shape = Mapping[str, int]


class OneModel(Protocol):
    """What a prediction needs of the model of a target: one that was fitted, or one of a card that was not sampled."""

    @property
    def target(self) -> Target:
        """What it predicts."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its shape parameters."""

    @property
    def conditions(self) -> Conditions:
        """The state of the device that its times are for."""

    def outside(self, shape: Shape) -> list[str]:
        """Return the parameters of a shape that are beyond the samples."""


class Library(Protocol):
    """Models of several targets: fitted ones, or those of a card that was not sampled."""

    @property
    def targets(self) -> list[Target]:
        """The targets that there are models for, in order."""

    @property
    def gpus(self) -> list[str]:
        """The GPUs that there are models for."""

    @property
    def dtypes(self) -> list[str]:
        """The element types that there are models for."""

    def find(self, gpu: str | None, operator: str, pass_: str, dtype: str | None) -> OneModel:
        """Return the model of a target. Raises ``UsageError`` that lists the available ones."""

    def predict(
        self, gpu: str | None, operator: str, pass_: str, dtype: str | None, shape: Shape
    ) -> tuple[float, float, float]:
        """Return predicted, low and high time in ns of one shape."""

    def predict_many(
        self, gpu: str | None, operator: str, pass_: str, dtype: str | None, shapes: Sequence[Shape]
    ) -> list[Prediction]:
        """Return the prediction at each shape. Raises ``UsageError`` for an unknown target or parameter."""


class Models:
    """Fitted models. GPU names are compared ignoring spaces, dashes and case."""

    def __init__(self, models: Sequence[Model], facts: Mapping[str, Any], name: str) -> None:
        self._models = {self._key(model.target): model for model in models}
        self.facts = dict(facts)
        self._name = name

    @staticmethod
    def _key(target: Target) -> tuple[str, str, str, str | None]:
        return plain(target.gpu), target.operator, target.pass_, target.dtype

    @property
    def targets(self) -> list[Target]:
        """The targets that there are models for, in order."""
        return sorted((model.target for model in self._models.values()), key=str)

    @property
    def gpus(self) -> list[str]:
        """The GPUs that there are models for."""
        return sorted({target.gpu for target in self.targets})

    @property
    def dtypes(self) -> list[str]:
        """The element types that there are models for."""
        return sorted({target.dtype for target in self.targets if target.dtype is not None})

    def exact(self, gpu: str, operator: str, pass_: str, dtype: str | None) -> Model | None:
        """Return the model of exactly this target; None if there is none."""
        return self._models.get(self._key(Target(gpu, operator, pass_, dtype)))

    def find(self, gpu: str | None, operator: str, pass_: str, dtype: str | None) -> Model:
        """Return the model of a target; None for GPU or element type means the only one there is.

        Raises ``UsageError`` that lists the available ones.
        """
        found = self._narrowed(self.targets, "operator", operator, lambda target: target.operator)
        if gpu is not None:
            wanted = plain(gpu)
            found = self._narrowed(found, "GPU", gpu, lambda target: target.gpu, lambda name: plain(name) == wanted)
        found = self._narrowed(found, "pass", pass_, lambda target: target.pass_)
        if dtype is not None:
            found = self._narrowed(found, "element type", dtype, lambda target: str(target.dtype))
        for what, values in (
            ("GPU (--gpu)", {target.gpu for target in found}),
            ("element type (--dtype)", {str(target.dtype) for target in found}),
        ):
            if len(values) > 1:
                raise UsageError(f"{self._name}: {operator} was fitted for several; name the {what}: {listed(values)}")
        return self._models[self._key(found[0])]

    def _narrowed(self, targets: Sequence[Target], what: str, wanted: str, of: Any, fits: Any = None) -> list[Target]:
        found = [target for target in targets if (fits(of(target)) if fits else of(target) == wanted)]
        if not found:
            operator = "" if what == "operator" else f" of {targets[0].operator}"
            raise UsageError(f"{self._name}: no model{operator} for {what} {wanted!r}; there are: "
                             f"{listed({str(of(target)) for target in targets})}")  # fmt: skip
        return found

    def predict(
        self, gpu: str | None, operator: str, pass_: str, dtype: str | None, shape: Shape
    ) -> tuple[float, float, float]:
        """Return predicted, low and high time in ns of one shape."""
        (found,) = self.predict_many(gpu, operator, pass_, dtype, [shape])
        return found.predicted_ns, found.low_ns, found.high_ns

    def predict_many(
        self, gpu: str | None, operator: str, pass_: str, dtype: str | None, shapes: Sequence[Shape]
    ) -> list[Prediction]:
        """Return the prediction at each shape. Raises ``UsageError`` for an unknown target or parameter."""
        model = self.find(gpu, operator, pass_, dtype)
        for shape in shapes:
            check_shape(model, shape, self._name)
        return model.predict(shapes) if shapes else []


def check_shape(model: Model, shape: Shape, name: str) -> None:
    """Raise ``UsageError`` unless the shape has the parameters of the samples, each at least 1, and the operator has
    features of its own just as when the model was fitted."""
    target = model.target
    has_own = bool(model.facts.get("own_features"))
    if has_own != (own_features.function(target.operator) is not None):
        raise UsageError(
            f"{name}: {target.operator} was fitted {'with' if has_own else 'without'} features of its own; "
            + ("give the same function (features=, --features)" if has_own else "fit it again with them")
        )
    wanted = ", ".join(model.parameters)
    for key in shape:
        if key not in model.parameters:
            raise UsageError(f"{name}: {target.operator} was sampled without a parameter {key!r}; it has: {wanted}")
    for key in model.parameters:
        if key not in shape:
            raise UsageError(f"{name}: the shape of {target.operator} lacks {key}; it has: {wanted}")
        if shape[key] < 1:
            raise UsageError(f"{name}: {key}={shape[key]} is not a size; it must be at least 1")


def load(folder: str | Path) -> Models:
    """Return the models of a folder that ``tracedb fit`` wrote."""
    models, facts = store.read(Path(folder))
    return Models(models, facts, str(folder))


def plain(name: str) -> str:
    """Return a normalised GPU name."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def listed(values: Iterable[str]) -> str:
    """Return values in order, for a message."""
    return ", ".join(sorted(values)) or "none"
