"""Insert filters and ``--by`` into a view's own text, at its hooks (see ``sql/README.md``). Text in, text out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tracedb.storage.connection import identifier, quoted

RANGES = "r"
CALLS = "l"
MEMBERS = "part"
COLLECTIVES = "whole"
MESSAGES = "pair"
STAGES = "stage"
LOADS = "load"
MEMORY = "memory"
BASES = {
    "e": "_gpu_event",
    "k": "kernels",
    RANGES: "_range",
    CALLS: "_launch",
    MEMBERS: "_collective_member",
    COLLECTIVES: "_collective",
    MESSAGES: "_message_pair",
    STAGES: "_pipeline_time",
    LOADS: "_expert_part",
    MEMORY: "_device_memory",
}
"""Alias in a view's text → the view it refers to.

A row is a GPU event, (``r``) a range, (``l``) a call, (``part``) a rank's part in a collective, (``whole``) the
collective, (``pair``) a message between two ranks, (``stage``) a stage of a pipeline in a step, (``load``) a rank's
part in an all-to-all, (``memory``) an allocation or release of GPU memory.
"""

_GRAIN = re.compile(r"\s*/\* grain \*/.*?/\* end grain \*/", re.DOTALL)
_PART = re.compile(r"/\* whole \*/ (.*?) /\* part (.*?) \*/", re.DOTALL)
_GRAIN_MARK = re.compile(r"[ \t]*/\* (?:end )?grain \*/")
_HOOK = re.compile(r"[ \t]*/\* (filter|join|by|partition|using)((?: \w+)*) \*/")
_UNCLASSED = re.compile(r"(v\d+)\._unclassed_event AS")
_PLAIN = re.compile(r"(v\d+)\._(?:gpu|unclassed)_event AS")
_EVENTS = re.compile(r"\bv\d+\._gpu_event (AS e /\* join e \*/)")
_RANGES = re.compile(r"(v\d+)\._range_(instance|member|kernel) AS")
_RANGES_ONLY = re.compile(r"\.(?:_range|_nsys_range|annotation_kernel) AS")
_RULE = re.compile(r"/\* rule \*/ '\w+'")
_MATMUL = re.compile(r"(\w+\.class) /\* matmul \*/")
_LIST_START = re.compile(r"(SELECT(?:\s+DISTINCT)?|(?:GROUP|PARTITION|ORDER)\s+BY)\s*$", re.IGNORECASE)
_LIST_END = re.compile(r"\s*(?:\)|(?:FROM|ORDER BY|HAVING|WINDOW|QUALIFY|UNION)\b|;|\Z)")


@dataclass(frozen=True)
class By:
    """A column that a report is grouped by: its name in the answer and its expression over a base alias."""

    name: str
    over: Callable[[str], str]


@dataclass(frozen=True)
class Edits:
    """The texts for the hooks. ``filters`` and ``joins`` are by base alias."""

    by: Sequence[By] = ()
    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    joins: Mapping[str, str] = field(default_factory=dict)
    is_counted: bool = False
    """Whether to include dispatches measured while hardware counters were read."""
    is_attention_matmul: bool = False
    """Whether to count fused attention, which consists of matrix products, as matmul."""
    has_class: bool = False
    """Whether any condition on a GPU event concerns its class."""
    in_frames: bool = False
    """Whether Python frames take the place of ranges."""
    rule: str | None = None
    """The rule of range membership, if it differs from the one in the text."""
    part: str | None = None
    """If events of a device are chosen or grouped: the text of ``_reached_event``, which takes the place of
    ``_gpu_event`` where a view's text has the hook ``part``."""


def has_rule(text: str) -> bool:
    """Return whether a view's text has the hook ``rule``."""
    return _RULE.search(text) is not None


def is_plain(text: str) -> bool:
    """Whether a view's text excludes dispatches measured while hardware counters were read."""
    return _PLAIN.search(text) is not None


