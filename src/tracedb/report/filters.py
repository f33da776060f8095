"""What a report was asked to look at, and the conditions in SQL that the filters stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tracedb.storage.connection import quoted

BY_BUILT_IN = ("capture", "rank", "device", "source", "vendor", "step", "range")


@dataclass(frozen=True)
class Filters:
    """What a report was asked to look at, and by what it is grouped."""

    ranks: tuple[int, ...] = ()
    devices: tuple[int, ...] = ()
    sources: tuple[str, ...] = ()
    captures: tuple[str, ...] = ()
    """Captures by number, part of their path or pattern; of a ``Scope``, their numbers."""
    classes: tuple[str, ...] = ()
    """Classes of kernels; one that begins with ``!`` is left out."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    """Patterns of paths of captures; a capture is taken that any of them matches."""
    range: tuple[str, ...] = ()
    """Patterns of names of ranges; what is inside a range that any of them matches is taken."""
    rule: str | None = None
    skip_warmup: int = 0
    step_range: str | None = None
    """Pattern of the names of ranges that are the steps, in place of those marked ProfilerStep#N."""
    counted: bool = False
    """Whether dispatches measured while hardware counters were read are taken in."""
    attention_as_matmul: bool = False
    """Whether kernels of fused attention are counted as matrix products."""
    by: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    """Columns that come first in the order of rows; ``-COLUMN`` and ``COLUMN DESC`` for descending."""

    @property
    def is_bare(self) -> bool:
        """Whether the view is asked for as it is."""
        return not (self.on_captures or self.on_events or self.counted or self.attention_as_matmul or self.by)

    @property
    def on_captures(self) -> bool:
        """Whether some captures may be left out."""
        return bool(self.ranks or self.sources or self.where or self.captures or self.paths)

    @property
    def on_events(self) -> bool:
        """Whether some events of a capture may be left out."""
        return bool(self.devices or self.classes or self.range or self.skip_warmup)

    @property
    def needs_rule(self) -> bool:
        """Whether ranges are joined to kernels for the filters themselves."""
        return bool(self.range) or "range" in self.by


@dataclass(frozen=True)
class Scope:
    """Filters that fit the database, with the rule of range membership that is in force."""

    filters: Filters
    version: str
    rule: str
    varying: tuple[str, ...]
    """Label keys that have more than one value among the selected captures."""
    captures: int
    names: Mapping[int, str]
    """What tells captures apart, by number, where rank and labels do not; else empty."""


def label(alias: str, key: str) -> str:
    """Return the value of a label as SQL."""
    return f"{alias}.labels[{quoted(key)}]"


def one_of(column: str, values: Sequence[object]) -> str:
    """Return the condition that a column has one of the values; texts become literals."""
    texts = [quoted(value) if isinstance(value, str) else str(value) for value in values]
    return f"{column} = {texts[0]}" if len(texts) == 1 else f"{column} IN ({', '.join(texts)})"


def capture_conditions(filters: Filters, alias: str) -> list[str]:
    """Return the conditions on a row that has the capture's columns."""
    conditions = []
    if filters.ranks:
        conditions.append(one_of(f"{alias}.rank", filters.ranks))
    if filters.sources:
        conditions.append(one_of(f"{alias}.source", filters.sources))
    conditions += [one_of(label(alias, key), values) for key, values in filters.where.items()]
    if filters.captures:
        conditions.append(one_of(f"{alias}.capture_id", [int(number) for number in filters.captures]))
    return conditions


def described(filters: Filters) -> str:
    """Return the capture filters in words, as they were typed."""
    said = [f"--rank {rank}" for rank in filters.ranks] + [f"--source {source}" for source in filters.sources]
    said += [f"--where {key}={value}" for key, values in filters.where.items() for value in values]
    said += [f"--capture {number}" for number in filters.captures] if not filters.paths else []
    said += [f"--path {pattern!r}" for pattern in filters.paths]
    return ", ".join(said)


def natural(column: str) -> str:
    """Return an ORDER BY list that puts numbers written as text in the order of numbers."""
    return f"TRY_CAST({column} AS DOUBLE) NULLS LAST, {column} NULLS LAST"


def named(range_name: str, domain: str, patterns: Sequence[str]) -> str:
    """Return the condition on a range's columns that its name matches one of the patterns.

    A pattern with a colon may also mean domain and name, as nsys prints them: ``NCCL:ncclAllReduce``, ``NCCL:*``.
    """
    conditions = [f"{range_name} GLOB {quoted(glob)}" for glob in patterns]
    conditions += [f"({domain} || ':' || {range_name}) GLOB {quoted(glob)}" for glob in patterns if ":" in glob]
    return conditions[0] if len(conditions) == 1 else f"({' OR '.join(conditions)})"


def class_conditions(filters: Filters, alias: str) -> list[str]:
    """Return the conditions on a row that has a class."""
    wanted = [name for name in filters.classes if not name.startswith("!")]
    left_out = [name[1:] for name in filters.classes if name.startswith("!")]
    conditions = [one_of(f"{alias}.class", wanted)] if wanted else []
    return conditions + ([f"NOT {one_of(f'{alias}.class', left_out)}"] if left_out else [])
