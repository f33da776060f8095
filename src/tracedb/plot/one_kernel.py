"""The durations of one kernel, and its pace."""

from __future__ import annotations

from typing import Any

import altair as alt

from tracedb.plot import datasets
from tracedb.plot.captions import gpus, in_order, left_out, many, one_name
from tracedb.plot.definition import Drawing, Table
from tracedb.plot.theme import BLUE, SERIES, count_axis, time_channel

_WIDTH = 760


def _which(table: Table) -> list[str]:
    first = table.first
    others = first["matching_kernels"] - 1
    more = ""
    if others:
        which = "all kernels" if table.choice.kernel is None else "those that match"
        more = f" It takes the most time among {which} ({many(others + 1, 'name')}); --kernel chooses."
    return [f"Kernel: {one_name(first['name'])}.{more}"]


def histogram(table: Table) -> Drawing:
    """Draw a histogram of the durations of calls."""
    first = table.first
    ends = [value for row in table.rows for value in (row["from_ns"], row["to_ns"])]
    is_far = min(ends) > 0 and max(ends) >= 3 * min(ends)
    channel = time_channel(ends, "duration of a call", "log" if is_far else "linear")
    if min(ends) == max(ends):
        channel["scale"]["domain"] = [min(ends) * 0.9, max(ends) * 1.1]
    groups = [place or "all" for place in table.places]
    panel = (
        alt.Chart(_bins(table, groups))
        .mark_rect(color=BLUE, stroke="white", strokeWidth=0.6)
        .encode(
            x=alt.X("from_ns", type="quantitative", **channel),
            x2=alt.X2("to_ns"),
            y=alt.Y("calls", type="quantitative", title="calls", axis=alt.Axis(**count_axis(table.column("calls")))),
            y2=alt.Y2("zero"),
            tooltip=[
                alt.Tooltip(name, type="quantitative", format=",.1~f")
                for name in ("from_ns", "to_ns", "calls", "percent")
            ],
        )
        .properties(width=_WIDTH, height=300 if len(set(groups)) == 1 else 110)
    )
    chart: Any = panel
    if len(set(groups)) > 1:
        chart = panel.facet(
            row=alt.Row(
                "group",
                type="nominal",
                sort=in_order(groups),
                title=table.place_header,
                header=alt.Header(labelAngle=0, labelAlign="left"),
            ),
            spacing=12,
        )
    return Drawing(
        chart,
        "Durations of one kernel",
        [
            *_which(table),
            f"n = {many(first['all_calls'], 'call')} in {many(first['bins'], 'bin')}, equally wide "
            "on a logarithmic scale.",
        ],
    )


def _bins(table: Table, groups: list[str]) -> alt.NamedData:
    return datasets.data(
        [
            {
                "group": group,
                "from_ns": row["from_ns"],
                "to_ns": max(row["to_ns"], row["from_ns"] + 1),
                "calls": row["calls"],
                "percent": row["calls_percent"],
                "zero": 0,
            }
            for group, row in zip(groups, table.rows, strict=True)
        ]
    )


def pace(table: Table) -> Drawing:
    """Draw the time between calls and their durations, a line for each GPU."""
    first = table.first
    places = gpus(table)
    order = in_order(places)
    kept = ("call_index", "interval_ns", "duration_ns", "calls")
    data = datasets.data(
        [{"gpu": place, **{name: row[name] for name in kept}} for place, row in zip(places, table.rows, strict=True)]
    )
    colour = alt.Color(
        "gpu",
        type="nominal",
        sort=order,
        title=table.place_header or "GPU",
        scale=alt.Scale(domain=order, range=[SERIES[at % len(SERIES)] for at in range(len(order))]),
        legend=None if len(order) == 1 else alt.Legend(symbolLimit=40),
    )

    base = alt.Chart(data).mark_line(point=alt.OverlayMarkDef(size=12), strokeWidth=1, opacity=0.85)
    base = base.encode(x=_calls(table), color=colour)
    size = first["group_size"]
    of_all = f"{first['shown_calls']:,} of {many(first['all_calls'], 'call')}"
    point = "" if size == 1 else f" Points: medians of {size} consecutive calls."
    return Drawing(
        alt.vconcat(
            _panel(base, table, "interval_ns", "from the start of the previous call", 220),
            _panel(base, table, "duration_ns", "duration", 160),
        ),
        "Pace of one kernel",
        [*_which(table), f"n = {many(first['shown_calls'], 'call')}, numbered on each GPU in order of start.{point}"],
        left_out(first["left_out"], "GPU", f"12 are drawn, with {of_all}; --rank and --where choose"),
    )


def _calls(table: Table) -> alt.X:
    calls = sorted(set(table.column("call_index")))
    return alt.X(
        "call_index",
        type="quantitative",
        title="call",
        scale=alt.Scale(nice=False, zero=False, domain=[min(calls), max(calls)]),
        axis=alt.Axis(format=",d", values=calls if len(calls) <= 12 else alt.Undefined, tickCount=10),
    )


def _panel(base: alt.Chart, table: Table, field: str, title: str, height: int) -> alt.Chart:
    numbers = ("call_index", field, "calls")
    tips = [alt.Tooltip("gpu", type="nominal")]
    tips += [alt.Tooltip(name, type="quantitative", format=",.0f") for name in numbers]
    y = alt.Y(field, type="quantitative", **time_channel(table.column(field), title, "wide"))
    shown = base.encode(y=y, tooltip=tips).transform_filter(f"isValid(datum.{field})")
    return shown.properties(width=_WIDTH, height=height)
