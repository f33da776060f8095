"""Filters and ``--by`` as SQL over the base aliases of a view's text."""

from __future__ import annotations

import re
from collections.abc import Collection

from tracedb.errors import NotCaptured, UsageError
from tracedb.report import view_template
from tracedb.report.filters import Filters, Scope, capture_conditions, class_conditions, label, named, one_of
from tracedb.report.view_template import CALLS, COLLECTIVES, LOADS, MEMBERS, MEMORY, MESSAGES, RANGES, STAGES
from tracedb.storage import views
from tracedb.storage.connection import identifier, quoted

_ABOUT_EVENTS = ("--device", "--class", "--skip-warmup")

_COLUMNS = {"capture": "capture_id", "rank": "rank", "source": "source", "device": "device_id", "vendor": "vendor"}
"""Name for ``--by`` → column of a base."""
_LACKS: dict[str, tuple[str, ...]] = {
    RANGES: ("device", "vendor", "class"),
    CALLS: ("device", "vendor", "class"),
    MEMBERS: ("vendor", "class"),
    COLLECTIVES: ("capture", "rank", "device", "vendor", "class", "range"),
    MESSAGES: ("capture", "rank", "device", "vendor", "class", "range"),
    LOADS: ("vendor", "class"),
    STAGES: ("device", "vendor", "class", "range"),
    MEMORY: ("vendor", "class", "range", "skip_warmup"),
}
"""Filters and groupings that a base's rows do not support."""
_OF_SEVERAL_RANKS = (COLLECTIVES, MESSAGES)
_KNOWS_STEP = (MEMBERS, COLLECTIVES, MESSAGES, STAGES, LOADS)
_WHY_NOT = {
    CALLS: "a call is of a thread, not of a GPU; cuda-kern-exec-sum has the calls that launched kernels, by device",
}
"""Why the rows of a base cannot be filtered by properties of GPU events."""


def edits(scope: Scope, text: str, report: str, taken: Collection[str] = ()) -> view_template.Edits:
    """Return the texts for the hooks of a view.

    ``taken``: names that a label's column may not have, besides every word of the text. Raises ``UsageError`` if a
    filter or a ``--by`` column does not apply to the view.
    """
    filtered = view_template.bases(text, "filter")
    grouped, joined = view_template.bases(text, "by"), view_template.bases(text, "join")
    filters = {base: _conditions(scope, base, base in joined) for base in sorted(filtered)}
    if RANGES in filtered:  # filters choose the ranges, and with them their events
        for base in filtered - {RANGES}:
            filters[base] = {option: filters[base][option] for option in _ABOUT_EVENTS if option in filters[base]}
    for option in _given(scope.filters):
        if not any(option in conditions for conditions in filters.values()):
            why = next((f": {_WHY_NOT[base]}" for base in filtered if base in _WHY_NOT), "")
            raise UsageError(f"report {report} cannot be filtered by {option}{why}")
    if scope.filters.counted and not view_template.is_plain(text):
        raise UsageError(f"report {report} does not support --counted")
    if scope.in_frames and (CALLS in filtered or not view_template.takes_frames(text)):
        raise NotCaptured(
            f"--range matches Python frames, not ranges (NVTX, roctx, record_function), and report {report} is about "
            "ranges; range-kernels and range-time answer for frames, module-time by nn.Module"
        )
    if scope.filters.attention_as_matmul and not view_template.tells_matmul(text):
        raise UsageError(f"report {report} does not support --attention-as-matmul")
    for name in scope.filters.by:
        if not grouped or not all(_can_group(name, base, base in joined) for base in grouped):
            own = "; it has rows for each value of each label already (factor, level)" if "factor" in taken else ""
            raise UsageError(f"report {report} cannot be grouped by {name}{own}")
    for name in scope.filters.by:
        if name not in taken and name in {column.lower() for column in taken}:
            raise UsageError(f"report {report} already has a column {name}")
    words = {*taken, *re.findall(r"\w+", re.sub(r"--.*", "", text))}
    return view_template.Edits(
        by=[_by(name, words) for name in scope.filters.by],
        filters={
            base: [text for texts in conditions.values() for text in texts] for base, conditions in filters.items()
        },
        joins={base: _joins(scope, base) for base in sorted(joined)},
        is_counted=scope.filters.counted,
        is_attention_matmul=scope.filters.attention_as_matmul,
        has_class=bool(scope.filters.classes),
        in_frames=scope.in_frames,
        rule=scope.rule or None,
        part=views.View(scope.version, "_reached_event").select if _splits_devices(scope.filters) else None,
    )


def _splits_devices(filters: Filters) -> bool:
    """Whether events of one device are left out, or are in different groups."""
    return bool(filters.classes or filters.range or filters.skip_warmup or {"range", "step"} & set(filters.by))


def _given(filters: Filters) -> list[str]:
    options: list[tuple[str, object]] = [
        ("--rank", filters.ranks),
        ("--source", filters.sources),
        ("--where", filters.where),
        ("--capture", filters.captures),
        ("--device", filters.devices),
        ("--class", filters.classes),
        ("--skip-warmup", filters.skip_warmup),
        ("--range", filters.range),
    ]
    return [option for option, value in options if value]


