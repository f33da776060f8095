"""The answer of ``tracedb whatif``: the time under each scenario, beside the recorded one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import duckdb

from tracedb.dependencies import meetings
from tracedb.dependencies.meetings import MESSAGE
from tracedb.dependencies.spans import Window
from tracedb.errors import NotCaptured
from tracedb.output import Answer, Show, from_rows
from tracedb.output.answer import about
from tracedb.what_if import scenario as scenarios
from tracedb.what_if import shares
from tracedb.what_if.bound import bounds
from tracedb.what_if.capture_model import CaptureModel
from tracedb.what_if.retiming import Meeting, Meetings, Timed, timed
from tracedb.what_if.scenario import Scenario
from tracedb.what_if.shares import Shares

NEARLY_ALL = 95
"""Percent of the time, or of the GPU's work, from which on a removed range is the step itself, not a part of it."""
CONFIGURATION_FLOOR = 16
MOST_CLASSES = 6
MOST_RANGES = 6
COLUMNS = (
    about("place", "INTEGER", "Place among the single changes of the recording, by gain; NULL for others. [-]"),
    about("scenario", "VARCHAR", "The change, as options of `tracedb whatif`."),
    about("changes", "INTEGER", "Number of changes that are made together. [count]"),
    about("span", "VARCHAR", "What is timed: steps, step N, a window, or the whole capture."),
    about("capture_id", "BIGINT", "Capture; of several ranks the first. [-]"),
    about("configuration", "VARCHAR", "Labels of the capture as KEY=VALUE."),
    about("ranks", "INTEGER", "Number of captures that are timed together. [count]"),
    about("rank", "INTEGER", "Rank that ends last under the scenario; NULL if unknown. [-]"),
    about("steps", "INTEGER", "Number of steps in the span; 0 if none is marked. [count]"),
    about("measured_ns", "BIGINT", "Time as recorded, from the start of the first step to the end of the last. [ns]"),
    about("predicted_ns", "BIGINT", "The same time under the scenario. [ns]"),
    about("gain_percent", "DOUBLE", "By how much less that is. [percent]"),
    about("bound_by", "VARCHAR", "What takes most of the critical path under the scenario (critical_path.bound_by)."),
    about("limit_ns", "BIGINT", "The time if the change were taken as far as it goes: the work takes no time. [ns]"),
    about("limit_percent", "DOUBLE", "By how much less that is: the largest possible gain. [percent]"),
)
SHOWS = (
    Show(("place",), "no", "raw", drop=5),
    Show(("scenario",), "scenario", "text", floor=36),
    Show(("configuration",), "configuration", "text", drop=4),
    Show(("rank",), "rank", "raw", drop=3),
    Show(("steps",), "steps", "raw", drop=2),
    Show(("measured_ns",), "measured"),
    Show(("predicted_ns",), "predicted"),
    Show(("gain_percent",), "gain"),
    Show(("bound_by",), "bound by", "word"),
    Show(("limit_percent",), "at most", drop=1),
)


@dataclass(frozen=True)
class _Group:
    """Captures that are timed together: the ranks of a recording."""

    models: list[CaptureModel]
    ranks: list[int | None]
    labels: dict[str, str]
    chosen: list[int]
    """Places of those that were asked for."""
    meetings: Meetings
    shares: Shares


def answer(
    connection: duckdb.DuckDBPyConnection, asked: Sequence[Scenario], step: int | None, window: Window | None = None
) -> Answer:
    """Return a row per scenario and recording, those with most gain first.

    Of the captures in ``temp.selected_capture``. Without scenarios, the usual ones are compared. A warning names a
    scenario that matches nothing in some recordings. Raises ``NotCaptured`` if no capture has GPU work, or not that
    step, or if a scenario matches nothing in any.
    """
    rows: list[tuple[object, ...]] = []
    span = _span(connection, step, window)
    faults: dict[Scenario, list[NotCaptured]] = {}
    matched = set()
    said: list[str] = []
    for group in _groups(connection, step, window):
        mine = []
        for scenario in asked or [*_usual(group), Scenario()]:
            try:
                row = _row(group, scenario, span)
                matched.add(scenario)
                if not asked and _is_whole_step(group, scenario, row.gain_percent):
                    said.append(f"{scenario.text} is left out: nearly the whole step is inside it")
                    continue
                mine.append((scenario, row))
                said += _bases(group, scenario)
            except NotCaptured as error:
                faults.setdefault(scenario, []).append(error)
        # All changes together come first, the recording itself last.
        mine.sort(key=lambda item: (-item[0].changes, item[1].predicted_ns, item[0].text))
        singles = [row.predicted_ns for scenario, row in mine if scenario.changes == 1]
        rows += [
            (singles.index(row.predicted_ns) + 1 if scenario.changes == 1 else None, *row) for scenario, row in mine
        ]
    for scenario in asked:
        if scenario not in matched:
            raise faults[scenario][0]
    found = from_rows(COLUMNS, rows)
    found.warnings = [
        f"{scenario.text} left out for {len(errors)} recording{'s' * (len(errors) > 1)}: {errors[0]}"
        for scenario, errors in faults.items()
    ]
    found.notes = [text for text in dict.fromkeys(said)]
    place = [column.name for column in COLUMNS].index("configuration")
    found.report, found.version, found.shows = "whatif", "v1", _shows(len({row[place] for row in rows}))
    return found


