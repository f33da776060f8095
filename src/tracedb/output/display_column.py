"""How a column of an answer is displayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Show:
    """A display column, made of one or more columns of the answer.

    ``kind`` is one of ns, count, percent, ratio, number, raw, float, name, gpu, dims, labels, pair, size, span, place,
    text, fold (text that is wrapped, never cut), word (wrapped between words only), verdict (a short text, never
    wrapped, in a column that the narrowest table keeps), kernel (a name with a short form, by ``short``, for when it is
    long); None chooses by the unit.
    ``drop``: if the table is too wide, the highest is dropped first; 0 is never dropped. ``keys``: label keys to show.
    ``words``: the text for a value; for a place, for a KEY=VALUE. ``scale``: columns of one scale share a unit of time.
    """

    columns: tuple[str, ...]
    header: str | None = None
    kind: str | None = None
    drop: int = 0
    floor: int = 16
    keys: tuple[str, ...] = ()
    short: Callable[[Sequence[str]], Mapping[str, str]] | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    scale: str = ""