def _conditions(scope: Scope, base: str, is_joined: bool) -> dict[str, list[str]]:
    """Return the conditions on a base alias by option.

    ``is_joined``: whether the text joins the base to its ranges for ``--by range``.
    """
    filters = scope.filters
    lacks = _LACKS.get(base, ())
    found = {
        "--rank": [] if "rank" in lacks else capture_conditions(Filters(ranks=filters.ranks), base),
        "--source": capture_conditions(Filters(sources=filters.sources), base),
        "--where": capture_conditions(Filters(where=filters.where), base),
        "--capture": _of_captures(filters, base),
    }
    if filters.devices and "device" not in lacks:
        found["--device"] = [one_of(f"{base}.device_id", filters.devices)]
    if filters.classes and "class" not in lacks:
        found["--class"] = class_conditions(filters, base)
    if filters.skip_warmup and "skip_warmup" not in lacks:
        found["--skip-warmup"] = [_after_warmup(scope, base)]
    if filters.range and "range" not in lacks:
        found["--range"] = [_inside_range(scope, base, is_joined)]
    return {option: conditions for option, conditions in found.items() if conditions}


def _of_captures(filters: Filters, base: str) -> list[str]:
    """Return the condition that a row is of the captures; collectives are matched only among these."""
    if base not in _OF_SEVERAL_RANKS:
        return capture_conditions(Filters(captures=filters.captures), base)
    return [one_of(f"{base}.set_id", [int(number) for number in filters.captures])] if filters.captures else []


def _steps(scope: Scope, base: str) -> tuple[str, str]:
    """Return the view with a row's step, and the row's key besides the capture."""
    if base != RANGES:
        return "_step_kernel", "event_id"
    return "_frame_step" if scope.in_frames else "_step_range", "annotation_id"


def _range_kernel(scope: Scope) -> str:
    return f"{scope.version}.{'_frame_kernel' if scope.in_frames else '_range_kernel'}"


def _after_warmup(scope: Scope, base: str) -> str:
    if base in _KNOWS_STEP:
        return f"{base}.step_index > {scope.filters.skip_warmup}"
    if base == CALLS:
        return (
            f"EXISTS (SELECT 1 FROM {scope.version}._step AS w INNER JOIN main.annotation AS a "
            f"ON a.capture_id = w.capture_id AND a.annotation_id = w.annotation_id "
            f"WHERE w.capture_id = {base}.capture_id AND w.step_index > {scope.filters.skip_warmup} "
            f"AND a.start_ns <= {base}.start_ns "
            f"AND (a.is_open OR {base}.start_ns < a.start_ns + a.duration_ns))"
        )
    steps, key = _steps(scope, base)
    return (
        f"EXISTS (SELECT 1 FROM {scope.version}.{steps} AS w WHERE w.capture_id = {base}.capture_id "
        f"AND w.{key} = {base}.{key} AND w.step_index > {scope.filters.skip_warmup})"
    )


def _inside_range(scope: Scope, base: str, is_joined: bool) -> str:
    patterns = scope.filters.range
    if base == RANGES:
        return named(f"{base}.name", f"{base}.domain", patterns)
    if base == CALLS:
        lane = "" if scope.rule == "process" else f" AND q.thread_id = {base}.thread_id"
        return (
            f"EXISTS (SELECT 1 FROM {scope.version}._nsys_range AS q WHERE q.capture_id = {base}.capture_id{lane} "
            f"AND q.start_ns <= {base}.start_ns AND q.start_ns + q.duration_ns >= {base}.start_ns + {base}.duration_ns "
            f"AND {named('q.name', 'q.domain', patterns)})"
        )
    if "range" in scope.filters.by and is_joined:
        return f"{base}_range.name IS NOT NULL"  # the join has filtered them
    return (
        f"EXISTS (SELECT 1 FROM {_range_kernel(scope)} AS q WHERE q.capture_id = {base}.capture_id "
        f"AND q.event_id = {base}.event_id AND q.rule = {quoted(scope.rule)} "
        f"AND {named('q.name', 'q.domain', patterns)})"
    )


def _joins(scope: Scope, base: str) -> str:
    """Return the joins for ``--by range``, which gives an event once per range name, and ``--by step``."""
    steps, key = _steps(scope, base)
    joins = []
    patterns = scope.filters.range
    if base != RANGES and "range" in scope.filters.by:
        chosen = "" if not patterns else f" AND {named('q.name', 'q.domain', patterns)}"
        joins.append(
            f"INNER JOIN (\n    SELECT DISTINCT q.capture_id, q.event_id, q.name\n"
            f"    FROM {_range_kernel(scope)} AS q\n    WHERE q.rule = {quoted(scope.rule)}{chosen}\n"
            f") AS {base}_range ON {base}_range.capture_id = {base}.capture_id AND {base}_range.{key} = {base}.{key}"
        )
    if "step" in scope.filters.by:
        joins.append(
            f"LEFT JOIN {scope.version}.{steps} AS {base}_step "
            f"ON {base}_step.capture_id = {base}.capture_id AND {base}_step.{key} = {base}.{key}"
        )
    return "\n".join(joins)


def _can_group(name: str, base: str, is_joined: bool) -> bool:
    if name == "step" and base in _KNOWS_STEP:
        return True
    if name in ("range", "step"):
        return is_joined or (base == RANGES and name == "range")
    return name not in _LACKS.get(base, ())


def _by(name: str, taken: Collection[str]) -> view_template.By:
    if name == "range":
        return view_template.By(name, lambda base: f"{base}.name" if base == RANGES else f"{base}_range.name")
    if name == "step":
        return view_template.By(name, lambda base: f"{base}.step" if base in _KNOWS_STEP else f"{base}_step.step")
    if name in _COLUMNS:
        return view_template.By(name, lambda base: f"{base}.{identifier(_COLUMNS[name])}")
    return view_template.By(f"label {name}" if name in taken else name, lambda base: label(base, name))
