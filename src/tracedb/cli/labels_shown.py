"""The column of labels in tables of captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracedb.output.display_column import Show


def labels_shown(found: Sequence[object], given: Sequence[str] = ()) -> Show:
    """Return the column of labels: the values of those that vary and of ``given``, else all.

    Values without their keys are short enough to stand uncut beside a path.
    """
    from tracedb.output.display_column import Show

    known = [item for item in found if isinstance(item, Mapping)]
    keys = sorted({key for item in known for key in item})
    varying = {key for key in keys if len({item.get(key) for item in known}) > 1}
    if not keys or not (varying or given):
        return Show(("labels",), "labels", "labels", drop=1)
    chosen = [key for key in keys if key in varying or key in given] if varying else keys
    return Show(("labels",), kind="place", keys=tuple(chosen), drop=1)
