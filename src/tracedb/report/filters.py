"""The filters of a report, and the SQL conditions for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tracedb.storage.connection import quoted

BY_BUILT_IN = ("capture", "rank", "device", "source", "vendor", "step", "range")


@dataclass(frozen=True)
class Filters:
    """The filters and grouping of a report."""

    ranks: tuple[int, ...] = ()
    devices: tuple[int, ...] = ()
    sources: tuple[str, ...] = ()
    captures: tuple[str, ...] = ()
    """Captures by number, part of their path or pattern; in a ``Scope``, their numbers."""
    classes: tuple[str, ...] = ()
    """Classes of kernels; one with a leading ``!`` is excluded."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    """Patterns of paths of captures; a capture is taken that any of them matches."""
    range: tuple[str, ...] = ()
    """Patterns of range names; events inside a range that matches any of them are included."""
    rule: str | None = None
    skip_warmup: int = 0
    step_range: str | None = None
    """Pattern of range names to use as steps, instead of ProfilerStep#N."""
    window: tuple[int, int] | None = None
    """Only this period, in ns after the first GPU event of a run (critical paths)."""
    across_ranks: bool = False
    """Whether critical paths continue on the rank that one waits for."""
    counted: bool = False
    """Whether to include dispatches measured while hardware counters were read."""
    attention_as_matmul: bool = False
    """Whether to count kernels of fused attention as matrix products."""
    by: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    """Columns that come first in the order of rows; ``-COLUMN`` and ``COLUMN DESC`` for descending."""

    @property
    def is_bare(self) -> bool:
        """Whether no filter or grouping is set."""
        return not (self.on_captures or self.on_events or self.counted or self.attention_as_matmul or self.by)

    @property
    def on_captures(self) -> bool:
        """Whether some captures may be left out."""
        return bool(self.ranks or self.sources or self.where or self.captures or self.paths)

    @property
    def on_events(self) -> bool:
        """Whether some events of a capture may be left out."""
        return bool(self.devices or self.classes or self.range or self.skip_warmup)

    def chooses_span(self, is_by_span: bool) -> bool:
        """Whether a report of critical paths needs others than those found at load."""
        return is_by_span and (self.step_range is not None or self.window is not None or self.across_ranks)

    @property
    def needs_rule(self) -> bool:
        """Whether the filters join ranges to kernels."""
        return bool(self.range) or "range" in self.by


@dataclass(frozen=True)
class Scope:
    """Filters validated against the database, with the effective rule of range membership."""

    filters: Filters
    version: str
    rule: str
    varying: tuple[str, ...]
    """Label keys that have more than one value among the selected captures."""
    captures: int
    names: Mapping[int, str]
    """Names that distinguish captures, by number, if rank and labels do not; else empty."""
    in_frames: bool = False
    """Whether --range matches Python frames and nn.Modules, which then take the place of ranges."""
    label_words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What a table shows of each value of the varying labels, by key: long values without their common start."""


def label(alias: str, key: str) -> str:
    """Return the value of a label as SQL."""
    return f"{alias}.labels[{quoted(key)}]"


def one_of(column: str, values: Sequence[object]) -> str:
    """Return the condition that a column has one of the values; strings are quoted."""
    texts = [quoted(value) if isinstance(value, str) else str(value) for value in values]
    return f"{column} = {texts[0]}" if len(texts) == 1 else f"{column} IN ({', '.join(texts)})"


def capture_conditions(filters: Filters, alias: str) -> list[str]:
    """Return the conditions on a row with the capture's columns."""
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
    """Return the capture filters in words, as typed."""
    said = [f"--rank {rank}" for rank in filters.ranks] + [f"--source {source}" for source in filters.sources]
    said += [f"--where {key}={value}" for key, values in filters.where.items() for value in values]
    said += [f"--capture {number}" for number in filters.captures] if not filters.paths else []
    said += [f"--path {pattern!r}" for pattern in filters.paths]
    return ", ".join(said)


def natural(column: str) -> str:
    """Return an ORDER BY list that sorts numbers written as text numerically."""
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
