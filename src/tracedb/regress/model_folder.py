"""A folder of models, looked up by GPU, operator, pass, element type and shape."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tracedb.errors import UsageError
from tracedb.regress import own_features, store
from tracedb.regress.conditions import Conditions
from tracedb.regress.model import Model, Prediction, Target
from tracedb.regress.work_model import completed

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


class Ambiguous(UsageError):
    """There are models for several GPUs or element types, and none was named."""


class Models:
    """Fitted models. A GPU is named by its name or a part of it, ignoring spaces, dashes and case."""

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
        self._check_operator(operator)
        found = [target for target in self.targets if target.operator == operator]
        if gpu is not None:
            meant = named(gpu, {target.gpu for target in found})
            found = self._narrowed(found, "GPU", gpu, lambda target: target.gpu, lambda name: name in meant)
        found = self._narrowed(found, "pass", pass_, lambda target: target.pass_)
        if dtype is not None:
            found = self._narrowed(found, "element type", dtype, lambda target: str(target.dtype))
        for what, values in (
            ("GPUs; name one (--gpu)", {target.gpu for target in found}),
            ("element types; name one (--dtype)", {str(target.dtype) for target in found}),
        ):
            if len(values) > 1:
                raise Ambiguous(f"{self._name}: {operator} was fitted for several {what}: {listed(values)}")
        return self._models[self._key(found[0])]

    def _check_operator(self, operator: str) -> None:
        """Raise ``UsageError`` if there is no model of an operator."""
        there = {target.operator for target in self.targets}
        if operator in there:
            return
        shapes = sum(call["name"] == operator for call in self.facts.get("calls", ()))
        if shapes:
            raise UsageError(
                f"{self._name}: {operator} was recorded at {shapes} shape{'' if shapes == 1 else 's'}, too few for a "
                "model; `tracedb expected` compares calls at recorded shapes"
            )
        raise UsageError(f"{self._name}: no model for operator {operator!r}; there are: {listed(there)}")

    def _narrowed(self, targets: Sequence[Target], what: str, wanted: str, of: Any, fits: Any = None) -> list[Target]:
        found = [target for target in targets if (fits(of(target)) if fits else of(target) == wanted)]
        if not found:
            more = "; --gpu-spec FILE scales these to another GPU" if what == "GPU" else ""
            raise UsageError(f"{self._name}: no model of {targets[0].operator} for {what} {wanted!r}; there are: "
                             f"{listed({str(of(target)) for target in targets})}{more}")  # fmt: skip
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
        shapes = [filled(model, shape) for shape in shapes]
        for shape in shapes:
            check_shape(model, shape, self._name)
        return model.predict(shapes) if shapes else []


def filled(model: OneModel, shape: Shape) -> dict[str, int]:
    """Return a shape with the parameters that follow from the others; mp is 1 unless given."""
    found = {"mp": 1, **shape} if "mp" in model.parameters else dict(shape)
    return completed(model.target.operator, found, model.parameters) or found


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


def named(gpu: str, known: Collection[str]) -> list[str]:
    """Return the GPUs that a name stands for: the one of that name, else those whose name contains it."""
    wanted = plain(gpu)
    exact = [name for name in known if plain(name) == wanted]
    return exact or sorted(name for name in known if wanted and wanted in plain(name))


def plain(name: str) -> str:
    """Return a normalised GPU name."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def listed(values: Iterable[str]) -> str:
    """Return values in order, for a message."""
    return ", ".join(sorted(values)) or "none"