def _shows(configurations: int) -> list[Show]:
    """Return the columns of the table; of several configurations, that which tells them apart always stays."""
    stays = Show(("configuration",), "configuration", "name", floor=CONFIGURATION_FLOOR)
    return [stays if show.columns == ("configuration",) and configurations > 1 else show for show in SHOWS]


def _is_whole_step(group: _Group, scenario: Scenario, gain_percent: float) -> bool:
    """Whether the scenario removes a range that is the step itself: without it, there is nothing to time."""
    if not any(scale.is_removed for scale in scenario.scales):
        return False
    held = [model.gpu_percent(scale) for model in group.models for scale in scenario.scales]
    return gain_percent >= NEARLY_ALL or min(held) >= NEARLY_ALL


def _span(connection: duckdb.DuckDBPyConnection, step: int | None, window: Window | None) -> str:
    if window is not None:
        return f"window {window[0]}:{window[1]}"
    ((pattern,),) = connection.execute("SELECT getvariable('step_range')").fetchall()
    return ("steps" if step is None else f"step {step}") + (f" of {pattern}" if pattern is not None else "")


def _groups(connection: duckdb.DuckDBPyConnection, step: int | None, window: Window | None) -> list[_Group]:
    rows = connection.execute(
        """SELECT s.set_id, list(s.capture_id ORDER BY s.capture_id), list(s.rank ORDER BY s.capture_id),
               any_value(s.labels), list(s.capture_id IN (SELECT p.capture_id FROM temp.selected_capture AS p)
                   ORDER BY s.capture_id)
           FROM v1._capture_set AS s
           WHERE s.set_id IN (
               SELECT o.set_id FROM v1._capture_set AS o
               WHERE o.capture_id IN (SELECT p.capture_id FROM temp.selected_capture AS p))
           GROUP BY s.set_id ORDER BY s.set_id"""
    ).fetchall()
    found, faults = [], []
    for _, captures, ranks, labels, chosen in rows:
        try:
            models = [CaptureModel(connection, capture, step, window) for capture in captures]
        except NotCaptured as error:
            faults.append(error)
            continue
        places = [place for place, is_chosen in enumerate(chosen) if is_chosen]
        met, has_messages = _meetings(connection, models)
        sharing = shares.read(connection, captures, has_messages)
        found.append(_Group(models, ranks, dict(labels or {}), places, met, sharing))
    if not found:
        raise faults[0] if faults else NotCaptured("no capture was selected; see `tracedb doctor`")
    return found


def _meetings(connection: duckdb.DuckDBPyConnection, models: list[CaptureModel]) -> tuple[Meetings, bool]:
    """Return the collectives of several ranks on their common clock, and whether any is a message.

    There are none without such a clock.
    """
    nothing = Meetings([], [0] * len(models)), False
    if len(models) < 2:
        return nothing
    captures = [model.capture_id for model in models]
    met = meetings.read(connection, captures)
    if met is None:
        return nothing
    place = {capture: number for number, capture in enumerate(captures)}
    events = [dict(zip(model.graph.recorded.gpu.event_id.tolist(), range(1 << 60), strict=False)) for model in models]
    calls: dict[str, set[tuple[int, int]]] = {}
    of: dict[tuple[int, int], str] = {}
    for call, capture, event, _ in met.members:
        rank = place[capture]
        where = events[rank].get(event)
        span = models[rank].span
        if where is None or not span.begin <= models[rank].graph.recorded.gpu.start[where] < span.end:
            continue
        known = of.setdefault((rank, where), call)
        if known != call:  # a kernel with several messages: all of them are one meeting
            for member in calls.pop(known, set()):
                of[member] = call
                calls.setdefault(call, set()).add(member)
        of[rank, where] = call
        calls.setdefault(call, set()).add((rank, where))
    shift = [met.shift[capture] for capture in captures]
    found = [(call, Meeting(sorted(members))) for call, members in sorted(calls.items()) if len(members) > 1]
    return Meetings([meeting for _, meeting in found], shift), any(call.startswith(MESSAGE) for call, _ in found)


