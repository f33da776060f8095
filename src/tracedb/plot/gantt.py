"""GPU activity over time, by stream, below the ranges of the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from tracedb.output.shorten import ELLIPSIS, common_start, middle, shorten, visible
from tracedb.plot import datasets
from tracedb.plot.captions import gpus, in_order, left_out, many
from tracedb.plot.definition import Drawing, Table
from tracedb.plot.theme import INK, class_scale, time_axis

_WIDTH = 1000
_LANE = 18
_LETTER = 6.2
"""Pixels of a letter in a range."""
_FEWEST = 3
"""Letters that must fit into a range for its name to be shown."""
_TAILED = 14
"""Letters from which a name that is cut keeps its end."""
_RANGE = "range on the host"
_RANGE_COLOUR = "#DCDCDC"
_CLOCKS = {
    "recorded": "Clocks of the ranks are compared as recorded: no alignment is known.",
    "incomparable": "Clocks cannot be compared: each capture begins at its own first event.",
}


def bars(table: Table) -> Drawing:
    """Draw a bar for each event in the row of its stream, and for each range in the row of its thread and depth."""
    lanes = _lanes(table)
    start, end = table.choice.window or (0, max(row["until_ns"] for row in table.rows if not row["is_range"]))
    unit, expression = time_axis([end])
    scale = class_scale({row["class"] for row in table.rows if not row["is_range"]})
    ranges = sum(table.column("is_range"))
    if ranges:
        scale = {"domain": [*scale["domain"], _RANGE], "range": [*scale["range"], _RANGE_COLOUR]}
    legend = alt.Legend(orient="top", columns=10)
    time = {
        "scale": alt.Scale(domain=[start, end], nice=False, zero=False),
        "axis": alt.Axis(
            labelExpr=expression,
            labelOverlap=True,
            labelSeparation=8,
            title=f"time since the first event shown, {unit}",
            grid=True,
        ),
    }
    y = alt.Y(
        "lane",
        type="nominal",
        sort=in_order(lanes),
        title=None,
        axis=alt.Axis(grid=True, tickBand="extent", ticks=False, domain=False),
    )
    base = alt.Chart(_data(table, lanes, start, end))
    chart: Any = base.mark_rect(clip=True, strokeWidth=0.4, height=_LANE - 4).encode(
        x=alt.X("since_ns", type="quantitative", **time),
        x2=alt.X2("until_ns"),
        y=y,
        color=alt.Color("class", type="nominal", title=None, scale=scale, legend=legend),
        stroke=alt.Stroke("edge", type="nominal", scale=None),
        tooltip=[
            alt.Tooltip("name", type="nominal"),
            alt.Tooltip("class", type="nominal"),
            alt.Tooltip("since_ns", type="quantitative", format=",.0f"),
            alt.Tooltip("duration_ns", type="quantitative", format=",.0f"),
        ],
    )
    if ranges:
        names = base.mark_text(align="left", dx=3, fontSize=10.5, color=INK, clip=True).encode(
            x=alt.X("text_ns", type="quantitative", **time), y=y, text=alt.Text("text", type="nominal")
        )
        chart = alt.layer(chart, names.transform_filter("datum.text"))
    return Drawing(
        chart.properties(width=_WIDTH, height=alt.Step(_LANE)),
        _title(table),
        _lines(table, ranges),
        _missing(table, ranges),
        in_order(lanes),
    )


def _lanes(table: Table) -> list[str]:
    """Return the lane of each row in words: its capture, its GPU, and its stream or thread."""
    gpu = iter(gpus(table, [not row["is_range"] for row in table.rows]))
    lanes = []
    for place, row in zip(table.places, table.rows, strict=True):
        where = place if row["is_range"] else next(gpu)
        lanes.append(" · ".join(part for part in (where, row["lane"] or "stream not recorded") if part))
    return lanes


def _data(table: Table, lanes: list[str], start: int, end: int) -> alt.NamedData:
    names = dict(zip(table.column("name"), shorten([visible(name) for name in table.column("name")], 120), strict=True))
    scale = class_scale({row["class"] for row in table.rows if not row["is_range"]})
    colours = dict(zip(scale["domain"], scale["range"], strict=True))
    same = common_start([visible(row["name"]) for row in table.rows if row["is_range"]])
    values = []
    for lane, row in zip(lanes, table.rows, strict=True):
        kind = _RANGE if row["is_range"] else visible(row["class"])
        value = {"lane": lane, "name": names[row["name"]], "class": kind, "edge": colours.get(kind, "white")}
        value |= {name: row[name] for name in ("since_ns", "until_ns", "duration_ns")}
        values.append(value | _text(row, start, end, same))
    return datasets.data(values)


def _text(row: Mapping[str, Any], start: int, end: int, same: int) -> dict[str, object]:
    """Return the name to show in a range, and where; none where fewer than three letters fit.

    ``same``: the number of letters with which all ranges begin; a name that does not fit goes without them.
    """
    if not row["is_range"]:
        return {}
    left = max(row["since_ns"], start)
    letters = int((min(row["until_ns"], end) - left) / max(end - start, 1) * _WIDTH / _LETTER - 1)
    if letters < _FEWEST:
        return {}
    name = visible(row["name"])
    if same and len(name) > letters:
        name = ELLIPSIS + name[same:]
    return {"text_ns": left, "text": middle(name, letters, 0.3 if letters >= _TAILED else 0)}


def _title(table: Table) -> str:
    return "GPU activity by stream" + ("" if table.choice.step is None else f" in step {table.choice.step}")


def _lines(table: Table, ranges: int) -> list[str]:
    first = table.first
    shown = f"n = {len(table.rows) - ranges:,} of {many(first['all_events'], 'event')}."
    if ranges:
        shown += f" Above the streams: {ranges:,} of {many(first['all_ranges'], 'range')}, as timed on the host."
    return [shown, *(_CLOCKS[clock] for clock in in_order(table.column("clock")) if clock in _CLOCKS)]


def _missing(table: Table, ranges: int) -> list[str]:
    """Return sentences about streams, events and ranges that are not drawn."""
    first = table.first
    missing = left_out(
        first["other_lanes"],
        "stream",
        f"they have {many(first['events_of_other_lanes'], 'event')}; filters such as --rank choose others",
    )
    if first["shorter_events"]:
        missing.append(
            f"the {many(first['shorter_events'], 'shortest event')} on these streams are left out, "
            f"{first['shorter_percent']:.2g} % of the summed time; --step or --window looks closer"
        )
    hint = "deeper ones, other threads, or too short; --rank, --step or --window looks closer"
    return missing + left_out(first["all_ranges"] - ranges, "range", hint)
