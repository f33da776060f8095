"""Another card, or other sizes of tensors, that the operators of a trace are priced for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tracedb.regress.card_spec import Spec
from tracedb.regress.model_folder import Models


@dataclass(frozen=True, eq=False)
class Change:
    """Another card, other sizes of tensors, or both; and fitted models, if there are any."""

    spec: Spec | None = None
    sizes: Mapping[int, int] | None = None
    models: Models | None = None


def together(one: Change | None, other: Change | None) -> Change | None:
    """Return both changes as one."""
    if one is None or other is None:
        return one or other
    return Change(other.spec or one.spec, other.sizes or one.sizes, other.models or one.models)