def _usual(group: _Group) -> list[Scenario]:
    """Return the scenarios that are compared if none is asked for."""
    first = group.models[group.chosen[0]]
    classes = first.classes()
    found = [scenarios.scaled(f"class={name}:0.5") for name in ("host", *classes[:MOST_CLASSES])]
    found += [scenarios.launched_after(0), scenarios.without_waiting()]
    if "collective" in classes:
        found.append(scenarios.faster_network("2x"))
    if group.meetings.all:
        found.append(scenarios.equal_ranks())
    longest: dict[str, int] = {}
    for model in group.models:
        for name, time in model.ranges(MOST_RANGES):
            longest[name] = max(time, longest.get(name, 0))
    names = sorted(longest, key=lambda name: (-longest[name], name))[:MOST_RANGES]
    return found + [scenarios.removed(f"range={name}") for name in names]


class _Row(NamedTuple):
    """A row of the answer without its place."""

    scenario: str
    changes: int
    span: str
    capture_id: int
    configuration: str
    ranks: int
    rank: int | None
    steps: int
    measured_ns: int
    predicted_ns: int
    gain_percent: float
    bound_by: str
    limit_ns: int
    limit_percent: float


def _row(group: _Group, scenario: Scenario, span: str) -> _Row:
    ranks = _timed(group, scenario)
    limit = scenario.limit
    at_most = _latest(group, ranks if limit == scenario else _timed(group, limit))[0]
    predicted, last = _latest(group, ranks)
    measured = max(group.models[place].span.end - group.models[place].span.begin for place in group.chosen)
    model = group.models[last]
    found = bounds(ranks[last])
    return _Row(
        scenario.text,
        scenario.changes,
        span if model.steps or not model.is_whole else "whole capture",
        group.models[group.chosen[0]].capture_id,
        " ".join(f"{key}={value}" for key, value in sorted(group.labels.items())),
        len(group.models),
        group.ranks[last],
        model.steps,
        measured,
        predicted,
        100 * (measured - predicted) / measured,
        max(found, key=lambda name: (found[name], name), default="host"),
        at_most,
        100 * (measured - at_most) / measured,
    )


def _timed(group: _Group, scenario: Scenario) -> list[Timed]:
    by = [1.0] * len(group.models)
    if scenario.ranks_are_equal and group.shares is Shares.STAGES:
        by = shares.factors(group.models)
        scenario = replace(scenario, ranks_are_equal=False)  # stages still wait for the data of others
    effects = [model.effect(scenario, factor) for model, factor in zip(group.models, by, strict=True)]
    for place, scale in enumerate(scenario.scales):
        if not any(effect.matched[place] for effect in effects):
            what = "range or operator" if scale.key in ("range", "op") else "GPU work"
            where = ", ".join(str(model.capture_id) for model in group.models)
            raise NotCaptured(f"no {what} of capture {where} has {scale.key} {scale.pattern!r}")
    return timed(group.models, effects, scenario, group.meetings)


def _bases(group: _Group, scenario: Scenario) -> list[str]:
    """Say what the times on another card, or at other sizes, rest on."""
    if scenario.priced is None or scenario.changes > 1:
        return []
    found = [model.priced(scenario.priced) for model in group.models]
    times = [sum(getattr(one, name) for one in found if one) for name in ("modelled_ns", "rated_ns", "kept_ns")]
    whole = sum(times) or 1
    modelled, rated, kept = (100 * time / whole for time in times)
    return [
        f"{scenario.text}: {modelled:.0f} % of the GPU time is priced by fitted models, {rated:.0f} % by FLOPs and "
        f"bytes (without known FLOPs: by the memory bandwidth), {kept:.0f} % kept as recorded"
    ]


def _latest(group: _Group, ranks: list[Timed]) -> tuple[int, int]:
    """Return the longest time of the chosen captures, and which of them takes it.

    If no rank is to be waited for, that of the median rank, to which the slower ones are then equal; if the work is
    shared out unevenly, the mean of all ranks. Stages begin and end their steps one after another, further apart the
    longer the others take, so that of a pipeline only its end is compared: that of the last stage to end.
    """
    if group.shares is Shares.STAGES:
        end, place = max((one.finish(), place) for place, one in enumerate(ranks))
        spans = [model.span for model in group.models]
        longest = max(spans[place].end - spans[place].begin for place in group.chosen)
        return longest + end - max(span.end for span in spans), place
    equal = bool(group.meetings.all) and ranks[0].are_equal
    places = range(len(ranks)) if equal else group.chosen
    lengths = sorted((ranks[place].finish() - group.models[place].span.begin, place) for place in places)
    if not equal:
        return lengths[-1]
    length, place = lengths[(len(lengths) - 1) // 2]
    if group.shares is Shares.EXPERTS:
        length = round(sum(length for length, _ in lengths) / len(lengths))
    return length, place