def takes_frames(text: str) -> bool:
    """Whether a view's text reads ranges only through views that frames have, too."""
    return not _RANGES_ONLY.search(text)


def tells_parts(text: str) -> bool:
    """Whether a view's text keeps apart idle time and work that a filter on GPU events leaves out."""
    return _PART.search(text) is not None


def tells_matmul(text: str) -> bool:
    """Whether a view's text decides for each class whether it is matmul."""
    return _MATMUL.search(text) is not None


def bases(text: str, hook: str) -> set[str]:
    """Return the base aliases for which a view's text has the hook ``filter``, ``by`` or ``join``."""
    found = {arguments.strip() for kind, arguments in _HOOK.findall(text) if kind == hook}
    return found & set(BASES)


def resolve(text: str, edits: Edits) -> str:
    """Return the text of a view's SELECT with its hooks filled in. Inserted text is not searched for hooks."""
    text = _GRAIN.sub("", text) if edits.by else _GRAIN_MARK.sub("", text)
    text = _of_part(text, edits)
    text = _UNCLASSED.sub(r"\1._gpu_event AS", text) if edits.has_class else text
    text = _PLAIN.sub(r"\1._timed_event AS", text) if edits.is_counted else text
    text = _RANGES.sub(r"\1._frame_\2 AS", text) if edits.in_frames else text
    if edits.is_attention_matmul:
        text = _MATMUL.sub(r"CASE \1 WHEN 'attention' THEN 'matmul' ELSE \1 END", text)
    text = _RULE.sub(quoted(edits.rule), text) if edits.rule else text
    parts: list[str] = []
    last = 0
    for match in _HOOK.finditer(text):
        before, after = text[: match.start()], text[match.end() :]
        parts.append(text[last : match.start()])
        parts.append(_filled(match[1], match[2].split(), edits, _listing(before, after)))
        last = match.end()
    parts.append(text[last:])
    return "".join(parts)


def _of_part(text: str, edits: Edits) -> str:
    """Choose between the alternatives of the hook ``part``."""
    if edits.part is None or not _PART.search(text):
        return _PART.sub(r"\1", text)
    text = _PART.sub(r"\2", text)
    return _EVENTS.sub(lambda match: f"({edits.part}) {match[1]}", text)


@dataclass(frozen=True)
class _Listing:
    """The list that contains a ``by`` hook: whether columns get their names there, and whether others follow."""

    is_select: bool
    goes_on: bool


def _listing(before: str, after: str) -> _Listing:
    start = _LIST_START.search(before)
    return _Listing(start is not None and start[1].upper().startswith("SELECT"), not _LIST_END.match(after))


def _filled(kind: str, arguments: list[str], edits: Edits, listing: _Listing) -> str:
    if kind == "filter":
        return "".join(f"\n    AND ({condition})" for condition in edits.filters.get(arguments[0], ()))
    if kind == "join":
        join = edits.joins.get(arguments[0], "")
        return f"\n{join}" if join else ""
    names = [identifier(by.name) for by in edits.by]
    if not names:
        return ""
    if kind == "partition":
        return f"PARTITION BY {', '.join(names)}"
    if kind == "using":
        left, right, *is_base = arguments
        values = [by.over(right) if is_base else f"{right}.{identifier(by.name)}" for by in edits.by]
        return "".join(
            f" AND {left}.{name} IS NOT DISTINCT FROM {value}" for name, value in zip(names, values, strict=True)
        )
    if arguments and arguments[0] not in BASES:  # a later step, which already has the columns
        names = [f"{arguments[0]}.{name}" for name in names]
    elif arguments:
        over = [by.over(arguments[0]) for by in edits.by]
        names = [
            f"{column} AS {name}" if listing.is_select else column for column, name in zip(over, names, strict=True)
        ]
    return " " + ", ".join(names) + ("," if listing.goes_on else "")
